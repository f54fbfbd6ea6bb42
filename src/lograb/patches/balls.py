"""Balls: all nodes within a number of hops of a seed."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from lograb.types import Ints, Matrix, Patches


def grow(reach: Matrix, adjacency: Matrix, radius: int) -> Matrix:
    """Extend every row's node set, marked in a boolean csr_array (m, n), by all nodes within `radius` hops."""
    step = adjacency + sp.eye_array(adjacency.shape[0], dtype=bool, format="csr")
    for _ in range(radius):
        grown = reach @ step
        if grown.nnz == reach.nnz:
            break
        reach = grown
    reach.sort_indices()
    return reach


def rows_as_patches(rows: Matrix, centres: Ints | None = None) -> Patches:
    """Read each row of a boolean matrix as one patch."""
    return Patches(rows.shape[1], rows.indices.astype(np.int64), rows.indptr.astype(np.int64), centres)


def balls(adjacency: Matrix, centres: Ints, radius: int) -> Patches:
    """Cut the ball of the given radius around every centre, in the whole graph (Def. 1)."""
    n = adjacency.shape[0]
    start = sp.csr_array(
        (np.ones(len(centres), dtype=bool), centres, np.arange(len(centres) + 1)), shape=(len(centres), n)
    )
    return rows_as_patches(grow(start, adjacency, radius), centres)
