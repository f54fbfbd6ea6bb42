"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from lograb.errors import LograbError


@contextmanager
def replacing(path: str | Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """Write under a temporary name beside `path`, and give the file its name when all is on disk.

    Whatever happens before that leaves an earlier file of that name as it was. Devices and pipes are written
    directly. An `OSError` becomes a `LograbError` that names the file.
    """
    path = Path(path)
    text: dict[str, Any] = {} if binary else {"encoding": "utf-8", "newline": ""}
    try:
        if path.exists() and not path.is_file():
            with path.open("wb" if binary else "w", **text) as file:
                yield file
            return
        path = path.resolve()  # through a link to the file it names
        handle, name = tempfile.mkstemp(prefix=".lograb-", dir=path.parent)
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
    except OSError as error:
        raise LograbError(f"cannot write '{path}': {error.strerror or error}") from None


def _umask() -> int:
    """Read the mask of permissions; it can be read only by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
