"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Timing belongs in benchmarks/: a busy machine must not fail a property test. And what passes once passes again.
settings.register_profile("untimed", deadline=None, derandomize=True)
settings.load_profile("untimed")

NEIGHBOUR = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Real data: LOGRAB_MIRROR, or ../shared/data beside the repository; an empty cache."""
    folder = Path(os.environ.get("LOGRAB_MIRROR") or NEIGHBOUR).resolve()
    if not folder.is_dir():
        pytest.skip("needs real data: set LOGRAB_MIRROR to a folder with the publishers' files")
    monkeypatch.setenv("LOGRAB_MIRROR", str(folder))
    monkeypatch.setenv("LOGRAB_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def own_mirror(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty mirror for files that a test makes itself; an empty cache."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    monkeypatch.setenv("LOGRAB_MIRROR", str(folder))
    monkeypatch.setenv("LOGRAB_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture(scope="session")
def scheduler():
    """Start a Dask cluster inside this process; gives its address."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, protocol="tcp://",
                      dashboard_address=None) as cluster:  # fmt: skip
        yield cluster.scheduler_address
