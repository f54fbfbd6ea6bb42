"""Timing, the same for all benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(function: Callable[[], object], repeats: int) -> float:
    """Take the best of several runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)
