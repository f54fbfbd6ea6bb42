"""Heat kernels: the edge-recovery theorem, Lemma 1, and the threshold that is always right."""

import numpy as np
import pytest
from hypothesis import given

import lograb
from lograb.errors import LograbError
from lograb.theory import certified_edges, certified_threshold
from lograb.theory.errata.lemma_gap import condition_holds, largest_size, measured_gap, printed_gap, printed_time
from lograb.theory.heat import (
    NO_RECOVERY_BEFORE,
    best_edge_recovery,
    edge_recovery,
    heat_kernel_matrix,
    largest_entry_bound,
    normalized_laplacian,
    separation,
    times_to_try,
    truncation_residual,
)
from lograb.theory.stacks import adjacency_of, stacks_of

from ..strategies import graphs
from .graphs import SHAPES, clique, connected_adjacency, path, random_adjacency, star


def spectrum(adjacency):
    return np.linalg.eigh(normalized_laplacian(adjacency))


def test_the_kernel_is_the_matrix_exponential():
    from scipy.linalg import expm

    adjacency = random_adjacency(np.random.default_rng(0), 9, 0.4)
    values, vectors = spectrum(adjacency)
    assert np.allclose(heat_kernel_matrix(vectors, values, 0.8), expm(-0.8 * normalized_laplacian(adjacency)))


def test_exact_recovery_whenever_the_condition_holds_and_it_does_hold():
    rng, fired = np.random.default_rng(1), 0
    cases = [star(q) for q in range(3, 9)] + [connected_adjacency(rng, int(rng.integers(3, 9)), 0.15)
                                              for _ in range(25)]  # fmt: skip
    for adjacency in cases:
        q = len(adjacency)
        values, vectors = spectrum(adjacency)
        for k in range(1, q):
            found = best_edge_recovery(adjacency, values[k])
            if found is None or not found.holds:
                continue
            fired += 1
            low, high = found.thresholds
            kernel = heat_kernel_matrix(vectors[:, :k], values[:k], found.t)
            for threshold in (low + 1e-12, (low + high) / 2, high - 1e-12):
                assert np.array_equal((kernel > threshold) & clique(q), adjacency)
    assert fired >= 30


@given(graphs())
def test_at_the_papers_time_the_condition_never_holds_on_a_truncated_patch(graph):
    adjacency = graph.adjacency.toarray()
    values, vectors = spectrum(adjacency)
    kernel = heat_kernel_matrix(vectors, values, 0.8)
    off = ~np.eye(len(adjacency), dtype=bool)
    assert kernel[off].max(initial=0) <= largest_entry_bound(0.8) + 1e-12
    for k in range(1, len(values)):
        assert truncation_residual(values[k], 0.8) >= np.exp(-1.6) - 1e-12
        assert not edge_recovery(adjacency, 0.8, values[k]).holds
        assert not edge_recovery(adjacency, NO_RECOVERY_BEFORE, values[k]).holds


def test_the_figures_of_the_impossibility():
    assert largest_entry_bound(0.8) == pytest.approx(0.399, abs=1e-3)
    assert 2 * np.exp(-1.6) == pytest.approx(0.404, abs=1e-3)
    assert largest_entry_bound(NO_RECOVERY_BEFORE) == pytest.approx(2 * np.exp(-2 * NO_RECOVERY_BEFORE))
    # The two bounds are sharp: two joined nodes have both.
    values, vectors = spectrum(path(2))
    assert heat_kernel_matrix(vectors, values, 0.8)[0, 1] == pytest.approx(largest_entry_bound(0.8))


def test_times_before_the_first_one_tried_are_hopeless():
    for next_value in (0.1, 1.0, 2.0):
        first = times_to_try(next_value)[0]
        assert largest_entry_bound(0.99 * first) < 2 * truncation_residual(next_value, 0.99 * first)
    assert times_to_try(2.0)[0] == pytest.approx(NO_RECOVERY_BEFORE)
    assert best_edge_recovery(np.zeros((3, 3), dtype=bool), 0.0) is None


def test_further_errors_of_the_kernel_shrink_the_interval():
    clean, blurred = edge_recovery(path(4), 0.3), edge_recovery(path(4), 0.3, kernel_error=0.01)
    assert clean.holds
    assert blurred.thresholds[0] == pytest.approx(clean.thresholds[0] + 0.01)
    assert not edge_recovery(path(4), 0.3, kernel_error=clean.margin / 2).holds


