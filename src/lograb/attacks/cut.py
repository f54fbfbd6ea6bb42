"""Where to cut a list of probabilities when the truth is not at hand."""

from __future__ import annotations

import numpy as np

from lograb.types import Floats


def best_expected_f1(probabilities: Floats, rest: float = 0.0) -> tuple[float, dict[str, float]]:
    """Choose the cut that maximises the expected F1 of claiming all pairs at or above it.

    With probabilities p sorted downwards, claiming the first m expects Σ_{i<=m} p_i hits; F1 is close to
    2 Σ_{i<=m} p_i / (m + Σ p_i), the ratio of the expectations.

    Parameters
    ----------
    rest : float
        Edges expected among pairs that are not in the list.

    Returns
    -------
    cut : float
        Infinity where there is nothing to claim.
    expected : dict
        Precision, recall (over the judged pairs and the rest) and F1 that the probabilities promise.
    """
    if not len(probabilities) or probabilities.max() <= 0:
        return np.inf, promise(np.empty(0), rest)
    ordered = np.sort(probabilities)[::-1]
    hits, total = np.cumsum(ordered), float(ordered.sum()) + rest
    claimed = np.arange(1, len(ordered) + 1)
    best = int(np.argmax(2 * hits / (claimed + total)))
    best = int(np.searchsorted(-ordered, -ordered[best], side="right")) - 1  # ties stand or fall together
    return float(ordered[best]), promise(ordered[: best + 1], total)


def promise(claimed: Floats, total: float) -> dict[str, float]:
    """Say what claims with these probabilities promise, where `total` edges are expected in all."""
    hits, claims = float(claimed.sum()), max(len(claimed), 1)
    return {"precision": hits / claims, "recall": min(hits / total, 1.0) if hits else 0.0,
            "f1": 2 * hits / (claims + total)}  # fmt: skip
