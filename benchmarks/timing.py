"""Timing, the same for all benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(function: Callable[[], object], repeats: int) -> float:
    """Take the best of several runs."""
    return both(function, repeats)[0]


def both(function: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Take the best of several runs by the clock on the wall, and by processor time over all threads."""
    wall, processor = [], []
    for _ in range(repeats):
        start = time.perf_counter(), time.process_time()
        function()
        wall.append(time.perf_counter() - start[0])
        processor.append(time.process_time() - start[1])
    return min(wall), min(processor)
