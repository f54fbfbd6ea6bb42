"""A user's file of patches: read into rows, then told what the rows mean.

Three kinds of file: JSON; one list of nodes per line; or a table ``node,group`` with two names per line,
one patch for each group. A line alone does not tell a pair of nodes from a node and its group, so
the graph's nodes are asked:

- A first line such as ``node,group`` (see `GROUP_WORDS`), whose first name is no node, is the header
  of a table.
- Without one, lines of two names each are a table if no second name is a node while some first name
  is one.
- Where second names are nodes too, nothing is guessed: the file is refused with both remedies.
- All else is one list per line.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lograb.errors import LograbError
from lograb.names import plain_word

GROUP_WORDS = frozenset((
    "group", "groups", "groupid", "groupname", "patch", "patchid", "silo", "siloid", "department", "dept", "team",
    "unit", "division", "office", "branch", "site", "client", "clientid", "cluster", "clusterid", "community",
    "communityid", "module", "part", "partition", "block", "class", "label", "category", "organisation",
    "organization", "institution", "hospital", "bank", "school", "region", "country", "city"))
NODE_WORDS = frozenset(("node", "nodeid", "nodename", "vertex", "id", "name", "member", "user", "userid", "person",
                        "personid", "employee", "employeeid", "customer", "customerid", "patient", "patientid"))
_QUOTED = re.compile(r'"[^"]*"')
_MARKS = ("\t", ";", ",")


@dataclass(frozen=True)
class Rows:
    """The lines of a text file that hold names, each split into its fields."""

    file: str
    numbers: list[int]
    fields: list[list[str]]


def read_patch_file(path: str | Path) -> Rows | Any:
    """Read a file of patches: `Rows` from text, whatever it holds from JSON."""
    path = Path(path).expanduser()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise LograbError(f"cannot read the patches in '{path}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise LograbError(f"cannot read the patches in '{path}': it is not UTF-8 text") from None
    if path.suffix.lower() == ".json":
        return _read_json(path, text)
    lines = [(i, line.strip(" \r")) for i, line in enumerate(text.split("\n"), start=1)]
    lines = [(i, line) for i, line in lines if line.strip() and line.lstrip()[0] not in "#%"]
    bare = [_QUOTED.sub("", line).strip() for _, line in lines]
    common = next((mark for mark in _MARKS if all(mark in line for line in bare)), None)
    return Rows(path.name, [i for i, _ in lines], [_split(path, i, line, common) for i, line in lines])


def _split(path: Path, number: int, line: str, common: str | None) -> list[str]:
    """Split at what all lines have in common, else at tabs, else commas, else semicolons, else blanks."""
    bare = _QUOTED.sub("", line).strip()
    mark = common or next((mark for mark in ("\t", ",", ";") if mark in bare), " ")
    if mark == " ":
        line = " ".join(line.split())
    if line.count('"') % 2:
        raise LograbError(f"{path.name}, line {number}: quotes must be balanced, got: {line[:60]}")
    try:  # not strict: a blank may stand between a quote and the separator
        fields = [field.strip() for field in next(csv.reader([line], delimiter=mark, skipinitialspace=True))]
    except csv.Error as error:
        raise LograbError(f"{path.name}, line {number}: not a line of names: {error}") from None
    while len(fields) > 2 and not fields[-1]:
        fields.pop()
    return fields


def _read_json(path: Path, text: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise LograbError(f"'{path}' must name every key once, got '{twice[:60]}' again")
        return dict(pairs)

    try:
        content = json.loads(text, object_pairs_hook=once)
    except LograbError:
        raise
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a ValueError
        raise LograbError(f"'{path}' is not valid JSON: {error}") from None
    if not isinstance(content, list | dict):
        raise LograbError(f"'{path}' must hold a list of node lists, one per patch, or an object "
                          f'{{"group": ["node", ...]}}, got {type(content).__name__}')
    return content


def interpret(
    rows: Rows, is_node: Callable[[str], bool]
) -> tuple[list[list[str]] | dict[str, list[str]], list[str]]:
    """Tell a table from lists of nodes, by the rule above.

    Returns
    -------
    content : dict of node lists by group for a table, else a list of node lists
    notices : list of str
    """
    head = rows.fields[0] if rows.fields else []
    has_header = _is_header(head, is_node)
    if has_header and len(head) != 2:
        raise LograbError(f"{rows.file}: a table of groups has two columns, node and group, got {len(head)}: "
                          f"{', '.join(head)[:80]}. Keep these two")
    settled = has_header and plain_word(head[1]) in GROUP_WORDS
    body = rows.fields[has_header:]
    if not settled and not _looks_like_table(rows.file, body, is_node):
        return [[name for name in fields if name] for fields in rows.fields], []
    groups = _read_table(rows, has_header)
    if settled:
        return groups, []
    header = f", line {rows.numbers[0]} as its header ({', '.join(head)[:60]})" if has_header else ""
    return groups, [f"{rows.file} read as a table node,group with {len(groups)} groups{header}"]


def _looks_like_table(file: str, body: list[list[str]], is_node: Callable[[str], bool]) -> bool:
    """Apply the rule for files without a header; refuse what can be read both ways."""
    if any(len(fields) != 2 for fields in body):
        return False
    seconds = {group for _, group in body if group}
    both = sum(map(is_node, seconds))
    if both:
        raise LograbError(f"{file}: every line has two names, and {both} of the {len(seconds)} different second "
                          "ones are nodes: a table node,group, or patches of two nodes? Put the line 'node,group' "
                          'above a table; write lists as JSON, [["a", "b"], ["b", "c"]] in a .json file')
    return bool(seconds) and any(is_node(node) for node, _ in body)


def _is_header(head: list[str], is_node: Callable[[str], bool]) -> bool:
    """Tell whether the words of the first line name columns, and no nodes."""
    if len(head) < 2 or any(map(is_node, head)):
        return False
    words = [plain_word(word) for word in head]
    return any(word in GROUP_WORDS for word in words[1:]) or (len(words) == 2 and words[0] in NODE_WORDS)


def _read_table(rows: Rows, has_header: bool) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for number, fields in zip(rows.numbers[has_header:], rows.fields[has_header:], strict=True):
        if len(fields) != 2 or not fields[0]:
            raise LograbError(f"{rows.file}, line {number}: every line of a table has a node and its group, "
                              f"got {len(fields)} fields: {', '.join(fields)[:60]}")
        if fields[1]:  # a node without a group is counted later, as one that no patch has
            groups.setdefault(fields[1], []).append(fields[0])
    return groups
