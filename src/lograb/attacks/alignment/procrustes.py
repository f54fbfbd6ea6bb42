"""Orthogonal maps that carry one set of points onto another, many at once."""

from __future__ import annotations

import numpy as np

from lograb.types import Floats


def procrustes(cross: Floats) -> Floats:
    """Find the orthogonal Q that minimises ‖A - B Q‖ for each pair, from its cross product BᵀA.

    With the singular value decomposition BᵀA = U Σ Vᵀ, shape (n, k, k), the answer is Q = U Vᵀ, in O(k).
    """
    left, _, right = np.linalg.svd(cross)
    return np.asarray(left @ right)


def nearest_orthogonal(matrices: Floats) -> Floats:
    """Find the nearest orthogonal matrix to each of many that are close to orthogonal, shape (n, k, k).

    The Newton–Schulz iteration X ← X (3 - XᵀX) / 2 doubles the number of right digits in each step and consists
    of matrix products, which stacked small matrices do many times faster than decompositions. It converges
    where ‖XᵀX - 1‖ < 1; matrices that are not well inside of that are decomposed instead.
    """
    out, eye = matrices, np.eye(matrices.shape[1])
    far = np.zeros(0, dtype=np.int64)
    for step in range(8):
        excess = out.swapaxes(1, 2) @ out - eye
        size = np.einsum("nij,nij->n", excess, excess)
        if step == 0:
            far = np.flatnonzero(~(size <= 0.25))
        size[far] = 0.0
        out = out - 0.5 * (out @ excess)
        if size.max(initial=0.0) < 1e-16:  # of the square: the step just made leaves rounding errors only
            break
    if len(far):
        out[far] = procrustes(matrices[far])
    return out


def residuals(first: Floats, second: Floats, turn: Floats) -> Floats:
    """Distance of each point of the first set from its turned partner, shape (..., m)."""
    return np.asarray(np.linalg.norm(first - second @ turn, axis=-1))
