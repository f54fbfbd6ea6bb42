"""From aligned patches to edges: average the copies of each node, join nearest neighbours.

Shared by the attacks that first bring patches into a common frame. Components of the patch graph
have frames of their own, so coordinates are averaged and compared inside a component only; a node
that lies in several components has one copy in each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from lograb.attacks.pairs import unpair
from lograb.parallel import ordered_map
from lograb.ragged import pointer
from lograb.types import Floats, Ints, Observations, Reconstruction

MetricName = Literal["cosine", "euclidean"]

# Scores closer than this are one score: rounding must not choose between neighbours.
TIE = 1e-9


def join_neighbours(
    seen: Observations,
    rows: Floats,
    component: Ints,
    neighbours: int,
    metric: MetricName,
    diagnostics: dict[str, Any],
) -> Reconstruction:
    """Average the aligned coordinates of each node and claim its nearest neighbours.

    Parameters
    ----------
    rows : float array, shape (n_entries, dim)
        Coordinates of each entry of ``Observations.nodes`` in the frame of its component.
    component : int64 array, shape (n_patches,)
        The component of the patch graph that each patch belongs to.
    neighbours : int
        Claims per node; a pair claimed from either side is an edge.
    metric : {"cosine", "euclidean"}
        The score of a pair is its cosine, or its distance with a minus sign.
    diagnostics : dict
        Passed on.
    """
    n = seen.n_nodes
    owner = np.repeat(np.arange(seen.n_patches), seen.sizes)
    copies, entry_copy, counts = np.unique(component[owner] * max(n, 1) + seen.nodes, return_inverse=True,
                                           return_counts=True)  # fmt: skip
    shape = (len(copies), len(owner))
    averaging = sp.csr_array((1 / counts[entry_copy], (entry_copy, np.arange(len(owner)))), shape=shape)
    points, usable = _prepare(averaging @ rows, metric)
    copies, points = copies[usable], points[usable]
    source, target, scores = nearest(points, copies // max(n, 1), neighbours, metric)
    node = copies % max(n, 1)
    keys, scores = _largest_by_key(node[source] * n + node[target], scores)
    kept = _ahead_of_the_rest(keys // max(n, 1), scores, neighbours)
    pairs = unpair(keys[kept], max(n, 1))
    low, high = pairs.min(axis=1, initial=n), pairs.max(axis=1, initial=0)
    keys, scores = _largest_by_key(low * n + high, scores[kept])
    edges = unpair(keys, max(n, 1))
    islands = np.full(n, np.iinfo(np.int64).max)
    np.minimum.at(islands, seen.nodes, component[owner])
    islands[islands == np.iinfo(np.int64).max] = -1
    return Reconstruction(n, edges, scores, np.unique(seen.nodes), edges, scores, islands, diagnostics)


def _prepare(points: Floats, metric: MetricName) -> tuple[Floats, Ints]:
    """Scale points to length 1 for cosines; a point at the origin has no direction and is left out."""
    if metric == "euclidean":
        return points, np.arange(len(points))
    norms = np.linalg.norm(points, axis=1)
    usable = np.flatnonzero(norms > 1e-12 * norms.max(initial=1e-300))
    return points / np.where(norms > 0, norms, 1)[:, None], usable


def _largest_by_key(keys: Ints, scores: Floats) -> tuple[Ints, Floats]:
    """Keep each key once, with its largest score; keys increase."""
    unique, index = np.unique(keys, return_inverse=True)
    largest = np.full(len(unique), -np.inf)
    np.maximum.at(largest, index, scores)
    return unique, largest


def _ahead_of_the_rest(owner: Ints, scores: Floats, neighbours: int) -> Ints:
    """Find for each owner (increasing) the claims that beat its (neighbours + 1)-th, at most `neighbours`."""
    order = np.lexsort((-scores, owner))
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    lengths = np.diff(np.append(starts, len(owner)))
    place = np.arange(len(owner)) - np.repeat(starts, lengths)
    border = np.full(len(starts), -np.inf)
    crowded = lengths > neighbours
    border[crowded] = scores[order][starts[crowded] + neighbours] + TIE
    good = (place < neighbours) & (scores[order] > np.repeat(border, lengths))
    return np.sort(order[good])


def nearest(points: Floats, group: Ints, neighbours: int, metric: MetricName) -> tuple[Ints, Ints, Floats]:
    """Find the nearest neighbours of each point among the points of its group.

    Where the last place is tied, all points tied for it are left out: no choice between them could
    be right, and node numbers must not decide.

    Parameters
    ----------
    points : float array, shape (n, dim)
        Of length 1 for cosines.
    group : int64 array, shape (n,), increasing

    Returns
    -------
    source, target : int64 arrays
    scores : float array
        Larger is nearer.

    Notes
    -----
    Exhaustive, in blocks: O(n² dim) time for the largest group, O(n) memory.
    """
    jobs = _blocks(group)
    parts = list(ordered_map(lambda job: _nearest_in_block(points, *job, neighbours, metric), jobs))
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    source, target, scores = (np.concatenate(part) for part in zip(*parts))
    return source, target, scores


def _blocks(group: Ints, n_bytes: int = 1 << 25) -> Iterator[tuple[Ints, Ints]]:
    """Cut the work: groups of equal size stacked (b, size), and which rows (positions) to do at once."""
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    lengths = np.diff(np.append(starts, len(group)))
    for size in np.unique(lengths[lengths > 1]):
        which = starts[lengths == size]
        together = max(1, int(n_bytes // (8 * size * size)))
        at_once = max(1, int(n_bytes // (8 * size)))
        for begin in range(0, len(which), together):
            members = which[begin : begin + together, None] + np.arange(size)
            for row in range(0, size, at_once):
                yield members, np.arange(row, min(size, row + at_once))


def _nearest_in_block(
    points: Floats, members: Ints, rows: Ints, neighbours: int, metric: MetricName
) -> tuple[Ints, Ints, Floats]:
    """Do the given rows of a stack of groups."""
    cloud = points[members]
    scores = cloud[:, rows] @ cloud.swapaxes(1, 2)
    if metric == "euclidean":
        squares = (cloud**2).sum(axis=2)
        scores = -np.sqrt(np.maximum(squares[:, rows, None] + squares[:, None, :] - 2 * scores, 0))
    scores[:, np.arange(len(rows)), rows] = -np.inf
    n_others = members.shape[1] - 1
    wanted = min(neighbours + 1, n_others)
    top = np.argpartition(-scores, wanted - 1, axis=2)[:, :, :wanted]
    values = np.take_along_axis(scores, top, axis=2)
    border = values.min(axis=2) + TIE if n_others > neighbours else np.full(values.shape[:2], -np.inf)
    stack, row, place = np.nonzero(values > border[:, :, None])
    return members[stack, rows[row]], members[stack, top[stack, row, place]], values[stack, row, place]


def apply_frames(seen: Observations, coordinates: Floats, frames: Floats) -> Floats:
    """Multiply the rows of each patch by the matrix of its patch, patches of one size at a time.

    Parameters
    ----------
    coordinates : float array, shape (n_entries, k)
    frames : float array, shape (n_patches, k, dim)

    Returns
    -------
    float array, shape (n_entries, dim)
    """
    out = np.zeros((len(coordinates), frames.shape[2]))
    sizes = seen.sizes
    for q in np.unique(sizes[sizes > 0]):
        which = np.flatnonzero(sizes == q)
        entries = seen.ptr[which][:, None] + np.arange(q)
        out[entries] = coordinates[entries] @ frames[which]
    return out


def number_components(n_patches: int, first: Ints, second: Ints) -> tuple[int, Ints]:
    """Number the components of the patch graph by their first patch."""
    if n_patches == 0:
        return 0, np.empty(0, np.int64)
    shape = (n_patches, n_patches)
    links = sp.csr_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=shape)
    count, label = sp.csgraph.connected_components(links, directed=False)
    return int(count), label.astype(np.int64)


def choose_pairs(seen: Observations, at_least: int, max_partners: int | None) -> tuple[Ints, Ints, Ints]:
    """List pairs of patches that share `at_least` nodes, with their overlap sizes.

    Parameters
    ----------
    max_partners : int or None
        Keep for each patch its largest overlaps only (a pair stays if either patch keeps it), and a
        spanning forest of largest overlaps, so that the cap never tears a component apart. With 0
        the forest alone is left.

    Returns
    -------
    first, second : int64 arrays, first < second, in lexicographic order
    overlap : int64 array
    """
    owner = np.repeat(np.arange(seen.n_patches), seen.sizes)
    shape = (seen.n_patches, max(seen.n_nodes, 1))
    inside = sp.csr_array((np.ones(len(owner), dtype=np.int32), (owner, seen.nodes)), shape=shape)
    shared = sp.triu(inside @ inside.T, k=1, format="csr")
    shared.data[shared.data < at_least] = 0
    shared.eliminate_zeros()
    shared.sort_indices()
    first = np.repeat(np.arange(seen.n_patches), np.diff(shared.indptr))
    second, overlap = shared.indices.astype(np.int64), shared.data.astype(np.int64)
    if max_partners is not None:
        kept = _largest_overlaps(seen.n_patches, first, second, overlap, max_partners)
        first, second, overlap = first[kept], second[kept], overlap[kept]
    return first, second, overlap


def _largest_overlaps(n_patches: int, first: Ints, second: Ints, overlap: Ints, at_most: int) -> Ints:
    """Find the pairs that are among the largest of either patch, or in the spanning forest."""
    pair = np.arange(len(first))
    both, ids = np.concatenate([first, second]), np.concatenate([pair, pair])
    order = np.argsort(both, kind="stable")
    ptr = pointer(np.bincount(both, minlength=n_patches))
    kept = np.zeros(len(first), dtype=bool)
    for i in range(n_patches):
        mine = ids[order[ptr[i] : ptr[i + 1]]]
        kept[mine if len(mine) <= at_most else mine[np.argsort(-overlap[mine], kind="stable")[:at_most]]] = True
    if not kept.all():
        # Distinct positive weights below 1, the largest overlap the lightest: the forest is unique.
        weight = np.empty(len(first))
        weight[np.lexsort((pair, -overlap))] = (pair + 1.0) / (len(pair) + 1)
        graph = sp.csr_array((weight, (first, second)), shape=(n_patches, n_patches))
        forest = sp.csgraph.minimum_spanning_tree(graph).tocoo()
        chosen = forest.row.astype(np.int64) * n_patches + forest.col
        kept[np.searchsorted(first * n_patches + second, chosen)] = True
    return np.flatnonzero(kept)
