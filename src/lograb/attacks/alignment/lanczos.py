"""The leading eigenvectors of a large sparse symmetric matrix, also where Lanczos iterations stall."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, splu

from lograb.types import Floats, Matrix

# Lanczos restarts before the matrix is inverted instead, and the largest number of entries that the
# inverse may need.
RESTARTS = 40
MAX_BAND = 100_000_000
SHIFT = 1.0 + 1e-6


def leading_eigenvectors(
    matrix: Matrix, count: int, start: Floats, tolerance: float, dense_below: int
) -> tuple[Floats, Floats, bool]:
    """Find the `count` largest eigenvalues (descending) of a matrix whose eigenvalues do not exceed 1.

    Long thin patch graphs have hardly any eigenvalue gap, and Lanczos iterations stall; but their matrix
    has a narrow band, and can be inverted. Where neither works, the eigenvectors found so far must do. Matrices of
    up to `dense_below` rows are solved by a dense method. The start vector may be longer than needed.

    Returns
    -------
    values : float array
    vectors : float array, shape (n, len(values))
    converged : bool
        Whether the relative accuracy `tolerance` was met.
    """
    n = matrix.shape[0]
    count = min(count, n)
    if n == 0:
        return np.empty(0), np.empty((0, 0)), True
    if n <= max(dense_below, 2 * count + 2):
        values, vectors = eigh(matrix.toarray(), subset_by_index=(n - count, n - 1))
        return values[::-1], vectors[:, ::-1], True
    options = {"v0": start[:n], "ncv": min(n, 2 * count + 20), "maxiter": RESTARTS}
    converged = True
    try:
        values, vectors = eigsh(matrix, count, which="LA", tol=tolerance, **options)
    except ArpackNoConvergence as stopped:
        values, vectors, converged = stopped.eigenvalues, stopped.eigenvectors, False
    inverse = None if converged else _banded_inverse(matrix)
    if inverse is not None:
        with suppress(ArpackNoConvergence):
            values, vectors = eigsh(matrix, count, sigma=SHIFT, OPinv=inverse, tol=tolerance, **options)
            converged = True
    order = np.argsort(-values)
    return values[order], vectors[:, order], converged


def _banded_inverse(matrix: Matrix) -> LinearOperator | None:
    """Factorize matrix - SHIFT in an order with a narrow band; None if the band is too wide for the memory."""
    rows = matrix.tocsr()
    order = sp.csgraph.reverse_cuthill_mckee(rows, symmetric_mode=True)
    ordered = rows[order][:, order].tocoo()
    n, band = rows.shape[0], int(np.abs(ordered.row - ordered.col).max(initial=0))
    if n * (band + 1) > MAX_BAND:
        return None
    shifted = (ordered - SHIFT * sp.eye_array(n)).tocsc()
    # The matrix is negative definite: without pivoting the factors stay inside the band.
    factors = splu(shifted, permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True})

    def solve(x: Floats) -> Floats:
        out = np.empty(n)
        out[order] = factors.solve(np.asarray(x).ravel()[order])
        return out

    return LinearOperator((n, n), matvec=solve, dtype=float)
