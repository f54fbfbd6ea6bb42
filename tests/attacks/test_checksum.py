"""Eigenvalues as a checksum: every formula against brute force, then the mending as a whole."""

import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import lograb
from lograb.attacks.posterior import PosteriorSettings, mending, posterior
from lograb.attacks.posterior.exchanges import MAX_GAIN, judge, odds_against, plausible, swaps
from lograb.attacks.posterior.graphs import SAME, Patch, passes, scaled, state_of
from lograb.attacks.posterior.mending import search
from lograb.pairs import edge_keys


def graph(n=20, seed=1):
    return nx.to_numpy_array(nx.powerlaw_cluster_graph(n, 2, 0.4, seed=seed))


def published(adjacency, rank, sigma, seed=0, wrong=(), sure=6.0):
    """Publish a patch, with log-odds that are right but for the pairs in `wrong`, which lean the wrong way."""
    values, vectors = np.linalg.eigh(scaled(adjacency))
    noise = np.random.default_rng(seed).standard_normal((len(adjacency), rank))
    odds = np.where(adjacency > 0, sure, -sure)
    for i, j in wrong:
        odds[i, j] = odds[j, i] = -np.sign(odds[i, j])
    np.fill_diagonal(odds, 0.0)
    return Patch(vectors[:, ::-1][:, :rank] + sigma * noise, values[::-1][:rank], sigma**2, odds, 0.0 * odds)


def flipped(adjacency, *pairs):
    changed = adjacency.copy()
    for i, j in pairs:
        changed[i, j] = changed[j, i] = 1 - changed[i, j]
    return changed


def swapped(adjacency, i, j):
    order = np.arange(len(adjacency))
    order[[i, j]] = j, i
    return adjacency[np.ix_(order, order)]


def test_every_single_wrong_pair_is_noticed():
    truth = graph()
    mu = published(truth, 12, 0.0).mu
    assert passes(truth[None], mu[None])[0]
    others = np.stack([flipped(truth, pair) for pair in zip(*np.triu_indices(len(truth), k=1))])
    assert not passes(others, np.tile(mu, (len(others), 1))).any()


def test_scaled_matrices_are_those_of_the_laplacian():
    adjacency = nx.to_numpy_array(nx.disjoint_union(nx.path_graph(4), nx.empty_graph(1)))
    laplacian = nx.normalized_laplacian_matrix(nx.from_numpy_array(adjacency)).toarray()
    np.testing.assert_allclose(scaled(adjacency), np.eye(5) - laplacian, atol=1e-12)


def test_determinants_agree_with_brute_force():
    now = graph(seed=2)
    patch = published(graph(seed=3), 10, 0.0)
    mu, inverse = mending._resolvents(patch, state_of(patch, now), 5)
    found = mending._determinants(mu, inverse, 1 - 2 * now)
    for i, j in [(0, 1), (3, 9), (5, 17), (18, 19)]:
        then = flipped(now, (i, j))
        for n, value in enumerate(mu):
            before, after = (np.linalg.det(a - value * np.diag(a.sum(axis=1))) for a in (now, then))
            assert found[n, i, j] == pytest.approx(after / before, rel=1e-6)


def test_changes_of_the_residual_agree_with_brute_force():
    now = flipped(nx.to_numpy_array(nx.path_graph(9)), (7, 8))  # node 8 is isolated
    patch = published(nx.to_numpy_array(nx.path_graph(9)), 4, 0.1)
    state = state_of(patch, now)
    i, j = np.triu_indices(9, k=1)
    found = mending._changes(patch, state, i, j)
    for n, pair in enumerate(zip(i, j)):
        change = scaled(flipped(now, pair)) - scaled(now)
        np.testing.assert_allclose(found[n], state.basis.T @ change @ patch.observed, atol=1e-12)


@pytest.mark.parametrize("wrong", [[(2, 7)], [(0, 1)], [(2, 7), (4, 11)], [(3, 8), (3, 9)]])
def test_one_or_two_wrong_pairs_are_found_exactly(wrong):
    truth = graph(seed=4)
    patch = published(truth, 10, 0.05, wrong=wrong)
    found, right = search(patch)
    assert right
    assert passes(found[None], patch.mu[None])[0]
    np.testing.assert_array_equal(judge(patch, found)[0], truth)


@pytest.mark.parametrize("wrong", [[(2, 7)], [(2, 7), (4, 11)], [(2, 7), (4, 11), (0, 15)],
                                   [(3, 8), (3, 9), (8, 9)]])  # fmt: skip
