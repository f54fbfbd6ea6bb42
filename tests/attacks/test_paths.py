"""Paths of two edges: the facts are those of the balls, and messages give the posterior of them."""

import itertools

import networkx as nx
import numpy as np
import pytest
from scipy.special import expit, logit

import lograb
from lograb.attacks.posterior import PosteriorSettings, posterior
from lograb.attacks.posterior import paths as module
from lograb.attacks.posterior.beliefs import CERTAIN, Beliefs, Status
from lograb.attacks.posterior.paths import out_of_reach, reconcile
from lograb.attacks.posterior.rules import ball_keys, known_centres
from lograb.pairs import edge_keys


def believed(keys, judged, checked):
    """Beliefs by evidence (±CERTAIN by membership) and, where it is not 0, by a check."""
    status = np.where(checked != 0, Status.WEIGHED, Status.OPEN)
    status = np.where(np.abs(judged) == CERTAIN, Status.CERTAIN, status)
    odds = np.where(status == Status.WEIGHED, checked, judged)
    return Beliefs(keys, odds, status.astype(np.int8), np.zeros(len(keys)), np.zeros(len(keys)))


def balls_of(graph, d, p, seed=0):
    """(centre, member) numbers, centres and the instance of a graph."""
    instance = lograb.generate(graph, d=d, p=p, k=8, sigma=0.05, seed=seed)[0]
    seen = instance.observations
    return ball_keys(seen, known_centres(seen)), set(known_centres(seen).tolist()), instance


@pytest.mark.parametrize("d", [2, 3])
def test_known_edges_bar_only_pairs_that_are_none(d, monkeypatch):
    n = 60
    ball, centres, instance = balls_of(nx.random_regular_graph(3, n, seed=d), d, 0.5, d)
    keys = np.array([i * n + j for i, j in itertools.combinations(range(n), 2)])
    true = np.isin(keys, edge_keys(instance.truth.edges, n))
    known = np.random.default_rng(d).permutation(instance.truth.edges)[:60]
    edges = edge_keys(known, n)
    found = out_of_reach(keys, edges, ball, n)
    inside = set(ball.tolist())

    def fits(i, j):
        """j lies in the ball of every centre that i is known to be joined to."""
        around = [int(v) for edge in known for u, v in (edge, edge[::-1]) if u == i and int(v) in centres]
        return all(v == j or v * n + j in inside for v in around)

    pairs = itertools.combinations(range(n), 2)
    assert found.tolist() == [not (fits(i, j) and fits(j, i)) for i, j in pairs]
    assert not found[true].any()
    assert found.mean() > 0.2
    assert not out_of_reach(keys, edges[:0], ball, n).any()
    assert not out_of_reach(keys, edges, ball[:0], n).any()
    monkeypatch.setattr(module, "MOST_MEMBERS", 10)
    assert not out_of_reach(keys, edges, ball, n).any()


@pytest.mark.parametrize("d", [2, 3])
def test_balls_lower_what_known_edges_bar_and_nothing_else(d):
    """Most true edges are known, and all other pairs are unlikely."""
    n, rng = 80, np.random.default_rng(5)
    ball, _, instance = balls_of(nx.random_regular_graph(3, n, seed=5), d, 0.6)
    keys = np.array([i * n + j for i, j in itertools.combinations(range(n), 2)])
    true = np.isin(keys, edge_keys(instance.truth.edges, n))
    checked = np.where(true & (rng.random(len(keys)) < 0.7), 9.0, 0.0)
    before = believed(keys, np.full(len(keys), logit(0.02)), checked)
    after = reconcile(before, ball, n, 0.0)
    moved = ~np.isclose(after.probability, before.probability)
    assert moved.mean() > (0.8 if d == 2 else 0.02)
    assert not true[moved].any()
    np.testing.assert_allclose(after.log_odds[moved], -CERTAIN)
    assert (after.status[moved] == Status.CERTAIN).all()


def around_one_centre(checked=(), judged=(), misfit=0.0, what_is_known=False):
    """Six nodes; node 0 is a centre, 1 to 3 are in its ball. All pairs are open at -20 but those given."""
    n = 6
    pairs = list(itertools.combinations(range(n), 2))
    keys = np.array([i * n + j for i, j in pairs])
    given = {"judged": np.full(len(keys), -20.0), "checked": np.zeros(len(keys))}
    given["judged"][[pairs.index((0, j)) for j in (4, 5)]] = -CERTAIN
    for name, entries in (("judged", dict(judged)), ("checked", dict(checked))):
        for pair, value in entries.items():
            given[name][pairs.index(pair)] = value
    found = reconcile(believed(keys, **given), np.array([1, 2, 3]), n, misfit)
    known = np.where(found.known == 0, 0.0, found.log_odds)
    return dict(zip(pairs, (known if what_is_known else found.probability).tolist()))


