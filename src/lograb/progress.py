"""How whoever waits for something is told how far the work is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int | None], None]
"""Called with what is being done, how much of it is done, and how much there is, where that is known."""


def ignore(what: str, done: int, total: int | None) -> None:
    """Tell nobody about progress."""
