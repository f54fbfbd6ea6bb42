"""The variational procedure: transport, derivatives, estimators, and what the printed likelihood can tell."""

import dataclasses
from itertools import product

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.special import expit, logit

import lograb
from lograb.attacks import find_attack
from lograb.attacks.variational import Variational
from lograb.attacks.variational import eigenpairs as spectra
from lograb.attacks.variational.ascent import (
    Problem,
    as_matrices,
    ascend,
    candidate_weights,
    distances,
    estimate,
    kl_to_prior,
    open_uniform,
)
from lograb.attacks.variational.eigenpairs import decompose, pull_back
from lograb.attacks.variational.likelihood import Target, align, divergence, match
from lograb.attacks.variational.sinkhorn import sinkhorn, squared_distances
from lograb.attacks.variational.variational import estimate_noise, gauge_blocks, state_problem
from lograb.errors import LograbError
from lograb.tasks import evaluate
from lograb.types import Graph

# Asymmetric, with a simple spectrum: no renumbering maps it to itself.
ASYMMETRIC = [(0, 1), (1, 2), (0, 2), (1, 3), (2, 4), (4, 5)]


def costs(seed=0, s=3, n=7):
    return np.random.default_rng(seed).random((s, n, n))


def orthonormal(rng, s, n, k):
    return np.linalg.qr(rng.standard_normal((s, n, n)))[0][:, :, :k]


@pytest.mark.parametrize("epsilon", [1.0, 0.2, 0.1])
def test_plans_have_uniform_marginals_and_meet_the_dual(epsilon):
    cost, eps = costs(), np.full(3, epsilon)
    solved = sinkhorn(cost, eps, 10_000, 1e-9)
    assert solved.error.max() < 1e-9
    assert np.allclose(solved.plan.sum(axis=1), 1 / 7, atol=1e-10)
    assert np.allclose(solved.plan.sum(axis=2), 1 / 7, atol=1e-9)
    entropy = (solved.plan * np.log(solved.plan * 49)).sum(axis=(1, 2))
    assert np.allclose((solved.plan * cost).sum(axis=(1, 2)) + eps * entropy, solved.cost, atol=1e-8)


def test_transport_between_its_two_limits():
    cost = costs()
    loose = sinkhorn(cost, np.full(3, 1e6), 100, 1e-12)
    assert np.allclose(loose.plan, 1 / 49, atol=1e-6)
    tight = sinkhorn(cost, np.full(3, 5e-3), 10_000, 1e-3)
    exact = [c[linear_sum_assignment(c)].mean() for c in cost]
    assert np.allclose((tight.plan * cost).sum(axis=(1, 2)), exact, atol=5e-3)


def test_transport_survives_costs_that_would_overflow():
    solved = sinkhorn(1e5 * costs(), np.full(3, 1.0), 2000, 1e-6)
    assert np.isfinite(solved.plan).all()
    assert np.isfinite(solved.cost).all()
    assert np.allclose(solved.plan.sum(axis=1), 1 / 7)


def test_stacked_problems_do_not_meet():
    cost, eps = costs(), np.array([0.1, 0.3, 0.9])
    together = sinkhorn(cost, eps, 200, 1e-12)
    for i in range(3):
        alone = sinkhorn(cost[i : i + 1], eps[i : i + 1], 200, 1e-12)
        assert np.allclose(alone.plan[0], together.plan[i], atol=1e-9)


def test_derivative_of_the_transport_cost_is_the_plan():
    cost, eps, h = costs(), np.full(3, 0.2), 1e-5
    change = np.random.default_rng(1).standard_normal(cost.shape)
    up, down = (sinkhorn(cost + sign * h * change, eps, 5000, 1e-13).cost for sign in (1, -1))
    plan = sinkhorn(cost, eps, 5000, 1e-13).plan
    assert np.allclose((up - down) / (2 * h), (plan * change).sum(axis=(1, 2)), rtol=1e-5)


def test_squared_distances():
    x, y = np.random.default_rng(0).standard_normal((2, 4, 5, 3))
    assert np.allclose(squared_distances(x, y), ((x[:, :, None] - y[:, None]) ** 2).sum(axis=3))


def test_candidates_have_the_laplacians_eigenvectors():
    weights = as_matrices(np.array([[1.0, 0, 1, 0, 0, 0], [0.2, 0.5, 0.9, 0.1, 0.4, 0.7]]), 4)
    found = decompose(weights)
    for w, values, vectors in zip(weights, found.values, found.vectors):
        degree = w.sum(axis=1)
        root = np.where(degree > 0, np.sqrt(np.maximum(degree, 1e-300)), np.inf)
        similarity = w / root[:, None] / root + np.diag(degree == 0)
        assert np.allclose(similarity @ vectors, vectors * values, atol=1e-12)
        assert (np.diff(values) <= 1e-12).all()