def test_a_known_edge_rules_out_what_is_weaker():
    checked = {(0, 1): 9.0, (0, 2): 9.0, (1, 5): 3.0, (2, 3): -9.0, (2, 5): -9.0}
    found = around_one_centre(checked=checked, judged={(1, 4): 2.0, (1, 2): 2.0})
    assert found[2, 5] == pytest.approx(expit(-9.0))  # known, and stays as it is
    assert found[1, 4] == pytest.approx(expit(-CERTAIN))
    assert found[1, 5] == pytest.approx(expit(-CERTAIN))
    assert found[0, 1] == pytest.approx(expit(9.0))
    assert found[2, 3] == pytest.approx(expit(-9.0))
    assert found[1, 2] == pytest.approx(expit(2.0))  # 2 is inside
    assert found[0, 4] == pytest.approx(expit(-CERTAIN))  # as membership says


def test_what_is_ruled_out_is_known():
    checked = {(0, 1): 9.0, (1, 5): 3.0, (2, 3): -9.0, (2, 4): 3.0}
    known = around_one_centre(checked=checked, judged={(1, 4): 2.0}, what_is_known=True)
    barred = {(1, 4): -CERTAIN, (1, 5): -CERTAIN, (0, 4): -CERTAIN, (0, 5): -CERTAIN}
    wanted = {(0, 1): 9.0, (2, 3): -9.0} | barred
    assert {pair: value for pair, value in known.items() if value} == pytest.approx(wanted)


def test_a_known_edge_that_leads_out_of_a_ball_does_not_outweigh_the_one_at_the_centre():
    found = around_one_centre(checked={(0, 1): 9.0, (1, 4): 9.0})
    assert found[0, 1] == pytest.approx(expit(9.0))
    assert found[1, 4] == pytest.approx(expit(-CERTAIN))


def test_an_open_pair_in_reach_keeps_a_floor():
    found = around_one_centre(checked={(0, 1): 9.0}, misfit=0.02)
    assert found[2, 4] == pytest.approx(0.02 * 0.05, rel=0.05)
    assert found[1, 4] == pytest.approx(expit(-CERTAIN))


def asked(monkeypatch, settings=None, **parameters):
    """What the attack asks of the balls, and the instance."""
    calls = []

    def record(beliefs, ball, *rest):
        calls.append(ball)
        return reconcile(beliefs, ball, *rest)

    monkeypatch.setattr(module, "reconcile", record)
    graph = nx.powerlaw_cluster_graph(80, 2, 0.5, seed=4)
    instance = lograb.generate(graph, p=0.5, k=16, sigma=0.1, seed=4, **parameters)[0]
    posterior(instance.observations, np.random.default_rng(0), settings or PosteriorSettings())
    return calls, instance


@pytest.mark.parametrize("d", [2, 3])
def test_the_attack_asks_all_balls(monkeypatch, d):
    calls, instance = asked(monkeypatch, d=d)
    seen = instance.observations
    assert np.array_equal(calls[-1], ball_keys(seen, seen.centres))


@pytest.mark.parametrize("parameters", [{"d": 1}, {"d": 2, "strategy": "cluster"}])
def test_where_there_are_no_balls_of_radius_2_nothing_is_asked(monkeypatch, parameters):
    assert asked(monkeypatch, **parameters)[0] == []


def test_without_the_membership_channel_nothing_is_asked(monkeypatch):
    settings = PosteriorSettings(channels=("eigenvalues", "eigenvectors"))
    assert asked(monkeypatch, settings, d=2)[0] == []


def test_balls_make_the_attack_better():
    n, graph = 80, nx.powerlaw_cluster_graph(80, 2, 0.5, seed=5)
    instance = lograb.generate(graph, d=2, p=0.5, k=8, sigma=0.17, seed=5)[0]
    true = edge_keys(instance.truth.edges, n)

    def loss(stages):
        found = posterior(instance.observations, np.random.default_rng(0), PosteriorSettings(stages=stages))
        edge = np.isin(edge_keys(found.judged, n), true)
        p = np.clip(found.judged_scores, 1e-6, 1 - 1e-6)
        missed = instance.co_observed.sum() - edge.sum()
        return -np.log(np.where(edge, p, 1 - p)).sum() + 6.9 * missed

    assert loss("judge,check,paths") < 0.6 * loss("judge,check")
