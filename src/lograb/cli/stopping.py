"""How a command ends before its end: a mistake, Ctrl-C, a kill. One line each, and no traceback."""

from __future__ import annotations

import signal
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from lograb.errors import LograbError

FOREIGN = {
    "pydantic_core._pydantic_core.ValidationError": "the input does not fit",
    "_csv.Error": "the table cannot be read",
    "numpy.linalg.LinAlgError": "an eigenvalue or matrix problem has no solution (very large numbers?)",
}
"""Errors of other libraries that bad input can cause; by name, because importing them takes time."""

_written: list[Path] = []


class Interrupted(BaseException):
    """Ctrl-C. Not a KeyboardInterrupt, which the command-line library would answer in its own way.

    Its text says what is kept, where files are not all.
    """


def run(command: Callable[[], Any]) -> None:
    """Run the command line; a user's mistake becomes one line on stderr and exit code 2."""
    _written.clear()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds like an error: temporary files go
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupt)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        command()
    except Interrupted as stop:
        end(f"interrupted: {str(stop) or _kept()}", 130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except Exception as error:
        text = _explain(error)
        if text is None:
            raise
        end(text, 2)


def written(path: Path) -> None:
    """Note a file that is whole, for whoever interrupts what follows."""
    _written.append(path)


def clean(text: str) -> str:
    """Escape what a terminal would obey or could not show: names from files may hold anything."""
    return "".join(c if c.isprintable() or unicodedata.category(c) == "Zs" else
                   c.encode("unicode_escape").decode() for c in text)  # fmt: skip


def end(text: str, code: int) -> NoReturn:
    """End the command with one line on stderr."""
    print(clean(f"lograb: {text}"), file=sys.stderr)
    sys.exit(code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted


def _kept() -> str:
    if not _written:
        return "nothing was written"
    return f"{', '.join(repr(str(path)) for path in _written)} is written and whole, nothing else"


def _explain(error: Exception) -> str | None:
    """Put an error that input can cause into one line; None for all others, which are ours."""
    if isinstance(error, LograbError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"out of memory{f' ({error})' if str(error) else ''}: take a smaller graph, p, d or k"
    if isinstance(error, OSError) and error.filename is not None:
        return f"cannot use '{error.filename}': {error.strerror}"
    for kind in type(error).__mro__:
        if (name := f"{kind.__module__}.{kind.__qualname__}") in FOREIGN:
            return f"{FOREIGN[name]}: {' '.join(str(error).split())}"
    return None
