"""Which true edges lie inside which patches."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lograb.ragged import owners, pointer, ranges
from lograb.types import Bools, Graph, Ints, Patches

# Candidate (edge, patch) incidences looked up at a time: bounds the memory of `induced_edges`.
CHUNK = 1 << 22


@dataclass(frozen=True, eq=False)
class PatchEdges:
    """The induced subgraph of every patch."""

    ptr: Ints  # (n_patches + 1,), where the edges of each patch start
    entries: Ints  # (n_patch_edges, 2), endpoints as positions in ``Patches.nodes``, smaller first, sorted
    co_observed: Bools  # (n_edges,), whether some patch contains the edge ``Graph.edges[i]``


def induced_edges(patches: Patches, graph: Graph) -> PatchEdges:
    """List the edges of the subgraph that each patch induces.

    For each edge, take the endpoint that lies in fewer patches and look the other one up in each
    of those: this costs the sum over edges of the smaller count, where walking over the
    neighbours of all members would cost the sum of squared degrees, prohibitive with hubs.
    """
    n = patches.n_nodes
    owner = owners(patches.ptr)
    keys = owner * n + patches.nodes  # increasing, because members increase inside each patch
    by_node = np.argsort(patches.nodes, kind="stable")
    node_ptr = pointer(np.bincount(patches.nodes, minlength=n))
    counts = np.diff(node_ptr)

    edges = graph.edges
    rare = np.where(counts[edges[:, 0]] <= counts[edges[:, 1]], edges[:, 0], edges[:, 1])
    other = edges.sum(axis=1) - rare
    co_observed = np.zeros(len(edges), dtype=bool)
    found: list[Ints] = [np.empty((0, 2), dtype=np.int64)]
    for start, stop in _chunks(pointer(counts[rare]), CHUNK):
        repeats = counts[rare[start:stop]]
        edge = np.repeat(np.arange(start, stop), repeats)
        here = by_node[ranges(node_ptr[rare[start:stop]], repeats)]
        wanted = owner[here] * n + other[edge]
        there = np.searchsorted(keys, wanted)
        hit = keys[np.minimum(there, len(keys) - 1)] == wanted
        co_observed[edge[hit]] = True
        found.append(np.sort(np.stack([here[hit], there[hit]], axis=1), axis=1))
    entries = np.concatenate(found)
    entries = entries[np.argsort(entries[:, 0] * max(len(keys), 1) + entries[:, 1])]
    return PatchEdges(pointer(np.bincount(owner[entries[:, 0]], minlength=len(patches))), entries, co_observed)


def _chunks(ptr: Ints, size: int) -> list[tuple[int, int]]:
    """Split items into runs of about `size` units in all (a single item may exceed it)."""
    marks = np.searchsorted(ptr, np.arange(0, ptr[-1] + size, size))
    marks = np.unique(np.append(marks, [0, len(ptr) - 1])).clip(max=len(ptr) - 1)
    return [(int(a), int(b)) for a, b in pairwise(marks)]
