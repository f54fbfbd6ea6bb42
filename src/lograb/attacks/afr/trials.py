"""Stage 2a, continued: look at many pairs of islands at once.

What comes of a pair depends on its two islands and not on the queue. Pairs near the head of the queue are
therefore looked at together, in flat arrays and stacked by size; what is found holds as long as neither
island changes. RANSAC alone waits for the pair's turn, because its samples come from the run's random
generator, whose draws follow the order of the stitches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from lograb.attacks.afr.settings import AfrSettings
from lograb.attacks.alignment.overlaps import Overlaps, locate_shared
from lograb.attacks.alignment.procrustes import procrustes, residuals
from lograb.ragged import owners, pointer, ranges
from lograb.types import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Island:
    """Patches in one common frame.

    Attributes
    ----------
    patches : list of int
    nodes : int64 array, increasing
    sums, counts : what the mean position of each node is made of, shapes (n, k) and (n,)
    edges : int64 array, increasing
        Pairs u * n_nodes + w, u < w, that the local graph of one of its patches joins.
    fidelity : float
        Mean score of its patches.
    rank : int
        Largest rank of its patches.
    aligned : int
        Leading dimensions in which all its patches share a frame: the rank of a single patch, those of the last
        stitch otherwise. Beyond them the sums mean nothing.
    """

    patches: list[int]
    nodes: Ints
    sums: Floats
    counts: Ints
    edges: Ints
    fidelity: float
    rank: int
    aligned: int


@dataclass(frozen=True, eq=False)
class Trial:
    """What came of a pair of islands.

    Attributes
    ----------
    connected : bool
        Whether the overlap meets the demand on its local graph; if not, nothing else is looked at.
    needed : float
        How many nodes must agree on a stitch.
    sample : int
        How many nodes an alignment takes.
    turn : float array, shape (r, r)
        What carries the second island onto the first; None where too few nodes agree with it.
    points : (first, second, tolerance), where RANSAC has yet to draw its samples
        Positions of the shared nodes, shape (m, r), and the largest residual of an inlier.
    """

    connected: bool
    needed: float
    sample: int = 0
    turn: Floats | None = None
    points: tuple[Floats, Floats, float] | None = None


def dimension(overlap: Ints | int, k: int, rank: Ints | int, settings: AfrSettings) -> Ints:
    """Number of leading dimensions in which an overlap can be aligned; any shape.

    ``full``: all k. ``auto``: at most the ranks of both, and so few that a sample of r + 1 is no more than half of
    the overlap: RANSAC can then reject the other half.
    """
    supported = np.maximum(1, np.minimum(np.asarray(overlap) // 2 - 1, rank))
    return np.full_like(supported, k) if settings.align_dim == "full" else supported


def try_pairs(pairs: list[tuple[Island, Island]], n_nodes: int, k: int, settings: AfrSettings) -> list[Trial]:
    """Look at pairs of islands that share at least two nodes; k is the protocol's."""
    islands = list({id(island): island for pair in pairs for island in pair}.values())
    number = {id(island): i for i, island in enumerate(islands)}
    first, second = np.array([[number[id(one)], number[id(two)]] for one, two in pairs]).T
    nodes = np.concatenate([island.nodes for island in islands])
    shared = locate_shared(pointer([len(island.nodes) for island in islands]), nodes, n_nodes, first, second)
    positions = np.concatenate([island.sums for island in islands])
    positions /= np.concatenate([island.counts for island in islands])[:, None]
    rank = np.array([island.rank for island in islands])
    fidelity = np.array([island.fidelity for island in islands])
    aligned = np.array([island.aligned for island in islands])
    r = dimension(shared.sizes, k, np.minimum(rank[first], rank[second]), settings)
    weakest = np.minimum(fidelity[first], fidelity[second])
    needed = settings.needed_overlap(r, k, weakest)
    sample, r = r + 1, np.minimum(r, np.minimum(aligned[first], aligned[second]))  # no common frame beyond
    edges = np.concatenate([island.edges for island in islands])
    edges += np.repeat(np.arange(len(islands)) * n_nodes**2, [len(island.edges) for island in islands])
    connected = well_posed(edges, nodes[shared.in_first], shared, n_nodes, settings)
    trials = [Trial(bool(c), float(n)) for c, n in zip(connected, needed)]
    shapes = np.stack([shared.sizes, sample, r], axis=1)
    for size, drawn, dim in np.unique(shapes[connected], axis=0).tolist():
        which = np.flatnonzero(connected & (shapes == [size, drawn, dim]).all(axis=1))
        rows = shared.ptr[which][:, None] + np.arange(size)
        a, b = positions[shared.in_first[rows], :dim], positions[shared.in_second[rows], :dim]
        for i, trial in zip(which.tolist(), _align(a, b, drawn, needed[which], settings)):
            trials[i] = trial
    return trials


def _align(
    first: Floats, second: Floats, sample: int, needed: Floats, settings: AfrSettings
) -> Iterator[Trial]:
    """Align stacked overlaps of one size, shape (n, m, r), by Procrustes, or leave them to RANSAC."""
    m = first.shape[1]
    norms = 0.5 * (np.linalg.norm(first, axis=2).mean(axis=1) + np.linalg.norm(second, axis=2).mean(axis=1))
    tolerance = settings.inlier_tolerance * norms
    if settings.ransac and m > sample:
        for a, b, limit, demand in zip(first, second, tolerance.tolist(), needed.tolist()):
            yield Trial(True, demand, sample, points=(a.copy(), b.copy(), limit))
        return
    turns = procrustes(second.swapaxes(1, 2) @ first)
    agreeing = (residuals(first, second, turns) <= tolerance[:, None]).sum(axis=1)
    for turn, enough, demand in zip(turns, agreeing >= needed, needed.tolist()):
        yield Trial(True, demand, min(sample, m), turn.copy() if enough else None)


def well_posed(edges: Ints, node: Ints, shared: Overlaps, n_nodes: int, settings: AfrSettings) -> Bools:
    """Look at every overlap in the local graphs of both sides; the true graph is unknown.

    All overlaps together are one graph that falls apart into them, so that one call serves all.

    Parameters
    ----------
    edges : int64 array, increasing
        (side * n_nodes + u) * n_nodes + w for the edges u < w of each side, an island or a patch.
    node : int64 array, shape (n_shared,)
        The shared nodes, pair after pair.
    """
    if settings.connected == "any":
        return np.ones(len(shared), dtype=bool)
    pair = owners(shared.ptr)
    keys = pair * n_nodes + node
    ends: list[Ints] = []
    for side in (shared.first[pair], shared.second[pair]):
        start, stop = np.searchsorted(edges, (side * n_nodes + node + [[0], [1]]) * n_nodes)
        source = np.repeat(np.arange(len(node)), stop - start)
        wanted = pair[source] * n_nodes + edges[ranges(start, stop - start)] % n_nodes
        target = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
        hit = keys[target] == wanted
        ends.append(np.stack([source[hit], target[hit]]))
    rows, columns = np.concatenate(ends, axis=1)
    graph = sp.csr_array((np.ones(len(rows), dtype=np.int32), (rows, columns)), shape=(len(node), len(node)))
    if settings.connected == "connected":
        label = connected_components(graph, directed=False)[1]
        elsewhere = label != label[shared.ptr[:-1]][pair]
        return np.asarray(np.bincount(pair, elsewhere, len(shared)) == 0)
    step = graph + graph.T + sp.eye_array(len(node), dtype=np.int32, format="csr")
    reached = np.diff((step @ step).indptr)
    return np.asarray(np.bincount(pair, reached, len(shared)) == shared.sizes**2)
