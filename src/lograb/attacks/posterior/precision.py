"""Which patches are nearly exact, and to how many digits numbers were shared: read off the numbers themselves.

Rounding leaves a trace. A float32 has 24 significant bits, a number printed as "%.6f" is a whole multiple of 1e-6.
The step between neighbouring numbers of that kind is the finest one that any entry of the same size needs.
"""

from __future__ import annotations

import numpy as np

from lograb.types import Bools, Floats, Observations

MANTISSA = 53
DECIMALS = 12
"""Decimal places that are looked for."""
LEAST_ENTRIES = 16
"""Entries of one size that must agree on a step before it is believed."""
LEAST_ERROR = 1e-11
"""Error, in units of 1 / √q, that eigensolvers leave at least."""
CALM = 0.01
"""Error of an entry, in units of 1 / √q, up to which a patch is nearly exact."""


def low_noise(seen: Observations, variance: Floats) -> Bools:
    """Tell the truncated patches whose columns are eigenvectors with little noise, shape (n_patches,).

    Parameters
    ----------
    variance : float array, shape (n_patches,)
        σ² of the embeddings.
    """
    truncated = (seen.ranks > 1) & (seen.ranks < seen.sizes) & (seen.protocol.gauge != "rotation")
    return truncated & (variance * seen.sizes < CALM**2)


def entry_error(vectors: Floats, variance: float) -> Floats | None:
    """Standard deviation of what noise and rounding do to each entry (q, k); None where that is too much."""
    error = np.maximum(rounding_error(vectors), np.sqrt(variance))
    return error if np.median(error) * np.sqrt(len(vectors)) < CALM else None


def rounding_error(entries: Floats) -> Floats:
    """Estimate the standard deviation of the rounding of each entry, shape (q, ...) as given.

    A number that is rounded to a multiple of a step errs evenly between -step/2 and step/2.
    """
    flat = np.abs(entries).ravel()
    steps = np.maximum(_binary_steps(flat), _decimal_step(flat)).reshape(entries.shape)
    return np.asarray(np.maximum(steps / np.sqrt(12.0), LEAST_ERROR / np.sqrt(max(len(entries), 1))))


def _binary_steps(flat: Floats) -> Floats:
    """Give each entry the finest power of two that entries with its exponent, or the next larger one, need."""
    fraction, exponent = np.frexp(flat)
    whole = (fraction * 2.0**MANTISSA).astype(np.int64)
    zeros_at_the_end = np.bitwise_count((whole & -whole) - 1)
    steps = exponent + zeros_at_the_end - MANTISSA
    sizes = [size for size in np.unique(exponent[whole > 0])
             if ((exponent == size) & (whole > 0)).sum() >= LEAST_ENTRIES]  # fmt: skip
    if not sizes:
        return np.asarray(np.ldexp(1.0, exponent - MANTISSA))
    finest = np.array([steps[(exponent == size) & (whole > 0)].min() for size in sizes])
    larger = np.minimum(np.searchsorted(sizes, np.where(whole > 0, exponent, sizes[0])), len(sizes) - 1)
    return np.asarray(np.ldexp(1.0, finest[larger]))


def _decimal_step(flat: Floats) -> float:
    """Give the coarsest power of ten that all entries are multiples of; 0 where there is none."""
    for places in range(1, DECIMALS + 1):
        scaled = flat * 10.0**places
        if np.all(np.abs(scaled - np.round(scaled)) <= 4.0 * np.spacing(scaled)):
            return float(10.0**-places)
    return 0.0
