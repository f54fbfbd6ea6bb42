"""Embeddings of other matrices, turned into those of the symmetric normalised Laplacian where this is exact.

``random-walk``
    v = D^(-1/2) u are the eigenvectors of I - D⁻¹A, with the same eigenvalues, as sklearn's
    ``spectral_embedding`` gives them. Columns may have any length, and the constant first one may be missing: it
    is put back. The degrees follow from the columns' orthogonality in their inner product, given enough columns.
``similarity``
    I - L has the same eigenvectors and eigenvalues 1 - λ.
``unnormalised``
    D - A has other eigenvectors: only from its complete spectrum does the matrix follow, and with it everything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from lograb.conventions import LOOSE, MAKE_SYMMETRIC, Block, is_orthonormal
from lograb.errors import LograbError, unknown_name

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_SOLVED = 4000
"""Members of the largest patch whose degrees are solved for: the time grows with the cube."""
NULL = 1e-11
"""Eigenvalues of the normal equations below this, relative to the largest, count as 0."""
REFINEMENTS = 3
SAME = 1e-9
"""Entries closer than this, in columns of length 1, are equal."""


def convert(blocks: list[Block], laplacian: str) -> list[Block]:
    """Turn blocks of a named matrix into blocks of the symmetric normalised Laplacian."""
    if laplacian not in LAPLACIANS:
        raise unknown_name("laplacian", laplacian, LAPLACIANS)
    if laplacian != "random-walk" and any(block.degrees is not None for block in blocks):
        raise LograbError(f"degrees are for laplacian='random-walk', not '{laplacian}': leave them out")
    return [LAPLACIANS[laplacian](block) for block in blocks]


def _from_symmetric(block: Block) -> Block:
    return block


def _from_similarity(block: Block) -> Block:
    if block.values is None:
        return block
    return replace(block, values=1.0 - block.values[::-1], vectors=block.vectors[:, ::-1],
                   next_value=1.0 - block.next_value)  # fmt: skip


def _from_unnormalised(block: Block) -> Block:
    """Rebuild D - A from its complete spectrum, and decompose what it is when normalised."""
    if block.values is None or not block.complete or not is_orthonormal(block.vectors):
        raise LograbError(f"{block.label}: the unnormalised Laplacian D - A can be converted only from its "
                          "complete spectrum, eigenvalues included and without noise; else "
                          f"{MAKE_SYMMETRIC}")  # fmt: skip
    matrix = (block.vectors * block.values) @ block.vectors.T
    degrees = np.diagonal(matrix)
    linked = degrees > LOOSE
    scale = np.where(linked, 1.0, 0.0) / np.sqrt(np.where(linked, degrees, 1.0))
    values, vectors = np.linalg.eigh(matrix * scale[:, None] * scale)
    return replace(block, values=values, vectors=vectors)


def _from_random_walk(block: Block) -> Block:
    """Weigh rows by √degree, after putting a missing constant column back."""
    vectors, values, own = block.vectors, block.values, block.vectors.shape[1]
    if not _has_constant(block):
        vectors = np.column_stack([np.ones(len(vectors)), vectors])
        values = None if values is None else np.append(0.0, values)
    degrees = block.degrees if block.degrees is not None else _find_degrees(block.label, vectors, own)
    return replace(block, vectors=_weighted(vectors, degrees), values=values, degrees=None)


def _weighted(vectors: Floats, degrees: Floats) -> Floats:
    rows = np.sqrt(degrees)[:, None] * vectors
    return np.asarray(rows / np.linalg.norm(rows, axis=0))


def _has_constant(block: Block) -> bool:
    if block.values is not None:
        return bool(block.values[0] < LOOSE)
    ones = np.ones(len(block.vectors))
    fitted = block.vectors @ np.linalg.lstsq(block.vectors, ones)[0]
    return float(((ones - fitted) ** 2).mean()) < 1e-3


def _find_degrees(label: str, vectors: Floats, own: int) -> Floats:
    """Solve for the degrees, the last `own` columns being given; an error says why not."""
    q, r = vectors.shape
    if q > MAX_SOLVED:
        raise LograbError(f"{label}: degrees are solved for in patches of up to {MAX_SOLVED} members, got {q}: "
                          "pass degrees=, one array per patch")  # fmt: skip
    lengths = np.linalg.norm(vectors[:, r - own :], axis=0)
    unit = bool(np.ptp(lengths) <= LOOSE * lengths.max())
    # Twins, members with the same neighbours, have equal rows but in columns of one eigenvalue. Where the cut runs
    # through that, they are told apart without being determined: fewer columns know more.
    for left in (r - fewer for fewer in (0, 1, 2, 4, 8, 16) if r >= 2 * fewer):
        for equal in (0,) if unit else (0, left - r + own):
            degrees = solve_degrees(vectors[:, :left], equal)
            if degrees is None:
                continue
            if (degrees > 0).all() and is_orthonormal(_weighted(vectors, degrees)):
                return degrees
            if left == r and equal == 0:
                raise LograbError(f"{label}: no positive degrees make the columns orthogonal, so they are not "
                                  f"those of a random-walk Laplacian; {MAKE_SYMMETRIC}")
    raise LograbError(f"{label}: the degrees do not follow from {own} columns on {q} members, where about "
                      f"{int(np.sqrt(2 * q)) + 2} may do, if exact: pass degrees=, one array per patch")


def solve_degrees(vectors: Floats, equal: int) -> Floats | None:
    """Find weights d, up to a scale per component, that make all columns orthogonal: Σ_i d_i v_ia v_ib = 0, a ≠ b.

    Members with equal rows have the same neighbours, up to each other, and so equal degrees: they count as one.

    Parameters
    ----------
    vectors : float64 array, shape (q, r)
    equal : int
        The last so many columns are taken to have equal lengths too: Σ_i d_i v_ia² is the same for all of them.

    Returns
    -------
    float64 array, shape (q,), or None
        None where the equations leave more than a scale per component open.
    """
    unit = vectors / np.linalg.norm(vectors, axis=0)
    first, twin, counts = _distinct_rows(unit)
    rows = (vectors if equal else unit)[first]
    squares = rows**2
    centred = squares[:, squares.shape[1] - equal :]
    centred = centred - centred.mean(axis=1, keepdims=True) if equal else centred
    # KᵀK for the equations K d = 0, without writing down K, whose rows are the products of two columns.
    normal = (rows @ rows.T) ** 2 - squares @ squares.T + centred @ centred.T
    values, basis = np.linalg.eigh(normal)
    empty = values <= NULL * max(values[-1], 0.0)
    null, rest = basis[:, empty], basis[:, ~empty]
    projector = null @ null.T
    n_parts, _ = connected_components(np.abs(projector) > 1e-9, directed=False)
    if n_parts != null.shape[1]:
        return None
    total = projector.sum(axis=1)
    for _ in range(REFINEMENTS):  # the normal equations alone would lose half of the digits
        gram = rows.T @ (total[:, None] * rows)
        np.fill_diagonal(gram, 0.0)
        misfit = np.einsum("ia,ia->i", rows @ gram, rows) + centred @ (centred.T @ total)
        total = total - rest @ ((rest.T @ misfit) / values[~empty])
    return np.asarray((total / counts)[twin])


def _distinct_rows(rows: Floats) -> tuple[Ints, Ints, Ints]:
    """Group equal rows: the first of each group, the group of each row, and how many rows each has."""
    order = np.argsort(rows @ np.random.default_rng(0).standard_normal(rows.shape[1]), kind="stable")
    steps = np.abs(np.diff(rows[order], axis=0)).max(axis=1, initial=0) > SAME
    group = np.empty(len(rows), dtype=np.int64)
    group[order] = np.append(0, np.cumsum(steps))
    _, first, counts = np.unique(group, return_index=True, return_counts=True)
    return first, group, counts


LAPLACIANS: dict[str, Callable[[Block], Block]] = {
    "symmetric": _from_symmetric,
    "random-walk": _from_random_walk,
    "similarity": _from_similarity,
    "unnormalised": _from_unnormalised,
}
