"""Edge lists: one edge per line, two node names, anything after them ignored.

Fields are separated by commas, tabs, semicolons or blanks, whichever the file uses; a field may be
quoted with ``"``. Lines that start with ``#`` or ``%`` and empty lines are skipped. A line with one
field is a node that may have no edges; a file in which most lines look like edges with another separator
is refused. The first line is a header if its two names are known words
(source, target ...) that do not occur again, or if they are not numbers and all others are.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from lograb.errors import LograbError
from lograb.graphs.formats.separators import BLANK, NAMED, check_single_lines, find_delimiter
from lograb.graphs.formats.simple import RawGraph, count_of
from lograb.names import index_names, is_whole_number, plain_word, shorten

_HEADER_WORDS = frozenset((
    "source", "target", "src", "dst", "dest", "destination", "from", "to", "u", "v", "head", "tail", "start",
    "end", "id", "id1", "id2", "idfrom", "idto", "fromid", "toid", "sourceid", "targetid", "srcid", "dstid",
    "node", "node1", "node2", "nodea", "nodeb", "nodeid", "nodeid1", "nodeid2", "n1", "n2", "v1", "v2",
    "fromnode", "tonode", "fromnodeid", "tonodeid", "sourcenode", "targetnode", "vertex", "vertex1",
    "vertex2", "user", "user1", "user2", "userid", "friend", "friendid", "follower", "followee", "followed",
    "sender", "receiver", "recipient", "citing", "cited", "citingpaper", "citedpaper", "person1", "person2",
    "protein1", "protein2", "row", "col", "column"))
_BLANK_FIELD = re.compile(r'(?:"((?:[^"]|"")*)"(?=\s|$)|([^\s"]\S*))\s*')


@dataclass(frozen=True, eq=False)
class _Table:
    """The first two columns, line by line; columns hold strings far cheaper than a list per line."""

    numbers: list[int]
    first: list[str]
    second: list[str | None]
    widths: list[int]

    @property
    def names(self) -> Iterator[str | None]:
        """All names in the order of the file, None for a missing second one."""
        return chain.from_iterable(zip(self.first, self.second, strict=True))

    def without_header(self) -> _Table:
        return _Table(self.numbers[1:], self.first[1:], self.second[1:], self.widths[1:])


def read_edge_list(data: bytes, *, suffix: str = "", header: bool | None = None) -> RawGraph:
    """Read an edge list; `header` says whether line 1 is one, None to find out."""
    numbers, lines, n_comments = _content_lines(_decode(data))
    if not lines:
        raise LograbError("an edge list needs at least one edge, got no line with content")
    delimiter = find_delimiter(lines, suffix)
    _refuse_other_columns(lines[0], delimiter)
    table = _split(numbers, lines, delimiter)
    notices = [f"{count_of(n_comments, 'comment line')} skipped"] if n_comments else []
    if header or (header is None and _starts_with_header(table)):
        notices.append(f"line {numbers[0]} read as a header: {lines[0][:60]}")
        if len(lines) == 1:
            raise LograbError(f"an edge list needs at least one edge, got only the header '{lines[0][:60]}' "
                              "(header=False reads it as an edge)")
        table, lines = table.without_header(), lines[1:]
    elif header is None and _stands_alone(table):
        notices.append(f"line {numbers[0]} read as an edge, though its names occur nowhere else: {lines[0][:60]} "
                       "(--header if it is one)")  # fmt: skip
    notices += _check_single_names(table, lines, delimiter)
    width = _check(table, delimiter)
    if width > 2:
        _refuse_coordinates(table, width)
        notices.append(f"columns after the second ignored, such as weights: {width - 2}")
    return _number(table, tuple(notices))


def _refuse_coordinates(table: _Table, width: int) -> None:
    """Refuse columns of decimal numbers: an embedding, which names no node."""
    told = [name for name in table.names if name is not None]
    if all("." in name and _is_decimal(name) for name in told):
        raise LograbError(f"an edge list has the names of two nodes on every line, got {width} columns of decimal "
                          "numbers: is this an embedding? Put it into a folder of its own, one file per patch, or "
                          "save an .npz with members and vectors (docs/howto/own-embeddings.md)")  # fmt: skip


def _is_decimal(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _decode(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise LograbError("an edge list must be UTF-8 text, got UTF-16: save it as UTF-8")
    zero = data.find(b"\0")
    if zero >= 0:
        raise LograbError(f"an edge list must be UTF-8 text, got binary data (a zero byte at "
                          f"position {zero})")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LograbError(f"an edge list must be UTF-8 text, got the byte 0x{data[error.start]:02x} on line "
                          f"{line}: save the file as UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _content_lines(text: str) -> tuple[list[int], list[str], int]:
    """Return the lines that are neither blank nor comments, their numbers from 1, and the number of comments."""
    stripped = [line.strip(" ") for line in text.split("\n")]
    numbers = [i for i, line in enumerate(stripped, start=1) if line.strip() and line.lstrip()[0] not in "#%"]
    n_filled = sum(map(bool, map(str.strip, stripped)))
    return numbers, [stripped[i - 1] for i in numbers], n_filled - len(numbers)


def _split(numbers: list[int], lines: list[str], delimiter: str) -> _Table:
    if any('"' in line for line in lines):
        if delimiter == BLANK:
            return _from_rows(numbers, map(_split_quoted_blanks, numbers, lines))
        return _from_rows(numbers, _split_quoted(numbers, lines, delimiter))
    # networkx writes "a b {'weight': 1}": the dictionary is one field, however many blanks it has.
    if delimiter == BLANK and any("{" in line for line in lines):
        return _from_rows(numbers, (line.split(None, 2) for line in lines))
    if delimiter == BLANK:
        widths = [len(line.split()) for line in lines]
    else:
        widths = [line.count(delimiter) + 1 for line in lines]
    width = widths[0]
    if width == 1 or any(other != width for other in widths):
        return _from_rows(numbers, (_fields(line, delimiter) for line in lines))
    # All lines alike: one long split, then every width-th field.
    fields = _fields((delimiter or " ").join(lines), delimiter)
    return _Table(numbers, fields[::width], list(fields[1::width]), widths)


def _fields(line: str, delimiter: str) -> list[str]:
    if delimiter == BLANK:
        return line.split()
    return list(map(str.strip, line.split(delimiter)))


def _from_rows(numbers: list[int], rows: Iterable[list[str]]) -> _Table:
    table, known = _Table(numbers, [], [], []), dict[str, str]()
    for row in rows:  # one at a time, and equal names once: a list per line takes ten times as much as the file
        table.first.append(known.setdefault(row[0], row[0]))
        table.second.append(known.setdefault(row[1], row[1]) if len(row) > 1 else None)
        table.widths.append(len(row))
    return table


def _split_quoted(numbers: list[int], lines: list[str], delimiter: str) -> Iterator[list[str]]:
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
    n_rows = 0
    try:
        for row in reader:
            if reader.line_num != n_rows + 1:
                raise csv.Error("a quoted name must end on its line")
            n_rows += 1
            yield [name.strip() for name in row]
    except csv.Error as error:
        raise LograbError(f"line {numbers[n_rows]}: quotes must be balanced, got: {error}") from None


def _split_quoted_blanks(number: int, line: str) -> list[str]:
    names, at = [], 0
    line = line.strip()
    while at < len(line):
        found = _BLANK_FIELD.match(line, at)
        if found is None:
            raise LograbError(f"line {number}: quotes must be balanced, got: {line[:60]}")
        names.append(found[2] if found[1] is None else found[1].replace('""', '"').strip())
        at = found.end()
    return names


def _starts_with_header(table: _Table) -> bool:
    first, second = table.first[0], table.second[0]
    if second is None or is_whole_number(first) or is_whole_number(second):
        return False
    others = set(islice(table.names, 2, None)) - {None}
    if all(plain_word(name) in _HEADER_WORDS for name in (first, second)):
        # "n1,n2" above "n3,n4", or "u,v" above "w,x", is an edge like the others.
        shapes = {_shape(name) for name in others if name is not None}
        return shapes.isdisjoint((_shape(first), _shape(second)))
    # A lone node below is no evidence: it takes another edge, between numbers, to make names a header.
    has_edges = any(name is not None for name in islice(table.second, 1, None))
    return has_edges and all(is_whole_number(name) for name in others if name is not None)


def _stands_alone(table: _Table) -> bool:
    """Whether the first of several lines names two different nodes, not numbers, that no other line has."""
    first = {table.first[0], table.second[0]}
    if None in first or len(first) < 2 or len(table.first) < 3:
        return False
    if any(is_whole_number(name) for name in first if name is not None):
        return False
    return first.isdisjoint(islice(table.names, 2, None))


def _shape(name: str) -> str:
    """Tell names apart by more than a number or a single letter."""
    return "?" if len(name) == 1 else re.sub(r"\d+", "9", name)


def _refuse_other_columns(line: str, delimiter: str) -> None:
    """Stop at a header that puts the two ends of an edge anywhere but first."""
    words = [plain_word(field) for field in _fields(line, delimiter)]
    for pair in (("source", "target"), ("src", "dst"), ("from", "to")):
        if set(pair) <= set(words) and set(pair) != set(words[:2]):
            raise LograbError(f"the two ends of an edge must be the first two columns, got '{line[:60]}': "
                              "put them first")


def _check_single_names(table: _Table, lines: list[str], delimiter: str) -> tuple[str, ...]:
    """Count the lines of one name, and refuse or point out those that look like edges."""
    alone = [i for i, width in enumerate(table.widths) if width == 1]
    if not alone:
        return ()
    joined = {name for first, second in zip(table.first, table.second, strict=True) if second is not None
              for name in (first, second)}  # fmt: skip
    isolated = [name for name in dict.fromkeys(table.first[i] for i in alone) if name not in joined]
    what = (f"{count_of(len(isolated), 'isolated node')} ({shorten(isolated)})" if isolated else
            "all of them have edges on other lines")  # fmt: skip
    return (*check_single_lines([lines[i] for i in alone], len(lines), delimiter),
            f"{count_of(len(alone), 'line')} with a single name: {what}")


def _check(table: _Table, delimiter: str) -> int:
    """Check that all edges have as many fields and no empty name; return the number of fields."""
    width = next((width for width in table.widths if width > 1), 1)
    if width == 1:
        raise LograbError(f"line {table.numbers[0]}: an edge list needs two columns separated by comma, tab, "
                          f"semicolon or blank, got '{table.first[0][:60]}' and no second column on any line")
    for number, other in zip(table.numbers, table.widths, strict=True):
        if other not in (1, width):
            raise LograbError(f"line {number}: every edge needs {width} fields separated by "
                              f"{NAMED[delimiter]}, as the first one has, got {other}")
    if "" in table.first or "" in table.second:
        number = next(number for number, first, second
                      in zip(table.numbers, table.first, table.second, strict=True) if "" in (first, second))
        raise LograbError(f"line {number}: an edge needs two names, got an empty one "
                          "(a node without edges stands alone on its line)")
    return width


def _number(table: _Table, notices: tuple[str, ...]) -> RawGraph:
    index, node_names = index_names(filter(None, table.names))
    # A node alone on its line becomes a pair with -1 here and is taken out again.
    lookup: dict[str | None, int] = {None: -1}
    lookup.update(index.items())
    pairs = np.fromiter(map(lookup.__getitem__, table.names), dtype=np.int64).reshape(-1, 2)
    return RawGraph(len(index), pairs[pairs[:, 1] >= 0], "once", node_names=node_names, notices=notices)
