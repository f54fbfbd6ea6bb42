"""Confidence intervals: of a mean over few runs, of a share, and of ranking metrics on few pairs."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import ndtri, stdtrit


def mean_interval(values: npt.ArrayLike, level: float = 0.95) -> list[float]:
    """Enclose the mean of at least two independent values, as Student does."""
    array = np.asarray(values, dtype=float)
    reach = stdtrit(len(array) - 1, (1 + level) / 2) * array.std(ddof=1) / math.sqrt(len(array))
    return [float(array.mean() - reach), float(array.mean() + reach)]


def share_interval(hits: float, total: float, level: float = 0.95) -> tuple[float, float]:
    """Enclose a share, as Wilson does: nothing out of few does not pass for never."""
    if total <= 0:
        return 0.0, 1.0
    z, share = float(ndtri((1 + level) / 2)), hits / total
    middle, weight = share + z * z / (2 * total), 1 + z * z / total
    reach = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    low, high = (middle - reach) / weight, (middle + reach) / weight
    return 0.0 if hits <= 0 else max(low, 0.0), 1.0 if hits >= total else min(high, 1.0)


def auroc_interval(auroc: float, positives: int, negatives: int, level: float = 0.95) -> tuple[float, float]:
    """Enclose the area under the ROC curve (Newcombe's fifth method).

    All values θ that a score test does not reject, with the variance of Hanley and McNeil at θ itself
    (not at the estimate), so that a perfect ranking of few pairs does not pass for certainty:

        (estimate - θ)² = z² θ (1 - θ) (1 + N ((1 - θ) / (2 - θ) + θ / (1 + θ))) / (m n),  N = (m + n) / 2 - 1

    Parameters
    ----------
    auroc : float
    positives, negatives : int
        m and n, the numbers of independent pairs behind the estimate. Pairs that share a node are not quite
        independent, so the interval is a little narrow.
    level : float
    """
    if not positives or not negatives or math.isnan(auroc):
        return 0.0, 1.0
    z = float(ndtri((1 + level) / 2))
    spread = (positives + negatives) / 2 - 1

    def distance(theta: float) -> float:
        shape = 1 + spread * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        return float((auroc - theta) ** 2 - z**2 * theta * (1 - theta) * shape / (positives * negatives))

    # At 0 and 1 themselves the variance vanishes: the estimate would count as its own limit.
    low = 0.0 if auroc <= 0 else float(brentq(distance, 0.0, min(auroc, 1 - 1e-12)))
    high = 1.0 if auroc >= 1 else float(brentq(distance, max(auroc, 1e-12), 1.0))
    return low, high
