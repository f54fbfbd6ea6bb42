"""From a candidate graph to its embedding, and back: how a cost on eigenvectors changes with the edges.

A candidate is a symmetric matrix W of weights between 0 and 1, a graph where all are 0 or 1. With degrees
d_i = Σ_j W_ij and S = D^(-1/2) W D^(-1/2), its embedding are the eigenvectors of the k largest
eigenvalues of S, the smallest of the Laplacian I - S. Everything works on stacks of s candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lograb.theory.heat import normalized_laplacian
from lograb.types import Floats

# Differences of eigenvalues below this do not blow a derivative up any further.
BROADENING = 1e-4


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidate graphs and their spectra."""

    similarity: Floats  # (s, n, n), S; the diagonal entry of an isolated node is 1
    degrees: Floats  # (s, n)
    values: Floats  # (s, n), eigenvalues of S, descending
    vectors: Floats  # (s, n, n), in columns


def decompose(weights: Floats) -> Candidates:
    """Find the spectra of candidate graphs, weights of shape (s, n, n)."""
    similarity = np.eye(weights.shape[1]) - normalized_laplacian(weights)
    values, vectors = np.linalg.eigh(similarity)
    return Candidates(similarity, weights.sum(axis=2), values[:, ::-1], vectors[:, :, ::-1])


def pull_back(candidates: Candidates, slope: Floats) -> Floats:
    """Carry the derivative of a cost from the embedding (s, n, k) to the weights (s, n, n).

    First-order perturbation theory: dV_j = Σ_l V_l (V_lᵀ dS V_j) / (λ_j - λ_l) over l ≠ j. Near repeated
    eigenvalues the quotient 1 / x becomes x / (x² + η²), because there the derivative does not exist. W_ij and
    W_ji are one variable, and the diagonal is zero.
    """
    k = slope.shape[2]
    vectors, values = candidates.vectors, candidates.values
    gap = values[:, None, :k] - values[:, :, None]
    mixed = (vectors.swapaxes(1, 2) @ slope) * gap / (gap**2 + BROADENING**2)
    half = vectors @ mixed @ vectors[:, :, :k].swapaxes(1, 2)
    to_similarity = 0.5 * (half + half.swapaxes(1, 2))
    degrees = np.where(candidates.degrees > 0, candidates.degrees, 1.0)
    alone = np.eye(degrees.shape[1]) * (candidates.degrees <= 0)[:, :, None]
    # The diagonal 1 of an isolated node is a convention, not a weight: it has no part in the rows' sums.
    share = (to_similarity * (candidates.similarity - alone)).sum(axis=2) / degrees
    root = np.sqrt(degrees)
    out = 2 * to_similarity / (root[:, :, None] * root[:, None, :]) - share[:, :, None] - share[:, None, :]
    n = out.shape[1]
    out[:, np.arange(n), np.arange(n)] = 0.0
    return np.asarray(out)