def test_up_to_three_wrong_pairs_are_found_exactly(wrong):
    """All but the last are among the least certain; that one looked as sure as any."""
    truth = graph(seed=4)
    now = flipped(truth, *wrong)
    patch = published(truth, 12, 0.05)
    certainty = np.full(truth.shape, 9.0)
    for i, j in wrong[:-1]:
        certainty[i, j] = certainty[j, i] = 1.0
    found = mending.few_wrong(patch, state_of(patch, now), certainty)
    np.testing.assert_array_equal(found, truth)
    hopeless = flipped(now, (1, 14), (6, 10), (5, 19))
    assert mending.few_wrong(patch, state_of(patch, hopeless), np.full(truth.shape, 9.0)) is None


def test_one_wrong_pair_is_found_however_sure_it_looked():
    truth = graph(seed=4)
    patch = published(truth, 10, 0.1)
    patch.log_odds[2, 7] = patch.log_odds[7, 2] = -200 * np.sign(patch.log_odds[2, 7])
    found, right = search(patch)
    assert right
    np.testing.assert_array_equal(found, truth)


def test_several_wrong_pairs_are_mended_downhill():
    mended = 0
    for seed in range(5):
        truth = graph(seed=seed)
        pairs = np.argwhere(np.triu(np.ones_like(truth), k=1))
        wrong = np.random.default_rng(seed).choice(pairs, 4, replace=False)
        found, right = search(published(truth, 14, 0.02, seed=seed, wrong=wrong))
        assert not right or passes(found[None], published(truth, 14, 0.0).mu[None])[0]
        mended += right and bool((found == truth).all())
    assert mended >= 4


@pytest.mark.parametrize("truth", [graph(12, seed=5), nx.to_numpy_array(nx.star_graph(7)),
                                   nx.to_numpy_array(nx.balanced_tree(2, 3))])  # fmt: skip
def test_swaps_compare_likelihoods(truth):
    """Two graphs with the same eigenvalues differ in how much of the embedding lies outside their eigenspaces."""
    patch = published(truth, 6, 0.2)

    def outside(adjacency):
        values, basis = np.linalg.eigh(scaled(adjacency))
        apart = np.abs(values[:, None] - patch.mu) > SAME
        return ((basis.T @ patch.observed)[apart] ** 2).sum() / (2 * patch.variance)

    loss = swaps(patch, state_of(patch, truth))
    for i, j in zip(*np.triu_indices(len(truth), k=1)):
        other = swapped(truth, i, j)
        if (other == truth).all():
            assert loss[i, j] == np.inf
        else:
            assert loss[i, j] == pytest.approx(outside(other) - outside(truth), abs=1e-6)


def test_members_that_changed_places_are_put_back():
    truth = graph(seed=6)
    for i, j in [(0, 5), (3, 19), (7, 12)]:
        other = swapped(truth, i, j)
        answer = judge(published(truth, 10, 0.05), other)
        assert answer is not None
        np.testing.assert_array_equal(answer[0], truth)


def test_a_graph_that_does_not_fit_the_eigenvectors_is_refused():
    """The star and the square have the same eigenvalues; only the eigenvectors tell."""
    star, square = nx.to_numpy_array(nx.star_graph(3)), nx.to_numpy_array(nx.cycle_graph(4))
    patch = published(star, 4, 0.05)
    assert passes(square[None], patch.mu[None])[0]
    assert plausible(patch, state_of(patch, star))
    assert not plausible(patch, state_of(patch, square))
    assert judge(patch, square) is None


def test_pairs_that_the_published_eigenvalues_do_not_depend_on_stay_open():
    """A component of three nodes that shows its eigenvalue 1 only may be a path or a triangle."""
    path = nx.to_numpy_array(nx.disjoint_union(nx.complete_graph(6), nx.path_graph(3)))
    triangle = flipped(path, (6, 8))
    patch = published(path, 2, 0.01)
    assert passes(np.stack([path, triangle]), np.stack([patch.mu, patch.mu])).all()
    _, odds = judge(patch, path)
    assert (odds[6:, 6:] == 0).all()
    assert odds[0, 6] < 0


