"""Run a function over many items on all cores, in order, without fighting the BLAS.

Threads suffice: the numerical libraries release the interpreter's lock. Each BLAS call is held
to one thread, because many small problems at once beat many threads on one small problem by far
(see docs/performance.md), and because results then do not depend on the number of cores.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")


def n_cores() -> int:
    """Count the cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _blas() -> ThreadpoolController:
    """Find the loaded BLAS libraries, once: the search takes milliseconds."""
    return ThreadpoolController()


def ordered_map(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int | None = None
) -> Iterator[Result]:
    """Yield ``function(item)`` for every item, in order, on `workers` threads (all cores by default).

    Items are drawn in the calling thread, one after the other, and only a few ahead of the
    results: a lazy iterable stays lazy, and a random generator inside it stays reproducible.
    """
    workers = n_cores() if workers is None else workers
    if workers == 1:
        with _blas().limit(limits=1):
            yield from map(function, items)
        return
    with _blas().limit(limits=1), ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def split_map(function: Callable[[slice], None], n: int, parts: int) -> None:
    """Call a function on consecutive slices of range(n), each in a thread, the first in the calling one.

    For work of milliseconds, where starting threads counts: there are as many as parts, but no more than cores.
    """
    parts = max(1, min(parts, n_cores(), n))
    slices = [slice(n * i // parts, n * (i + 1) // parts) for i in range(parts)]
    with _blas().limit(limits=1):
        if parts == 1:
            function(slices[0])
            return
        with ThreadPoolExecutor(parts - 1) as pool:
            others = [pool.submit(function, part) for part in slices[1:]]
            function(slices[0])
            for other in others:
                other.result()
