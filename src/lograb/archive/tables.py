"""The tables of an instance: named flat arrays, and how they hang together.

An instance, in memory or in a file, is a set of columns. Every column runs along one axis; each
axis but the outermost is split by a pointer column that runs along its parent axis:

    graph ─┬─ node ─┬─ name byte
           │        └─ feature weight
           ├─ patch ─┬─ entry (a member of a patch)
           │         ├─ value (an eigenvalue)
           │         ├─ vector (an entry of an eigenvector)
           │         └─ patch edge
           └─ true edge

This tree is all that is needed to cut out one graph or one patch without reading the rest, and
to append graph after graph without holding them all. Node ids count from 0 inside each graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lograb.errors import ArchiveError

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


@dataclass(frozen=True)
class ColumnRule:
    """What a column of a given name must look like."""

    axis: str
    dtypes: tuple[str, ...]
    tail: tuple[int | None, ...] = ()
    """Extent of the further dimensions; None for any."""
    meaning: str = ""


# axis -> (parent axis, pointer column)
AXES: dict[str, tuple[str, str]] = {
    "node": ("graph", "graphs/nodes"),
    "patch": ("graph", "graphs/patches"),
    "true edge": ("graph", "truth/ptr"),
    "name byte": ("node", "nodes/name_ptr"),
    "feature weight": ("node", "features/ptr"),
    "entry": ("patch", "observations/ptr"),
    "value": ("patch", "observations/value_ptr"),
    "vector": ("patch", "observations/vector_ptr"),
    "patch edge": ("patch", "patch_edges/ptr"),
}
POINTERS = {pointer: axis for axis, (_, pointer) in AXES.items()}

INT, FLOATS = ("<i8",), ("<f8", "<f4")
RULES: dict[str, ColumnRule] = {
    "graphs/nodes": ColumnRule("graph", INT, meaning="where the nodes of each graph start"),
    "graphs/patches": ColumnRule("graph", INT, meaning="where the patches of each graph start"),
    "nodes/name_ptr": ColumnRule("node", INT, meaning="where the name of each node starts"),
    "nodes/names": ColumnRule("name byte", ("|u1",), meaning="node names, UTF-8"),
    "observations/ptr": ColumnRule("patch", INT, meaning="where the members of each patch start"),
    "observations/nodes": ColumnRule("entry", INT, meaning="members, increasing inside each patch"),
    "observations/value_ptr": ColumnRule("patch", INT, meaning="where the eigenvalues of each patch start"),
    "observations/values": ColumnRule("value", ("<f8",), meaning="eigenvalues, ascending inside each patch"),
    "observations/vector_ptr": ColumnRule("patch", INT, meaning="where the embedding of each patch starts"),
    "observations/vectors": ColumnRule("vector", ("<f8",), meaning="embeddings, (size, rank) row by row"),
    "observations/next_values": ColumnRule("patch", ("<f8",), meaning="first eigenvalue cut off, or NaN"),
    "observations/centres": ColumnRule("patch", INT, meaning="the node each patch was grown from"),
    "fragments/core": ColumnRule("entry", ("|u1",), meaning="1 on a cluster's core, 0 on its halo"),
    "features/ptr": ColumnRule("node", INT, meaning="where the nonzero features of each node start"),
    "features/columns": ColumnRule("feature weight", INT, meaning="column of each nonzero feature"),
    "features/weights": ColumnRule("feature weight", FLOATS, meaning="value of each nonzero feature"),
    "features/dense": ColumnRule("node", FLOATS, (None,), "features as a full matrix"),
    "labels/classes": ColumnRule("node", INT, meaning="class of each node, -1 where unknown"),
    "labels/indicators": ColumnRule("node", ("|u1",), (None,), "1 where a node carries a label"),
    "patch_edges/ptr": ColumnRule("patch", INT, meaning="where the edges of each patch start"),
    "patch_edges/ends": ColumnRule("patch edge", INT, (2,), "endpoints as positions inside the patch"),
    "truth/ptr": ColumnRule("graph", INT, meaning="where the true edges of each graph start"),
    "truth/edges": ColumnRule("true edge", INT, (2,), "all edges (u, w), u < w, sorted"),
    "truth/co_observed": ColumnRule("true edge", ("|u1",), meaning="1 where some patch contains the edge"),
}
REQUIRED = ("graphs/nodes", "graphs/patches", "observations/ptr", "observations/nodes",
            "observations/value_ptr", "observations/vector_ptr", "observations/vectors")  # fmt: skip
# Columns that make sense only together.
TOGETHER = (
    ("nodes/name_ptr", "nodes/names"),
    ("features/ptr", "features/columns", "features/weights"),
    ("patch_edges/ptr", "patch_edges/ends", "truth/ptr", "truth/edges", "truth/co_observed"),
)
# A file may claim this many nodes, or so many for each member of a patch, before it is refused.
FREE_NODES, NODES_PER_ENTRY = 10**7, 1000
# Whatever would answer Task 1, and so is left out of an archive without truth.
TRUTH_PARTS = ("truth", "patch_edges")


def part(column: str) -> str:
    """Name the part a column belongs to: its folder in the archive."""
    return column.split("/", 1)[0]


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
    for name in REQUIRED:
        if name not in tables:
            raise ArchiveError(f"{name}.npy", "is missing")
    for group in TOGETHER:
        missing = [name for name in group if name not in tables]
        if missing and len(missing) < len(group):
            raise ArchiveError(f"{missing[0]}.npy", f"is missing beside {group[0]}.npy")
    _check_counts(tables)
    lengths: dict[str, int] = {"graph": tables["graphs/nodes"].shape[0] - 1}
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
    for pointer in ("graphs/nodes", "graphs/patches"):
        _last(tables, pointer)
        steps = np.diff(tables[pointer][0 : tables[pointer].shape[0]])
        if len(steps) == 0 or (steps < 1).any():
            raise ArchiveError(f"{pointer}.npy", "every graph needs at least one node and one patch")
    entries = tables["observations/nodes"].shape[0]
    if _last(tables, "graphs/nodes") > max(FREE_NODES, NODES_PER_ENTRY * entries):
        raise ArchiveError("graphs/nodes.npy", f"claims more nodes than {entries} members of patches warrant")


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
    """Put the tables of several graphs one after the other."""
    joined: dict[str, Array] = {}
    for name in pieces[0]:
        columns = [piece[name] for piece in pieces]
        if name in POINTERS:
            offsets = np.cumsum([0] + [int(c[-1]) for c in columns[:-1]])
            columns = [c[1:] + o for c, o in zip(columns, offsets, strict=True)]
            columns.insert(0, np.zeros(1, dtype=np.int64))
        joined[name] = np.concatenate(columns)
    return joined
