"""Recoverability, ℓ* and k*, and cohesion against recall."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lograb
from lograb.theory import cohesion, recoverability
from lograb.theory.errata import truncation
from lograb.theory.heat import normalized_laplacian
from lograb.types import Graph

from ..strategies import graphs
from .graphs import connected_adjacency, edge_list, path, random_adjacency, star


def test_printed_proxies_match_their_definition_on_decaying_profiles():
    index = np.arange(1, 20001)
    for scale, exponent, epsilon in [(1.0, 1.0, 0.013), (2.0, 2.0, 0.0011), (3.0, 0.7, 0.017), (0.1, 1.0, 0.5)]:
        power, decay = scale * index**-exponent, scale * np.exp(-exponent * index)
        assert truncation.polynomial_rank(scale, exponent, epsilon) == truncation.proxy_rank(power, epsilon)
        assert truncation.exponential_rank(scale, exponent, epsilon) == truncation.proxy_rank(decay, epsilon)


@given(graphs(), st.floats(1e-6, 1.0))
def test_laplacian_eigenvalues_ascend_so_the_printed_proxy_is_always_zero(graph, epsilon):
    values = np.linalg.eigvalsh(normalized_laplacian(graph.adjacency.toarray()))
    assert truncation.proxy_rank(values, epsilon) == 0


def test_the_residual_needs_large_eigenvalues_not_small_ones():
    values = np.linalg.eigvalsh(normalized_laplacian(star(9)))
    ranks = [truncation.residual_rank(values, 0.8, epsilon) for epsilon in (1.0, 0.5, 0.3, 0.1)]
    assert ranks == [0, 1, 8, 9]
    assert np.exp(-0.8 * values[8]) <= 0.3 < np.exp(-0.8 * values[7])


def dense_error(first, second):
    return np.linalg.norm(first.astype(float) - second) / np.linalg.norm(first.astype(float))


def test_relative_error_of_edge_lists_is_the_frobenius_error():
    rng = np.random.default_rng(0)
    for _ in range(30):
        first, second = (random_adjacency(rng, 12, 0.3) for _ in range(2))
        found = recoverability.relative_error(edge_list(first), edge_list(second), 12)
        assert found == pytest.approx(dense_error(first, second))
    empty = np.empty((0, 2), np.int64)
    assert recoverability.relative_error(empty, empty, 3) == 0
    assert recoverability.relative_error(empty, np.array([[0, 1]]), 3) == np.inf


def test_the_measured_rank_is_the_first_that_suffices():
    rng = np.random.default_rng(1)
    for _ in range(10):
        truth = connected_adjacency(rng, 12, 0.15)
        values, vectors = np.linalg.eigh(normalized_laplacian(truth))
        ranks = [recoverability.recoverable_rank(truth, epsilon) for epsilon in (0.0, 0.2, 0.5, 1.0)]
        assert (np.diff(ranks) <= 0).all()  # a laxer demand needs no more
        assert ranks[-1] == 1  # claiming nothing has error 1
        assert 1 < ranks[0] <= 12  # and the complete spectrum is exact
        errors = [dense_error(truth, recoverability.truncated_inverse(vectors[:, :k], values[:k], truth))
                  for k in range(1, ranks[1] + 1)]  # fmt: skip
        assert errors[-1] <= 0.2 < min(errors[:-1])


def test_a_recovery_of_ones_own_can_be_measured():
    def hopeless(vectors, values, truth):
        return ~truth & ~np.eye(len(truth), dtype=bool)

    assert recoverability.recoverable_rank(path(5), 0.5, hopeless) is None


def test_the_union_of_judged_patches_errs_by_at_most_its_bound():
    rng = np.random.default_rng(2)
    for _ in range(20):
        truth = connected_adjacency(rng, 25, 0.05)
        lists = [rng.choice(25, 8, replace=False) for _ in range(7)]
        claimed, covered, mistakes = np.zeros_like(truth), np.zeros_like(truth), []
        for nodes in lists:
            block = np.ix_(nodes, nodes)
            guess = truth[block] ^ random_adjacency(rng, 8, rng.choice([0.0, 0.05]))
            mistakes.append(int((guess ^ truth[block]).sum()) // 2)
            claimed[block] |= guess
            covered[block] = True
        unseen = int((truth & ~covered).sum()) // 2
        bound = recoverability.union_error_bound(np.array(mistakes), unseen, int(truth.sum()) // 2)
        assert dense_error(truth, claimed) <= bound + 1e-12
        if not any(mistakes):
            assert dense_error(truth, claimed) == pytest.approx(bound)


def test_exact_patches_do_not_make_the_global_error_vanish_as_printed():
    """Local error 0 promises global error 0; edges in no patch remain."""
    graph = Graph.from_edges("path", 30, edge_list(path(30)))
    instance = lograb.generate(graph, d=1, p=0.3, k=8, seed=0)
    unseen = int((~instance.co_observed).sum())
    assert unseen > 0
    assert recoverability.printed_global_error(29, 0.0) == 0
    assert recoverability.union_error_bound(np.zeros(9, np.int64), unseen, 29) > 0.3


# Cohesion and recall


@given(graphs(), graphs(), st.lists(st.integers(-1, 3), min_size=14, max_size=14))
def test_recall_lies_in_its_interval(truth, claim, numbers):
    n = max(truth.n_nodes, claim.n_nodes)
    islands = np.array(numbers[:n])
    found = cohesion.island_cohesion(truth.edges, claim.edges, islands)
    recall, boundary = (cohesion.recall_within(truth.edges, claim.edges, islands),
                        cohesion.boundary_ratio(truth.edges, islands))  # fmt: skip
    if found is None:
        assert boundary in (None, 1.0)
        return
    low, high = cohesion.cohesion_recall_interval(found, boundary)
    assert low - 1e-12 <= recall <= high + 1e-12


def test_cohesion_by_hand_and_by_its_definition():
    truth = np.array([[0, 1], [1, 2], [3, 4], [2, 3], [5, 6]])
    claimed = np.array([[0, 1], [2, 3], [3, 4], [0, 2]])
    islands = np.array([0, 0, 0, 1, 1, 2, -1, 3])
    # Island 0: 1 of 2; island 1: 1 of 1; island 2 and 3: no true edge inside, excluded.
    by_definition = (2 / 3) * (1 / 2) + (1 / 3) * 1
    assert cohesion.island_cohesion(truth, claimed, islands) == pytest.approx(by_definition)
    assert cohesion.boundary_ratio(truth, islands) == pytest.approx(1 / 4)
    assert cohesion.recall_within(truth, claimed, islands) == pytest.approx(3 / 4)
    assert cohesion.cohesion_recall_interval(2 / 3, 1 / 4) == pytest.approx((1 / 2, 3 / 4))
    assert cohesion.island_cohesion(truth, claimed, np.full(8, -1)) is None


@given(graphs(), graphs())
def test_for_components_of_the_estimate_the_bound_is_an_identity(truth, claim):
    import scipy.sparse.csgraph as csgraph

    n = max(truth.n_nodes, claim.n_nodes)
    whole = Graph.from_edges("claim", n, claim.edges)
    islands = csgraph.connected_components(whole.adjacency, directed=False)[1].astype(np.int64)
    found = cohesion.island_cohesion(truth.edges, claim.edges, islands)
    if found is not None:
        low, _ = cohesion.cohesion_recall_interval(found, cohesion.boundary_ratio(truth.edges, islands))
        assert cohesion.recall_within(truth.edges, claim.edges, islands) == pytest.approx(low)
