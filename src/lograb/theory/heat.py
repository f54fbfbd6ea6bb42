"""The heat kernel of a patch and when thresholding it recovers every edge (the edge-recovery theorem).

With S = I - L the kernel is H(t) = exp(-tL) = e^(-t) Σ_m t^m S^m / m!, all of whose entries are
nonnegative. Its eigenvalues lie in [e^(-2t), 1], hence no off-diagonal entry exceeds
(1 - e^(-2t)) / 2. And since λ_{k+1} <= 2, the truncation residual is at least e^(-2t). So the
condition γ_t > 2 η of the edge-recovery theorem needs (1 - e^(-2t)) / 2 > 2 e^(-2t), that is
t > ln(5) / 2 = 0.8047: at the paper's t = 0.8 it holds for no truncated patch whatsoever.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lograb.eigen import eigh
from lograb.errors import LograbError
from lograb.types import Bools, Floats

NO_RECOVERY_BEFORE = 0.5 * np.log(5.0)
"""Up to this time the condition of the edge-recovery theorem holds for no truncated patch."""


def normalized_laplacian(adjacency: Bools | Floats) -> Floats:
    """Form L = I - D^(-1/2) A D^(-1/2), zero rows for isolated nodes; shape (..., q, q) in and out."""
    edges = np.asarray(adjacency, dtype=float)
    degrees = edges.sum(axis=-1)
    scale = np.zeros_like(degrees)
    np.divide(1.0, np.sqrt(degrees), out=scale, where=degrees > 0)
    laplacian = -scale[..., :, None] * edges * scale[..., None, :]
    diagonal = np.arange(edges.shape[-1])
    laplacian[..., diagonal, diagonal] = degrees > 0
    return np.asarray(laplacian)


def heat_kernel_matrix(vectors: Floats, values: Floats, t: float | Floats) -> Floats:
    """Form U exp(-tΛ) Uᵀ, shape (..., q, q), from U (..., q, k), Λ (..., k) and t (...): truncated if k < q."""
    decay = np.exp(-np.asarray(t)[..., None] * values)
    return np.asarray((vectors * decay[..., None, :]) @ np.swapaxes(vectors, -1, -2))


def truncation_residual(next_value: float | Floats, t: float | Floats) -> Floats:
    """Bound what truncation hides: η = exp(-t λ_{k+1}); 0 where there is no next value (NaN)."""
    eta = np.exp(-np.asarray(t) * np.asarray(next_value, dtype=float))
    return np.where(np.isnan(eta), 0.0, eta)


def largest_entry_bound(t: float | Floats) -> Floats:
    """Bound every off-diagonal entry of any heat kernel: (1 - e^(-2t)) / 2.

    For unit vectors x = (e_i ± e_j) / √2 the quadratic form of H lies in [e^(-2t), 1], and H_ij is
    half of the difference of the two forms.
    """
    return np.asarray((1.0 - np.exp(-2.0 * np.asarray(t))) / 2.0)


def separation(kernel: Floats, adjacency: Bools, blur: Floats | float = 0.0) -> tuple[Floats, Floats]:
    """Find the least edge entry and the largest non-edge entry of kernels (..., q, q), both of shape (...).

    Each is made worse by `blur`, what an entry may be off by. Where a patch has no edge the first is 1/2, which no
    kernel entry exceeds; where it has no other pair the second is the blur alone, as if one entry were 0. (With
    the paper's empty extremes cliques would count as separated at any t.)
    """
    q = kernel.shape[-1]
    off = ~np.eye(q, dtype=bool)
    low = np.where(adjacency & off, kernel - blur, np.inf).min(axis=(-1, -2), initial=np.inf)
    high = np.where(~adjacency & off, kernel + blur, -np.inf).max(axis=(-1, -2), initial=-np.inf)
    spread = np.broadcast_to(np.asarray(blur, dtype=float), kernel.shape)
    worst = np.where(off, spread, 0.0).max(axis=(-1, -2), initial=0.0)
    return np.where(np.isinf(low), 0.5, low), np.where(np.isinf(high), worst, high)


@dataclass(frozen=True)
class EdgeRecovery:
    """Outcome of the edge-recovery theorem for one patch and one t."""

    t: float
    margin: float  # γ_t: least edge entry minus largest non-edge entry of the whole kernel
    residual: float  # η plus the bound on further entry-wise errors (the corollary on eigenvalue perturbations)
    thresholds: tuple[float, float]  # every threshold strictly between recovers all edges; empty unless `holds`

    @property
    def holds(self) -> bool:
        """Whether γ_t > 2 η, so that exact recovery is guaranteed."""
        return self.margin > 2 * self.residual


def edge_recovery(
    adjacency: Bools, t: float, next_value: float = np.nan, kernel_error: float = 0.0
) -> EdgeRecovery:
    """Check the condition of the edge-recovery theorem on a patch (q, q) whose edges are known.

    `next_value` is its λ_{k+1}, NaN for a complete spectrum; `kernel_error` bounds further entry-wise errors of
    the observed kernel, for instance by noise.
    """
    if not t > 0:
        raise LograbError(f"the time of a heat kernel must be positive, got {t}")
    values, vectors = eigh(normalized_laplacian(adjacency))
    low, high = separation(heat_kernel_matrix(vectors, values, t), np.asarray(adjacency, dtype=bool))
    residual = float(truncation_residual(next_value, t)) + kernel_error
    return EdgeRecovery(t, float(low - high), residual, (float(high) + residual, float(low) - residual))


def times_to_try(next_value: float, n_times: int = 24) -> Floats:
    """List times at which the theorem could hold for a patch with this λ_{k+1}, ascending.

    Before the first of them largest_entry_bound(t) < 2 exp(-t λ_{k+1}), so the condition cannot
    hold; the list ends where the residual has fallen below 1e-6. Complete spectra (NaN): from 1e-4 to 1.
    """
    if np.isnan(next_value):
        return np.geomspace(1e-4, 1.0, n_times)
    if next_value <= 1e-9:
        return np.empty(0)
    low, high = 0.0, 20.0 / next_value
    for _ in range(60):
        middle = (low + high) / 2
        short = largest_entry_bound(middle) < 2 * np.exp(-middle * next_value)
        low, high = (middle, high) if short else (low, middle)
    return np.geomspace(high, 14.0 / next_value, n_times)


def best_edge_recovery(adjacency: Bools, next_value: float = np.nan) -> EdgeRecovery | None:
    """Find the t at which the condition of the edge-recovery theorem holds by most (or fails by least).

    None where no t can satisfy it (λ_{k+1} = 0).
    """
    tried = [edge_recovery(adjacency, float(t), next_value) for t in times_to_try(next_value)]
    return max(tried, key=lambda found: found.margin - 2 * found.residual, default=None)
