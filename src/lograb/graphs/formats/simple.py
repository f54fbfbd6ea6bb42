"""The rules that make a simple undirected graph out of anything, and the notices they cause.

- An edge listed in either direction is an edge; both directions are one edge.
- Weights and edge attributes are dropped; attributes of nodes are kept as text, to cut patches by. In
  a matrix a stored zero is no edge; in a list of edges every listed pair is one, whatever its weight.
- A pair listed repeatedly is one edge.
- A loop is dropped; its node stays.
- Names that are all whole numbers are ordered numerically, others alphabetically. "007" is
  not a whole number but a name. Names are kept unless they are exactly 0 .. n_nodes - 1. The size of
  a number does not matter: a name is looked up, it never sets the number of nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from lograb.errors import LograbError
from lograb.names import shorten
from lograb.pairs import distinct, edge_keys
from lograb.spec import Origin
from lograb.types import Graph, Ints, Matrix

Listing = Literal["once", "directed", "undirected", "both"]
"""How edges are listed: once each in an unknown direction, as directed edges, as undirected edges,
or in both directions (matrices, edge_index)."""

FREE_NODES = 1_000_000
NODES_PER_ENTRY = 100
MAX_ATTRIBUTE_CHARS = 50_000_000
"""Attributes of nodes are kept up to this many characters in all; beyond, none is."""


@dataclass(frozen=True, eq=False)
class RawGraph:
    """What a reader found, before the rules are applied."""

    n_nodes: int
    pairs: Ints
    listing: Listing
    node_names: tuple[str, ...] | None = None
    features: Matrix | None = None
    labels: npt.NDArray[Any] | None = None
    attributes: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


def apply_rules(raw: RawGraph, name: str, origin: Origin) -> Graph:
    """Build the graph, with a notice and a count for everything that was changed."""
    if raw.n_nodes == 0:
        raise LograbError(f"graph '{name}' needs at least one node, got no edges and no nodes")
    notices = raw.notices
    if raw.attributes:
        notices += (f"node attributes not used as features: {shorten(raw.attributes)} (patches_by or --patches-by "
                    "cuts by one of them)",)  # fmt: skip
    return Graph.from_edges(name, raw.n_nodes, raw.pairs, features=raw.features, labels=raw.labels,
                            node_names=raw.node_names, attributes=raw.attributes, origin=origin,
                            notices=notices + _edge_notices(raw))


def collect_attributes(nodes: Mapping[str, Mapping[int, str]], n_nodes: int) -> dict[str, tuple[str | None, ...]]:
    """Lay attributes out node by node; those that no node has are left out."""
    return {name: tuple(texts.get(i) for i in range(n_nodes)) for name, texts in nodes.items() if texts}


def _edge_notices(raw: RawGraph) -> tuple[str, ...]:
    pairs, n = raw.pairs, raw.n_nodes
    loops = int((pairs[:, 0] == pairs[:, 1]).sum())
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    arcs = distinct(edge_keys(pairs, n))
    low, high = np.minimum(arcs // n, arcs % n), np.maximum(arcs // n, arcs % n)
    n_edges = len(distinct(low * n + high))
    both = len(arcs) - n_edges
    repeats = len(pairs) - len(arcs)
    notices = []
    if raw.listing == "directed" and len(arcs):
        notices.append(f"directed edges read as undirected: {count_of(len(arcs), 'directed edge')} became "
                       f"{count_of(n_edges, 'edge')} ({count_of(both, 'pair')} had both directions)")
    elif raw.listing == "both" and both < n_edges:
        notices.append(f"directed edges read as undirected: {n_edges - both} of {count_of(n_edges, 'edge')} "
                       "had one direction only")
    elif raw.listing == "once" and both:
        notices.append(f"{count_of(both, 'pair')} listed in both directions became one edge each")
    elif raw.listing == "undirected":
        repeats += both
    if repeats:
        notices.append(f"repeated pairs merged: {count_of(repeats, 'extra entry', 'extra entries')}")
    if loops:
        notices.append(f"self-loops dropped: {loops} (their nodes stay)")
    return tuple(notices)


def count_of(number: int, singular: str, plural: str = "") -> str:
    """Put a number and its noun into words."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def read_matrix(matrix: Matrix) -> RawGraph:
    """Read an adjacency matrix: dense or sparse, weighted or not, symmetric or not."""
    rows, cols = matrix.shape if len(matrix.shape) == 2 else (0, 1)
    if rows != cols:
        raise LograbError(f"an adjacency matrix must be square, got shape {tuple(matrix.shape)}")
    if matrix.dtype.kind not in "buifc":
        raise LograbError(f"an adjacency matrix must hold numbers, got data type {matrix.dtype}")
    entries = sp.coo_array(matrix)
    if entries.dtype.kind in "bui":  # small integers could wrap to 0 when duplicates are added up
        entries = entries.astype(np.float64)
    entries.sum_duplicates()
    if not np.isfinite(entries.data).all():
        raise LograbError("an adjacency matrix must hold finite numbers, got NaN or infinity: "
                          "put 0 where there is no edge")
    filled = entries.data != 0
    pairs = np.stack([entries.row[filled], entries.col[filled]], axis=1).astype(np.int64)
    weighted = (entries.data[filled] != 1).any()
    notices = ("weights dropped: every non-zero entry is an edge",) if weighted else ()
    return RawGraph(int(rows), pairs, "both", notices=notices)


