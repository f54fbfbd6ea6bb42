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
from lograb.errors import LograbError, unknown_name, warn

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

MAX_SOLVED = 4000
"""Members of the largest patch whose degrees are solved for: the time grows with the cube."""
NULL = 1e-11
"""Eigenvalues of the normal equations below this, relative to the largest, count as 0."""
REFINEMENTS = 3
WITNESSES = 3
"""Columns that must agree on how the two sides of a bipartite component are balanced."""
SAME = 1e-9
"""Entries closer than this, in columns of length 1, are equal."""


def convert(blocks: list[Block], laplacian: str) -> list[Block]:
    """Turn blocks of a named matrix into blocks of the symmetric normalised Laplacian."""
    if laplacian not in LAPLACIANS:
        raise unknown_name("laplacian", laplacian, LAPLACIANS)
    if laplacian != "random-walk" and any(block.degrees is not None for block in blocks):
        raise LograbError(f"degrees are for laplacian='random-walk', not '{laplacian}': leave them out")
    converted = [LAPLACIANS[laplacian](block) for block in blocks]
    added = sum(new.vectors.shape[1] > old.vectors.shape[1] for new, old in zip(converted, blocks))
    if added:
        warn(f"the constant first column was missing in {added} of {len(blocks)} patches and was put back")
    return converted


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
    frame = _weighted(vectors, degrees)
    if own < frame.shape[1] < len(frame) and _blocks(frame).any():
        raise LograbError(f"{block.label}: it is not connected, and its first column is missing, which can be put "
                          "back in connected patches only: keep it (drop_first=False for sklearn)")  # fmt: skip
    return replace(block, vectors=frame, values=values, degrees=None)


def _weighted(vectors: Floats, degrees: Floats) -> Floats:
    rows = np.sqrt(degrees)[:, None] * vectors
    return np.asarray(rows / np.linalg.norm(rows, axis=0))


def _has_constant(block: Block) -> bool:
    if block.values is not None:
        return bool(block.values[0] < LOOSE)
    ones = np.ones(len(block.vectors))
    fitted = block.vectors @ np.linalg.lstsq(block.vectors, ones)[0]
    return float(((ones - fitted) ** 2).mean()) < (SAME if block.degrees is None else 1e-3)


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
            degrees = solve_degrees(vectors, left, equal)
            if degrees is not None and is_orthonormal(_weighted(vectors, degrees)):
                return degrees
    raise LograbError(f"{label}: the degrees do not follow from {own} columns on {q} members, where about "
                      f"{int(np.sqrt(2 * q)) + 2} may do, if exact: pass degrees=, one array per patch")


def solve_degrees(vectors: Floats, left: int, equal: int = 0) -> Floats | None:
    """Find weights d, up to a scale per component, that make columns orthogonal: Σ_i d_i v_ia v_ib = 0, a ≠ b.

    Members with equal rows in enough columns have the same neighbours, up to each other, and so equal degrees:
    they count as one. None where the equations leave more than a scale per component open, or nothing positive.

    Parameters
    ----------
    vectors : float64 array, shape (q, r)
    left : how many columns to use, from the first one on
    equal : the last so many of them are taken to have equal lengths too: Σ_i d_i v_ia² is the same for all
    """
    used = vectors[:, :left]
    unit = used / np.linalg.norm(used, axis=0)
    if (np.abs(unit).max(axis=1) < SAME).any():
        return None
    first, twin, counts = _distinct_rows(unit)
    rows = (used if equal else unit)[first]
    squares = rows**2
    centred = squares[:, squares.shape[1] - equal :]
    centred = centred - centred.mean(axis=1, keepdims=True) if equal else centred
    # KᵀK for the equations K d = 0, without writing down K, whose rows are the products of two columns.
    normal = (rows @ rows.T) ** 2 - squares @ squares.T + centred @ centred.T
    values, basis = np.linalg.eigh(normal)
    empty = values <= NULL * max(values[-1], 0.0)
    null, rest = basis[:, empty], basis[:, ~empty]
    projector = null @ null.T
    n_parts, part = connected_components(np.abs(projector) > 1e-9, directed=False)
    if n_parts != null.shape[1]:
        return None
    total = projector.sum(axis=1)
    for _ in range(REFINEMENTS):  # the normal equations alone would lose half of the digits
        gram = rows.T @ (total[:, None] * rows)
        np.fill_diagonal(gram, 0.0)
        misfit = np.einsum("ia,ia->i", rows @ gram, rows) + centred @ (centred.T @ total)
        total = total - rest @ ((rest.T @ misfit) / values[~empty])
    balanced = _balance(total, rows**2, part) if (total > 0).all() else None
    if balanced is None:
        return None
    degrees = np.asarray((balanced / counts)[twin])
    return degrees if _are_twins(counts[twin] > 1, _weighted(vectors, degrees)) else None


def _are_twins(merged: Bools, frame: Floats) -> bool:
    """Whether members with equal rows may count as one: enough columns would have told strangers apart.

    In a block of two degrees are equal; in others there must be as many pairs of columns as unknown degrees.
    """
    block = _blocks(frame)
    for one in np.unique(block[merged]):
        inside = frame[block == one]
        rank = int(np.linalg.matrix_rank(inside, tol=1e-6))
        if len(inside) > 2 and rank * (rank - 1) // 2 < len(inside) - 1:
            return False
    return True


def _blocks(frame: Floats) -> Ints:
    """Number the blocks, of a component each, into which the projector onto orthonormal columns falls."""
    return np.asarray(connected_components(np.abs(frame @ frame.T) > 1e-6, directed=False)[1], dtype=np.int64)


def _balance(total: Floats, squares: Floats, part: Ints) -> Floats | None:
    """Scale the parts that the equations leave apart.

    Components are apart, and their scales do not matter: each column has its own. The two sides of a bipartite
    component are apart too; there each column that lies on both has half of its length on either. One such column
    gives the scale, and at least `WITNESSES` must agree.
    """
    for square in squares.T:
        mass = np.bincount(part, total * square)
        sides = np.flatnonzero(mass > LOOSE * mass.max())
        if len(sides) == 2:
            total = total * np.where(part == sides[1], mass[sides[0]] / mass[sides[1]], 1.0)
    masses = np.stack([np.bincount(part, total * square) for square in squares.T])
    highest = masses.max(axis=1, keepdims=True)
    there = masses > LOOSE * highest
    even = ~there | (masses > (1 - LOOSE) * highest)
    shared = there[there.sum(axis=1) > 1].sum(axis=0)
    return total if even.all() and (shared[shared > 0] >= WITNESSES).all() else None


def _distinct_rows(rows: Floats) -> tuple[Ints, Ints, Ints]:
    """Group equal rows: the first of each group, the group of each row, and how many rows each has."""
    order = np.argsort(rows @ np.random.default_rng(0).standard_normal(rows.shape[1]), kind="stable")
    steps = np.abs(np.diff(rows[order], axis=0)).max(axis=1, initial=0) > SAME
    group = np.empty(len(rows), dtype=np.int64)
    group[order] = np.append(0, np.cumsum(steps))
    _, first, counts = np.unique(group, return_index=True, return_counts=True)
    return first, group, counts


LAPLACIANS: dict[str, Callable[[Block], Block]] = {
    "symmetric": lambda block: block,
    "random-walk": _from_random_walk,
    "similarity": _from_similarity,
    "unnormalised": _from_unnormalised,
}
