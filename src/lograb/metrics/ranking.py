"""How well edge scores rank pairs: metrics over all pairs that share a patch.

Pairs that an attack does not list count as tied below all that it lists. Ties are treated as one
step: a threshold cannot tell tied pairs apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lograb.types import Bools, Floats


@dataclass(frozen=True)
class Ranking:
    """Cumulated hits and misses at each distinct score, from the surest down.

    Attributes
    ----------
    hits, misses : float arrays, shape (n_steps,)
        True and false pairs at or above each distinct score; the last step takes in all pairs.
    """

    hits: Floats
    misses: Floats

    @classmethod
    def of(cls, scores: Floats, true: Bools, n_true: int, n_pairs: int) -> Ranking:
        """Sort scored pairs; the `n_pairs` in all, `n_true` of them true, include the unlisted ones."""
        order = np.argsort(-scores, kind="stable")
        ends = np.append(scores[order][1:] != scores[order][:-1], True)[: len(order)]  # infinite ones may tie
        hits, misses = np.cumsum(true[order])[ends], np.cumsum(~true[order])[ends]
        return cls(np.append(hits, n_true).astype(float), np.append(misses, n_pairs - n_true).astype(float))

    def average_precision(self) -> float:
        """Mean precision over the recall gained at each step; NaN without true pairs."""
        gained = np.diff(self.hits, prepend=0.0)
        precision = self.hits / np.maximum(self.hits + self.misses, 1.0)
        return float((gained * precision).sum() / self.hits[-1]) if self.hits[-1] else float("nan")

    def auroc(self) -> float:
        """Probability that a true pair outranks a false one, ties counting half."""
        if not self.hits[-1] or not self.misses[-1]:
            return float("nan")
        gained = np.diff(self.hits, prepend=0.0)
        below = self.misses[-1] - self.misses
        tied = np.diff(self.misses, prepend=0.0)
        return float((gained * (below + 0.5 * tied)).sum() / (self.hits[-1] * self.misses[-1]))

    def recall_at_false_rate(self, rate: float) -> float:
        """Largest share of true pairs found while at most `rate` of the false ones are claimed.

        NaN without true pairs, and without false ones: there is no rate of which then.
        """
        if not self.hits[-1] or not self.misses[-1]:
            return float("nan")
        allowed = self.misses <= rate * self.misses[-1]
        return float(self.hits[allowed].max(initial=0.0) / self.hits[-1])

    def precision_at_recall(self, recall: float) -> float:
        """Precision at the first step that finds this share of the true pairs."""
        if not self.hits[-1]:
            return float("nan")
        step = int(np.argmax(self.hits >= recall * self.hits[-1] - 1e-9))
        return float(self.hits[step] / (self.hits[step] + self.misses[step]))
