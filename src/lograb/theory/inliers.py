"""How many random samples find an all-inlier one, and what a given number survives (Lemma 3).

The paper says that 300 samples suffice for an inlier share of 0.3 and samples of k + 1. By its own
formula that takes 2.3e9 of them at k = 16; 300 samples of 33 need a share of 0.87. The formula
itself assumes drawing with replacement. A sample of distinct correspondences from a small overlap
is all-inlier less often (`drawn_without_replacement`).
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from lograb.errors import LograbError


def success_probability(inliers: float, sample: int, n_samples: int) -> float:
    """Give the probability of at least one all-inlier sample: 1 - (1 - p^m)^M (Lemma 3)."""
    _check(inliers, sample)
    if inliers == 1:
        return 1.0 if n_samples else 0.0
    return float(-np.expm1(n_samples * np.log1p(-(inliers**sample))))


def samples_needed(inliers: float, sample: int, failure: float = 0.05) -> float:
    """Give the least number of samples that fail with probability at most `failure` (a whole float)."""
    _check(inliers, sample)
    if not 0 < failure < 1:
        raise LograbError(f"the failure probability must lie between 0 and 1, got {failure}")
    if inliers == 0:
        return np.inf
    if inliers == 1:
        return 1.0
    good = inliers**sample
    return float(max(1.0, np.ceil(np.log(failure) / np.log1p(-good)))) if good > 0 else np.inf


def survivable_inliers(sample: int, n_samples: int, failure: float = 0.05) -> float:
    """Give the least inlier share with which the samples succeed: (1 - β^(1/M))^(1/m)."""
    _check(1.0, sample)
    if n_samples < 1 or not 0 < failure < 1:
        raise LograbError(f"need at least one sample and 0 < failure < 1, got {n_samples} and {failure}")
    return float((-np.expm1(np.log(failure) / n_samples)) ** (1.0 / sample))


def drawn_without_replacement(overlap: int, inliers: int, sample: int) -> float:
    """Give the probability that one sample of distinct correspondences is all-inlier.

    Of the `overlap` correspondences `inliers` are right, and `sample` are drawn.
    """
    if not 0 <= inliers <= overlap or not 1 <= sample <= overlap:
        raise LograbError(f"need inliers and a sample within the overlap, got {inliers}, {sample}, {overlap}")
    if inliers < sample:
        return 0.0

    def log_choose(n: int) -> float:
        return float(gammaln(n + 1) - gammaln(n - sample + 1))

    return float(np.exp(log_choose(inliers) - log_choose(overlap)))


def printed_rejection(inliers: float, overlap: int, needed: int) -> bool:
    """Evaluate the rejection corollary: whether p |I| falls short of the required consensus.

    The corollary concludes that such a stitch is always rejected. That assumes that no outlier ever
    joins a consensus set; outliers that agree with each other form one of their own.
    """
    _check(inliers, 1)
    return inliers * overlap < needed


def _check(inliers: float, sample: int) -> None:
    if not 0 <= inliers <= 1 or sample < 1:
        raise LograbError(f"need an inlier share in [0, 1] and a sample of at least 1, got {inliers}, {sample}")
