"""Stage 2a: assemble core patches into islands, the most trustworthy stitches first (Algorithm 2).

Every core patch starts as an island of its own. A queue holds the pairs of islands that share
nodes, ordered by joint fidelity times overlap. Stitching two islands pools their patches, so the
merged island may share more nodes with a third one than any of its patches did: such pairs enter
the queue anew.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, shortest_path

from lograb.attacks.afr.kernel import LocalGraphs
from lograb.attacks.afr.ransac import Alignment, align, ransac_align
from lograb.attacks.afr.settings import AfrSettings
from lograb.types import Floats, Ints, Observations


@dataclass
class Island:
    """Patches in one common frame.

    Attributes
    ----------
    patches : list of int
    nodes : int64 array, increasing
    sums, counts : what the mean position of each node is made of, shapes (n, k) and (n,)
    fidelity : float
        Mean score of its patches.
    """

    patches: list[int]
    nodes: Ints
    sums: Floats
    counts: Ints
    fidelity: float

    @property
    def positions(self) -> Floats:
        """Mean position of each node."""
        return np.asarray(self.sums / self.counts[:, None])


@dataclass
class Assembly:
    """The outcome of Stage 2.

    Attributes
    ----------
    frames : float array, shape (n_patches, k, k)
        φ_v frames[v] lies in the frame of v's island.
    island_of : int64 array, shape (n_patches,)
        Number of each patch's island; -1 outside the core.
    stitches : list of (int, int)
        Pairs of patches whose islands were stitched (one representative each).
    tried, rejected : counts, the rejected ones by reason
    samples : smallest and largest sample size RANSAC used
    """

    frames: Floats
    island_of: Ints
    stitches: list[tuple[int, int]] = field(default_factory=list)
    tried: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    samples: list[int] = field(default_factory=list)


def dimension(overlap: int, k: int, rank: int, settings: AfrSettings) -> int:
    """Number of leading dimensions in which an overlap is aligned.

    ``full``: all k. ``auto``: as many as r + 1 shared nodes pin down, at most the ranks of both.
    """
    return k if settings.align_dim == "full" else max(1, min(overlap - 1, rank))


class Assembler:
    """The queue and the islands while they are being stitched."""

    def __init__(
        self,
        seen: Observations,
        local: LocalGraphs,
        coordinates: Floats,
        scores: Floats,
        core: Ints,
        settings: AfrSettings,
        rng: np.random.Generator,
    ) -> None:
        self.seen, self.local, self.coordinates = seen, local, coordinates
        self.settings, self.rng = settings, rng
        self.k = coordinates.shape[1]
        self.islands: dict[int, Island] = {}
        self.holders: dict[int, set[int]] = {}
        self.queue: list[tuple[float, int, int, int]] = []
        self.assembly = Assembly(
            np.broadcast_to(np.eye(self.k), (seen.n_patches, self.k, self.k)).copy(),
            np.full(seen.n_patches, -1, dtype=np.int64),
        )
        for i in core.tolist():
            self._add_patch(i, float(scores[i]))

    def _add_patch(self, i: int, score: float) -> None:
        span = slice(self.seen.ptr[i], self.seen.ptr[i + 1])
        nodes = self.seen.nodes[span]
        ones = np.ones(len(nodes), dtype=np.int64)
        self.islands[i] = Island([i], nodes, self.coordinates[span].copy(), ones, score)
        self.assembly.island_of[i] = i
        for node in nodes.tolist():
            self.holders.setdefault(node, set()).add(i)

    def run(self) -> Assembly:
        """Stitch until no pair is left."""
        for number in list(self.islands):
            self._enqueue(number, only_larger=True)
        while self.queue:
            _, _, a, b = heapq.heappop(self.queue)
            if a in self.islands and b in self.islands:
                self._try(a, b)
        return self.assembly

    def _enqueue(self, number: int, only_larger: bool = False) -> None:
        """Put all pairs of an island and its neighbours into the queue that could be eligible."""
        island = self.islands[number]
        shared = Counter(h for node in island.nodes.tolist() for h in self.holders[node] if h != number)
        for other, overlap in shared.items():
            if (only_larger and other < number) or not self._large_enough(number, other, overlap):
                continue
            joint = island.fidelity * self.islands[other].fidelity * overlap
            priority = float(self.rng.random()) if self.settings.order == "random" else -joint
            heapq.heappush(self.queue, (priority, -overlap, min(number, other), max(number, other)))

    def _rank(self, a: int, b: int) -> int:
        ranks = self.seen.ranks
        return int(min(max(ranks[self.islands[i].patches]) for i in (a, b)))

    def _large_enough(self, a: int, b: int, overlap: int) -> bool:
        r = dimension(overlap, self.k, self._rank(a, b), self.settings)
        weakest = min(self.islands[a].fidelity, self.islands[b].fidelity)
        return overlap >= 2 and overlap >= self.settings.needed_overlap(r, self.k, weakest)

    def _try(self, a: int, b: int) -> None:
        """Check a pair, align it, and stitch it if enough correspondences agree."""
        one, two = self.islands[a], self.islands[b]
        nodes, in_one, in_two = np.intersect1d(one.nodes, two.nodes, assume_unique=True, return_indices=True)
        assembly = self.assembly
        assembly.tried += 1
        if not self._well_posed(nodes, one.patches + two.patches):
            assembly.rejected["overlap not connected"] += 1
            return
        r = dimension(len(nodes), self.k, self._rank(a, b), self.settings)
        found = self._align(one.positions[in_one][:, :r], two.positions[in_two][:, :r])
        assembly.samples.append(min(r + 1, len(nodes)))
        needed = self.settings.needed_overlap(r, self.k, min(one.fidelity, two.fidelity))
        if found.inliers.sum() < needed:
            assembly.rejected["too little consensus"] += 1
            return
        turn = np.eye(self.k)
        turn[:r, :r] = found.turn  # the other dimensions stay as they are: inner products survive
        self._merge(a, b, turn)

    def _align(self, first: Floats, second: Floats) -> Alignment:
        norm = 0.5 * (np.linalg.norm(first, axis=1).mean() + np.linalg.norm(second, axis=1).mean())
        tolerance = self.settings.inlier_tolerance * float(norm)
        if not self.settings.ransac:
            return align(first, second, tolerance)
        return ransac_align(first, second, tolerance, self.settings.iterations, self.rng)

    def _well_posed(self, nodes: Ints, patches: list[int]) -> bool:
        """Look at the overlap in the local graphs of the islands' patches; the true graph is unknown."""
        if self.settings.connected == "any":
            return True
        ends = np.concatenate([self.local.ends[self.local.ptr[i] : self.local.ptr[i + 1]] for i in patches])
        pairs = self.seen.nodes[ends]
        place = np.searchsorted(nodes, pairs).clip(max=len(nodes) - 1)
        inside = (nodes[place] == pairs).all(axis=1)
        rows, cols = place[inside].T
        graph = sp.csr_array((np.ones(len(rows)), (rows, cols)), shape=(len(nodes), len(nodes)))
        if self.settings.connected == "connected":
            return bool(connected_components(graph, directed=False)[0] == 1)
        return bool(shortest_path(graph, directed=False, unweighted=True).max() <= 2)

    def _merge(self, a: int, b: int, turn: Floats) -> None:
        """Carry the smaller island into the larger one's frame and queue the pairs this opens up."""
        if len(self.islands[a].patches) < len(self.islands[b].patches):
            a, b, turn = b, a, turn.T
        one, two = self.islands[a], self.islands.pop(b)
        assembly = self.assembly
        assembly.stitches.append((one.patches[0], two.patches[0]))
        assembly.frames[two.patches] = assembly.frames[two.patches] @ turn
        assembly.island_of[two.patches] = a
        nodes = np.union1d(one.nodes, two.nodes)
        sums, counts = np.zeros((len(nodes), self.k)), np.zeros(len(nodes), dtype=np.int64)
        for island, frame in ((one, None), (two, turn)):
            place = np.searchsorted(nodes, island.nodes)
            sums[place] += island.sums if frame is None else island.sums @ frame
            counts[place] += island.counts
        weights = len(one.patches), len(two.patches)
        mean = (weights[0] * one.fidelity + weights[1] * two.fidelity) / sum(weights)
        self.islands[a] = Island(one.patches + two.patches, nodes, sums, counts, mean)
        for node in two.nodes.tolist():
            self.holders[node].discard(b)
            self.holders[node].add(a)
        self._enqueue(a)
