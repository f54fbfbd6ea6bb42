"""Paths of two edges: the facts are those of the balls, and messages give the posterior of them."""

import itertools

import networkx as nx
import numpy as np
import pytest
from scipy.special import expit, logit

import lograb
from lograb.attacks.posterior import PosteriorSettings
from lograb.attacks.posterior import paths as module
from lograb.attacks.posterior.paths import Paths, follow, list_paths, out_of_reach, reconcile
from lograb.attacks.posterior.rules import ball_keys, known_centres
from lograb.metrics.edges import edge_keys


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


def test_paths_are_those_that_start_at_a_centre_and_each_fact_is_listed_once():
    n, rng = 14, np.random.default_rng(0)
    ball, centres, _ = balls_of(nx.gnp_random_graph(n, 0.2, seed=3), 2, 0.5)
    keys = np.array([i * n + j for i, j in itertools.combinations(range(n), 2)])
    live = rng.random(len(keys)) < 0.5
    told = np.zeros(n, dtype=bool)
    told[sorted(centres)[::2]] = True
    at = {int(key): place for place, key in enumerate(keys)}

    def position(u, w):
        return at[min(u, w) * n + max(u, w)]

    found = list_paths(keys, live, ball, told, n)
    facts = {}
    for (one, two), fact in zip(found.ends.T.tolist(), found.fact.tolist()):
        facts.setdefault(fact, set()).add((one, two))
    assert sum(map(len, facts.values())) == len(found.fact)

    wanted = []
    peopled = {int(key) // n for key in ball}
    for v, j in itertools.permutations(range(n), 2):
        inside = v * n + j in set(ball.tolist())
        mirrored = j in peopled and (not told[j], j) < (not told[v], v)
        if v not in peopled or mirrored or (inside and not told[v]):
            continue
        through = {(position(v, x), position(x, j)) for x in range(n) if x not in (v, j)}
        through.add((position(v, j), len(keys)))
        through = {path for path in through if live[path[0]] and (path[1] == len(keys) or live[path[1]])}
        if through:
            wanted.append((inside, through))
    assert sorted((bool(found.inside[fact]), sorted(paths)) for fact, paths in facts.items()) == sorted(
        (inside, sorted(paths)) for inside, paths in wanted
    )
    assert {inside for inside, _ in wanted} == {True, False}


def exact(paths, log_odds):
    """Posterior of each pair by counting all graphs that agree with every fact."""
    m = len(log_odds)
    weights, yes = 0.0, np.zeros(m)
    for graph in itertools.product((0, 1), repeat=m):
        both = np.append(graph, 1)[paths.ends].prod(axis=0)
        holds = np.bincount(paths.fact, both, len(paths.inside)) > 0
        if (holds == paths.inside).all():
            weight = np.exp(np.dot(graph, log_odds))
            weights += weight
            yes += weight * np.array(graph)
    return yes / weights


def two_facts(inside):
    """One fact about paths 0-1, 2-3 and the pair 4 alone, another about paths 4-5 and 6-7."""
    paths = Paths(np.array([[0, 2, 4, 4, 6], [1, 3, 8, 5, 7]]), np.array([0, 0, 0, 1, 1]), np.array(inside))
    log_odds = np.random.default_rng(1).normal(-0.5, 1.0, 8)
    return log_odds, expit(follow(paths, log_odds, np.ones(8, dtype=bool))), exact(paths, log_odds)


@pytest.mark.parametrize("inside", [(True, False), (False, True), (False, False)])
def test_on_a_tree_messages_give_the_posterior(inside):
    log_odds, judged, wanted = two_facts(inside)
    assert np.allclose(judged, wanted, atol=2e-3)  # even what is certain tells only `SUREST`
    assert abs(judged - expit(log_odds)).max() > 0.1


def test_of_two_facts_that_raise_a_pair_the_stronger_counts():
    log_odds, judged, wanted = two_facts((True, True))
    assert expit(log_odds[4]) + 0.1 < judged[4] < wanted[4] - 0.05
    assert np.allclose(judged[:4], wanted[:4], atol=2e-3)


def test_pairs_that_are_known_stay_as_they_are():
    paths = Paths(np.array([[0], [1]]), np.array([0]), np.array([False]))
    log_odds = np.array([8.0, 0.0])
    assert follow(paths, log_odds, np.array([False, True])) == pytest.approx([8.0, -8.0], abs=1e-2)
    assert (follow(paths, log_odds, np.array([False, False])) == log_odds).all()


def reconciled(d):
    """Judge by balls where most true edges are known, and all other pairs are unlikely."""
    n, rng = 80, np.random.default_rng(5)
    ball, centres, instance = balls_of(nx.random_regular_graph(3, n, seed=5), d, 0.6)
    keys = np.array([i * n + j for i, j in itertools.combinations(range(n), 2)])
    true = np.isin(keys, edge_keys(instance.truth.edges, n))
    checked = np.where(true & (rng.random(len(keys)) < 0.7), 9.0, 0.0)
    judged = np.full(len(keys), logit(0.02))
    told = np.zeros(n, dtype=bool)
    told[sorted(centres)] = d == 2
    after = reconcile(keys, judged, checked, ball, told, n, PosteriorSettings(misfit=0))
    return np.where(checked > 0, expit(9.0), 0.02), after, checked > 0, true


@pytest.mark.parametrize("d", [2, 3])
def test_balls_raise_edges_and_lower_all_others(d):
    before, after, known, true = reconciled(d)
    open_ = ~known
    assert after[known] == pytest.approx(before[known])

    def loss(p):
        return -np.log(np.where(true, p, 1 - p))[open_].sum()

    assert loss(after) < (0.3 if d == 2 else 0.97) * loss(before)
    if d == 2:  # by someone everyone came into the ball
        assert np.median(after[open_ & true]) > 0.5
    assert np.median(after[open_ & ~true]) < 1e-3 if d == 2 else (after[open_] <= before[open_] + 1e-12).all()


def test_where_there_are_more_paths_than_can_be_followed_known_edges_still_bar_pairs(monkeypatch):
    monkeypatch.setattr(module, "MOST", 10)
    before, after, _, _ = reconciled(2)
    moved = after < before - 1e-3
    assert moved.any()
    assert after[moved] == pytest.approx(expit(-13.8))
    assert after[~moved] == pytest.approx(before[~moved])
