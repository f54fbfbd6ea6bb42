"""Stage 2a: assemble core patches into islands, the most trustworthy stitches first (Algorithm 2).

Every core patch starts as an island of its own. A queue holds the pairs of islands that share
nodes, ordered by joint fidelity times overlap. Stitching two islands pools their patches, so the
merged island may share more nodes with a third one than any of its patches did: such pairs enter
the queue anew.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from lograb.attacks.afr.kernel import LocalGraphs
from lograb.attacks.afr.ransac import ransac_align
from lograb.attacks.afr.settings import AfrSettings
from lograb.attacks.afr.trials import Island, Trial, dimension, try_pairs
from lograb.attacks.alignment import count_overlaps
from lograb.ragged import owners, pointer, ranges
from lograb.types import Floats, Ints, Observations

# How far down the queue to look when a pair has not been tried yet.
AHEAD = 256
Entry = tuple[float, int, int, int]


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
    samples : sample sizes that the alignments used
    """

    frames: Floats
    island_of: Ints
    stitches: list[tuple[int, int]] = field(default_factory=list)
    tried: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    samples: list[int] = field(default_factory=list)


class Assembler:
    """The queue and the islands while they are being stitched. An island has the number of one of its patches."""

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
        self.seen, self.settings, self.rng = seen, settings, rng
        self.k = coordinates.shape[1]
        self.fidelity, self.rank = scores.copy(), seen.ranks.copy()
        self.islands = {i: self._single(i, local, coordinates) for i in core.tolist()}
        self.trials: dict[tuple[int, int], tuple[Island, Island, Trial]] = {}
        self.assembly = Assembly(
            np.broadcast_to(np.eye(self.k), (seen.n_patches, self.k, self.k)).copy(),
            np.full(seen.n_patches, -1, dtype=np.int64),
        )
        self.assembly.island_of[core] = core
        entries = np.flatnonzero(np.isin(owners(seen.ptr), core))
        entries = entries[np.argsort(seen.nodes[entries], kind="stable")]
        self.holders = owners(seen.ptr)[entries]  # core patches, node after node
        self.holder_ptr = pointer(np.bincount(seen.nodes[entries], minlength=seen.n_nodes))
        # Sorted, the most trustworthy last: unlike a heap it shows what comes next.
        self.queue = sorted(self._entries(*count_overlaps(seen, 2, core)))

    def _single(self, i: int, local: LocalGraphs, coordinates: Floats) -> Island:
        span = slice(self.seen.ptr[i], self.seen.ptr[i + 1])
        nodes = self.seen.nodes[span]
        ends = self.seen.nodes[local.ends[local.ptr[i] : local.ptr[i + 1]]]
        edges = ends[:, 0] * self.seen.n_nodes + ends[:, 1]
        ones = np.ones(len(nodes), dtype=np.int64)
        return Island([i], nodes, coordinates[span], ones, edges, float(self.fidelity[i]), int(self.rank[i]))

    def run(self) -> Assembly:
        """Stitch until no pair is left."""
        while self.queue:
            _, _, a, b = self.queue.pop()
            if -a in self.islands and -b in self.islands:
                self._try(-a, -b)
        return self.assembly

    def _entries(self, one: Ints, two: Ints, overlap: Ints) -> Iterator[Entry]:
        """Make queue entries for those pairs of islands that could be eligible."""
        r = dimension(overlap, self.k, np.minimum(self.rank[one], self.rank[two]), self.settings)
        weakest = np.minimum(self.fidelity[one], self.fidelity[two])
        kept = overlap >= self.settings.needed_overlap(r, self.k, weakest)
        one, two, overlap = one[kept], two[kept], overlap[kept]
        if self.settings.order == "random":
            priority = self.rng.random(len(one))
        else:
            priority = self.fidelity[one] * self.fidelity[two] * overlap
        # Ties: the larger overlap, then the pair with the smaller numbers.
        pairs = (-np.minimum(one, two)).tolist(), (-np.maximum(one, two)).tolist()
        return zip(priority.tolist(), overlap.tolist(), *pairs)

    def _enqueue(self, number: int) -> None:
        """Put all pairs of an island and its neighbours into the queue that could be eligible."""
        nodes, n = self.islands[number].nodes, self.seen.n_patches
        lengths = self.holder_ptr[nodes + 1] - self.holder_ptr[nodes]
        held_by = self.assembly.island_of[self.holders[ranges(self.holder_ptr[nodes], lengths)]]
        once = np.unique(np.repeat(np.arange(len(nodes)), lengths) * n + held_by)
        shared = np.bincount(once % n, minlength=n)
        shared[number] = 0
        others = np.flatnonzero(shared >= 2)
        for entry in self._entries(np.full_like(others, number), others, shared[others]):
            insort(self.queue, entry)

    def _try(self, a: int, b: int) -> None:
        """Check a pair, align it, and stitch it if enough correspondences agree."""
        trial = self._trial(a, b)
        assembly = self.assembly
        assembly.tried += 1
        if not trial.connected:
            assembly.rejected["overlap not connected"] += 1
            return
        assembly.samples.append(trial.sample)
        turn = trial.turn
        if trial.points is not None:
            found = ransac_align(*trial.points, self.settings.iterations, self.rng)
            turn = found.turn if found.inliers.sum() >= trial.needed else None
        if turn is None:
            assembly.rejected["too little consensus"] += 1
            return
        whole = np.eye(self.k)
        whole[: len(turn), : len(turn)] = turn  # the other dimensions stay as they are: inner products survive
        self._merge(a, b, whole)

    def _trial(self, a: int, b: int) -> Trial:
        """Look at a pair, and at those that follow it in the queue, unless that was done before."""
        if not self._is_tried(a, b):
            ahead = dict.fromkeys([(a, b), *((-x, -y) for _, _, x, y in self.queue[-AHEAD:])])
            fresh = [(x, y) for x, y in ahead if x in self.islands and y in self.islands]
            fresh = [pair for pair in fresh if not self._is_tried(*pair)]
            pairs = [(self.islands[x], self.islands[y]) for x, y in fresh]
            trials = try_pairs(pairs, self.seen.n_nodes, self.settings)
            self.trials |= {key: (*pair, trial) for key, pair, trial in zip(fresh, pairs, trials)}
        return self.trials[a, b][2]

    def _is_tried(self, a: int, b: int) -> bool:
        """Say whether a pair was looked at since its islands last changed."""
        known = self.trials.get((a, b))
        return known is not None and known[0] is self.islands[a] and known[1] is self.islands[b]

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
        self.fidelity[a] = (weights[0] * one.fidelity + weights[1] * two.fidelity) / sum(weights)
        self.rank[a] = max(one.rank, two.rank)
        edges = np.union1d(one.edges, two.edges)
        patches = one.patches + two.patches
        self.islands[a] = Island(patches, nodes, sums, counts, edges, float(self.fidelity[a]), int(self.rank[a]))
        self._enqueue(a)
