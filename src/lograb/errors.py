"""The errors that a user can cause, and the one rule for their texts.

Every message states the rule, and the value received and the remedy where they help. The command
line turns each of them into one line on stderr and exit code 2 (``lograb verify`` turns an
`ArchiveError` into 1).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LograbError(ValueError):
    """Input that cannot be used: a bad parameter, a bad file, an unknown name."""


class ArchiveError(LograbError):
    """An archive that does not hold what it promises; `member` names the place."""

    def __init__(self, member: str, problem: str) -> None:
        super().__init__(f"{member}: {problem}")
        self.member = member


class MissingExtraError(LograbError):
    """A feature that needs an optional dependency."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra '{extra}': install lograb as with pip install '.[{extra}]'")


def unknown_name(kind: str, name: str, choices: Iterable[str]) -> LograbError:
    """Build the error for a name that a catalog does not have, with the closest match."""
    choices = list(choices)
    close = difflib.get_close_matches(name, choices, n=1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    return LograbError(f"unknown {kind} '{name}'.{hint} Choices: {', '.join(choices)}")
