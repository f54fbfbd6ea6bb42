"""Stage 2a: assemble core patches into islands, the most trustworthy stitches first (Algorithm 2).

Every core patch starts as an island of its own. A queue holds the pairs of islands that share
nodes, ordered by joint fidelity times overlap. Stitching two islands pools their patches, so the
merged island may share more nodes with a third one than any of its patches did: its pairs enter
the queue anew, and those from before the merge are dropped.

A stitch in r dimensions turns the r leading ones of the smaller island. In the others the two remain as they
are, each in a frame of its own: nothing is known of their signs there. Later stitches of the merged island
use at most its r dimensions, and demand as many agreeing nodes as if it had them all.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from lograb.attacks.afr.kernel import LocalGraphs
from lograb.attacks.afr.settings import AfrSettings
from lograb.attacks.afr.trials import Island, Trial, dimension, try_pairs
from lograb.attacks.alignment.overlaps import count_overlaps
from lograb.attacks.alignment.ransac import ransac_align
from lograb.parallel import one_blas_thread
from lograb.ragged import owners, pointer, ranges
from lograb.types import Floats, Ints, Observations

# How far down the queue to look when a pair has not been tried yet.
AHEAD = 256
Entry = tuple[float, int, int, int, int]


@dataclass
class Assembly:
    """The outcome of Stage 2.

    Attributes
    ----------
    positions : float array, shape (n_entries, dims)
        φ of every entry, turned with its patch.
    island_of : int64 array, shape (n_patches,)
        Number of each patch's island; -1 outside the core.
    group : int64 array, shape (n_patches, dims)
        Patches with the same number in a column share a frame in this dimension and those before it.
    aligned : int64 array, shape (n_patches,)
        Leading dimensions in which all patches of an island share a frame.
    stitches : list of (int, int)
        Pairs of patches whose islands were stitched (one representative each).
    tried, rejected : counts, the rejected ones by reason
        Pairs of islands that share too few nodes are rejected without being tried.
    samples : sample sizes that the alignments used
    """

    positions: Floats
    island_of: Ints
    group: Ints
    aligned: Ints
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
        self.k, dims = seen.protocol.k, coordinates.shape[1]
        self.fidelity, self.rank, self.aligned = scores.copy(), seen.ranks.copy(), seen.ranks.copy()
        if settings.align_dim == "full":
            self.aligned[:] = dims
        self.age = np.zeros(seen.n_patches, dtype=np.int64)  # merges that each island has seen
        self.islands = {i: self._single(i, local, coordinates) for i in core.tolist()}
        self.trials: dict[tuple[int, int], tuple[Island, Island, Trial]] = {}
        alone = np.arange(seen.n_patches)
        self.assembly = Assembly(coordinates.copy(), np.full(seen.n_patches, -1, dtype=np.int64),
                                 np.repeat(alone[:, None], dims, axis=1), self.aligned)  # fmt: skip
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
        return Island([i], nodes, coordinates[span], ones, edges, float(self.fidelity[i]), int(self.rank[i]),
                      int(self.aligned[i]))  # fmt: skip

    def run(self) -> Assembly:
        """Stitch until no pair is left."""
        with one_blas_thread():
            while self.queue:
                entry = self.queue.pop()
                if self._is_current(entry):
                    self._try(-entry[2], -entry[3])
        self.assembly.aligned = self.aligned[np.maximum(self.assembly.island_of, 0)]
        return self.assembly

    def _is_current(self, entry: Entry) -> bool:
        """Say whether neither island changed since the entry was made."""
        a, b = -entry[2], -entry[3]
        return a in self.islands and b in self.islands and bool(self.age[a] + self.age[b] == entry[4])

    def _entries(self, one: Ints, two: Ints, overlap: Ints) -> Iterator[Entry]:
        """Make queue entries for those pairs of islands that share enough nodes."""
        r = dimension(overlap, self.k, np.minimum(self.rank[one], self.rank[two]), self.settings)
        weakest = np.minimum(self.fidelity[one], self.fidelity[two])
        kept = overlap >= self.settings.needed_overlap(r, self.k, weakest)
        if not kept.all():
            self.assembly.rejected["overlap too small"] += int((~kept).sum())
        one, two, overlap = one[kept], two[kept], overlap[kept]
        if self.settings.order == "random":
            priority = self.rng.random(len(one))
        else:
            priority = self.fidelity[one] * self.fidelity[two] * overlap
        # Ties: the larger overlap, then the pair with the smaller numbers.
        pairs = (-np.minimum(one, two)).tolist(), (-np.maximum(one, two)).tolist()
        return zip(priority.tolist(), overlap.tolist(), *pairs, (self.age[one] + self.age[two]).tolist())

    def _enqueue(self, number: int) -> None:
        """Put all pairs of an island and its neighbours into the queue that share enough nodes."""
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
            found = ransac_align(*trial.points, self.settings.iterations, self.rng, trial.sample)
            turn = found.turn if found.inliers.sum() >= trial.needed else None
        if turn is None:
            assembly.rejected["too little consensus"] += 1
            return
        self._merge(a, b, turn)

    def _trial(self, a: int, b: int) -> Trial:
        """Look at a pair, and at those that follow it in the queue, unless that was done before."""
        if not self._is_tried(a, b):
            ahead = [(-entry[2], -entry[3]) for entry in self.queue[-AHEAD:] if self._is_current(entry)]
            fresh = [pair for pair in dict.fromkeys([(a, b), *ahead]) if not self._is_tried(*pair)]
            pairs = [(self.islands[x], self.islands[y]) for x, y in fresh]
            trials = try_pairs(pairs, self.seen.n_nodes, self.k, self.settings)
            self.trials = {pair: self.trials[pair] for pair in ahead if self._is_tried(*pair)}
            self.trials |= {key: (*pair, trial) for key, pair, trial in zip(fresh, pairs, trials)}
        return self.trials[a, b][2]

    def _is_tried(self, a: int, b: int) -> bool:
        """Say whether a pair was looked at since its islands last changed."""
        known = self.trials.get((a, b))
        return known is not None and known[0] is self.islands[a] and known[1] is self.islands[b]

    def _merge(self, a: int, b: int, turn: Floats) -> None:
        """Turn the smaller island's leading dimensions into the larger one's and queue the pairs this opens up."""
        if len(self.islands[a].patches) < len(self.islands[b].patches):
            a, b, turn = b, a, turn.T
        one, two = self.islands[a], self.islands.pop(b)
        assembly = self.assembly
        assembly.stitches.append((one.patches[0], two.patches[0]))
        r, moved = len(turn), np.array(two.patches)
        entries = ranges(self.seen.ptr[moved], self.seen.sizes[moved])
        assembly.positions[entries, :r] = assembly.positions[entries, :r] @ turn
        assembly.group[moved, :r] = assembly.group[one.patches[0], :r]
        assembly.island_of[moved] = a
        nodes = np.union1d(one.nodes, two.nodes)
        sums, counts = np.zeros((len(nodes), one.sums.shape[1])), np.zeros(len(nodes), dtype=np.int64)
        for island, leading in ((one, one.sums[:, :r]), (two, two.sums[:, :r] @ turn)):
            place = np.searchsorted(nodes, island.nodes)
            sums[place, :r] += leading
            counts[place] += island.counts
        weights = len(one.patches), len(two.patches)
        self.fidelity[a] = (weights[0] * one.fidelity + weights[1] * two.fidelity) / sum(weights)
        self.rank[a], self.aligned[a] = max(one.rank, two.rank), r
        self.age[a] += 1
        edges = np.union1d(one.edges, two.edges)
        patches = one.patches + two.patches
        trust, rank = float(self.fidelity[a]), int(self.rank[a])
        self.islands[a] = Island(patches, nodes, sums, counts, edges, trust, rank, r)
        self._enqueue(a)
