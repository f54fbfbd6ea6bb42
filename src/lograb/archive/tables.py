"""Tables in general: cut out a part, put parts together, check that columns fit each other.

`lograb.archive.schema` says which columns there are; here they are only names along axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lograb.archive import schema
from lograb.archive.schema import AXES, POINTERS, RULES
from lograb.errors import ArchiveError, LograbError

Array = npt.NDArray[Any]


class Column(Protocol):
    """What a column must offer: a numpy array does, and so does one that still lies in a file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its type."""

    def __getitem__(self, rows: slice, /) -> Any: ...


Tables = Mapping[str, Column]


def canonical(tables: Mapping[str, Array]) -> dict[str, Array]:
    """Bring columns into the order and the types of the format (little-endian, contiguous)."""
    return {
        name: np.ascontiguousarray(tables[name], dtype=_fitting(tables[name].dtype, rule.dtypes))
        for name, rule in RULES.items()
        if name in tables
    }


def _fitting(dtype: np.dtype[Any], allowed: Sequence[str]) -> np.dtype[Any]:
    return dtype if dtype.newbyteorder("<").str in allowed else np.dtype(allowed[0])


def check(tables: Tables) -> None:
    """Refuse columns whose names, types or lengths do not fit each other.

    Reads the last entry of each pointer only, so it is cheap on tables that lie in a file.
    """
    for name in schema.REQUIRED:
        if name not in tables:
            raise ArchiveError(f"{name}.npy", "is missing")
    for group in schema.TOGETHER:
        missing = [name for name in group if name not in tables]
        if missing and len(missing) < len(group):
            raise ArchiveError(f"{missing[0]}.npy", f"is missing beside {group[0]}.npy")
    _check_counts(tables)
    lengths: dict[str, int] = {"graph": tables[schema.GRAPH_NODES].shape[0] - 1}
    for axis, (_, pointer) in AXES.items():
        if pointer in tables:
            lengths[axis] = _last(tables, pointer)
    for name, column in tables.items():
        rule = RULES[name]
        if rule.axis not in lengths:
            raise ArchiveError(f"{AXES[rule.axis][1]}.npy", f"is missing, but {name}.npy needs it")
        rows = lengths[rule.axis] + (name in POINTERS)
        wanted = (rows, *rule.tail)
        if len(column.shape) != len(wanted) or any(w not in (None, s) for w, s in zip(wanted, column.shape)):
            raise ArchiveError(f"{name}.npy", f"has shape {column.shape} where {wanted} is needed")


def _check_counts(tables: Tables) -> None:
    """Refuse empty instances, and more nodes than the content can account for."""
    for pointer in (schema.GRAPH_NODES, schema.GRAPH_PATCHES):
        _last(tables, pointer)
        steps = np.diff(tables[pointer][0 : tables[pointer].shape[0]])
        if len(steps) == 0 or (steps < 1).any():
            raise ArchiveError(f"{pointer}.npy", "every graph needs at least one node and one patch")
    entries = tables[schema.MEMBERS].shape[0]
    if _last(tables, schema.GRAPH_NODES) > max(schema.FREE_NODES, schema.NODES_PER_ENTRY * entries):
        problem = f"claims more nodes than {entries} members of patches warrant"
        raise ArchiveError(f"{schema.GRAPH_NODES}.npy", problem)


def _last(tables: Tables, pointer: str) -> int:
    column = tables[pointer]
    if len(column.shape) != 1 or column.shape[0] == 0 or column.dtype.str != "<i8":
        raise ArchiveError(f"{pointer}.npy", "is not a pointer")
    last = int(column[column.shape[0] - 1 : column.shape[0]][0])
    if last < 0 or int(column[0:1][0]) != 0:
        raise ArchiveError(f"{pointer}.npy", "does not rise from 0")
    return last


def cut(tables: Tables, axis: str, start: int, stop: int) -> dict[str, Array]:
    """Read the items start .. stop - 1 of an axis and everything that hangs on them.

    Pointers are rebased, so the result is a set of tables of its own (without the columns above
    that axis).
    """
    spans = {axis: (start, stop)}
    out: dict[str, Array] = {}
    for child, (parent, pointer) in AXES.items():  # parents come before children
        if parent in spans and pointer in tables:
            a, b = spans[parent]
            ptr = np.asarray(tables[pointer][a : b + 1])
            if len(ptr) != b - a + 1 or (np.diff(ptr) < 0).any() or ptr[0] < 0:
                raise ArchiveError(f"{pointer}.npy", "is not a rising pointer")
            spans[child] = (int(ptr[0]), int(ptr[-1]))
            out[pointer] = ptr - ptr[0]
    for name, column in tables.items():
        if name not in POINTERS and RULES[name].axis in spans:
            a, b = spans[RULES[name].axis]
            if b > column.shape[0]:
                raise ArchiveError(f"{name}.npy", "is shorter than its pointer says")
            out[name] = np.asarray(column[a:b])
    return out


def join(pieces: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Put the tables of several graphs, with the same columns each, one after the other."""
    odd = sorted(set().union(*(piece.keys() ^ pieces[0].keys() for piece in pieces)))
    if odd:
        raise LograbError(f"all graphs of an instance need the same columns; they differ in {', '.join(odd)}")
    joined: dict[str, Array] = {}
    for name in pieces[0]:
        columns = [piece[name] for piece in pieces]
        if name in POINTERS:
            offsets = np.cumsum([0] + [int(c[-1]) for c in columns[:-1]])
            columns = [c[1:] + o for c, o in zip(columns, offsets, strict=True)]
            columns.insert(0, np.zeros(1, dtype=np.int64))
        joined[name] = np.concatenate(columns)
    return joined
