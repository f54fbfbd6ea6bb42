"""How much a patch's embedding can be trusted: the fidelity score and its parts.

The score rises with the gap δ when λ_k is held fixed. Between patches that differ in λ_k too, a larger gap
may come with a lower score, because the residual depends on where the gap lies: (λ_k, λ_{k+1}) =
(0, 0.11) scores below (1.9, 2). And the entropy never reaches 1: no simple graph has q different
degrees, so it is at most log(q - 1) / log(q), and 0 for two nodes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lograb.errors import LograbError
from lograb.types import Floats, Ints


def gap_to_truncation(gap: npt.ArrayLike, residual: npt.ArrayLike) -> Floats:
    """Compute ρ = δ / (δ + η), elementwise: 1 for a complete spectrum (δ infinite or NaN, or η = 0).

    The gap is δ = λ_{k+1} - λ_k, the residual η = exp(-t λ_{k+1}) (`lograb.theory.heat.truncation_residual`).
    """
    delta, eta = np.broadcast_arrays(np.asarray(gap, dtype=float), np.asarray(residual, dtype=float))
    if (delta < 0).any() or (eta < 0).any():
        raise LograbError("gaps and residuals must not be negative")
    finite = np.isfinite(delta) & (eta > 0)
    return np.asarray(np.divide(delta, delta + eta, out=np.ones(delta.shape), where=finite))


def structural_entropy(degrees: Ints) -> Floats:
    """Compute the entropy of the degree distribution of each patch, over log q; 0 for a single node.

    From degrees inside the patches, shape (b, q), to shape (b,).
    """
    b, q = degrees.shape
    if q == 1:
        return np.zeros(b)
    histogram = np.zeros((b, q))
    np.add.at(histogram, (np.repeat(np.arange(b), q), degrees.ravel()), 1.0 / q)
    terms = histogram * np.log(histogram, out=np.zeros_like(histogram), where=histogram > 0)
    return np.asarray(-terms.sum(axis=1) / np.log(q))


def entropy_ceiling(size: int) -> float:
    """Bound the entropy of any patch of this size: log(q - 1) / log(q), as two degrees always agree."""
    return float(np.log(size - 1) / np.log(size)) if size > 2 else 0.0


def fidelity(ratio: npt.ArrayLike, entropy: npt.ArrayLike, alpha: float = 0.7) -> Floats:
    """Mix stability and distinctiveness: s = α ρ + (1 - α) entropy, elementwise."""
    if not 0 <= alpha <= 1:
        raise LograbError(f"alpha must lie between 0 and 1, got {alpha}")
    return np.asarray(alpha * np.asarray(ratio, dtype=float) + (1 - alpha) * np.asarray(entropy, dtype=float))