def test_a_cut_through_an_eigenspace_shows_nothing_of_it():
    """Three components, two eigenvalues 1 published: any graph with at least two components has them."""
    truth = nx.to_numpy_array(nx.disjoint_union(nx.path_graph(4), nx.path_graph(6)))
    guess = flipped(truth, (5, 6))  # a missed edge makes a third component
    patch = published(truth, 2, 0.0)
    assert passes(guess[None], patch.mu[None])[0]
    _, odds = judge(published(truth, 2, 0.5), guess)
    assert (odds == 0).all()


def test_a_graph_that_two_exchanges_lead_to_counts_once():
    """In 0-1, 2-3 it is all the same whether 0 and 2 change places, or 1 and 3."""
    edges = [(0, 1), (2, 3), (0, 4), (2, 4), (1, 5), (3, 5), (5, 6)]
    truth = nx.to_numpy_array(nx.Graph(edges), nodelist=range(7))
    patch = published(truth, 3, 0.3)
    found, odds = judge(patch, truth)
    loss = swaps(patch, state_of(patch, found))
    tried = [(i, j) for i, j in itertools.combinations(range(7), 2) if loss[i, j] < MAX_GAIN]
    rivals = {}
    for i, j in tried:
        order = np.arange(7)
        order[[i, j]] = j, i
        other = found[np.ix_(order, order)]
        rivals[other.tobytes()] = other, loss[i, j]
    assert len(rivals) < len(tried)
    expected = odds_against(7, [(behind, np.flatnonzero(other != found)) for other, behind in rivals.values()])
    shown = odds != 0
    assert shown.sum() > 20
    np.testing.assert_allclose(odds[shown], np.where(found > 0, -1, 1)[shown] * np.log(expected[shown]), atol=1e-6)


def test_odds_are_exact_where_one_edge_may_be_elsewhere():
    """Pair 0 is an edge, or one of 1 to 4 is; quite apart from that 7 is one, or 8 or 9 (pairs as i * 4 + j)."""
    prices = {1: 0.5, 2: 2.0, 3: 0.0, 4: 4.0}
    others = [(price, np.array([0, pair])) for pair, price in prices.items()]
    apart = [(1.0, np.array([7, 8])), (0.2, np.array([9, 7]))]
    found = odds_against(4, others + others[:2] + apart).ravel()
    weight = np.exp(-np.array(list(prices.values())))
    posterior = weight / (1 + weight.sum())
    assert found[0] == pytest.approx(weight.sum())
    assert found[1:5] == pytest.approx(posterior / (1 - posterior))
    assert found[8] == pytest.approx(np.exp(-1.0) / (1 + np.exp(-0.2)))
    assert found[10:] == pytest.approx(np.exp(-MAX_GAIN))
    assert (odds_against(3, []) == np.exp(-MAX_GAIN)).all()


def test_without_noise_exchanges_come_to_an_end():
    """Members with equal rows used to change places for ever, by rounding."""
    for seed in range(8, 14):
        graph = nx.random_regular_graph(3, 6, seed=seed)
        for k in (2, 3):
            seen = lograb.generate(graph, d=2, p=1.0, k=k, sigma=0.0, seed=seed)[0].observations
            assert len(posterior(seen, np.random.default_rng(0)).judged)


def test_of_flips_that_are_as_good_as_each_other_the_least_certain_is_taken():
    truth = nx.to_numpy_array(nx.star_graph(8))
    truth[5, 6] = truth[6, 5] = 1.0
    patch = published(truth, 6, 0.0)
    for i, j in ((5, 6), (1, 2), (3, 8)):
        certainty = np.full(truth.shape, 6.0)
        certainty[i, j] = certainty[j, i] = 1.0
        mended = mending._one_wrong(patch, state_of(patch, nx.to_numpy_array(nx.star_graph(8))), certainty)
        assert mended[i, j] == 1
        assert mended.sum() == truth.sum()


def test_missed_leaves_are_found_exactly():
    found = []
    for seed in range(4):
        truth = nx.to_numpy_array(nx.powerlaw_cluster_graph(16, 1, 0.0, seed=seed))
        patch = published(truth, 10, 0.1)
        for leaf in np.flatnonzero(truth.sum(axis=1) == 1):
            state = state_of(patch, flipped(truth, (leaf, int(np.argmax(truth[leaf])))))
            mended = mending._one_wrong(patch, state, np.abs(patch.log_odds))
            assert mended is None or passes(mended[None], patch.mu[None])[0]
            found.append(mended is not None)
    assert len(found) > 20
    assert np.mean(found) > 0.9  # an eigenvalue that is only counted once too little is not seen as lacking


