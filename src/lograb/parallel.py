"""Run a function over many items on all cores, in order, without fighting the BLAS.

Threads suffice: the numerical libraries release the interpreter's lock. Each BLAS call is held
to one thread, because many small problems at once beat many threads on one small problem by far
(see docs/reference/performance.md), and because results then do not depend on the number of cores.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")
FEW_ROWS = 20_000
FEW_PAIRS = 20_000


_most: int | None = None


def hold_threads(most: int | None) -> None:
    """Let this process use so many cores at most; None for all. One of many workers on a machine has one."""
    global _most
    _most = most


_alone: ContextVar[bool] = ContextVar("alone", default=False)


@contextmanager
def cores_for(pairs: int) -> Iterator[None]:
    """Leave all cores to a task about many pairs; one about few takes one: threads would wait for each other."""
    if pairs >= FEW_PAIRS:
        yield
        return
    before = _alone.set(True)
    try:
        with one_blas_thread():
            yield
    finally:
        _alone.reset(before)


def n_cores() -> int:
    """Count the cores this process, or the task at hand, may use."""
    if _alone.get():
        return 1
    if _most is not None:
        return _most
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _blas() -> ThreadpoolController:
    """Find the loaded BLAS libraries, once: the search takes milliseconds."""
    return ThreadpoolController()


class _Hold:
    """Who holds BLAS and torch to one thread: the first who comes limits them, the last who goes lets them loose.

    The limit is one for all threads of the process. If each restored what it had found, those that overlap would
    leave the limit behind.
    """

    def __init__(self) -> None:
        self.lock, self.holders = Lock(), 0
        self.limit: Any = None
        self.torch: tuple[Any, int] | None = None

    def __enter__(self) -> None:
        with self.lock:
            if not self.holders:
                if (torch := sys.modules.get("torch")) is not None:  # asked first: the BLAS may be its own
                    self.torch = torch, torch.get_num_threads()
                    torch.set_num_threads(1)
                self.limit = _blas().limit(limits=1)
            self.holders += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.holders -= 1
            if not self.holders and self.limit is not None:
                self.limit.restore_original_limits()
                self.limit = None
                if self.torch is not None:
                    self.torch[0].set_num_threads(self.torch[1])
                    self.torch = None


_HOLD = _Hold()


def one_blas_thread() -> AbstractContextManager[None]:
    """Hold the BLAS, and torch where it is loaded, to one thread; entering takes a tenth of a millisecond."""
    return _HOLD


def threads_for(rows: float) -> AbstractContextManager[None]:
    """Leave all threads to steps of many rows; steps of few are held to one: they would wait for each other."""
    return _HOLD if rows < FEW_ROWS else nullcontext()


@cache
def _helpers() -> ThreadPoolExecutor:
    """Keep threads: starting one takes a good part of a millisecond."""
    return ThreadPoolExecutor(max(1, (os.cpu_count() or 1) - 1), "lograb-helper")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # a forked process has none of them
    os.register_at_fork(before=_HOLD.lock.acquire, after_in_parent=_HOLD.lock.release,
                        after_in_child=_HOLD.lock.release)  # fmt: skip


def ordered_map(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int | None = None
) -> Iterator[Result]:
    """Yield ``function(item)`` for every item, in order, on `workers` threads (all cores by default).

    Items are drawn in the calling thread, one after the other, and only a few ahead of the
    results: a lazy iterable stays lazy, and a random generator inside it stays reproducible.
    """
    workers = n_cores() if workers is None else workers
    if workers == 1:
        with one_blas_thread():
            yield from map(function, items)
        return
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for unwanted in waiting:  # whoever stops early does not wait for the rest
                unwanted.cancel()


def split_map(function: Callable[[slice], None], n: int, parts: int) -> None:
    """Call a function on consecutive slices of range(n), the first in this thread, the others in kept ones.

    For work of milliseconds. There are as many slices as parts, but no more than cores. The function
    must not call this one, and the caller sees to `one_blas_thread` where products are large.
    """
    parts = min(parts, n, n_cores()) if parts > 1 else 1
    if parts < 2:
        function(slice(0, n))
        return
    slices = [slice(n * i // parts, n * (i + 1) // parts) for i in range(parts)]
    others = [_helpers().submit(function, part) for part in slices[1:]]
    try:
        function(slices[0])
    finally:
        wait(others)
    for other in others:
        other.result()
