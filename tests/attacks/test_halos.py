"""Clusters with halos: who is at home where, and who must have a neighbour there."""

import networkx as nx
import numpy as np
import pytest
from scipy.special import expit

import lograb
from lograb.attacks.posterior import PosteriorSettings, fusion, halos
from lograb.attacks.posterior.batches import stack
from lograb.attacks.posterior.beliefs import survey
from lograb.attacks.posterior.noise import patch_noise
from lograb.pairs import edge_keys
from lograb.tasks import evaluate


def scene_of(instance):
    """What stages look at, what is believed at first, and the degrees by the first eigenvectors."""
    seen, which = instance.observations, np.arange(instance.observations.n_patches)
    variance, blur = patch_noise(seen), np.zeros(seen.n_patches)
    scene, beliefs = survey(seen, seen, stack(seen, which, variance, blur), variance, blur, {},
                            np.random.default_rng(0), PosteriorSettings())  # fmt: skip
    return scene, beliefs, fusion.prepare(scene)



def test_two_nodes_that_alone_lie_in_two_clusters_are_joined():
    """Two cliques and a bridge: the ends of the bridge lie in both patches, and nobody else does."""
    graph = nx.barbell_graph(4, 0)
    instance = lograb.generate(graph, strategy="cluster", clusters=2, p=1.0, k=5, sigma=0.0)[0]
    scene, beliefs, works = scene_of(instance)
    met = halos.meetings(scene.seen, np.arange(2), halos.homes(scene.seen, works), beliefs.keys)
    bridge = np.isin(beliefs.keys, 3 * 8 + 4)
    assert scene.halos
    np.testing.assert_allclose(met, np.where(bridge, halos.MOST_MET, 0.0), atol=1e-9)


@pytest.mark.parametrize("sigma", [0.0, 3.0])
def test_homes_are_where_degrees_are_largest_and_anywhere_in_noise(sigma):
    graph = nx.watts_strogatz_graph(200, 6, 0.1, seed=1)
    instance = lograb.generate(graph, strategy="cluster", cluster_size=30, p=1.0, k=16, sigma=sigma, seed=2)[0]
    scene, _, works = scene_of(instance)
    seen, home = scene.seen, halos.homes(scene.seen, works)
    times = np.bincount(seen.nodes)
    several = times[seen.nodes] > 1
    core = instance.core
    np.testing.assert_allclose(np.bincount(seen.nodes, home), 1.0)
    assert home[~several].min() > 1.0 - 1e-9
    if sigma:
        assert np.abs(home - 1.0 / times[seen.nodes])[several].mean() < 0.1
    else:
        assert home[several & core].mean() > 2.0 * home[several & ~core].mean()


@pytest.mark.parametrize("graph", [
    nx.watts_strogatz_graph(300, 6, 0.1, seed=1), nx.barabasi_albert_graph(400, 2, seed=1),
    nx.powerlaw_cluster_graph(500, 2, 0.4, seed=1)], ids=["ring", "hubs", "citation"])  # fmt: skip
def test_edges_between_clusters_are_promised_as_they_are(graph):
    """Pairs in several patches hold nearly all edges between clusters. Else these would be promised twice."""
    instance = lograb.generate(graph, strategy="cluster", cluster_size=40, p=1.0, k=16, sigma=1.0, seed=1)[0]
    scene, beliefs, works = scene_of(instance)
    by_chance = fusion.odds_by_chance(works, scene, beliefs.known)
    found = expit(halos.odds_with_halos(scene, works, beliefs.keys, by_chance, beliefs.open))
    between = scene.counts > 1
    true = np.isin(beliefs.keys, edge_keys(instance.truth.edges, instance.n_nodes))[between].sum()
    assert 0.8 < found[between].sum() / true < 1.25
    assert expit(by_chance)[between].sum() < 0.7 * true  # degrees alone do not know
    counted = scene.counts * (found - expit(by_chance))
    assert abs(counted.sum()) < 0.01 * (scene.counts * found).sum()


def test_wider_halos_ask_for_no_neighbour():
    """With d = 2 whoever is in a halo may be two steps away: pairs that share most are likelier, that is all."""
    graph = nx.barabasi_albert_graph(150, 2, seed=1)
    instance = lograb.generate(graph, strategy="cluster", cluster_size=15, d=2, p=1.0, k=8, sigma=1.0, seed=1)[0]
    scene, _, _ = scene_of(instance)
    assert not scene.halos
    assert scene.lift.any()


def test_halos_that_hold_nearly_everybody_say_nothing_of_homes():
    """A graph with many random edges: each patch holds most nodes. Membership must not make the answer worse."""
    graph = nx.gnp_random_graph(400, 0.05, seed=1)
    instance = lograb.generate(graph, strategy="cluster", cluster_size=60, p=1.0, k=16, sigma=0.0, seed=1)
    scene, _, _ = scene_of(instance[0])
    assert not scene.halos
    assert scene.lift.any()


def test_overlaps_are_read_in_bounded_pieces(monkeypatch):
    graph = nx.watts_strogatz_graph(200, 6, 0.1, seed=1)
    instance = lograb.generate(graph, strategy="cluster", cluster_size=20, p=1.0, k=16, sigma=0.1, seed=2)[0]
    scene, beliefs, works = scene_of(instance)
    home, which = halos.homes(scene.seen, works), np.arange(scene.seen.n_patches)
    whole = halos.meetings(scene.seen, which, home, beliefs.keys)
    monkeypatch.setattr(halos, "AT_ONCE", 50)
    np.testing.assert_allclose(halos.meetings(scene.seen, which, home, beliefs.keys), whole, atol=1e-12)
    assert whole.max() > 0.2
    assert not halos.meetings(scene.seen, which[:1], home, beliefs.keys).any()


def test_below_no_floor_where_noise_drowns_clusters():
    graph = nx.watts_strogatz_graph(300, 6, 0.1, seed=3)
    instance = lograb.generate(graph, strategy="cluster", cluster_size=40, p=1.0, k=16, sigma=2.0, seed=1)
    floor, found = (evaluate(instance, lograb.attack(instance, name)).f1 for name in ("membership", "posterior"))
    assert found > floor - 0.02
