"""Patches solved as a whole, volumes by whole degrees, and eigenvalues that were withheld."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import lograb
from lograb.attacks.posterior import relaxing
from lograb.attacks.posterior.batches import Batch, stack
from lograb.attacks.posterior.gauge import first_guess
from lograb.attacks.posterior.graphs import scaled
from lograb.attacks.posterior.leading import leading
from lograb.attacks.posterior.noise import patch_noise
from lograb.attacks.posterior.relaxing import descend, fit_of
from lograb.attacks.posterior.settings import PosteriorSettings
from lograb.attacks.posterior.volumes import whole_volumes


def batch_of(graph: nx.Graph, k: int, sigma: float = 0.0, **options: object) -> tuple[Batch, np.ndarray]:
    """One patch that holds a whole graph, and its adjacency matrix."""
    instance = lograb.generate(graph, strategy="global", k=k, sigma=sigma, seed=1, **options)  # type: ignore[arg-type]
    seen = instance.observe()
    (batch,) = stack(seen, np.arange(1), patch_noise(seen), np.array([np.inf if seen.values is None else 0.0]))
    return batch, nx.to_numpy_array(graph)


@pytest.mark.parametrize("price", [0.0, 2.0, 20.0])
def test_descent_ends_where_no_direction_between_the_bounds_leads_down(price: float):
    """The gradient is 0 inside the bounds, and points outwards at them: of a convex function that is the least."""
    batch, graph = batch_of(nx.random_regular_graph(3, 30, seed=2), k=12, sigma=0.05)
    fit = fit_of(batch, 0)
    most = np.where(np.eye(30, dtype=bool), 0.0, 1 / 3)
    cost = np.full(graph.shape, price)
    found = descend(fit, np.zeros(graph.shape), np.zeros(graph.shape), most, cost)
    np.testing.assert_allclose(found, found.T, atol=1e-12)

    def value(matrix: np.ndarray) -> float:
        squares = fit.misfit(matrix) * matrix.shape[0] * len(fit.mu)
        return squares / 2 + (cost * matrix)[np.triu_indices(len(matrix), 1)].sum()

    slopes = np.zeros(graph.shape)
    for i, j in zip(*np.triu_indices(30, 1)):
        step = np.zeros(graph.shape)
        step[i, j] = step[j, i] = 1e-4
        slopes[i, j] = slopes[j, i] = (value(found + step) - value(found - step)) / 2e-4
    off = ~np.eye(30, dtype=bool)
    scale = np.abs(slopes[off]).max()
    assert (slopes[off & (found < 1e-6)] > -0.01 * scale).all()
    assert (slopes[off & (found > 1 / 3 - 1e-6)] < 0.01 * scale).all()
    assert (np.abs(slopes[off & (found > 1e-3) & (found < 1 / 3 - 1e-3)]) < 0.03 * scale).all()


def test_a_sparse_graph_follows_from_a_third_of_its_spectrum():
    """With the right degrees and no noise, nothing but the graph explains what was seen."""
    batch, graph = batch_of(nx.random_regular_graph(4, 90, seed=5), k=30)
    most = np.where(np.eye(90, dtype=bool), 0.0, 1 / 4)
    found = descend(fit_of(batch, 0), np.zeros(graph.shape), np.zeros(graph.shape), most, np.zeros(graph.shape))
    np.testing.assert_array_equal(found > 1 / 8, graph > 0)


def test_what_judging_pair_by_pair_does_not_settle_is_solved_as_a_whole():
    graph = nx.random_regular_graph(5, 360, seed=7)
    instance = lograb.generate(graph, strategy="global", k=12, sigma=0.002, seed=3)
    stages = PosteriorSettings().stages
    apart = lograb.attacks.Posterior(stages=tuple(name for name in stages if name != "relax"))
    alone, whole = (lograb.attack(instance, attack) for attack in (apart, "posterior"))
    assert whole.diagnostics["relaxed"] == 1
    assert lograb.evaluate(instance, whole).f1 > 0.97
    assert lograb.evaluate(instance, alone).f1 < 0.9


def test_solving_as_a_whole_needs_eigenvalues_that_can_be_trusted():
    graph = nx.random_regular_graph(5, 200, seed=7)
    for options in ({"eigenvalues": False}, {"gauge": "rotation"}):
        guess = lograb.attack(lograb.generate(graph, strategy="global", k=10, sigma=0.002, **options), "posterior")
        assert "relaxed" not in guess.diagnostics


@pytest.mark.parametrize("kind", ["sparse", "clustered", "geometric"])
def test_withheld_eigenvalues_of_a_complete_patch_follow_from_its_frame(kind: str):
    graph = {
        "sparse": nx.gnm_random_graph(30, 60, seed=4),
        "clustered": nx.connected_watts_strogatz_graph(30, 4, 0.2, seed=4),
        "geometric": nx.random_geometric_graph(30, 0.4, seed=8),
    }[kind]
    assert nx.is_connected(graph)
    batch, adjacency = batch_of(graph, k=30, eigenvalues=False)
    assert not batch.valued
    true = np.linalg.eigvalsh(scaled(adjacency))[::-1]
    np.testing.assert_allclose(first_guess(batch).mu[0], true, atol=1e-3)


def test_withholding_eigenvalues_of_complete_patches_hides_nothing():
    graph = nx.random_geometric_graph(120, 0.16, seed=3)
    graph = nx.Graph(graph.edges)
    instance = lograb.generate(graph, strategy="cluster", cluster_size=20, k=64, eigenvalues=False)
    assert lograb.evaluate(instance, lograb.attack(instance, "posterior")).f1 > 0.97


@pytest.mark.parametrize("sigma", [0.0, 0.002])
def test_whole_degrees_tell_the_volume(sigma: float):
    """From a guess that is off by a fifth."""
    graph = nx.barabasi_albert_graph(150, 2, seed=6)
    batch, adjacency = batch_of(graph, k=20, sigma=sigma)
    first, true = leading(batch), adjacency.sum()
    for guess in (0.8, 1.2):
        found = whole_volumes(first, np.full(first.entries.shape, guess * true))
        np.testing.assert_allclose(found, true, rtol=0.01)


@pytest.mark.parametrize("degree", [3, 4, 6])
@pytest.mark.parametrize("sigma", [0.0, 0.001])
def test_members_of_equal_degree_do_not_draw_the_volume_down(degree: int, sigma: float):
    batch, adjacency = batch_of(nx.random_regular_graph(degree, 60, seed=1), k=20, sigma=sigma)
    first, true = leading(batch), adjacency.sum()
    np.testing.assert_allclose(whole_volumes(first, np.full(first.entries.shape, true)), true, rtol=0.02)


def test_an_isolated_member_of_rounded_numbers_is_no_trouble():
    graph = nx.disjoint_union(nx.random_regular_graph(4, 12, seed=1), nx.empty_graph(1))
    guess = lograb.attack(lograb.generate(graph, strategy="global", k=3, precision="float32"), "posterior")
    assert np.isfinite(guess.judged_scores).all()


def test_nothing_is_checked_where_checks_are_left_out():
    graph = nx.random_regular_graph(5, 120, seed=7)
    instance = lograb.generate(graph, strategy="global", k=12, sigma=0.002, seed=3)
    guess = lograb.attack(instance, lograb.attacks.Posterior(stages=("judge", "relax")))
    assert guess.diagnostics["relaxed"] == 1
    assert guess.judged_scores.max() < 1 - 2e-6


def test_where_noise_hides_degrees_the_volume_stays_as_it_was():
    batch, adjacency = batch_of(nx.barabasi_albert_graph(150, 2, seed=6), k=20, sigma=0.02)
    guess = np.full(leading(batch).entries.shape, 0.8 * adjacency.sum())
    np.testing.assert_array_equal(whole_volumes(leading(batch), guess), guess)


def test_volumes_are_a_function_of_each_component_alone():
    graph = nx.disjoint_union(nx.barabasi_albert_graph(80, 2, seed=1), nx.barabasi_albert_graph(40, 3, seed=1))
    batch, adjacency = batch_of(graph, k=20)
    first = leading(batch)
    true = np.where(np.arange(120) < 80, adjacency[:80].sum(), adjacency[80:].sum())
    found = whole_volumes(first, 1.15 * true[None])
    np.testing.assert_allclose(found[0], true, rtol=0.01)


def test_dense_neighbourhoods_are_told_from_stars_whatever_the_noise():
    """The eigenvalues say how many edges there are, so the attack does not take what it misses for nothing."""
    graph = nx.barabasi_albert_graph(200, 12, seed=2)
    instance = lograb.generate(graph, d=1, p=0.3, k=64, sigma=3.0, seed=4)
    guess = lograb.attack(instance, "posterior")
    true = instance.co_observed.sum()
    promised = guess.judged_scores.sum() + guess.unlisted * (guess.diagnostics["judged"] - len(guess.judged))
    assert promised == pytest.approx(true, rel=0.3)


def test_a_clique_is_known_by_its_eigenvalues_whatever_the_noise():
    graph = nx.disjoint_union_all([nx.complete_graph(7), nx.cycle_graph(9), nx.complete_graph(12)])
    patches = [range(7), range(7, 16), range(16, 28)]
    instance = lograb.generate(graph, strategy="custom", patches=patches, k=16, sigma=2.0)
    guess = lograb.attack(instance, "posterior")
    claimed = nx.Graph(map(tuple, guess.edges.tolist()))
    assert claimed.subgraph(range(7)).number_of_edges() == 21
    assert claimed.subgraph(range(16, 28)).number_of_edges() == 66


def test_the_fit_does_not_depend_on_signs_of_columns():
    batch, graph = batch_of(nx.random_regular_graph(3, 24, seed=2), k=6, sigma=0.05)
    turned = replace(batch, frame=batch.frame * np.array([1, -1, 1, 1, -1, 1.0]))
    assert fit_of(turned, 0).misfit(scaled(graph)) == pytest.approx(fit_of(batch, 0).misfit(scaled(graph)))


@pytest.mark.parametrize("solved", [1, 2])
def test_a_pair_follows_a_solution_only_where_most_of_its_patches_are_solved(solved: int, monkeypatch):
    """Three patches hold the same nodes; what one or two of them are solved to is no edge at all."""
    instance = lograb.generate(nx.random_regular_graph(4, 60, seed=1), strategy="custom",
                               patches=[range(60)] * 3, k=12, sigma=0.02)  # fmt: skip
    judged = lograb.attack(instance, lograb.attacks.Posterior(stages=("judge",)))
    monkeypatch.setattr(relaxing, "_failing", lambda scene, beliefs, batch: list(range(solved)))
    monkeypatch.setattr(relaxing, "_solve", lambda scene, beliefs, batch, at: (np.zeros(1770), np.full(60, 4.0)))
    guess = lograb.attack(instance, lograb.attacks.Posterior(stages=("judge", "relax")))
    assert guess.diagnostics["relaxed"] == solved
    assert (len(guess.edges) == len(judged.edges)) == (solved == 1)
