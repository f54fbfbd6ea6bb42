"""Graphs that a patch may hold, against what was published of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lograb.eigen import eigh
from lograb.types import Bools, Floats

EXACT = 1e-8
"""Largest difference between eigenvalues that are the same."""
SAME = 1e-6
"""Eigenvalues closer than this share an eigenspace."""


@dataclass(frozen=True)
class Patch:
    """What was published of a patch, and what is thought of its pairs so far.

    Attributes
    ----------
    observed : float array, shape (q, r)
    mu : float array, shape (r,), descending
    variance : float
        σ².
    log_odds : float array, shape (q, q), symmetric
        Of the pairs, by all that is known so far.
    cost : float array, shape (q, q), symmetric
        Log-odds without what this patch itself says: what it costs to take a pair out of the graph; to put it in
        costs the negative.
    """

    observed: Floats
    mu: Floats
    variance: float
    log_odds: Floats
    cost: Floats


def scaled(graphs: Floats) -> Floats:
    """Compute S = I - L of stacked 0/1 matrices (..., q, q); isolated nodes have a one on the diagonal."""
    degrees = graphs.sum(axis=-1)
    root = 1.0 / np.sqrt(np.maximum(degrees, 1.0))
    found = graphs * root[..., :, None] * root[..., None, :]
    diagonal = np.arange(graphs.shape[-1])
    found[..., diagonal, diagonal] = degrees == 0
    return np.asarray(found)


def spectral_error(values: Floats, mu: Floats) -> Floats:
    """Largest difference between the top of ascending spectra (..., q) and the published μ (..., r)."""
    kept = values[..., ::-1][..., : mu.shape[-1]]
    return np.asarray(np.abs(kept - mu).max(axis=-1))


def passes(graphs: Floats, mu: Floats) -> Bools:
    """Check which of the stacked graphs (..., q, q) have the published eigenvalues (..., r)."""
    return spectral_error(np.asarray(np.linalg.eigvalsh(scaled(graphs)), dtype=np.float64), mu) < EXACT


@dataclass(frozen=True)
class State:
    """A graph (or a stack of them) with its spectrum and its residual."""

    graph: Floats
    values: Floats
    basis: Floats
    residual: Floats


def state_of(patch: Patch, graph: Floats) -> State:
    """Compute spectrum and residual of a graph, or of a stack of them."""
    matrix = scaled(graph)
    values, basis = eigh(matrix)
    return State(graph, values, basis,
                  basis.swapaxes(-1, -2) @ (matrix @ patch.observed - patch.observed * patch.mu))  # fmt: skip
