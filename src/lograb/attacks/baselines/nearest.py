"""From aligned patches to edges: average the copies of each node, join nearest neighbours.

Shared by the attacks that first bring patches into a common frame. Components of the patch graph
have frames of their own, so coordinates are averaged and compared inside a component only; a node
that lies in several components has one copy in each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import BaseModel, ConfigDict, Field

from lograb.pairs import unpair
from lograb.parallel import ordered_map
from lograb.ragged import owners, pointer, runs
from lograb.types import Floats, Ints, Observations, Reconstruction

MetricName = Literal["cosine", "euclidean"]

# Scores closer than this are one score: rounding must not choose between neighbours.
TIE = 1e-9


class NeighbourRule(BaseModel):
    """Which pairs are claimed of points that have been brought into one frame: nearest neighbours."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    top_k: int = Field(default=10, ge=1)
    """Neighbours that each node claims; one side is enough."""
    candidates: Literal["all", "shared"] = "all"
    """Choose them among all nodes, or among those that share a patch."""
    metric: MetricName = "cosine"
    """How nodes are compared: by cosine, or by distance."""


def join_neighbours(
    seen: Observations, rows: Floats, component: Ints, diagnostics: dict[str, Any], rule: NeighbourRule
) -> Reconstruction:
    """Average the aligned coordinates of each node and claim its nearest neighbours.

    Where several nodes tie for the last place among the neighbours of another, none of them gets it: see
    `nearest`. A node whose neighbours all tie has no claims. The diagnostic ``places_lost_to_ties`` counts the
    places that stay empty.

    Parameters
    ----------
    rows : (n_entries, dim), the coordinates of each entry of ``Observations.nodes`` in the frame of its component
    component : (n_patches,), the component of the patch graph that each patch belongs to
    diagnostics : passed on
    rule : the score of a pair is its cosine, or its distance with a minus sign
    """
    n, neighbours, metric = max(seen.n_nodes, 1), rule.top_k, rule.metric
    owner = owners(seen.ptr)
    copies, entry_copy, counts = np.unique(component[owner] * n + seen.nodes, return_inverse=True,
                                           return_counts=True)  # fmt: skip
    shape = (len(copies), len(owner))
    averaging = sp.csr_array((1 / counts[entry_copy], (entry_copy, np.arange(len(owner)))), shape=shape)
    points, usable = _prepare(averaging @ rows, metric)
    copies, points = copies[usable], points[usable]
    if rule.candidates == "shared":
        place = np.full(len(counts), -1)
        place[usable] = np.arange(len(usable))
        source, target, scores, lost = _nearest_companions(points, place[entry_copy], owner, neighbours, metric)
    else:
        source, target, scores = nearest(points, copies // n, neighbours, metric)
        sizes = np.unique(copies // n, return_counts=True)[1]
        lost = int((sizes * np.minimum(sizes - 1, neighbours)).sum()) - len(source)
    node = copies % n
    keys, scores = _largest_by_key(node[source] * n + node[target], scores)
    kept = _ahead_of_the_rest(keys // n, scores, neighbours)
    lost += _places(keys // n, neighbours) - len(kept)
    pairs = np.sort(unpair(keys[kept], n), axis=1)
    keys, scores = _largest_by_key(pairs[:, 0] * n + pairs[:, 1], scores[kept])
    edges = unpair(keys, n)
    islands = np.full(seen.n_nodes, seen.n_patches)
    np.minimum.at(islands, seen.nodes, component[owner])
    islands[islands == seen.n_patches] = -1
    told = diagnostics | {"places_lost_to_ties": lost}
    return Reconstruction(seen.n_nodes, edges, scores, np.unique(seen.nodes), edges, scores, islands, told)


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


def _places(owner: Ints, neighbours: int) -> int:
    """Count the claims that would be left if every owner could keep `neighbours` of its own."""
    return int(np.minimum(np.bincount(owner), neighbours).sum())


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
    """Find the nearest neighbours of each point (of length 1 for cosines) among the points of its group.

    Where the last place is tied, all points tied for it are left out: no choice between them could
    be right, and node numbers must not decide. Gives source, target and score, larger for nearer. Exhaustive, in
    blocks: O(n² dim) time for the largest group, O(n) memory. Groups must increase.
    """
    found = ordered_map(lambda job: _nearest_in_block(points, *job, neighbours, metric), _blocks(group))
    return _join(found)


def _join(found: Iterable[tuple[Ints, Ints, Floats]]) -> tuple[Ints, Ints, Floats]:
    nothing = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    source, target, scores = (np.concatenate(part) for part in zip(nothing, *found))
    return source, target, scores


def _nearest_companions(
    points: Floats, point: Ints, patch: Ints, neighbours: int, metric: MetricName, at_once: int = 1 << 21
) -> tuple[Ints, Ints, Floats, int]:
    """Find the nearest neighbours of each point among the points that share a patch with it: as `nearest` does.

    `point` and `patch` say which point lies in which patch; point -1 is left out. Also gives the number of places
    that stay empty because of ties.
    """
    known = np.flatnonzero(point >= 0)
    shape = (len(points), int(patch.max(initial=-1)) + 1)
    inside = sp.csr_array((np.ones(len(known), dtype=np.int32), (point[known], patch[known])), shape=shape)
    members = inside.T.tocsr()
    cost = pointer(inside @ np.diff(members.indptr))
    found, lost = [], 0
    for start, stop in runs(cost, at_once):
        near = (inside[start:stop] @ members).tocoo()
        source, target = near.row.astype(np.int64) + start, near.col.astype(np.int64)
        source, target = source[source != target], target[source != target]
        scores = _scores(points[source], points[target], metric)
        kept = _ahead_of_the_rest(source, scores, neighbours)
        lost += _places(source, neighbours) - len(kept)
        found.append((source[kept], target[kept], scores[kept]))
    return *_join(found), lost


def _scores(one: Floats, other: Floats, metric: MetricName) -> Floats:
    """Compare points row by row; larger is nearer."""
    if metric == "cosine":
        return np.asarray((one * other).sum(axis=1))
    return np.asarray(-np.linalg.norm(one - other, axis=1))


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
