"""Theorem 1: the printed constant fails, twice the constant holds."""

import numpy as np
import pytest

from lograb.theory.heat import normalized_laplacian
from lograb.theory.perturbation import (
    perturbation_bound,
    printed_bound,
    procrustes_distance,
    swapped_eigenvectors,
)

from .graphs import random_adjacency


def bottom(matrix, k):
    return np.linalg.eigh(matrix)[1][:, :k]


@pytest.mark.parametrize("seed", range(40))
def test_the_correct_bound_holds_on_random_graphs(seed):
    rng = np.random.default_rng(seed)
    laplacian = normalized_laplacian(random_adjacency(rng, int(rng.integers(4, 20)), rng.uniform(0.2, 0.8)))
    q = len(laplacian)
    noise = rng.standard_normal((q, q))
    noise = (noise + noise.T) * 10 ** rng.uniform(-4, -0.5)
    size, values = np.linalg.norm(noise, 2), np.linalg.eigvalsh(laplacian)
    for k in range(1, q):
        gap = values[k] - values[k - 1]
        if gap > 1e-9:
            moved = procrustes_distance(bottom(laplacian, k), bottom(laplacian + noise, k))
            assert moved <= perturbation_bound(k, size, gap) + 1e-9


def test_the_printed_bound_is_false_on_diagonal_matrices():
    delta, eps = 1.0, 0.51
    first, second = np.diag([0.0, delta]), np.diag([0.0, delta]) + np.diag([eps, -eps])
    moved = procrustes_distance(bottom(first, 1), bottom(second, 1))
    assert moved == pytest.approx(np.sqrt(2))
    assert moved > 1.9 * printed_bound(1, eps, delta)
    assert moved <= perturbation_bound(1, eps, delta)


def test_the_printed_bound_is_false_on_a_patch_of_two_nodes():
    laplacian, noise = swapped_eigenvectors(0.01)
    assert np.array_equal(laplacian, normalized_laplacian(np.array([[0, 1], [1, 0]])))
    moved = procrustes_distance(bottom(laplacian, 1), bottom(laplacian + noise, 1))
    assert moved > 1.9 * printed_bound(1, np.linalg.norm(noise, 2), 2.0)


def test_the_distance_ignores_rotations_and_keeps_small_digits():
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.standard_normal((9, 3)))
    turn, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    assert procrustes_distance(basis, basis @ turn) < 1e-14


def test_no_gap_no_bound():
    assert printed_bound(2, 0.1, 0.0) == np.inf
    assert perturbation_bound(2, 0.1, 0.0) == 2.0  # the largest distance there is
    assert perturbation_bound(2, 0.1, np.inf) == 0.0
