"""Eigenvectors, whether or not the fast solver converges."""

import numpy as np
import pytest

from lograb.eigen import eigh


@pytest.mark.parametrize("shape", [(5, 5), (3, 5, 5), (2, 3, 5, 5)])
def test_a_solver_that_gives_up_is_replaced(shape, monkeypatch):
    matrices = np.random.default_rng(0).standard_normal(shape)
    matrices = matrices + matrices.swapaxes(-1, -2)
    expected = np.linalg.eigvalsh(matrices)

    def gives_up(matrix):
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    monkeypatch.setattr(np.linalg, "eigh", gives_up)
    values, vectors = eigh(matrices)
    assert values == pytest.approx(expected)
    assert vectors @ (values[..., None] * vectors.swapaxes(-1, -2)) == pytest.approx(matrices)
