"""One process at a time brings a dataset into the cache."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def only_one(locks: Iterable[Path], waiting: Callable[[], None]) -> Iterator[None]:
    """Hold lock files until the end; call `waiting` once if another process, or thread, has one of them.

    A lock file is never deleted: one who waits for a deleted file and one who makes it anew would both go on.
    Where the platform or the file system has no locks, the user is trusted.
    """
    with ExitStack() as held:
        for path in sorted(set(locks)):  # all take them in this order, so nobody waits in a circle
            path.parent.mkdir(parents=True, exist_ok=True)
            _take(held.enter_context(_opened(path)), waiting)
        yield


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("ab")
    except PermissionError:  # another user's, in a cache that several share: reading is enough for a lock
        return path.open("rb")


def _take(lock: IO[Any], waiting: Callable[[], None]) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        waiting()
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError:  # a file system without locks
        return
