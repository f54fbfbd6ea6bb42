"""Names that a user gives to nodes and groups: which are numbers, and the order they are put in."""

from __future__ import annotations

import re
from collections.abc import Iterable


def is_whole_number(name: str) -> bool:
    """Tell whether a name is a whole number written in the only way Python would write it."""
    digits = name.removeprefix("-")
    # Python does not convert thousands of digits; a run that long is a name.
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 100):
        return False
    return name == "0" or digits[0] != "0"


def sort_names(names: Iterable[str]) -> list[str]:
    """Put the distinct names in order: numerically if all are whole numbers, else alphabetically.

    The order in which a file lists them is never kept: it would give edges away, because whoever
    stands on one line, or on neighbouring ones, would get neighbouring numbers.
    """
    distinct = list(dict.fromkeys(names))
    if all(map(is_whole_number, distinct)):
        return list(map(str, sorted(map(int, distinct))))
    return sorted(distinct)


def index_names(names: Iterable[str]) -> tuple[dict[str, int], tuple[str, ...] | None]:
    """Number the distinct names in order: name to id, and the names by id, None if they are just the ids."""
    ordered = sort_names(names)
    index = {name: i for i, name in enumerate(ordered)}
    plain = ordered[:1] == ["0"] and ordered == list(map(str, range(len(ordered))))
    return index, None if plain else tuple(ordered)


def plain_word(word: str) -> str:
    """Reduce the title of a column to its letters and digits."""
    return re.sub(r"[\W_]", "", word.lower())


def shorten(names: Iterable[str], most: int = 5) -> str:
    """List the first few names, each cut to a readable length."""
    names = list(names)
    shown = ", ".join(name if len(name) <= 40 else name[:37] + "..." for name in names[:most])
    return shown if len(names) <= most else f"{shown} ..."
