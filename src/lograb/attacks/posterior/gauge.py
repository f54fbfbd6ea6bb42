"""Frames whose eigenvalues, or whose pairing of columns with eigenvalues, are unknown.

Withheld eigenvalues of a complete patch follow from its frame: S = U M Uᵀ has a zero diagonal, but for ones of
isolated members, and no negative entry; μ is 1 once for each component. An arbitrary rotation of the columns
leaves only the subspace: the projector alone, as if all kept eigenvalues were equal.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lograb.attacks.posterior.batches import Batch
from lograb.attacks.posterior.precision import rounding_error
from lograb.attacks.posterior.row_degrees import kernel_of
from lograb.pairs import upper_pairs
from lograb.types import Bools, Floats

TYPICAL_MU = 0.5
SLACK, RIDGE, LEAST_RIDGE = 0.5, 30.0, 1e-6
"""How far entries of S may lie below 0, in units of σ, and the ridge in units of σ², and at least."""
FITS = 1e-3
"""How far from 0 the diagonal of S may be without noise, before a patch is taken to be not connected."""
STEPS, LARGEST = 40, 200
"""How often it is looked which entries lie below 0; and members beyond which only the diagonal counts."""
PRODUCTS = 1 << 22
"""Numbers that are held at a time."""


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
    exact = bool((batch.variance == 0).all())
    mu = _from_signs(batch, 1, np.zeros(batch.frame.shape[:2]))
    off = np.abs(batch.frame**2 @ mu[:, :, None]).max(axis=(1, 2))
    for at in np.flatnonzero(off > FITS).tolist() if exact else []:  # these are not connected
        kernel = kernel_of(batch.frame[at], rounding_error(batch.frame[at]))
        if kernel is not None:
            one = replace(batch, frame=batch.frame[[at]], variance=batch.variance[[at]])
            mu[at] = _from_signs(one, kernel.zeros, (kernel.degrees == 0).astype(float)[None])[0]
    return replace(batch, mu=mu, valued=exact)


def _from_signs(batch: Batch, zeros: int, alone: Floats) -> Floats:
    """Find the eigenvalues of complete patches, shape (b, r), descending, by what S must be.

    Least squares: the diagonal is 0, and no entry lies further below 0 than noise explains. Without noise the many
    entries that are 0 leave one solution. A ridge draws to equal spacing what neither tells.

    Parameters
    ----------
    zeros : int
        Columns with μ = 1: components.
    alone : float array, shape (b, q)
        1 for isolated members, whose entry on the diagonal is 1.
    """
    b, q, r = batch.frame.shape
    found, usual = np.ones((b, r)), np.linspace(1.0, -1.0, r)
    at_once = max(1, PRODUCTS // (q * q * r))
    rows, cols = upper_pairs(q if q <= LARGEST else 1)
    for start in range(0, b, at_once):
        here = slice(start, start + at_once)
        frame, ridge = batch.frame[here], (LEAST_RIDGE + RIDGE * batch.variance[here])[:, None]
        slack = SLACK * np.sqrt(batch.variance[here])[:, None]
        squares, products = frame**2, frame[:, rows] * frame[:, cols]
        fixed = squares.swapaxes(1, 2) @ squares + ridge[:, :, None] * np.eye(r)
        aim = (squares * alone[here, :, None]).sum(axis=1)
        below: Bools = np.zeros(products.shape[:2], dtype=bool)
        for _ in range(STEPS if zeros < r else 0):
            tight = (products * below[:, :, None]).swapaxes(1, 2)
            left = fixed + 2.0 * tight @ products
            right = aim + ridge * usual - left[:, :, :zeros].sum(axis=2) - 2.0 * slack * tight.sum(axis=2)
            found[here, zeros:] = np.linalg.solve(left[:, zeros:, zeros:], right[:, zeros:, None])[:, :, 0]
            before, below = below, (products @ found[here, :, None])[:, :, 0] < -slack
            if (before == below).all():
                break
    return np.minimum.accumulate(np.clip(found, -1.0, 1.0), axis=1)
