"""The bottom of a large patch's spectrum, with every repeated eigenvalue counted.

Small patches are solved densely, in stacks of equal size. For a large one Lanczos iteration is
far cheaper, but from a single start vector it sees one direction of each eigenspace only; further
copies appear, if at all, through rounding. A star with 30 triangles shows the harm: plain ARPACK
returns -1/3 where the eigenvalue 0 still has hundreds of directions left. Hence `largest`:
whatever was found is moved out of the way and the search goes on until the largest remaining
eigenvalue does not exceed the smallest one found. For the *largest* eigenvalue of a matrix a
random start vector suffices with probability one, so the last search is a proof of completeness.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sparse_linalg

from lograb.types import Floats, Matrix

# Eigenvalues closer than this count as one repeated eigenvalue. Laplacians of graphs with up to
# a few thousand nodes have either exact repetitions (rounding: 1e-14) or gaps far above it.
REPEAT_TOLERANCE = 1e-9
PROBES = 8
ROUGH = 1e-6
RESTARTS = 100
SHIFT = 1e-3


def largest(matrix: Matrix, count: int) -> tuple[Floats, Floats]:
    """Find the `count` largest eigenpairs of a symmetric sparse matrix, multiplicities included.

    Where Lanczos iteration stalls, because the wanted eigenvalues crowd together (a long path or
    ring), it is run on the inverse of a shifted matrix, which pulls them apart.

    Parameters
    ----------
    matrix : csr_array, shape (q, q), symmetric with spectrum in [-1, 1]
    count : int, below q / 2

    Returns
    -------
    values : float64 array, shape (count,), descending
    vectors : float64 array, shape (q, count), orthonormal
    """
    try:
        return _by_deflation(matrix, count, RESTARTS)
    except sparse_linalg.ArpackError:
        shifted = (1.0 + SHIFT) * sp.eye_array(matrix.shape[0], format="csc") - matrix
        solve = sparse_linalg.splu(shifted.tocsc()).solve
        inverse = sparse_linalg.LinearOperator(matrix.shape, solve, dtype=float)
        _, vectors = _by_deflation(inverse, count, 100 * RESTARTS)
        return _ritz(matrix, vectors, count)


def _by_deflation(matrix: Matrix, count: int, restarts: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)  # fixed: the same matrix always gives the same vectors
    values, vectors = _lanczos(matrix, count, rng, restarts)
    size = float(abs(values).max())
    while True:
        rest = _deflated(matrix, vectors, 3 * size)
        # A rough probe has an eigenvalue of the rest within ROUGH of it: mostly that is enough.
        probe, _ = _lanczos(rest, 1, rng, restarts, tolerance=ROUGH)
        if probe[0] + 2 * ROUGH * size < values[-1]:
            return values, vectors
        more, directions = _lanczos(rest, min(PROBES, count), rng, restarts)
        missed = more > values[-1] + REPEAT_TOLERANCE * size
        if not missed.any():
            return values, vectors
        basis, _ = np.linalg.qr(np.hstack([vectors, directions[:, missed]]))
        values, vectors = _ritz(matrix, basis, count)


def _ritz(matrix: Matrix, basis: Floats, count: int) -> tuple[Floats, Floats]:
    """Take the `count` largest eigenpairs of a matrix inside the span of an orthonormal basis."""
    values, turn = np.linalg.eigh(basis.T @ (matrix @ basis))
    return values[::-1][:count], basis @ turn[:, ::-1][:, :count]


def _lanczos(
    operator: Matrix, count: int, rng: np.random.Generator, restarts: int, tolerance: float = 0.0
) -> tuple[Floats, Floats]:
    start = rng.standard_normal(operator.shape[0])
    width = min(operator.shape[0], max(2 * count + 1, 48))
    values, vectors = sparse_linalg.eigsh(
        operator, k=count, which="LA", v0=start, ncv=width, maxiter=restarts, tol=tolerance
    )
    order = np.argsort(values)[::-1]
    return values[order], vectors[:, order]


def _deflated(matrix: Matrix, vectors: Floats, shift: float) -> Matrix:
    """Move the given eigenvectors below all other eigenvalues, out of the search's sight."""

    def product(x: Floats) -> Floats:
        return np.asarray(matrix @ x - shift * (vectors @ (vectors.T @ x)))

    return sparse_linalg.LinearOperator(matrix.shape, matvec=product, dtype=float)
