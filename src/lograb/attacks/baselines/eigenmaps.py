"""Laplacian eigenmaps (Belkin and Niyogi) of an attacker's own graph, one component at a time.

The coordinates of a component are the lowest solutions of L f = λ D f with λ > 0, that is
f = D^(-1/2) u for eigenvectors u of the normalized Laplacian. Components are done one by one: together,
the eigenvalue 0 would repeat once for each of them and the lowest coordinates would only tell components
apart.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from lograb.types import Floats

# Components up to this size go to the dense solver.
DENSE = 600
SAME = 1e-8


def eigenmaps(adjacency: sp.csr_array, dim: int, rng: np.random.Generator) -> Floats:
    """Compute the coordinates (n, dim) of all nodes of a symmetric graph, zero beyond what a small component has.

    In every column the mean square over a component is 1. `rng` chooses signs, and bases inside repeated
    eigenvalues: no convention of a solver may matter.
    """
    n = adjacency.shape[0]
    out = np.zeros((n, dim))
    count, label = sp.csgraph.connected_components(adjacency, directed=False) if n else (0, np.empty(0, int))
    order = np.argsort(label, kind="stable")
    starts = np.searchsorted(label[order], np.arange(count + 1))
    for begin, end in pairwise(starts):
        members = order[begin:end]
        if len(members) > 1:
            vectors = _component(adjacency[members][:, members], min(dim, len(members) - 1), rng)
            out[members, : vectors.shape[1]] = vectors
    return out


def _component(adjacency: sp.csr_array, dim: int, rng: np.random.Generator) -> Floats:
    """Coordinates of one connected graph, shape (q, dim)."""
    q = adjacency.shape[0]
    root = np.sqrt(np.asarray(adjacency.sum(axis=1), dtype=float).ravel())
    scale = sp.diags_array(1 / root)
    similarity = sp.csr_array(scale @ adjacency.astype(float) @ scale)  # I - L
    if q <= DENSE or dim >= q - 2:
        values, vectors = np.linalg.eigh(similarity.toarray())
    else:
        values, vectors = sp.linalg.eigsh(similarity, k=dim + 1, which="LA", v0=root)
    values, vectors = values[::-1], vectors[:, ::-1]  # eigenvalue 1 of I - L, the trivial one, comes first
    chosen = _without_convention(values[1:], vectors[:, 1:], dim, rng)
    maps = chosen / root[:, None]
    return np.asarray(maps / np.sqrt((maps**2).mean(axis=0)))


def _without_convention(values: Floats, vectors: Floats, dim: int, rng: np.random.Generator) -> Floats:
    """Replace the solver's basis of every eigenspace by a random one that only depends on the space.

    The basis E of an eigenspace becomes E polar(Eᵀ R) with R random: E Q gives the same for every
    orthogonal Q. An eigenspace that is cut at `dim` gives as many of its directions as there is room.
    """
    random = rng.standard_normal((len(vectors), dim))
    breaks = np.flatnonzero(np.abs(np.diff(values)) > SAME) + 1
    parts, done = [], 0
    for space in np.split(np.arange(len(values)), breaks):
        width = min(len(space), dim - done)
        if width <= 0:
            break
        basis = vectors[:, space]
        left, _, right = np.linalg.svd(basis.T @ random[:, done : done + width], full_matrices=False)
        parts.append(basis @ (left @ right))
        done += width
    return np.concatenate(parts, axis=1)