def check_claimed_size(n_nodes: int, n_entries: int) -> None:
    """Refuse a file that claims far more nodes than it has content, before memory is taken for them."""
    limit = max(FREE_NODES, NODES_PER_ENTRY * n_entries)
    if n_nodes > limit:
        raise LograbError(f"a file with {count_of(n_entries, 'entry', 'entries')} may claim at most {limit} "
                          f"nodes, got {n_nodes}: leave out isolated nodes or use an edge list")


def check_ids(pairs: Ints, n_nodes: int) -> None:
    """Refuse node ids outside 0 .. n_nodes - 1."""
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= n_nodes):
        raise LograbError(f"node ids must lie in 0 .. {n_nodes - 1}, got {pairs.min()} .. {pairs.max()}")


def check_features(features: Matrix, n_nodes: int) -> Matrix:
    """Return features as a finite numeric (n_nodes, f) array or csr_array."""
    if features.dtype.kind not in "buif" or features.ndim != 2 or features.shape[0] != n_nodes:
        raise LograbError(f"features must be an array of numbers with {n_nodes} rows, "
                          f"got shape {tuple(features.shape)} of {features.dtype}")
    values = features.data if sp.issparse(features) else features
    if not np.isfinite(values).all():
        raise LograbError("features must be finite numbers, got NaN or infinity: fill the gaps first")
    return features


def check_labels(labels: npt.NDArray[Any], n_nodes: int) -> npt.NDArray[np.int64]:
    """Return labels as class numbers (n_nodes,), -1 or NaN for unknown, or as 0/1 (n_nodes, c)."""
    if labels.dtype.kind not in "buif" or labels.ndim not in (1, 2) or len(labels) != n_nodes:
        raise LograbError(f"labels must be an array of class numbers with {n_nodes} rows, "
                          f"got shape {labels.shape} of {labels.dtype}")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    values = np.where(np.isnan(labels), -1, labels) if labels.dtype.kind == "f" else labels
    lowest, highest = (-1, 2**31) if labels.ndim == 1 else (0, 1)
    whole = values == np.floor(values)
    if values.size and (values.min() < lowest or values.max() > highest or not whole.all()):
        raise LograbError(f"labels must be whole numbers from {lowest} to {highest}, "
                          f"got values from {values.min()} to {values.max()}")
    return values.astype(np.int64)


def as_pairs(array: npt.NDArray[Any], what: str) -> Ints:
    """Check an (m, 2) array of node ids and return it as int64."""
    if array.ndim != 2 or array.shape[1] != 2:
        raise LograbError(f"{what} must hold two node ids per edge, got shape {array.shape}")
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if array.dtype.kind not in "ui":
        raise LograbError(f"{what} must hold whole numbers, got data type {array.dtype}")
    if array.max() > np.iinfo(np.int64).max:
        raise LograbError(f"{what} must hold numbers below 2**63, got {array.max()}")
    return array.astype(np.int64)


def numbered(ids: Ints) -> tuple[Ints, tuple[str, ...] | None]:
    """Replace integer names of any size by ids 0 .. n_nodes - 1 in numerical order; return the names."""
    values, places = np.unique(ids, return_inverse=True)
    plain = np.array_equal(values, np.arange(len(values)))
    return places.reshape(ids.shape).astype(np.int64), None if plain else tuple(map(str, values.tolist()))


def names_of(nodes: Sequence[object]) -> tuple[str, ...] | None:
    """Name nodes by str() in the given order; None when they are just 0, 1, 2 ..."""
    if all(isinstance(node, int | np.integer) and node == i for i, node in enumerate(nodes)):
        return None
    names = tuple(map(str, nodes))
    if len(set(names)) != len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise LograbError(f"node names must be distinct as text, got '{twice}' twice (such as 1 and '1'): "
                          "rename one of them")
    return names
