"""Patches of one shape, stacked, and the pairs inside them as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np

from lograb.attacks.known_defences import EXACT
from lograb.attacks.posterior.isolated import ZERO
from lograb.attacks.posterior.noise import nearest_frame
from lograb.pairs import members_of, runs_of_equal_shape, spectra_of, upper_pairs, vectors_of
from lograb.types import Bools, Floats, Ints, Observations

# One (b, q, q) array of a batch; about thirty of them are alive at a time.
BATCH_BYTES = 1 << 22
LOUD = 3.0
"""σ² q at which evidence counts half."""
NOTHING, APART = 0.02, 0.1
"""Entries of a first eigenvector, times √q, that are none; and the share of such, or of the wrong sign, beyond
which a patch is not connected."""
MOST_ENTRY = 0.55
"""Square of an entry of the first eigenvector, which is at most 1/2 on a connected patch."""
DROWNED = 1e-3
"""Strength below which the embedding of a patch is not read: its members and eigenvalues are."""


@dataclass(frozen=True)
class Batch:
    """Patches with equal size q and rank r.

    Attributes
    ----------
    which : int64 array, shape (b,)
    members : int64 array, shape (b, q)
    frame : float array, shape (b, q, r)
        Orthonormal columns nearest to the observed embedding.
    mu : float array, shape (b, r)
        1 - λ of the columns, or a guess where the eigenvalues or their pairing are unknown.
    variance : float array, shape (b,)
        σ² of the noise on the embedding.
    entries : slice
        Where its pairs stand in flat arrays over all pairs of all patches.
    valued : bool
        Whether `mu` was observed.
    paired : bool
        Whether the columns are eigenvectors; False for an arbitrary basis of the subspace.
    guessed : bool
        Whether all `mu` are one guess that stands for what is not known.
    exact : bool
        Whether `mu` can be taken at their word.
    bounded : bool array, shape (b,)
        Whether the first hidden eigenvalue is known, and not 0: there are no more components than columns.
    """

    which: Ints
    members: Ints
    frame: Floats
    mu: Floats
    variance: Floats
    entries: slice
    valued: bool
    paired: bool
    bounded: Bools
    guessed: bool = False
    exact: bool = False

    @property
    def size(self) -> int:
        """Members of each patch."""
        return int(self.frame.shape[1])

    @property
    def rank(self) -> int:
        """Columns of each frame."""
        return int(self.frame.shape[2])

    @property
    def truncated(self) -> bool:
        """Whether part of the spectrum is hidden."""
        return self.rank < self.size

    @property
    def strength(self) -> Floats:
        """How far what the embedding says is believed, 0 to 1, shape (b,).

        Evidence is right to second order in the noise, and falls away where σ² q is large. Under the strict gauge
        a complete frame is any orthonormal basis, and says nothing. A patch of which only eigenvalues 0 are shown
        tells of components and degrees, but of no pair inside a component.
        """
        if not self.paired and not self.truncated:
            return np.zeros(len(self.which))
        heard = 1.0 / (1.0 + (self.variance * self.size / LOUD) ** 2)
        if self.readable and self.truncated:
            heard = heard * (self.mu < 1.0 - ZERO).any(axis=1)
        return heard

    @property
    def broken(self) -> Bools:
        """Patches without eigenvalues whose first column is not that of degrees: they are not connected, (b,)."""
        if not self.paired or self.valued:
            return np.zeros(len(self.which), dtype=bool)
        first = self.frame[:, :, 0]
        below = (np.minimum(first, 0.0) ** 2).sum(axis=1)
        empty = (np.abs(first) < NOTHING / np.sqrt(self.size)).mean(axis=1)
        by_noise = self.variance * self.size / 4  # which turns the signs of small entries
        alone = (first**2 - self.variance[:, None]).max(axis=1) > MOST_ENTRY
        return np.asarray(alone | (np.minimum(below, 1.0 - below) + empty > APART + by_noise))

    @property
    def readable(self) -> bool:
        """Whether eigenvalues and their columns are both known."""
        return self.valued and self.paired

    def matrix(self, flat: Floats) -> Floats:
        """Spread values of pairs, of any patches, into symmetric (b, q, q) matrices; the inverse of `pairs`."""
        rows, cols = upper_pairs(self.size)
        values = flat.reshape(-1, len(rows))
        full = np.zeros((len(values), self.size, self.size))
        full[:, rows, cols] = values
        full[:, cols, rows] = full[:, rows, cols]
        return full

    def pairs(self, matrices: Floats) -> Floats:
        """Take the pairs out of (b, q, q) matrices, flat."""
        rows, cols = upper_pairs(self.size)
        return np.asarray(matrices[:, rows, cols]).ravel()

    def for_pairs(self, values: Floats) -> Floats:
        """Repeat what holds for each patch, (b,), for each of its pairs, flat."""
        return np.repeat(values, self.size * (self.size - 1) // 2)


def readable(seen: Observations, variance: Floats, max_entries: int) -> tuple[Ints, dict[str, int]]:
    """Choose the patches that fit into the budget, smallest first; count those whose embedding says nothing."""
    sizes = seen.sizes
    chosen = np.flatnonzero((sizes >= 2) & (seen.ranks >= 1))
    chosen = chosen[np.argsort(sizes[chosen], kind="stable")]
    kept = chosen[np.cumsum(sizes[chosen] * (sizes[chosen] - 1) // 2) <= max_entries]
    blank = seen.complete[kept] & (seen.protocol.gauge == "rotation")
    drowned = ~blank & ((variance * sizes)[kept] > LOUD / np.sqrt(DROWNED))
    return kept, {"read": int((~blank & ~drowned).sum()), "drowned_in_noise": int(drowned.sum()),
                  "blank_by_gauge": int(blank.sum()), "over_budget": len(chosen) - len(kept)}  # fmt: skip


def stack(seen: Observations, which: Ints, variance: Floats, blur: Floats) -> list[Batch]:
    """Build the batches of some patches; `blur` (n_patches,) is how much eigenvalues err, infinite if unknown."""
    batches, start, paired = [], 0, seen.protocol.gauge != "rotation"
    known = np.isfinite(blur) + (blur <= EXACT).astype(int)
    kinds = [runs_of_equal_shape(seen, which[known[which] == kind], BATCH_BYTES) for kind in range(3)]
    for run in chain(*kinds):
        valued, exact, members = bool(known[run[0]]), bool(known[run[0]] > 1), members_of(seen, run)
        vectors = vectors_of(seen, run)
        mu = 1.0 - spectra_of(seen, run)[1] if valued else np.zeros(vectors[:, 0].shape)
        entries = slice(start, start + members.size * (members.shape[1] - 1) // 2)
        start = entries.stop
        bounded = np.zeros(len(run), dtype=bool)
        if seen.next_values is not None and exact:
            bounded = seen.next_values[run] > ZERO
        batches.append(Batch(run, members, nearest_frame(vectors), mu, variance[run], entries, valued, paired,
                             bounded, exact=exact and paired))  # fmt: skip
    return batches
