"""What a method for Task 3 may see, and the pairs it may learn from (§4.4.3).

Every known edge lies inside a fragment; the questions are pairs between fragments. Pairs to learn from that are
no known edges are drawn from all nodes of a graph (``anywhere``), or from inside the fragments (``inside``), where
a method then learns nothing about nodes that are far apart, as those of most questions are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.sparse as sp

from lograb.errors import LograbError
from lograb.learning.patchset import PatchSet
from lograb.pairs import sharing
from lograb.ragged import owners, pointer
from lograb.types import Bools, Floats, Ints, Matrix

Where = Literal["anywhere", "inside"]

# Where there are at most so many ordered pairs they are listed; otherwise pairs are drawn until enough fit.
MAX_LISTED = 1 << 18


@dataclass(frozen=True, eq=False)
class FragmentedGraph:
    """A graph of which only the insides of its fragments are known.

    Attributes
    ----------
    patches : PatchSet
        Members, coordinates, features, labels, and the patches' edges, as far as they lie inside a fragment.
    fragment : int64 array, shape (n_nodes,)
        The fragment of each node, -1 where it has none. Fragments never cross the graphs of an instance.
    settled : bool array, shape (n_nodes,)
        True where all neighbours of a node are known to share its patch: the centres of balls. No edge
        between fragments can touch such a node, and everybody knows it.
    graph : int64 array, shape (n_nodes,), increasing
        The graph of the instance that each node belongs to.
    """

    patches: PatchSet
    fragment: Ints
    settled: Bools
    graph: Ints

    def __post_init__(self) -> None:
        ends = self.fragment[self.edges]
        if len(ends) and ((ends[:, 0] != ends[:, 1]) | (ends < 0).any(axis=1)).any():
            raise LograbError("a known edge runs between fragments: that would answer Task 3")

    @property
    def n_nodes(self) -> int:
        """Number of nodes, those without a fragment included."""
        return self.patches.n_nodes

    def pools(self, where: Where) -> Ints:
        """Number the groups of nodes that unlinked pairs are drawn from; -1 for nodes without a fragment."""
        return self.fragment if where == "inside" else np.where(self.fragment >= 0, self.graph, -1)

    @cached_property
    def edges(self) -> Ints:
        """The known edges (u, w), u < w, each once, shape (n_edges, 2)."""
        patches = self.patches
        start = np.repeat(patches.ptr[:-1], np.diff(patches.edge_ptr))
        pairs = np.sort(patches.nodes[patches.edges + start[:, None]], axis=1)
        return np.unique(pairs, axis=0) if len(pairs) else np.empty((0, 2), np.int64)

    @cached_property
    def adjacency(self) -> sp.csr_array:
        """The known edges as a symmetric 0/1 matrix, float32."""
        return symmetric(self.edges, self.n_nodes)

    @cached_property
    def membership(self) -> sp.csr_array:
        """Which patch contains which node, int32, shape (n_patches, n_nodes)."""
        patches = self.patches
        ones = np.ones(patches.n_rows, dtype=np.int32)
        shape = (patches.n_patches, patches.n_nodes)
        return sp.csr_array((ones, (owners(patches.ptr), patches.nodes)), shape=shape)

    @cached_property
    def co_occurrence(self) -> sp.csr_array:
        """H: which nodes share a patch, as a symmetric 0/1 matrix without diagonal, float32 (Appendix A.4)."""
        return sharing(self.membership).astype(np.float32)


def symmetric(pairs: Ints, n_nodes: int) -> sp.csr_array:
    """Turn pairs (u, w) into a symmetric 0/1 matrix, float32."""
    rows, columns = np.concatenate([pairs, pairs[:, ::-1]]).T
    return sp.csr_array((np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=(n_nodes, n_nodes))


def draw_edges(graph: FragmentedGraph, count: int, rng: np.random.Generator) -> Bools:
    """Mark so many of the known edges, drawn; all where there are no more."""
    chosen = np.ones(len(graph.edges), dtype=bool)
    if count < len(chosen):
        chosen[:] = False
        chosen[rng.choice(len(chosen), count, replace=False)] = True
    return chosen


def training_pairs(
    graph: FragmentedGraph, rng: np.random.Generator, where: Where, chosen: Bools | None = None
) -> tuple[Ints, Bools]:
    """List known edges and as many other pairs, in random order.

    Parameters
    ----------
    where : {"anywhere", "inside"}
        What the other pairs are drawn from.
    chosen : bool array, shape (n_edges,), optional
        The known edges to list; all by default.

    Returns
    -------
    pairs : int64 array, shape (m, 2)
    true : bool array, shape (m,)
    """
    edges = graph.edges if chosen is None else graph.edges[chosen]
    others = unlinked_pairs(graph, len(edges), rng, where)
    if not len(edges) or not len(others):
        raise nothing_to_learn_from(graph, where)
    order = rng.permutation(len(edges) + len(others))
    true = np.arange(len(order)) < len(edges)
    return np.concatenate([edges, others])[order], true[order]


def nothing_to_learn_from(graph: FragmentedGraph, where: Where) -> LograbError:
    """Say that there are no known edges, or no pairs that are none."""
    edges, pairs = len(graph.edges), Pools(graph.pools(where)).n_pairs
    return LograbError(f"there is nothing to learn from: the fragments hold {edges} edges, and "
                       f"{pairs - edges} other pairs can be drawn with train_negatives={where}")  # fmt: skip


class Pools:
    """The members of all pools (fragments or graphs), pool by pool, to draw pairs from.

    Attributes
    ----------
    members : int64 array
        Nodes, ordered by pool.
    place : int64 array, shape (n_nodes,)
        Where each node stands in `members`; meaningless for nodes without a pool.
    sizes, starts : int64 arrays, shape (n_nodes,)
        Size of each node's pool, and where it starts in `members`.
    """

    def __init__(self, pool: Ints) -> None:
        inside = np.flatnonzero(pool >= 0)
        self.members = inside[np.argsort(pool[inside], kind="stable")]
        self.place = np.zeros(len(pool), dtype=np.int64)
        self.place[self.members] = np.arange(len(self.members))
        counts = np.bincount(pool[inside], minlength=1)
        self.sizes, self.starts = counts[pool], pointer(counts)[:-1][pool]
        self.n_pairs = int((counts * (counts - 1) // 2).sum())

    def companions(self, nodes: Ints, rng: np.random.Generator) -> Ints:
        """Draw for each node another one of its pool, which must have one."""
        sizes, starts = self.sizes[nodes], self.starts[nodes]
        shift = 1 + (rng.random(len(nodes)) * (sizes - 1)).astype(np.int64)
        return np.asarray(self.members[starts + (self.place[nodes] - starts + shift) % sizes])


class Strangers:
    """Draws for a node others of its pool that are not its known neighbours.

    Attributes
    ----------
    counts : int64 array, shape (n_nodes,)
        How many each node has; 0 for nodes without a fragment.
    """

    def __init__(self, graph: FragmentedGraph, where: Where) -> None:
        pools, edges = Pools(graph.pools(where)), graph.edges
        members, place, starts = pools.members, pools.place, pools.starts
        # Every node with its neighbours and itself, in the order of their places.
        node = np.concatenate([edges[:, 0], edges[:, 1], members])
        near = place[np.concatenate([edges[:, 1], edges[:, 0], members])]
        order = np.lexsort((near, node))
        node, near = node[order], near[order]
        taken = np.bincount(node, minlength=graph.n_nodes)
        self.counts = np.where(graph.fragment >= 0, pools.sizes - taken, 0)
        self._members, self._starts, self._ptr = members, starts, pointer(taken)
        # How many strangers stand before each of them, as one increasing list of all nodes.
        self._n = graph.n_nodes
        self._before = node * self._n + near - starts[node] - (np.arange(len(node)) - self._ptr[node])

    def draw(self, nodes: Ints, rng: np.random.Generator) -> Ints:
        """Draw one for each of the given nodes, all of which must have some."""
        number = (rng.random(len(nodes)) * self.counts[nodes]).astype(np.int64)
        passed = np.searchsorted(self._before, nodes * self._n + number, side="right") - self._ptr[nodes]
        return np.asarray(self._members[self._starts[nodes] + number + passed])


def unlinked_pairs(graph: FragmentedGraph, count: int, rng: np.random.Generator, where: Where) -> Ints:
    """Draw distinct pairs that are not known edges, uniformly; fewer where there are fewer."""
    n = graph.n_nodes
    pools = Pools(graph.pools(where))
    known = graph.edges[:, 0] * n + graph.edges[:, 1]
    count = min(count, pools.n_pairs - len(known))
    if count <= 0:
        return np.empty((0, 2), np.int64)
    chances = pools.sizes[pools.members] - 1.0  # of being the first node of an ordered pair
    chances /= chances.sum()

    def draw(size: int) -> Ints:
        first = rng.choice(pools.members, size, p=chances)
        return np.stack([first, pools.companions(first, rng)], axis=1)

    return draw_until(draw, count, known, n)


def pairs_between(
    nodes: Ints, fragment: Ints, taken: Ints, n_nodes: int, count: int, rng: np.random.Generator
) -> Ints:
    """Draw distinct pairs of `nodes` (of one graph) from different fragments, uniformly, none of them taken.

    Parameters
    ----------
    nodes : int64 array
        The nodes that may occur, all inside a fragment.
    fragment : int64 array, shape (n_nodes,)
    taken : int64 array
        Pairs u * n_nodes + w, u < w, that must not be drawn: the true edges.
    n_nodes : int
    count : int
        Wanted; where there are fewer, all are given.
    """
    if len(nodes) ** 2 <= MAX_LISTED:
        first, second = np.triu_indices(len(nodes), k=1)
        first, second = nodes[first], nodes[second]
        apart = fragment[first] != fragment[second]
        keys = np.minimum(first, second)[apart] * n_nodes + np.maximum(first, second)[apart]
        keys = np.setdiff1d(keys, taken)
        chosen = np.sort(rng.choice(keys, min(count, len(keys)), replace=False))
        return np.stack([chosen // n_nodes, chosen % n_nodes], axis=1)

    sizes = np.unique(fragment[nodes], return_counts=True)[1]
    asked = np.zeros(n_nodes, dtype=bool)
    asked[nodes] = True
    ends = np.stack([taken // n_nodes, taken % n_nodes])
    apart = asked[ends].all(axis=0) & (fragment[ends[0]] != fragment[ends[1]])
    count = min(count, (len(nodes) ** 2 - int((sizes**2).sum())) // 2 - int(apart.sum()))

    def draw(size: int) -> Ints:
        pairs = rng.choice(nodes, (size, 2))
        return np.asarray(pairs[fragment[pairs[:, 0]] != fragment[pairs[:, 1]]])

    return draw_until(draw, count, taken, n_nodes)


def draw_until(draw: Callable[[int], Ints], count: int, taken: Ints, n_nodes: int) -> Ints:
    """Draw pairs until `count` distinct ones are found whose keys, u * n_nodes + w, are not taken; sorted."""
    found = np.empty(0, np.int64)
    while len(found) < count:
        pairs = draw(2 * (count - len(found)) + 1024)
        keys = pairs.min(axis=1) * n_nodes + pairs.max(axis=1)
        keys = np.concatenate([found, keys[~np.isin(keys, taken)]])
        # Cut in the order drawn, not by number: small numbers must not be preferred.
        found = keys[np.sort(np.unique(keys, return_index=True)[1])][:count]
    found = np.sort(found)
    return np.stack([found // n_nodes, found % n_nodes], axis=1)


def cosines(points: Matrix, pairs: Ints) -> Floats:
    """Cosine of the points (rows, dense or sparse) of each pair; 0 where a point is at the origin."""
    one, two = points[pairs[:, 0]], points[pairs[:, 1]]
    if sp.issparse(points):
        dots, lengths = one.multiply(two).sum(axis=1), [np.sqrt(x.multiply(x).sum(axis=1)) for x in (one, two)]
    else:
        dots, lengths = (one * two).sum(axis=1), [np.sqrt((x * x).sum(axis=1)) for x in (one, two)]
    norm = np.asarray(lengths[0] * lengths[1], dtype=float)
    out: Floats = np.zeros(len(pairs))
    np.divide(np.asarray(dots, dtype=float), norm, out=out, where=norm != 0)
    return out
