"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from lograb.errors import LograbError

PREFIX, SUFFIX = ".lograb-", ".part"


def check_target(path: Path, what: str, is_ours: Callable[[IO[bytes]], bool]) -> None:
    """Refuse to write into nowhere, or over a file that is no earlier one of ours; empty files are nobody's."""
    if path.is_dir():
        raise LograbError(f"'{path}' is a folder: name a file in it")
    if not path.parent.is_dir():
        raise LograbError(f"cannot write '{path}': there is no folder '{path.parent}'")
    if path.is_file() and path.stat().st_size:
        try:
            with path.open("rb") as content:
                ours = is_ours(content)
        except OSError:
            ours = False
        if not ours:
            raise LograbError(f"'{path}' exists and is not an earlier {what}: choose another name or remove it")


@contextmanager
def replacing(path: str | Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """Write under a temporary name beside `path`, and give the file its name when all is on disk.

    Whatever happens before that leaves an earlier file of that name as it was. What a killed process left is
    deleted by the next one that writes into the folder. Devices and pipes are written directly. An `OSError`
    becomes a `LograbError` that names the file.
    """
    path = Path(path)
    text: dict[str, Any] = {} if binary else {"encoding": "utf-8", "newline": ""}
    try:
        if path.exists() and not path.is_file():
            with path.open("wb" if binary else "w", **text) as file:
                yield file
            return
        path = path.resolve()  # through a link to the file it names
        handle, name = _temporary(path.parent)
        held = os.dup(handle) if os.name == "posix" else None  # the lock lasts until the file has its name
        try:
            with open(handle, "wb" if binary else "w", **text) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
            os.replace(name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
        finally:
            if held is not None:
                os.close(held)
    except OSError as error:
        raise LograbError(f"cannot write '{path}': {error.strerror or error}") from None


def _temporary(folder: Path) -> tuple[int, str]:
    """Make a temporary file, locked as long as somebody writes it; delete those that nobody writes any more."""
    while True:
        for leftover in folder.glob(f"{PREFIX}*{SUFFIX}"):
            with suppress(OSError), leftover.open("rb") as file:
                if _lock(file.fileno(), wait=False):
                    leftover.unlink()
        handle, name = tempfile.mkstemp(prefix=PREFIX, suffix=SUFFIX, dir=folder)
        _lock(handle, wait=True)
        if os.path.exists(name):  # else another process took it for a leftover before it was locked
            return handle, name
        os.close(handle)


def _lock(handle: int, *, wait: bool) -> bool:
    """Lock a file; False where the platform or the file system has no locks, or somebody else holds it."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return True
    except (ImportError, OSError):
        return False


def _umask() -> int:
    """Read the mask of permissions; it can be read only by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
