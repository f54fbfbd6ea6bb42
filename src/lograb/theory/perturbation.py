"""How far eigenvectors move when the Laplacian is perturbed (Theorem 1, Davis-Kahan).

The printed constant is too small by a factor of two. For L = diag(0, δ) and E = diag(ε, -ε) with ε
slightly above δ/2 the two eigenvectors change places: the distance is √2, the printed bound about
√2 / 2. The same happens on a real patch: two joined nodes, E = ε (uuᵀ - vvᵀ), see
`swapped_eigenvectors`. Yu, Wang and Samworth (Biometrika 2015, Theorem 2) prove twice the printed
bound with the gap of the unperturbed matrix; the factor two is the price for not knowing the other gap.
"""

from __future__ import annotations

import numpy as np

from lograb.errors import LograbError
from lograb.types import Floats


def procrustes_distance(first: Floats, second: Floats) -> float:
    """Distance of two point sets (m, k) up to rotation: the least ‖second - first Q‖_F over Q in O(k).

    For orthonormal bases the singular values of firstᵀ second are the cosines of the principal angles. The
    difference is formed, not 2k - 2 Σ cos θ, which loses half of the digits.
    """
    return float(np.linalg.norm(second - first @ best_rotation(second, first)))


def best_rotation(first: Floats, second: Floats) -> Floats:
    """Solve the orthogonal Procrustes problem for points (m, k): Q in O(k) with the least ‖first - second Q‖_F."""
    left, _, right = np.linalg.svd(second.T @ first)
    return np.asarray(left @ right)


def printed_bound(k: int, perturbation: float, gap: float) -> float:
    """Evaluate Theorem 1 as printed, √(2k) ε / δ. It is false; kept to be compared with.

    ε bounds the spectral norm of the perturbation; δ = λ_{k+1} - λ_k is the gap of the unperturbed matrix,
    infinite for a complete spectrum.
    """
    if k < 0 or perturbation < 0 or gap < 0:
        raise LograbError(f"k, perturbation and gap must not be negative, got {k}, {perturbation}, {gap}")
    if gap == 0:
        return np.inf if perturbation > 0 and k > 0 else 0.0
    return float(np.sqrt(2 * k) * perturbation / gap)


def perturbation_bound(k: int, perturbation: float, gap: float) -> float:
    """Bound `procrustes_distance` after a perturbation: 2 √(2k) ε / δ (Yu, Wang, Samworth).

    Never more than √(2k), the largest distance there is. Parameters as in `printed_bound`.
    """
    return float(min(2 * printed_bound(k, perturbation, gap), np.sqrt(2 * k)))


def swapped_eigenvectors(excess: float = 0.01) -> tuple[Floats, Floats]:
    """Build a patch and a perturbation that refute Theorem 1 as printed.

    The normalized Laplacian of two joined nodes has eigenvalues 0 and 2. The perturbation has the spectral norm
    1 + excess, relatively so much above half of the gap, and turns the bottom eigenvector (k = 1) by 90°.
    """
    return np.array([[1.0, -1.0], [-1.0, 1.0]]), (1.0 + excess) * np.array([[0.0, 1.0], [1.0, 0.0]])
