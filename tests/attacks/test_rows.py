"""Rows as subset sums: what they claim is right at any precision; what they cannot tell apart they share."""

from __future__ import annotations

import numpy as np
import pytest

from lograb.attacks.posterior.precision import rounding_error
from lograb.attacks.posterior.row_degrees import components, whole_degrees
from lograb.attacks.posterior.rows import RowFacts, solve_rows
from lograb.types import Floats, Ints


def spectrum(adjacency: Ints, k: int) -> tuple[Floats, Floats]:
    degrees = adjacency.sum(axis=1)
    root = np.where(degrees > 0, 1.0 / np.sqrt(np.maximum(degrees, 1)), 0.0)
    laplacian = np.diag((degrees > 0).astype(float)) - root[:, None] * adjacency * root
    values, vectors = np.linalg.eigh(laplacian)
    return vectors[:, :k], values[:k].round(10)


def sparse_graph(n: int, rng: np.random.Generator) -> Ints:
    """A tree with half as many edges besides."""
    adjacency = np.zeros((n, n), dtype=np.int64)
    for node in range(1, n):
        adjacency[node, rng.integers(max(0, node - 12), node)] = 1
    ends = rng.integers(0, n, (n // 2, 2))
    adjacency[ends[:, 0], ends[:, 1]] = 1
    np.fill_diagonal(adjacency, 0)
    return np.maximum(adjacency, adjacency.T)


def claims(facts: RowFacts, adjacency: Ints) -> tuple[int, int]:
    """Count the pairs that are claimed for certain, and the right ones."""
    sure = facts.pairs[facts.probability == 1.0]
    return len(sure), int(adjacency[sure[:, 0], sure[:, 1]].sum())


@pytest.mark.parametrize(("digits", "k"), [(np.float64, 4), (np.float64, 16), (np.float32, 16), (np.float16, 64)])
def test_one_embedding_gives_the_graph_away(digits: type, k: int) -> None:
    adjacency = sparse_graph(300, np.random.default_rng(3))
    vectors, values = spectrum(adjacency, k)
    shared = vectors.astype(digits).astype(float)
    facts = solve_rows(shared, values, rounding_error(shared))
    assert facts is not None
    np.testing.assert_array_equal(facts.degrees, adjacency.sum(axis=1))
    claimed, right = claims(facts, adjacency)
    assert claimed == right
    assert right > 0.97 * adjacency.sum() / 2
    assert facts.solved.mean() > 0.97


def test_solved_rows_hold_all_their_neighbours() -> None:
    adjacency = sparse_graph(200, np.random.default_rng(4))
    rng = np.random.default_rng(5)
    vectors, values = spectrum(adjacency, 40)
    noise = 1e-3 / np.sqrt(200)
    facts = solve_rows(vectors + noise * rng.standard_normal(vectors.shape), values, np.full(vectors.shape, noise))
    assert facts is not None
    assert facts.solved.mean() > 0.9
    listed = np.zeros_like(adjacency, dtype=float)
    listed[facts.pairs[:, 0], facts.pairs[:, 1]] = listed[facts.pairs[:, 1], facts.pairs[:, 0]] = facts.probability
    np.testing.assert_array_equal(listed[facts.solved] > 0, adjacency[facts.solved] > 0)


def test_members_that_cannot_be_told_apart_share_the_probability() -> None:
    # Two tails 1-2 and 3-4 at node 0, and a body without symmetry: columns that are even in the tails do not tell
    # which end belongs to which.
    body = sparse_graph(40, np.random.default_rng(6))
    adjacency = np.zeros((43, 43), dtype=np.int64)
    adjacency[5:, 5:] = body[:38, :38]
    for u, v in ((0, 1), (1, 2), (0, 3), (3, 4), (0, 12), (0, 20)):
        adjacency[[u, v], [v, u]] = 1
    vectors, values = spectrum(adjacency, 43)
    even = np.abs(vectors[1] - vectors[3]) < 1e-9
    assert 1 < even.sum() < 43
    shared = vectors[:, even]
    facts = solve_rows(shared, values[even], rounding_error(shared))
    assert facts is not None
    found = {tuple(pair): share for pair, share in zip(facts.pairs.tolist(), facts.probability.tolist())}
    assert {pair: found[pair] for pair in ((1, 2), (1, 4), (2, 3), (3, 4))} == dict.fromkeys(
        ((1, 2), (1, 4), (2, 3), (3, 4)), 0.5
    )
    assert found[0, 1] == found[0, 3] == 1.0


def test_numbering_does_not_matter() -> None:
    adjacency = sparse_graph(120, np.random.default_rng(7))
    order = np.random.default_rng(8).permutation(120)
    vectors, values = spectrum(adjacency, 12)
    one = solve_rows(vectors, values, rounding_error(vectors))
    two = solve_rows(vectors[order], values, rounding_error(vectors[order]))
    assert one is not None
    assert two is not None
    np.testing.assert_array_equal(one.solved[order], two.solved)
    renamed = np.sort(order[two.pairs], axis=1)
    assert sorted(map(tuple, renamed.tolist())) == sorted(map(tuple, one.pairs.tolist()))


def test_strong_noise_is_not_mistaken_for_rows() -> None:
    adjacency = sparse_graph(150, np.random.default_rng(9))
    vectors, values = spectrum(adjacency, 16)
    noise = 0.1 / np.sqrt(150)
    shared = vectors + noise * np.random.default_rng(10).standard_normal(vectors.shape)
    facts = solve_rows(shared, values, np.full(shared.shape, noise))
    assert facts is None or claims(facts, adjacency)[0] == claims(facts, adjacency)[1]


def test_without_a_telling_column_there_is_no_answer() -> None:
    adjacency = np.kron(np.eye(6, dtype=np.int64), np.array([[0, 1], [1, 0]]))
    vectors, values = spectrum(adjacency, 5)
    assert solve_rows(vectors, values, rounding_error(vectors)) is None


def test_components_and_degrees_follow_from_the_kernel_in_any_basis() -> None:
    adjacency = np.zeros((9, 9), dtype=np.int64)
    for u, v in ((0, 1), (0, 2), (0, 3), (4, 5), (5, 6), (4, 6), (6, 7)):
        adjacency[[u, v], [v, u]] = 1
    vectors, _ = spectrum(adjacency, 9)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    kernel = vectors[:, :3] @ turn
    found = components(kernel, np.full(9, 1e-15))
    assert len(set(found[:4])) == len(set(found[4:8])) == 1
    assert len(set(found.tolist())) == 3
    np.testing.assert_array_equal(whole_degrees(kernel, np.full(9, 1e-15))[1], adjacency.sum(axis=1))


@pytest.mark.parametrize("rounded", [
    lambda x: x.astype(np.float32).astype(float), lambda x: x.astype(np.float16).astype(float),
    lambda x: x.round(6), lambda x: np.round(x * 2**20) / 2**20,
])  # fmt: skip
def test_precision_is_read_off_the_numbers(rounded: object) -> None:
    exact = 0.03 * np.random.default_rng(0).standard_normal((500, 8))
    shared = rounded(exact)  # type: ignore[operator]
    errors = rounding_error(shared)
    assert 0.9 < np.sqrt(np.mean(((shared - exact) / errors) ** 2)) < 1.1


@pytest.mark.parametrize("degree", [3, 4])
def test_regular_graphs_show_their_degree_by_rows_that_fit(degree: int) -> None:
    import networkx as nx

    adjacency = nx.to_numpy_array(nx.random_regular_graph(degree, 100, seed=1), dtype=int)
    vectors, values = spectrum(adjacency, 32)
    facts = solve_rows(vectors, values, rounding_error(vectors), budget=3e8)
    assert facts is not None
    assert set(facts.degrees.tolist()) == {degree}
    assert claims(facts, adjacency) == (adjacency.sum() // 2, adjacency.sum() // 2)


def test_columns_that_are_not_of_components_are_not_taken_for_them() -> None:
    adjacency = sparse_graph(120, np.random.default_rng(7))
    vectors, values = spectrum(adjacency, 12)
    values[:3] = 0.0  # as rounding to few bits would leave them
    assert solve_rows(vectors, values, rounding_error(vectors), value_error=1e-4) is None
