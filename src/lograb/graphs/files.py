"""The user's own graph, read from a file.

Formats by suffix; the text formats also with ``.gz`` after it:

- ``.csv .tsv .txt .edges .edgelist`` or none: edge list (see `lograb.graphs.formats.edge_list`)
- ``.mtx``: MatrixMarket
- ``.graphml``: GraphML
- ``.npz``: scipy sparse matrix, or arrays (see `lograb.graphs.formats.npz`)

Whatever the file holds becomes a simple undirected graph. Every change is counted in
`Graph.notices`:

- directed edges become undirected; either direction counts;
- weights are dropped: a stored zero of a matrix is no edge, a listed pair is one;
- repeated pairs are merged;
- self-loops are dropped, their nodes stay.

Node names survive as `Graph.node_names` unless they are exactly 0 .. n_nodes - 1. Whole numbers are
ordered numerically, other names alphabetically: the order of a file's lines would give edges away.
"007" is a name, not a number.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from lograb.errors import LograbError, UnavailableError, unknown_name
from lograb.graphs.formats.edge_list import read_edge_list
from lograb.graphs.formats.graphml import read_graphml
from lograb.graphs.formats.matrix_market import read_matrix_market
from lograb.graphs.formats.npz import read_npz
from lograb.graphs.formats.simple import RawGraph, apply_rules
from lograb.graphs.gunzip import gunzip
from lograb.limits import REMEDY, max_bytes
from lograb.spec import Origin
from lograb.types import Graph

EDGE_LIST_SUFFIXES = ("", ".csv", ".tsv", ".txt", ".edges", ".edgelist")
SUFFIXES = (*EDGE_LIST_SUFFIXES[1:], ".mtx", ".graphml", ".npz")
_PIECE = 1 << 20


def read_graph(path: str | os.PathLike[str], *, header: bool | None = None) -> Graph:
    """Read a graph from a file; the suffix names the format, and the file the graph.

    For edge lists, `header` says whether the first line is one; None to find out. A file that is missing, has
    another suffix, does not hold a graph, or unpacks to more than `lograb.limits` allows is a `LograbError`.
    """
    path = Path(path)
    suffix, packed = _suffix(path)
    try:
        data = _read_bytes(path)
    except LograbError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        kind = UnavailableError if isinstance(error, OSError) else LograbError
        raise kind(f"cannot read the graph file '{path}': {reason}") from None
    origin = Origin(source=path.name, kind="file", sha256=hashlib.sha256(data).hexdigest())
    try:
        if not data:
            raise LograbError("a graph file must not be empty, got 0 bytes")
        raw = _read(b"".join(gunzip(data, max_bytes())) if packed else data, suffix, header)
        return apply_rules(raw, path.with_suffix("").stem if packed else path.stem, origin)
    except LograbError as error:
        raise LograbError(f"{path.name}: {error}") from None


def _read_bytes(path: Path) -> bytes:
    limit, size, pieces = max_bytes(), 0, []
    with path.open("rb") as file:  # counted, not asked for its size: a device has none, and a file may grow
        while piece := file.read(_PIECE):
            size += len(piece)
            if size > limit:
                raise LograbError(f"{path.name}: a graph file may have {limit} bytes, got more; {REMEDY}")
            pieces.append(piece)
    return b"".join(pieces)


def _suffix(path: Path) -> tuple[str, bool]:
    """Return the suffix that names the format, and whether the file is gzipped."""
    suffix, packed = path.suffix.lower(), False
    if suffix == ".gz":
        suffix, packed = path.with_suffix("").suffix.lower(), True
    if suffix == ".npy":
        raise LograbError(f"'{path.name}' holds one array, and is no graph file. Vectors of an embedding: put it "
                          "into a folder, and audit the folder, or pack it (lograb pack FOLDER -o FILE). A matrix "
                          "of a graph: write it with scipy.sparse.save_npz")  # fmt: skip
    if suffix not in ("", *SUFFIXES):
        raise unknown_name("graph file suffix", suffix, SUFFIXES)
    if packed and suffix == ".npz":
        raise LograbError(f"an .npz file is packed already, got '{path.name}': unpack the .gz first")
    return suffix, packed


def _read(data: bytes, suffix: str, header: bool | None) -> RawGraph:
    if suffix == ".mtx":
        return read_matrix_market(data)
    if suffix == ".graphml":
        return read_graphml(data)
    if suffix == ".npz":
        return read_npz(data, max_bytes())
    return read_edge_list(data, suffix=suffix, header=header)
