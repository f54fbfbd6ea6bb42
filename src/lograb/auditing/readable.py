"""How much can be read: the largest list of claims of which a stated share is right, and how sure that is.

With the truth a claim is right or wrong; without it, it is right with the probability that the attack itself
gives. Both are *weights*, and the rest is the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from lograb.metrics.intervals import share_interval
from lograb.types import Bools, Floats, Ints

FACTOR, DOWN, UP = 0.6, 1.0, 3.0
"""How far the attack's log-odds may be off: by a factor, and by shifts. Chosen on generated graphs, where the
attack expects too little of what it ranks well more often than too much (docs/results/audit.md)."""
EDGE = 1e-9


class Reading(NamedTuple):
    """The surest claims: how many are right (expected, without the truth), how many there are, the least score."""

    right: float
    claims: int
    cut: float

    @property
    def precision(self) -> float | None:
        """Share of the claims that is right; None without claims."""
        return self.right / self.claims if self.claims else None


NOTHING = Reading(0.0, 0, float("inf"))


def read(scores: Floats, weights: Floats | Bools, confidence: float) -> Reading:
    """Take the longest list of claims, surest first, whose mean weight reaches `confidence`; ties together."""
    right, claims, cuts = _lists(scores, weights)
    fine = np.flatnonzero(right >= (confidence - EDGE) * claims)
    return Reading(float(right[fine[-1]]), int(claims[fine[-1]]), float(cuts[fine[-1]])) if len(fine) else NOTHING


def guess(scores: Floats, weights: Floats | Bools) -> Reading:
    """Take the list with the most right claims over wrong ones: what is known where none is right often enough."""
    right, claims, cuts = _lists(scores, weights)
    gain = 2 * right - claims
    best = int(np.argmax(gain)) if len(gain) else 0
    return Reading(float(right[best]), int(claims[best]), float(cuts[best])) if np.any(gain > 0) else NOTHING


def _lists(scores: Floats, weights: Floats | Bools) -> tuple[Floats, Ints, Floats]:
    """Give every list of surest claims, ties together: how many are right, how many there are, the least score."""
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, len(order) > 0))
    return np.cumsum(np.asarray(weights, dtype=float)[order])[ends], ends + 1, scores[order][ends]


def estimated_interval(
    chances: Floats, total: float, confidence: float, loose: Bools | None = None, claimed: Bools | None = None
) -> tuple[float, float]:
    """Enclose the share that is read, where only the attack's own probabilities are known.

    What would be read if the attack's log-odds were off as far as they may be, either way, and then chance: the
    share is of `total` edges, which is an expectation too. Of `loose` pairs nothing tells how many are edges:
    none, or all that are `claimed` and no other.
    """
    loose = np.zeros(len(chances), dtype=bool) if loose is None else loose
    claims = loose & (False if claimed is None else claimed)
    expected = float(chances[loose].sum())
    firm, open_ = max(total - expected, 0.0), float(claims.sum())
    odds = logit(np.clip(chances, EDGE, 1 - EDGE))
    least = np.where(loose, 0.0, expit(np.minimum(odds * FACTOR, odds / FACTOR) - DOWN))
    most = np.where(loose, claims, expit(np.maximum(odds * FACTOR, odds / FACTOR) + UP))
    many, few = firm + max(expected, open_), min(firm, float(most[~loose].sum())) + open_
    low, high = (min(read(chances, doubted, confidence).right / max(of, 1.0), 1.0)
                 for doubted, of in ((least, many), (most, few)))  # fmt: skip
    total = max(total, 1.0)
    return share_interval(low * total, total)[0], share_interval(high * total, total)[1]