def test_log_odds_after_a_check_are_calibrated():
    """Under the model itself: noise so strong that members of a patch may be confused."""
    expected = wrong = 0.0
    for seed in range(60):
        truth = nx.to_numpy_array(nx.random_labeled_tree(10, seed=seed))
        answer = judge(published(truth, 6, 0.2, seed=seed), truth)
        if answer is None:
            continue
        found, odds = answer
        upper = np.triu_indices(10, k=1)
        expected += (1 / (1 + np.exp(np.abs(odds[upper])))).sum()
        wrong += (found != truth)[upper].sum()
    assert wrong > 20
    assert expected == pytest.approx(wrong, rel=0.3)


def test_without_membership_centres_say_nothing():
    seen = lograb.generate("karate", d=1, p=0.6, k=8, sigma=0.1, seed=0).observations
    channels = PosteriorSettings(channels=("eigenvectors", "eigenvalues"))
    found = [posterior(given, np.random.default_rng(0), channels) for given in (seen, replace(seen, centres=None))]
    np.testing.assert_array_equal(found[0].judged, found[1].judged)
    np.testing.assert_array_equal(found[0].judged_scores, found[1].judged_scores)


def test_strangers_are_not_joined_where_isolated_members_do_not_show():
    graph = lograb.Graph.from_edges("few", 6, [(4, 5)])
    instance = lograb.generate(graph, strategy="custom", patches=[[0, 1], [2, 3, 4]], k=1, sigma=0.0)
    answer = posterior(instance.observations, np.random.default_rng(0), PosteriorSettings())
    assert (answer.judged_scores[(answer.judged > 1).all(axis=1)] < 0.2).all()


def test_checked_pairs_are_right_and_checks_help():
    """Noisy clusters, most pairs seen by one patch only: the checks raise F1, and what they settle is right."""
    gains, right = [], []
    for seed in (3, 4, 5):
        instance = lograb.generate("citation", strategy="cluster", k=32, sigma=0.05, p=0.3, seed=seed)
        true = edge_keys(instance.truth.edges, instance.n_nodes)

        def attacked(stages, instance=instance, true=true):
            answer = posterior(instance.observations, np.random.default_rng(0), PosteriorSettings(stages=stages))
            hits = np.isin(edge_keys(answer.edges, instance.n_nodes), true).sum()
            return 2 * hits / (len(answer.edges) + instance.co_observed.sum()), answer

        (without, _), (f1, answer) = attacked("judge,paths"), attacked("judge,check,paths")
        assert sum(answer.diagnostics["passed"]) > 0
        gains.append(f1 - without)
        right.append(np.isin(edge_keys(answer.judged[answer.judged_scores > 0.999], instance.n_nodes), true))
    assert np.mean(gains) > 0.01
    assert np.concatenate(right).mean() > 0.995


def test_patches_without_an_open_pair_are_checked_but_not_weighed(monkeypatch):
    """Where all nodes are centres of balls membership decides everything: nothing hangs on a check."""
    asked = []

    def counted(*given):
        asked.append(given)
        return judge(*given)

    monkeypatch.setattr("lograb.attacks.posterior.checksum.judge", counted)
    for p, weighed in ((1.0, False), (0.6, True)):
        instance = lograb.generate("karate", d=1, p=p, k=32, sigma=0.01)
        asked.clear()
        told = posterior(instance.observations, np.random.default_rng(0)).diagnostics
        assert bool(asked) == weighed
        assert sum(told["passed"]) + told["not_passed"] == instance.observations.n_patches
        assert sum(told["passed"]) >= 0.9 * instance.observations.n_patches


def test_flips_that_reach_an_eigenvalue_by_themselves_are_no_error():
    edges = [(0, 1), (0, 3), (1, 3), (1, 4), (2, 3), (3, 4), (3, 5), (3, 6), (4, 5), (4, 6), (5, 6)]
    now = nx.to_numpy_array(nx.Graph(edges), nodelist=range(7))
    mu = np.array([1.0, 0.25, 0.2435579034, 0.0, -0.3600700058, -0.5, -0.6334878976])
    patch = Patch(np.zeros((7, 7)), mu, 0.08, 0.0 * now, 0.0 * now)
    flips = np.array([1 * 7 + 6, 0 * 7 + 5])
    assert min(abs(np.linalg.eigvalsh(scaled(flipped(now, (1, 6), (0, 5)))))) < 1e-15  # 0 is published
    assert mending._with_others(patch, state_of(patch, now), [flips]) is None
