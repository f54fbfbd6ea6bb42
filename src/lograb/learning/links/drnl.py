"""Enclosing subgraphs and double-radius node labels (Zhang and Chen): what SEAL reads of a pair of nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from lograb.ragged import pointer, ranges
from lograb.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class Enclosing:
    """The surroundings of one pair, as compressed rows.

    Attributes
    ----------
    nodes : int64 array, shape (m,)
        The pair first, then all others within reach, increasing.
    labels : int64 array, shape (m,)
        Double-radius labels.
    ptr, columns : int64 arrays
        The neighbours of node i of the subgraph are ``columns[ptr[i]:ptr[i + 1]]``, as positions in `nodes`.
        The nodes of the pair are never each other's.
    """

    nodes: Ints
    labels: Ints
    ptr: Ints
    columns: Ints


def enclosing_subgraph(
    graph: sp.csr_array, u: int, w: int, hops: int, most: int | None, rng: np.random.Generator
) -> Enclosing:
    """Cut out all nodes within `hops` of u or w, with the edges between them, and label them.

    Parameters
    ----------
    graph : csr_array, symmetric
    most : int, optional
        Keep at most so many new nodes per hop, drawn.
    """
    known = frontier = np.array([u, w], dtype=np.int64)
    for _ in range(hops):
        frontier = np.setdiff1d(_neighbours(graph.indptr, graph.indices, frontier), known)
        if most is not None and len(frontier) > most:
            frontier = np.sort(rng.choice(frontier, most, replace=False))
        known = np.concatenate([known, frontier])
    others = np.sort(known[2:])
    nodes = np.concatenate([known[:2], others])
    starts = graph.indptr[nodes].astype(np.int64)
    lengths = graph.indptr[nodes + 1] - starts
    rows, columns = np.repeat(np.arange(len(nodes)), lengths), graph.indices[ranges(starts, lengths)]
    place = np.searchsorted(others, columns)
    position = np.where(np.append(others, -1)[place] == columns, place + 2, -1)
    position[columns == u], position[columns == w] = 0, 1
    # Whether the pair itself is joined is what is asked.
    kept = (position >= 0) & ((rows > 1) | (position > 1))
    ptr = pointer(np.bincount(rows[kept], minlength=len(nodes)))
    return Enclosing(nodes, double_radius_labels(ptr, position[kept]), ptr, position[kept])


def _neighbours(ptr: Ints, columns: Ints, nodes: Ints) -> Ints:
    starts = ptr[nodes].astype(np.int64)
    return columns[ranges(starts, ptr[nodes + 1] - starts)].astype(np.int64)


def double_radius_labels(ptr: Ints, columns: Ints) -> Ints:
    """Label nodes by their distances from nodes 0 and 1, the pair in question.

    With x the distance from node 0 (not through node 1), y that from node 1 (not through node 0) and
    d = x + y, the label is 1 + min(x, y) + (d div 2) (d div 2 + d mod 2 - 1). The pair has label 1; a
    node that only one of the two reaches, or none, has label 0.

    Parameters
    ----------
    ptr, columns : int64 arrays
        Neighbours of each node, as compressed rows.
    """
    x, y = _distances(ptr, columns, 0, 1), _distances(ptr, columns, 1, 0)
    reached = np.isfinite(x) & np.isfinite(y)
    labels = np.zeros(len(ptr) - 1, dtype=np.int64)
    d = (x + y)[reached].astype(np.int64)
    labels[reached] = 1 + np.minimum(x, y)[reached].astype(np.int64) + (d // 2) * (d // 2 + d % 2 - 1)
    labels[:2] = 1
    return labels


def _distances(ptr: Ints, columns: Ints, source: int, without: int) -> Floats:
    """Hops from one node to all others, infinite where there is no path that avoids `without`."""
    hops = np.full(len(ptr) - 1, np.inf)
    hops[source], hops[without] = 0.0, -1.0  # the second counts as visited
    frontier, distance = np.array([source]), 0
    while len(frontier):
        distance += 1
        near = _neighbours(ptr, columns, frontier)
        frontier = np.unique(near[np.isinf(hops[near])])
        hops[frontier] = distance
    hops[without] = np.inf
    return hops