CASES = [  # k of 7 nodes, blocks of columns, labelled, debiased
    (7, range(8), True, True), (3, range(4), True, True), (3, [0, 3], True, True), (4, [0, 1, 4], True, True),
    (3, range(4), False, True), (3, range(4), False, False), (7, range(8), False, True),
]  # fmt: skip


@pytest.mark.parametrize(("k", "blocks", "labelled", "debiased"), CASES)
def test_relaxed_gradient_is_the_derivative_of_the_relaxed_elbo(monkeypatch, k, blocks, labelled, debiased):
    """Through weights, Laplacian, eigenvectors, gauge, transport and prior at once, with common random numbers."""
    monkeypatch.setattr(spectra, "BROADENING", 1e-9)
    rng = np.random.default_rng(3)
    target = Target(orthonormal(rng, 2, 7, k), np.array(blocks), np.array([0.3, 0.5]), labelled, debiased,
                    turns=8, iterations=2000, tolerance=1e-12).prepare()  # fmt: skip
    problem = Problem(target, np.array([3.0, 5.0]), 0.3, "relaxed", 0.5)
    odds, change = rng.standard_normal((2, 2, problem.n_pairs))
    uniform = open_uniform(rng, (3, 2, problem.n_pairs))
    _, gradient = estimate(problem, odds, uniform)
    up, down = (estimate(problem, odds + sign * 1e-5 * change, uniform)[0] for sign in (1, -1))
    assert np.allclose((gradient * change).sum(axis=1), (up - down) / 2e-5, rtol=1e-4, atol=1e-6)


def test_an_isolated_node_does_not_disturb_the_derivative():
    """Its eigenvalue 1 repeats the large component's; a cost on the projector is smooth there all the same."""
    rng = np.random.default_rng(0)
    weights, change = np.zeros((2, 1, 6, 6))
    weights[0, :5, :5] = as_matrices(rng.random(10), 5)
    change[0, 0, 1] = change[0, 1, 0] = 1e-6
    wanted = rng.standard_normal((6, 6))
    wanted = wanted + wanted.T

    def cost(w):
        kept = decompose(w).vectors[:, :, :3]
        return float((kept @ kept.swapaxes(1, 2) * wanted).sum())

    found = decompose(weights)
    slope = pull_back(found, 2 * wanted @ found.vectors[:, :, :3])
    assert slope[0, 0, 1] == pytest.approx((cost(weights + change) - cost(weights - change)) / 2e-6, rel=1e-3)


def test_divergence_vanishes_at_the_truth_and_at_no_neighbour():
    problem, truth = posed(6, 0.0)
    at_truth = distances(problem, truth[None, None].astype(float), slopes=False)[0][0, 0]
    flipped = np.abs(np.eye(15) - truth)[:, None]
    assert at_truth == pytest.approx(0, abs=1e-6)
    assert distances(problem, flipped, slopes=False)[0].min() > 1e-3


def posed(k, sigma, edges=ASYMMETRIC, n=6, **settings):
    graph = Graph.from_edges("small", n, edges)
    seen = lograb.generate(graph, strategy="global", k=k, sigma=sigma).observations
    problem = state_problem(seen.block(0)[None], gauge_blocks(seen, 0), sigma, Variational(**settings))
    return problem, graph.adjacency.toarray()[np.triu_indices(n, k=1)]


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("blocks", [[0, 1, 2, 3, 4], [0, 1, 3, 4], [0, 4]])
def test_divergence_does_not_change_with_the_gauge(labelled, blocks):
    rng = np.random.default_rng(0)
    rows, other = orthonormal(rng, 2, 9, 4), orthonormal(rng, 2, 9, 4)
    turn = align(rng.standard_normal((2, 4, 4)), np.array(blocks))
    target = Target(rows, np.array(blocks), np.full(2, 0.05), labelled).prepare()
    one, two = divergence(target, other), divergence(target, other @ turn)
    moved = divergence(dataclasses.replace(target, rows=rows @ turn), other)
    assert np.allclose(one[0], two[0], atol=1e-9)
    assert np.allclose(one[0], moved[0], atol=1e-9)
    assert np.allclose(one[1] @ turn, two[1], atol=1e-8)


