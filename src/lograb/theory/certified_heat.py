"""A time and a threshold at which the heat kernel of a complete patch shows exactly its edges.

Lemma 1 corrected, for the normalized Laplacian and for every simple graph with q nodes, connected or
not. Let S = I - L, so that H(t) = e^(-t) Σ_m t^m S^m / m! with nonnegative entries.

*Edges.* S_ij = 1 / √(d_i d_j) >= s := 1 / (q - 1), hence H_ij >= e^(-t) t s.

*Non-edges.* The terms m = 0, 1 vanish. (S²)_ij = Σ_l 1 / (d_l √(d_i d_j)) over common neighbours l:
there are at most min(d_i, d_j) <= √(d_i d_j) of them, each of degree >= 2, so (S²)_ij <= 1/2. For
m >= 3, (S^m)_ij <= ‖S‖^m <= 1. Hence H_ij <= e^(-t) (e^t - 1 - t - t²/4).

*Choice.* t = 2s / (1 + 2s) = 2 / (q + 1), so s = t / (2 (1 - t)) >= t/2 and t < 1. The margin is at least
e^(-t) (t²/2 - (e^t - 1 - t - t²/4)) = e^(-t) t² (3/4 - (e^t - 1 - t) / t²); the last fraction rises with t and
is 0.7183 at t = 1: always positive, and about 1 / q².

*Precision.* Rounding moves an entry of H by about q times 2e-16, so the margin drowns only for q
near 10^5; noise of any useful size drowns it at once, which is why orthonormality is checked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lograb.errors import LograbError
from lograb.theory.heat import heat_kernel_matrix
from lograb.types import Bools, Floats

ORTHONORMAL_TOLERANCE = 1e-8


@dataclass(frozen=True)
class HeatThreshold:
    """Where to look and where to cut."""

    t: float
    threshold: float  # half way between the two proved bounds
    highest_other: float  # entries of non-edges lie below
    lowest_edge: float  # entries of edges lie above

    @property
    def margin(self) -> float:
        """Proved distance of edge from non-edge entries; half of it may be lost to errors."""
        return self.lowest_edge - self.highest_other


def certified_threshold(size: int, max_degree: int | None = None) -> HeatThreshold:
    """Give the time and threshold that recover every edge of any graph with `size` nodes.

    Parameters
    ----------
    size : int, at least 2
    max_degree : int, optional
        A known bound on the degrees inside the patch (size - 1 by default): a larger margin.
    """
    if size < 2:
        raise LograbError(f"a threshold needs a patch with at least two nodes, got {size}")
    degree = size - 1 if max_degree is None else min(max_degree, size - 1)
    if degree < 1:
        raise LograbError(f"the largest degree must be at least 1, got {max_degree}")
    weight = 1.0 / degree
    t = 2.0 * weight / (1.0 + 2.0 * weight)
    # Joining non-neighbours takes a node of degree two or more; expm1 keeps the digits at small t.
    tail = 0.0 if degree == 1 else np.expm1(t) - t - t * t / 4
    low, high = np.exp(-t) * t * weight, np.exp(-t) * tail
    return HeatThreshold(t, float(low + high) / 2, float(high), float(low))


def certified_edges(vectors: Floats, values: Floats) -> Bools:
    """Read all edges of complete, noiseless patches off their heat kernels, exact by the argument above.

    From vectors (..., q, q) and values (..., q) to adjacency matrices (..., q, q).
    """
    q = vectors.shape[-1]
    if vectors.shape[-2] != q:
        raise LograbError(f"a certified threshold needs complete spectra, got {q} of {vectors.shape[-2]} vectors")
    if q < 2:
        return np.zeros(vectors.shape, dtype=bool)
    if not orthonormal(vectors).all():
        raise LograbError("a certified threshold needs noiseless spectra, these vectors are not orthonormal")
    rule = certified_threshold(q)
    found = heat_kernel_matrix(vectors, values, rule.t) > rule.threshold
    return np.asarray(found & ~np.eye(q, dtype=bool))


def orthonormal(vectors: Floats) -> Bools:
    """Tell for each (..., q, k) block whether its columns are orthonormal, which noise destroys."""
    gram = np.swapaxes(vectors, -1, -2) @ vectors
    error = np.abs(gram - np.eye(vectors.shape[-1])).max(axis=(-1, -2), initial=0.0)
    return np.asarray(error <= ORTHONORMAL_TOLERANCE)
