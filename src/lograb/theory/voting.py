"""Cross-voting between islands: the sigmoid and the Chernoff bounds of the appendix.

A pair that shares m patches gets C votes; C is Binomial(m, π). The printed bounds are Chernoff's only
where the threshold lies on the right side of the mean: C_0 / m >= π_0 for false positives, C_0 / m <= π_1
for false negatives. With a *fixed* C_0 = 2 and growing m the first condition fails, and the false-positive
rate tends to 1 instead of falling exponentially. Outside their range the functions return 1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit, rel_entr

from lograb.errors import LograbError
from lograb.types import Floats


def vote_probability(votes: npt.ArrayLike, threshold: float = 2.0, steepness: float = 1.0) -> Floats:
    """Turn vote counts into probabilities: 1 / (1 + exp(-κ (C - C_0))), elementwise."""
    return np.asarray(expit(steepness * (np.asarray(votes, dtype=float) - threshold)))


def divergence(p: float, q: float) -> float:
    """Kullback-Leibler divergence of Bernoulli(p) from Bernoulli(q)."""
    return float(rel_entr(p, q) + rel_entr(1 - p, 1 - q))


def printed_error_bound(trials: int, threshold: float, rate: float) -> float:
    """Evaluate exp(-m KL(C_0 / m ‖ π)) as printed, whether or not it is a bound."""
    if trials < 1 or not 0 <= threshold <= trials or not 0 <= rate <= 1:
        raise LograbError(f"need 0 <= threshold <= trials and a rate in [0, 1], got {threshold}, {trials}, {rate}")
    return float(np.exp(-trials * divergence(threshold / trials, rate)))


def false_positive_bound(trials: int, threshold: float, rate: float) -> float:
    """Bound P(C >= C_0) without an edge: Chernoff where C_0 / m >= π_0, else 1."""
    bound = printed_error_bound(trials, threshold, rate)
    return bound if threshold >= trials * rate else 1.0


def false_negative_bound(trials: int, threshold: float, rate: float) -> float:
    """Bound P(C <= C_0) with an edge: Chernoff where C_0 / m <= π_1, else 1."""
    bound = printed_error_bound(trials, threshold, rate)
    return bound if threshold <= trials * rate else 1.0
