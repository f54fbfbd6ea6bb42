"""Experiments of a second."""

import pytest

from lograb.experiments import Store
from lograb.experiments.config import Config, make_plan

TINY = {"instances": [{"dataset": "karate", "p": 0.6, "k": 8, "sigma": [0.0, 0.05]}], "seeds": 2,
        "attacks": [{"name": "membership"}, {"name": "afr"}]}  # fmt: skip


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def plan():
    """Make a plan of the tiny experiment, with some of it changed."""
    return lambda **changed: make_plan("tiny", Config(**TINY | changed))