def test_with_labels_the_answer_does_not_depend_on_bases_inside_repeated_eigenvalues():
    """Without labels twins in a candidate leave the turn of a block open, and whatever fills it matters."""
    seen = lograb.generate("karate", d=1, p=0.7, k=40, sigma=0.05).observations
    rng = np.random.default_rng(7)
    turned = []
    for i in range(seen.n_patches):
        rank = int(seen.ranks[i])
        turn = align(rng.standard_normal((1, rank, rank)), gauge_blocks(seen, i))[0]
        turned.append((seen.block(i) @ turn).ravel())
    other = dataclasses.replace(seen, vectors=np.concatenate(turned))
    settings = Variational(steps=10, correspondence="known", learning_rate=0.2)
    one, two = (settings(s, np.random.default_rng(0)) for s in (seen, other))
    assert any(len(gauge_blocks(seen, i)) < seen.ranks[i] + 1 for i in range(seen.n_patches))
    assert np.allclose(one.judged_scores, two.judged_scores, atol=1e-6)


def test_taking_turns_never_raises_the_cost():
    rng = np.random.default_rng(0)
    rows, other = orthonormal(rng, 4, 9, 4), orthonormal(rng, 4, 9, 4)
    target = Target(rows, np.array([0, 4]), np.full(4, 0.05), iterations=5000, tolerance=1e-10)
    one, two, three = (match(dataclasses.replace(target, turns=t), other)[1].cost for t in (1, 2, 3))
    assert (two <= one + 1e-9).all()
    assert (three <= two + 1e-9).all()
    assert three.sum() < one.sum() - 1e-3


def test_the_printed_likelihood_cannot_tell_a_graph_from_its_renumberings():
    """Clouds have no labels: all 720 renumberings of the truth are as likely as the truth."""
    order = np.random.default_rng(0).permutation(6)
    for name, alike in (("none", True), ("known", False)):
        problem, truth = posed(6, 0.05, correspondence=name, sinkhorn_iterations=500)
        matrix = as_matrices(truth.astype(float)[None, None], 6)[0, 0]
        moved = matrix[order][:, order][np.triu_indices(6, k=1)]
        one, two = distances(problem, np.stack([truth.astype(float), moved])[:, None], slopes=False)[0][:, 0]
        assert np.isclose(one, two, atol=1e-6) == alike
        assert two >= one - 1e-6


