"""How noisy the patches are, and the orthonormal frames nearest to them.

Y = U + σE with U orthonormal (q, r) and E standard normal. YᵀY - I would be zero without noise; each of its
off-diagonal entries has second moment 2σ² + qσ⁴, so σ follows from the data alone. The maximum-likelihood estimate
of U is the orthonormal matrix nearest to Y, its polar factor Y (YᵀY)^{-1/2}.
"""

from __future__ import annotations

import numpy as np

from lograb.pairs import runs_of_equal_shape, vectors_of
from lograb.types import Floats, Observations

# Patches are shrunk towards the common noise level as if it had been seen in this many entries.
PRIOR_ENTRIES = 50.0
EXACT = 1e-12
"""Mean squared departure from orthonormality that counts as rounding."""


def departure(vectors: Floats) -> Floats:
    """Sum the squared off-diagonal entries of YᵀY, each once; shape (b,) for stacked patches (b, q, r)."""
    gram = vectors.swapaxes(1, 2) @ vectors
    diagonal = np.einsum("bii->bi", gram)
    return np.asarray(((gram**2).sum(axis=(1, 2)) - (diagonal**2).sum(axis=1)) / 2)


def patch_noise(seen: Observations) -> Floats:
    """Estimate σ² of every patch from its departure from orthonormality, shape (n_patches,)."""
    squares, ranks = np.zeros(seen.n_patches), seen.ranks.astype(float)
    for run in runs_of_equal_shape(seen, np.flatnonzero(seen.ranks >= 2)):
        squares[run] = departure(vectors_of(seen, run))
    return noise_levels(squares, ranks * (ranks - 1) / 2, seen.sizes.astype(float))


def noise_levels(squares: Floats, counts: Floats, sizes: Floats) -> Floats:
    """Estimate σ² of every patch.

    Parameters
    ----------
    squares : float array, shape (m,)
        `departure` of each patch.
    counts : float array, shape (m,)
        Off-diagonal entries r (r - 1) / 2 of each.
    sizes : float array, shape (m,)
        Members q of each.

    Returns
    -------
    float array, shape (m,)
        Each patch's own estimate, shrunk towards the one that all share; exactly 0 where a patch is orthonormal
        to rounding.
    """
    moments, q = squares / np.maximum(counts, 1.0), np.maximum(sizes, 1.0)
    own = (np.sqrt(1.0 + q * moments) - 1.0) / q  # solves 2σ² + qσ⁴ = moment
    shared = float((own * counts).sum() / max(counts.sum(), 1.0))
    levels = (own * counts + shared * PRIOR_ENTRIES) / (counts + PRIOR_ENTRIES)
    exact = (counts > 0) & (moments < EXACT)
    return np.where(exact | (shared < EXACT), 0.0, levels)


def nearest_frame(vectors: Floats) -> Floats:
    """Compute the polar factors of stacked matrices, shape (b, q, r)."""
    values, basis = np.linalg.eigh(vectors.swapaxes(1, 2) @ vectors)
    root = basis / np.sqrt(np.maximum(values, 1e-6))[:, None, :]
    return np.asarray(vectors @ (root @ basis.swapaxes(1, 2)))
