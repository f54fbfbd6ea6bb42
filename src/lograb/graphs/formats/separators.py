"""What separates the two names on a line of an edge list, and lines that seem to use something else."""

from __future__ import annotations

import re

from lograb.errors import LograbError

BLANK = ""
NAMED = {",": "comma", "\t": "tab", ";": "semicolon", BLANK: "blank"}
# Not read, but looked for when lines do not split: "a|b", "a->b".
_FOREIGN = {"|": "bar", "->": "arrow"}
_QUOTED = re.compile(r'"[^"]*"')


def find_delimiter(lines: list[str], suffix: str) -> str:
    """Choose what separates the fields of most lines.

    Blanks also occur inside names, so a comma, tab or semicolon wins over them if it is in half as
    many lines; in a file that says it is csv or tsv, if it is in any line.
    """
    text = "\n".join(lines)
    if '"' in text:
        lines = [_QUOTED.sub("q", line) for line in lines]
    # Ties go to the first; a tab at the end of a line does not count.
    order = (",", "\t", ";") if suffix == ".csv" else ("\t", ",", ";")
    counts = {mark: sum(mark in line.strip() for line in lines) if mark in text else 0 for mark in order}
    best = max(order, key=lambda mark: counts[mark])
    if counts[best] == 0:
        return BLANK
    blanks = sum(len(line.split(None, 1)) > 1 for line in lines)
    needed = 1 if suffix in (".csv", ".tsv") else max(1, blanks / 2)
    return best if counts[best] >= needed else BLANK


def check_single_lines(lines: list[str], n_lines: int, delimiter: str) -> tuple[str, ...]:
    """Look for another separator in the lines that the delimiter leaves in one piece, of `n_lines` in all.

    Some that look like edges are worth a notice; if most do, the file is refused.
    """
    others = [mark for mark in (*NAMED, *_FOREIGN) if mark != delimiter]
    held = {mark: [line for line in lines if _holds(line, mark)] for mark in others}
    other = max(others, key=lambda mark: len(held[mark]))
    count = sum(any(_holds(line, mark) for mark in others) for line in lines)
    if not count:
        return ()
    used, example = NAMED[delimiter], held[other][0].strip()[:60]
    found = (NAMED | _FOREIGN)[other] + (" or another mark" if count > len(held[other]) else "")
    if 2 * count > n_lines:
        raise LograbError("an edge list needs one separator throughout (comma, tab, semicolon or blank); split at "
                          f"the {used}, {count} of {n_lines} lines have a single name, such as '{example}', which "
                          f'the {found} would split: change the separator, or quote names that hold it, "ann lee"')
    have = "1 line has" if count == 1 else f"{count} lines have"
    return (f"{have} no {used}, but the {found} would split them, such as '{example}': read as one name each; use "
            "one separator throughout if these are edges",)


def _holds(line: str, mark: str) -> bool:
    """Tell whether a mark stands between two names of a line, outside quotes."""
    parts = _QUOTED.sub("q", line).strip().split(mark or None)
    return len(parts) > 1 and all(map(str.strip, parts[:2]))