def test_cliques_do_not_count_as_separated_for_free():
    low, high = separation(np.full((3, 3), 0.1), clique(3), 0.2)
    assert low < high


# Lemma 1


def test_lemma_1_has_no_constant_for_one_hop_patches():
    for constant in (2.0, 1.0, 0.5, 0.1, 0.01):
        last = largest_size(constant)
        assert not any(condition_holds(q, q - 1, constant) for q in range(max(2, last + 1), 2000))
    assert largest_size(1.0) == 0  # not even two nodes
    assert not condition_holds(3, 2, 0.3)  # C q < 1: the time is negative


@pytest.mark.parametrize(("shape", "q"), [(star, 17), (path, 8), (clique, 6)])
def test_lemma_1_is_false_for_the_normalized_laplacian(shape, q):
    adjacency = shape(q)
    for t in (1 / q**2, 0.25 / adjacency.sum(axis=0).max()):  # both satisfy t d_max <= 1/4
        assert measured_gap(adjacency, t) < printed_gap(t)
        assert measured_gap(adjacency, t, normalized=False) >= printed_gap(t)  # what its proof is about
    assert measured_gap(adjacency, 1 / q**2) < 1 / (2 * q**2)


def test_lemma_1_as_printed_can_be_evaluated():
    assert printed_time(10, 1.0) == pytest.approx(np.log(10) / 10)
    with pytest.raises(LograbError):
        printed_time(1, 1.0)


# The certified threshold


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("q", [2, 3, 4, 7, 30, 120])
def test_the_certified_bounds_hold_on_extreme_graphs(shape, q):
    check_certified(SHAPES[shape](q))


@pytest.mark.parametrize("density", [0.02, 0.1, 0.5, 0.9, 0.99])
def test_the_certified_bounds_hold_on_random_graphs(density):
    rng = np.random.default_rng(int(1000 * density))
    for q in (3, 4, 5, 8, 16, 40, 90):
        for _ in range(6):
            check_certified(random_adjacency(rng, q, density))


def check_certified(adjacency):
    q = len(adjacency)
    values, vectors = spectrum(adjacency)
    rule = certified_threshold(q)
    assert rule.margin > 0.2 / q**2
    kernel, off = heat_kernel_matrix(vectors, values, rule.t), ~np.eye(q, dtype=bool)
    assert kernel[adjacency].min(initial=1.0) >= rule.lowest_edge - 1e-12
    assert kernel[~adjacency & off].max(initial=0.0) <= rule.highest_other + 1e-12
    assert np.array_equal(certified_edges(vectors, values), adjacency)
    # Errors of less than half of the margin do no harm.
    shaken = kernel + 0.49 * rule.margin * np.where(adjacency, -1, 1)
    assert np.array_equal((shaken > rule.threshold) & off, adjacency)


def test_known_degrees_widen_the_margin():
    assert certified_threshold(50, max_degree=3).margin > 100 * certified_threshold(50).margin
    values, vectors = spectrum(path(50))
    rule = certified_threshold(50, max_degree=2)
    assert np.array_equal((heat_kernel_matrix(vectors, values, rule.t) > rule.threshold) & clique(50), path(50))


def test_noise_and_truncation_are_refused():
    values, vectors = spectrum(star(6))
    with pytest.raises(LograbError, match="not orthonormal"):
        certified_edges(vectors + 1e-6, values)
    with pytest.raises(LograbError, match="complete"):
        certified_edges(vectors[:, :4], values[:4])


def test_every_two_hop_patch_of_cora_is_exact_where_the_papers_time_fails(mirror):
    instance = lograb.generate("cora", d=2, p=0.2, k=1000, seed=0)
    seen, separated, n = instance.observations, 0, 0
    for stack in stacks_of(seen, 150):
        truth = adjacency_of(instance.patch_edges, stack.which, stack.vectors.shape[1])
        assert np.array_equal(certified_edges(stack.vectors, stack.values), truth)
        low, high = separation(heat_kernel_matrix(stack.vectors, stack.values, 0.8), truth)
        separated, n = separated + int((low > high).sum()), n + len(low)
    assert n > 400
    assert 0.7 < separated / n < 0.95
