"""Eigenvectors of symmetric matrices, also where the fast solver gives up."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from lograb.types import Floats


def eigh(matrices: Floats) -> tuple[Floats, Floats]:
    """Solve stacked symmetric matrices (..., q, q): values (..., q), ascending, and vectors in columns.

    LAPACK's divide and conquer, which is fast, does not converge on a few matrices of sparse graphs; these are
    solved by plain QR iteration.
    """
    try:
        values, vectors = np.linalg.eigh(matrices)
        return np.asarray(values), np.asarray(vectors)
    except np.linalg.LinAlgError:
        if matrices.ndim == 2:
            found = scipy.linalg.eigh(matrices, driver="ev")
            return np.asarray(found[0]), np.asarray(found[1])
    parts = [eigh(matrix) for matrix in matrices]
    return np.stack([part[0] for part in parts]), np.stack([part[1] for part in parts])
