"""The bottom of a large patch's spectrum, with every repeated eigenvalue counted.

Small patches are solved densely, in stacks of equal size. For a large one Lanczos iteration is
far cheaper, but from a single start vector it sees one direction of each eigenspace only; further
copies appear, if at all, through rounding. A star with 30 triangles shows the harm: plain ARPACK
returns -1/3 where the eigenvalue 0 still has hundreds of directions left. Hence `largest`:
whatever was found is moved out of the way and the search goes on until the largest remaining
eigenvalue does not exceed the smallest one found. For the *largest* eigenvalue of a matrix a
random start vector suffices with probability one, so the last search is a proof of completeness.

A whole graph, unlike a ball, may fall into hundreds of components. Each adds one direction to the
eigenvalue 0 of the Laplacian, and that eigenspace needs no search: `zero_space` writes it down. The
rest of the spectrum is that of the components, one at a time.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sparse_linalg

from lograb.eigen import eigh
from lograb.types import Floats, Matrix

# Up to this size, and where a large part of the spectrum is wanted, the dense solver is faster: measured.
DENSE_LIMIT = 640
# Eigenvalues closer than this count as one repeated eigenvalue. Laplacians of graphs with up to
# a few thousand nodes have either exact repetitions (rounding: 1e-14) or gaps far above it.
REPEAT_TOLERANCE = 1e-9
PROBES = 8
ROUGH = 1e-6
RESTARTS = 100
SHIFT = 1e-3
# ARPACK calls an eigenvalue found when its error is small relative to it. One of 0 hardly ever is, and others take
# its place; added to all of them, this keeps 0 out of the way.
LIFT = 2.0


def zero_space(matrix: Matrix) -> Matrix:
    """Write down the eigenspace of the Laplacian's eigenvalue 0, the matrix S's eigenvalue 1.

    A component's direction is the square root of its degrees. A row of S has as many entries as its
    node has neighbours; an isolated node has its diagonal entry. The columns, one per component, are orthonormal
    and have one entry per row.
    """
    count, part = sp.csgraph.connected_components(matrix, directed=False)
    degrees = np.diff(matrix.indptr)
    entries = np.sqrt(degrees / np.bincount(part, weights=degrees)[part])
    return sp.csr_array((entries, part, np.arange(len(part) + 1)), shape=(len(part), count))


def largest(matrix: Matrix, count: int) -> tuple[Floats, Floats]:
    """Find the `count` largest eigenpairs of S = I - L of a graph, multiplicities included.

    Where Lanczos iteration stalls, because the wanted eigenvalues crowd together (a long path or
    ring), it is run on the inverse of a shifted matrix, which pulls them apart. The count must be below q / 2, and
    not below the number of components (see `zero_space` for those alone). Values descend.
    """
    n_parts, part = sp.csgraph.connected_components(matrix, directed=False)
    if n_parts == 1:
        return _of_connected(matrix, count)
    # The other parts claim one place each with their eigenvalue 1: so many need not be sought here.
    wanted = count - n_parts + 1
    values, found = [], []
    for i in range(n_parts):
        rows = np.flatnonzero(part == i)
        some, directions = _of_part(matrix[rows][:, rows], min(wanted, len(rows)))
        values.append(some)
        found += [(rows, column) for column in directions.T]
    merged = np.concatenate(values)
    order = np.argsort(-merged, kind="stable")[:count]
    vectors = np.zeros((matrix.shape[0], count))
    for column, i in enumerate(order):
        vectors[found[i][0], column] = found[i][1]
    return merged[order], vectors


def _of_part(matrix: Matrix, count: int) -> tuple[Floats, Floats]:
    """Solve one component, densely where that is the faster way."""
    if matrix.shape[0] > max(DENSE_LIMIT, 4 * count):
        return _of_connected(matrix, count)
    values, vectors = eigh(matrix.toarray())
    return values[::-1][:count], vectors[:, ::-1][:, :count]


def _of_connected(matrix: Matrix, count: int) -> tuple[Floats, Floats]:
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
    values, turn = eigh(basis.T @ (matrix @ basis))
    return values[::-1][:count], basis @ turn[:, ::-1][:, :count]


def _lanczos(
    operator: Matrix, count: int, rng: np.random.Generator, restarts: int, tolerance: float = 0.0
) -> tuple[Floats, Floats]:
    start = rng.standard_normal(operator.shape[0])
    width = min(operator.shape[0], max(2 * count + 1, 48))

    def product(x: Floats) -> Floats:
        return np.asarray(operator @ x + LIFT * x)

    lifted = sparse_linalg.LinearOperator(operator.shape, matvec=product, dtype=float)
    values, vectors = sparse_linalg.eigsh(
        lifted, k=count, which="LA", v0=start, ncv=width, maxiter=restarts, tol=tolerance, rng=rng
    )
    order = np.argsort(values)[::-1]
    return values[order] - LIFT, vectors[:, order]


def _deflated(matrix: Matrix, vectors: Floats, shift: float) -> Matrix:
    """Move the given eigenvectors below all other eigenvalues, out of the search's sight."""

    def product(x: Floats) -> Floats:
        return np.asarray(matrix @ x - shift * (vectors @ (vectors.T @ x)))

    return sparse_linalg.LinearOperator(matrix.shape, matvec=product, dtype=float)
