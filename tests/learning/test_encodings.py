"""Positions and structure inside patches, against hand-computed and brute-force values."""

import networkx as nx
import numpy as np
import pytest
from tests.learning.tiny import PATH, four_patches, make_patches

import lograb
from lograb.learning.nodes.encodings import encode, hop_distances, laplacian_eigenpairs, return_probabilities
from lograb.learning.patchset import patch_set
from lograb.ragged import pointer


@pytest.fixture(scope="module")
def karate():
    return patch_set(lograb.generate("karate", d=2, p=0.4, k=4))


def adjacency(patches, i):
    q = int(patches.sizes[i])
    matrix = np.zeros((q, q))
    ends = patches.edges[patches.edge_ptr[i] : patches.edge_ptr[i + 1]]
    matrix[ends[:, 0], ends[:, 1]] = matrix[ends[:, 1], ends[:, 0]] = 1
    return matrix


def test_eigenpairs_of_a_path_of_three():
    patches = make_patches([[(0, 1), (1, 2)]], [3])
    vectors, values = laplacian_eigenpairs(patches, 5, np.random.default_rng(0))
    assert np.allclose(values[0, :3], [0, 1, 2], atol=1e-6)
    assert np.isnan(values[0, 3:]).all()
    assert np.isnan(vectors[:, 3:]).all()
    assert np.allclose(np.abs(vectors[:, 0]), np.sqrt([0.25, 0.5, 0.25]), atol=1e-6)
    assert np.allclose(np.abs(vectors[:, 1]), np.sqrt([0.5, 0, 0.5]), atol=1e-6)


def test_eigenpairs_solve_their_equation(karate):
    vectors, values = laplacian_eigenpairs(karate, 6, np.random.default_rng(0))
    for i in range(karate.n_patches):
        matrix = adjacency(karate, i)
        scale = 1 / np.sqrt(matrix.sum(axis=1))
        laplacian = np.eye(len(matrix)) - scale[:, None] * matrix * scale
        block = vectors[karate.ptr[i] : karate.ptr[i + 1], : min(6, len(matrix))]
        assert np.allclose(laplacian @ block, block * values[i, : block.shape[1]], atol=1e-5)
        assert np.allclose(block.T @ block, np.eye(block.shape[1]), atol=1e-5)
        assert np.allclose(values[i, : block.shape[1]], np.linalg.eigvalsh(laplacian)[: block.shape[1]], atol=1e-5)


def test_return_probabilities_by_hand():
    walks = return_probabilities(four_patches(), 4)
    assert np.allclose(walks[:4], [[0, 1, 0, 1]] + [[0, 1 / 3, 0, 1 / 3]] * 3)  # star
    assert np.allclose(walks[9:12], [[0, 1 / 2, 1 / 4, 3 / 8]] * 3)  # triangle
    assert np.allclose(walks[12:], 1)  # isolated


def test_return_probabilities_are_those_of_the_walk(karate):
    walks = return_probabilities(karate, 7)
    for i in range(karate.n_patches):
        matrix = adjacency(karate, i)
        step = matrix / matrix.sum(axis=1, keepdims=True)
        powers = [np.linalg.matrix_power(step, t).diagonal() for t in range(1, 8)]
        assert np.allclose(walks[karate.ptr[i] : karate.ptr[i + 1]], np.transpose(powers), atol=1e-6)


def test_distances_agree_with_networkx(karate):
    for patches in (karate, four_patches(), make_patches([PATH, []], [5, 3])):
        flat, ptr = hop_distances(patches), pointer(patches.sizes**2)
        for i in range(patches.n_patches):
            q = int(patches.sizes[i])
            lengths = dict(nx.all_pairs_shortest_path_length(nx.from_numpy_array(adjacency(patches, i))))
            wanted = [[lengths[u].get(w, -1) for w in range(q)] for u in range(q)]
            assert flat[ptr[i] : ptr[i + 1]].reshape(q, q).tolist() == wanted


def test_encode_adds_and_keeps():
    patches = encode(four_patches(), ("laplacian", "walks", "distances"), np.random.default_rng(0))
    assert patches.row_encodings["laplacian"].shape == (14, 10)
    assert patches.patch_encodings["eigenvalues"].shape == (4, 10)
    assert patches.row_encodings["walks"].shape == (14, 16)
    assert len(patches.distances) == 16 + 25 + 16 + 1
