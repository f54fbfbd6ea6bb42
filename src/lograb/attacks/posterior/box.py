"""Noiseless truncated patches: the least-squares inversion over the box of possible entries.

S = I - L satisfies S U = U M (M = I - Λ) and 0 <= S_ij <= 1 / √(d_i d_j), zero on the diagonal. Minimising
½ ‖S U - U M‖² over that box is convex; its gradient is the symmetric part of (S U - U M) Uᵀ and, because U is
orthonormal, is Lipschitz with constant 1: accelerated projected gradient steps of length 1 need two thin
matrix products each.
"""

from __future__ import annotations

import numpy as np

from lograb.types import Floats

STEPS = 60


def box_inversion(vectors: Floats, mu: Floats, upper: Floats, steps: int = STEPS) -> Floats:
    """Invert stacked patches.

    Parameters
    ----------
    vectors : float array, shape (b, q, r), orthonormal columns
    mu : float array, shape (b, r)
        1 - λ of each column.
    upper : float array, shape (b, q, q)
        Largest possible entries; zero on the diagonal.

    Returns
    -------
    float array, shape (b, q, q)
        Symmetric, inside the box; the objective is not above that of the clipped U M Uᵀ.
    """
    transposed, target = vectors.swapaxes(1, 2), vectors * mu[:, None, :]
    best = np.clip(target @ transposed, 0.0, upper)
    ahead, momentum = best, 1.0
    for _ in range(steps):
        half = (ahead @ vectors - target) @ transposed
        step = np.clip(ahead - (half + half.swapaxes(1, 2)) / 2, 0.0, upper)
        following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2
        # Start the momentum anew where it points uphill: keeps the descent close to monotone.
        uphill = ((ahead - step) * (step - best)).sum(axis=(1, 2), keepdims=True) > 0
        ahead = step + np.where(uphill, 0.0, (momentum - 1.0) / following) * (step - best)
        best, momentum = step, following
    return best
