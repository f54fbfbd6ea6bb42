"""Randomness and devices: reproducible on the CPU, and no trace left for the caller."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from lograb.errors import MissingExtraError

if TYPE_CHECKING:
    import torch


def require_torch(what: str) -> None:
    """Say which extra is missing, where one is; `what` names what needs it."""
    try:
        import torch  # noqa: F401
        import torch_geometric  # noqa: F401
    except ImportError:
        raise MissingExtraError(what, "gnn") from None


def pick_device() -> torch.device:
    """Choose the GPU when there is one."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@contextmanager
def seeded(rng: np.random.Generator) -> Iterator[None]:
    """Let torch draw from a stream that follows from `rng`, and restore torch's own streams afterwards.

    Initial weights and dropout draw from torch's global streams; inside this block these are
    seeded, outside it they are what they were. On the CPU deterministic algorithms are asked for.
    """
    import torch

    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
    strict = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    memory: Any = torch.utils.deterministic
    fill = memory.fill_uninitialized_memory
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(int(rng.integers(2**63 - 1)))
        torch.use_deterministic_algorithms(True, warn_only=bool(devices))
        memory.fill_uninitialized_memory = False  # costs time; nothing here reads such memory
        try:
            yield
        finally:
            memory.fill_uninitialized_memory = fill
            torch.use_deterministic_algorithms(strict, warn_only=warn_only)
