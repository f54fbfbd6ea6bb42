"""Whether probabilities mean what they say.

Most pairs that share a patch are obvious non-edges, so a plain average over all of them flatters: a constant 0
already has a small calibration error. Reliability is therefore judged where the attack is undecided, and the log
loss against the best constant, the share of true edges.
"""

from __future__ import annotations

import numpy as np

from lograb.types import Bools, Floats

UNDECIDED = (0.05, 0.95)
N_BINS = 10
DRAWS = 200
LEAST = 1e-6
"""No probability counts as smaller, or as larger than its complement."""


def reliability(probabilities: Floats, true: Bools, n_bins: int = N_BINS) -> tuple[Floats, Floats, Floats]:
    """Compare promised and found shares of edges in bins of equal width.

    Returns
    -------
    promised, found, counts : float arrays, shape (n_bins,)
        NaN where a bin is empty.
    """
    which = np.minimum((probabilities * n_bins).astype(np.int64), n_bins - 1)
    counts = np.bincount(which, minlength=n_bins).astype(float)
    with np.errstate(invalid="ignore"):
        promised = np.bincount(which, probabilities, n_bins) / counts
        found = np.bincount(which, true, n_bins) / counts
    return promised, found, counts


def calibration_error(probabilities: Floats, true: Bools) -> dict[str, float]:
    """Measure the expected calibration error over undecided pairs.

    Returns
    -------
    dict
        ``error``: the mean gap between promised and found shares. ``by_chance``: what it would be on average if
        every pair were an edge with just its probability; with few pairs that is far from 0. ``undecided``: how
        many these are.
    """
    open_pairs = (probabilities > UNDECIDED[0]) & (probabilities < UNDECIDED[1])
    given, rng = probabilities[open_pairs], np.random.default_rng(0)

    def gap(edges: Bools) -> float:
        promised, found, counts = reliability(given, edges)
        return float(np.nansum(np.abs(promised - found) * counts) / max(counts.sum(), 1.0))

    by_chance = np.mean([gap(rng.random(len(given)) < given) for _ in range(DRAWS)])
    return {"error": gap(true[open_pairs]), "by_chance": float(by_chance), "undecided": float(len(given))}


def calibration(
    probabilities: Floats, true: Bools, n_true: int, n_pairs: int, unlisted: float = LEAST
) -> dict[str, float]:
    """Judge probabilities of pairs.

    Parameters
    ----------
    probabilities, true : arrays, shape (m,)
        Listed pairs, and which of them are edges.
    n_true, n_pairs : int
        Edges and pairs that share a patch, listed or not.
    unlisted : float
        The probability that the others have.

    Returns
    -------
    dict
        ``skill``: 1 - log loss / log loss of the base rate; and what `calibration_error` says of the undecided.
    """
    p = np.clip(probabilities, LEAST, 1.0 - LEAST)
    rest = min(max(unlisted, LEAST), 1.0 - LEAST)
    others, missed = n_pairs - len(p), n_true - int(true.sum())
    loss = -(np.log(p[true]).sum() + np.log1p(-p[~true]).sum())
    loss -= missed * np.log(rest) + (others - missed) * np.log1p(-rest)
    base = n_true / max(n_pairs, 1)
    entropy = -n_true * np.log(base) - (n_pairs - n_true) * np.log1p(-base) if 0 < base < 1 else 0.0
    skill = float(1.0 - loss / entropy) if entropy else float("nan")
    return {"skill": skill, **calibration_error(probabilities, true)}
