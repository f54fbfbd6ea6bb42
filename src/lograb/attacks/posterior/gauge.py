"""Frames whose eigenvalues, or whose pairing of columns with eigenvalues, are unknown.

Withheld eigenvalues of a complete patch follow from its frame: S has a zero diagonal, Σ_a μ_a u_ia² = 0 for every
i, and μ_1 = 1. An arbitrary rotation of the columns leaves only the subspace: the projector alone, as if all kept
eigenvalues were equal.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lograb.attacks.posterior.batches import Batch
from lograb.types import Floats

TYPICAL_MU = 0.5


def first_guess(batch: Batch) -> Batch:
    """Fill in eigenvalues before anything is known about the pairs."""
    if batch.readable:
        return batch
    q, r = batch.size, batch.rank
    if not batch.paired or batch.truncated:  # the hidden part spoils the diagonal
        mean = batch.mu.mean(axis=1, keepdims=True) if batch.valued else np.full((len(batch.which), 1), TYPICAL_MU)
        # The hidden part has mean eigenvalue -r mean / (q - r), because the trace of S is zero.
        return replace(batch, mu=np.repeat(mean * q / max(q - r, 1), r, axis=1), paired=True, valued=True,
                       guessed=True)
    return replace(batch, mu=_from_diagonal(batch))


def _from_diagonal(batch: Batch) -> Floats:
    """Solve the zero diagonal of complete patches for the eigenvalues by least squares, μ_1 = 1, descending."""
    b, _, r = batch.frame.shape
    squares = batch.frame**2
    system = squares[:, :, 1:]
    ridge = (1e-3 + batch.variance)[:, None, None]
    left = system.swapaxes(1, 2) @ system + ridge * np.eye(r - 1)
    right = -(system.swapaxes(1, 2) @ squares[:, :, :1]) + ridge * np.linspace(1.0, -1.0, r)[1:, None]
    mu = np.concatenate([np.ones((b, 1)), np.clip(np.linalg.solve(left, right)[:, :, 0], -1.0, 1.0)], axis=1)
    return np.asarray(np.minimum.accumulate(mu, axis=1))
