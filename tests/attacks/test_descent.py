"""The way down: what a flip gains against brute force, and graphs with many wrong pairs."""

import networkx as nx
import numpy as np
import pytest

from lograb.attacks.posterior import descent
from lograb.attacks.posterior.descent import descend, gains
from lograb.attacks.posterior.graphs import Patch, passes, scaled, state_of


def flipped(graph, *pairs):
    graph = graph.copy()
    for i, j in pairs:
        graph[i, j] = graph[j, i] = 1.0 - graph[i, j]
    return graph


def published(graph, rank, sigma, seed=0):
    values, vectors = np.linalg.eigh(scaled(graph))
    noise = np.random.default_rng(seed).standard_normal((len(graph), rank))
    open_ = np.zeros(graph.shape)
    return Patch(vectors[:, ::-1][:, :rank] + sigma * noise, values[::-1][:rank], sigma**2, open_, open_)


def fit(patch, graph, width):
    """F, as it is defined."""
    values, basis = np.linalg.eigh(scaled(graph))
    near = width**2 / ((values[:, None] - patch.mu) ** 2 + width**2)
    return (near * ((basis.T @ patch.observed) ** 2 / patch.variance - 1.0)).sum() / 2


@pytest.mark.parametrize("width", [0.3, 0.02])
@pytest.mark.parametrize("at_once", [7, 1 << 18])
def test_gains_are_those_of_brute_force(monkeypatch, width, at_once):
    monkeypatch.setattr(descent, "AT_ONCE", at_once)
    truth = nx.to_numpy_array(nx.gnp_random_graph(14, 0.3, seed=2))
    patch = published(truth, 6, 0.1)
    now = flipped(truth, (0, 5), (3, 9))
    i, j = np.triu_indices(14, k=1)
    found = gains(patch, state_of(patch, now), i, j, width)
    before = fit(patch, now, width)
    for n, pair in enumerate(zip(i, j)):
        after = flipped(now, pair)
        if (after[list(pair)].sum(axis=1) == 0).any():
            assert found[n] == -np.inf
        else:
            assert found[n] == pytest.approx(fit(patch, after, width) - before, rel=1e-6, abs=1e-8)


def test_flips_that_leave_or_find_a_node_alone_are_not_tried():
    graph = nx.to_numpy_array(nx.disjoint_union(nx.path_graph(5), nx.empty_graph(1)))
    patch = published(graph, 3, 0.1)
    i, j = np.triu_indices(6, k=1)
    found = gains(patch, state_of(patch, graph), i, j, 0.1)
    never = (j == 5) | ((i == 0) & (j == 1)) | ((i == 3) & (j == 4))
    np.testing.assert_array_equal(np.isinf(found), never)


def around_a_hub(leaves=40, joined=9, patches=4):
    """A hub some leaves of which are joined in a path and in pairs, and patches with one more node each."""
    graph = nx.star_graph(leaves)
    graph.add_edges_from([(1, 2), (2, 3), (3, 4), *((5 + 2 * n, 6 + 2 * n) for n in range(joined - 3))])
    for at in range(patches):
        graph.add_edge(1 + at, leaves + 1 + at)
    matrix = nx.to_numpy_array(graph)
    return matrix, [np.append(np.arange(leaves + 1), leaves + 1 + at) for at in range(patches)]


def test_many_wrong_pairs_are_mended_downhill():
    """Six wrong pairs among leaves, more than are found by trying: the graph found has all eigenvalues."""
    truth, members = around_a_hub()
    patches = [published(truth[np.ix_(own, own)], 16, 0.05, seed) for seed, own in enumerate(members)]
    free = np.ones(truth.shape, dtype=bool)
    free[0] = free[:, 0] = False
    leaves = np.triu(free, k=1)
    leaves[:, 41:] = False
    rng = np.random.default_rng(0)

    def right(graph):
        return [passes(graph[np.ix_(own, own)][None], p.mu[None])[0] for own, p in zip(members, patches)]

    mended = 0
    for _ in range(8):
        there, missing = (rng.permutation(np.argwhere(leaves & (truth == value)))[:3] for value in (1, 0))
        now = flipped(truth, *there.tolist(), *missing.tolist())
        found = descend(now, free, members, patches)
        assert not any(right(now))
        np.testing.assert_array_equal(found, found.T)
        mended += all(right(found))
    assert mended >= 4


def test_only_free_pairs_are_flipped_and_errors_never_rise():
    truth, members = around_a_hub()
    patches = [published(truth[np.ix_(own, own)], 16, 0.05, seed) for seed, own in enumerate(members)]
    now = flipped(truth, (1, 2), (5, 6), (20, 21))
    free = np.zeros(truth.shape, dtype=bool)
    np.testing.assert_array_equal(descend(now, free, members, patches), now)
    free[20:25, 20:25] = True
    found = descend(now, free, members, patches)
    np.testing.assert_array_equal(found[~free], now[~free])
    assert descent._error(found, members, patches) <= descent._error(now, members, patches)
    np.testing.assert_array_equal(descend(truth, ~free, members, patches), truth)