def test_score_gradient_is_unbiased():
    """All 8 graphs on 3 nodes, all 64 pairs of draws: the mean of the estimate is the derivative of the ELBO."""
    rng = np.random.default_rng(0)
    target = Target(orthonormal(rng, 1, 3, 2), np.array([0, 1, 2]), np.array([0.1]), labelled=True)
    problem = Problem(target, np.array([4.0]), 0.4)
    odds = rng.standard_normal((1, 3))
    phi = expit(odds[0])
    graphs = np.array(list(product((0.0, 1.0), repeat=3)))
    cost = distances(problem, graphs[:, None], slopes=False)[0][:, 0]

    def elbo(theta):
        chance = np.prod(np.where(graphs > 0, expit(theta), expit(-theta)), axis=1)
        return -4.0 * chance @ cost - kl_to_prior(theta[None], 0.4)[0][0]

    exact = [(elbo(odds[0] + h) - elbo(odds[0] - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    chance = np.prod(np.where(graphs > 0, phi, 1 - phi), axis=1)
    mean, value = np.zeros(3), 0.0
    for i, j in product(range(8), repeat=2):
        uniform = np.where(graphs[[i, j]] > 0, phi / 2, (1 + phi) / 2)[:, None]
        height, slope = estimate(problem, odds, uniform)
        mean += chance[i] * chance[j] * slope[0]
        value += chance[i] * chance[j] * height[0]
    assert np.allclose(mean, exact, atol=1e-7)
    assert value == pytest.approx(elbo(odds[0]))


def test_kl_to_prior_is_the_sum_over_pairs_and_survives_certainty():
    odds = np.array([[0.3, -2.0], [800.0, -800.0]])
    kl, slope = kl_to_prior(odds, 0.2)
    phi = expit(odds[0])
    assert kl[0] == pytest.approx((phi * np.log(phi / 0.2) + (1 - phi) * np.log((1 - phi) / 0.8)).sum())
    assert kl[1] == pytest.approx(-np.log(0.2) - np.log(0.8))
    up, down = (kl_to_prior(odds[:1] + h, 0.2)[0] for h in (np.array([1e-6, 0]), -np.array([1e-6, 0])))
    assert slope[0, 0] == pytest.approx(float((up - down)[0]) / 2e-6, rel=1e-5)


def test_relaxation_tends_to_the_sampled_graphs():
    rng = np.random.default_rng(0)
    odds, uniform = rng.standard_normal((1, 10)), open_uniform(rng, (50, 1, 10))
    sampled = Problem(Target(np.zeros((1, 5, 1)), np.array([0, 1]), np.ones(1)), np.ones(1), 0.5)
    near = dataclasses.replace(sampled, estimator="relaxed", temperature=1e-4)
    assert np.allclose(*(candidate_weights(p, odds, uniform) for p in (sampled, near)), atol=1e-3)
    assert candidate_weights(sampled, odds, uniform).mean() == pytest.approx(expit(odds).mean(), abs=0.06)


@pytest.mark.parametrize("estimator", ["score", "relaxed"])
@pytest.mark.parametrize("correspondence", ["none", "known"])
def test_ascent_raises_the_elbo(estimator, correspondence):
    problem, _ = posed(6, 0.05, estimator=estimator, correspondence=correspondence)
    start = np.full((1, 15), logit(problem.prior))
    found = ascend(problem, start, np.random.default_rng(0), steps=100, samples=16, learning_rate=0.1)
    assert found.elbo[1, 0] > found.elbo[0, 0] + 5


def test_without_evidence_the_mean_field_returns_to_the_prior_and_not_to_one_half():
    """Corollary "noise as a defence": a likelihood of no strength leaves the prior, whatever that is."""
    problem, _ = posed(6, 0.05, gamma=0.0, prior_degree=1.0)
    assert problem.prior == 0.2
    found = ascend(problem, np.full((1, 15), 2.0), np.random.default_rng(0), 300, 2, 0.05)
    assert np.allclose(expit(found.log_odds), 0.2, atol=0.01)


@pytest.mark.parametrize("correspondence", ["none", "known"])
def test_the_truth_is_where_an_ascent_stays(correspondence):
    graph = nx.gnm_random_graph(10, 18, seed=1)
    problem, truth = posed(10, 0.02, list(graph.edges), 10, correspondence=correspondence)
    found = ascend(problem, np.where(truth, 3.0, -3.0)[None], np.random.default_rng(0), 60, 16, 0.05)
    assert np.array_equal(expit(found.log_odds[0]) >= 0.5, truth)


def test_with_labels_a_small_graph_comes_back():
    instance = lograb.generate(Graph.from_edges("small", 6, ASYMMETRIC), strategy="global", k=6, sigma=0.01)
    settings = {"correspondence": "known", "estimator": "relaxed", "learning_rate": 0.1}
    answer = lograb.attack(instance, find_attack("variational")(**settings))
    scores = evaluate(instance, answer)
    assert scores["f1"]["global"] > 0.9
    assert answer.diagnostics["elbo"]["end"] > answer.diagnostics["elbo"]["start"]


def test_noise_is_estimated_from_the_departure_from_orthonormality():
    rng = np.random.default_rng(0)
    clean = orthonormal(rng, 1, 100, 50)
    assert estimate_noise(clean)[0] == pytest.approx(0, abs=1e-6)
    assert estimate_noise(clean + 0.07 * rng.standard_normal(clean.shape))[0] == pytest.approx(0.07, rel=0.05)


def test_large_instances_are_refused_with_the_way_out():
    seen = lograb.generate("citation", strategy="global", k=8).observations
    with pytest.raises(LograbError, match="at most 300 members in all, got 2708.*max_nodes"):
        Variational()(seen, np.random.default_rng(0))
    small = lograb.generate("karate", strategy="global", k=8).observations
    with pytest.raises(LograbError, match="at most 33"):
        find_attack("variational")(**{"max_nodes": 33}).reconstruct(small, np.random.default_rng(0))


@pytest.mark.parametrize("parameters", [
    {"gauge": "rotation"}, {"eigenvalues": False}, {"gauge": "none"}, {"k": 1}, {"k": 100}, {"p": 0.1},
])  # fmt: skip
def test_every_kind_of_observation_gives_probabilities(parameters):
    seen = lograb.generate("karate", strategy="global", sigma=0.05, **{"k": 8, **parameters}).observations
    for settings in ({}, {"correspondence": "known"}, {"estimator": "relaxed"}, {"debiased": False}):
        answer = find_attack("variational")(**settings | {"steps": 2}).reconstruct(seen, np.random.default_rng(0))
        q = int(seen.sizes[0])
        assert len(answer.judged) == q * (q - 1) // 2
        assert ((answer.judged_scores >= 0) & (answer.judged_scores <= 1)).all()


def test_unknown_noise_is_estimated_and_patches_without_columns_say_nothing():
    patches = [range(6), range(4, 9)]
    seen = lograb.generate("karate", strategy="custom", patches=patches, k=3, sigma=0.1).observations
    quiet = dataclasses.replace(seen, protocol=seen.protocol.model_copy(update={"sigma": None}))
    settings = Variational(steps=2)
    assert len(settings(quiet, np.random.default_rng(0)).judged) == 15 + 10 - 1
    bare = dataclasses.replace(seen, ranks=np.array([3, 0]), vectors=seen.vectors[:18], values=seen.values[:3])
    assert len(settings(bare, np.random.default_rng(0)).judged) == 15
