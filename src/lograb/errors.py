"""The errors that a user can cause, the notices a user should read, and the one rule for their texts.

Every message states the rule, and the value received and the remedy where they help. The command
line turns each error into one line on stderr and exit code 2 (``lograb verify`` turns an
`ArchiveError` into 1), and each notice into one line that starts with "note:".
"""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Callable, Iterable

Notify = Callable[[str], None]
"""Called with the text of a notice."""


class LograbError(ValueError):
    """Input that cannot be used: a bad parameter, a bad file, an unknown name."""


class ArchiveError(LograbError):
    """An archive that does not hold what it promises; `member` names the place, or `file` the whole."""

    def __init__(self, member: str, problem: str, file: str = "") -> None:
        super().__init__(f"'{file}': {problem}" if file else f"{member}: {problem}")
        self.member, self.problem = member, problem


class UnavailableError(LograbError):
    """A file, a folder or a server that is out of reach; later, or on another machine, it may be there."""


class MissingExtraError(LograbError):
    """A feature that needs an optional dependency."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra '{extra}': install lograb as with pip install '.[{extra}]'")


class LograbNotice(UserWarning):
    """Something in a user's data was changed, dropped or read in one of several ways."""


def warn(text: str) -> None:
    """Issue a notice as a warning that points at the user's line, the first one outside lograb."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "lograb":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, LograbNotice, stacklevel=level)


def unknown_name(kind: str, name: str, choices: Iterable[str]) -> LograbError:
    """Build the error for a name that a catalog does not have, with the closest match."""
    choices = list(choices)
    close = difflib.get_close_matches(name, choices, n=1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    return LograbError(f"unknown {kind} '{name}'.{hint} Choices: {', '.join(choices)}")
