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
from lograb.attacks.posterior.paths import Paths, by_balls, follow, list_paths, out_of_reach
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
    found = follow(paths, log_odds, np.ones(8, dtype=bool), np.zeros(8, dtype=bool))
    return log_odds, expit(found), exact(paths, log_odds)


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
    none = np.array([False, False])
    assert follow(paths, log_odds, np.array([False, True]), none) == pytest.approx([8.0, -8.0], abs=1e-2)
    assert (follow(paths, log_odds, none, none) == log_odds).all()


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
    after = by_balls(believed(keys, judged, checked), ball, told, n, 0.0).probability
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


def around_one_centre(checked=(), judged=(), tells=False, misfit=0.0, what_is_known=False):
    """Six nodes; node 0 is a centre, 1 to 3 are in its ball. All pairs are open at -20 but those given."""
    n = 6
    pairs = list(itertools.combinations(range(n), 2))
    keys = np.array([i * n + j for i, j in pairs])
    given = {"judged": np.full(len(keys), -20.0), "checked": np.zeros(len(keys))}
    given["judged"][[pairs.index((0, j)) for j in (4, 5)]] = -CERTAIN
    for name, entries in (("judged", dict(judged)), ("checked", dict(checked))):
        for pair, value in entries.items():
            given[name][pairs.index(pair)] = value
    ball, told = np.array([1, 2, 3]), (np.arange(n) == 0) & tells
    found = by_balls(believed(keys, **given), ball, told, n, misfit)
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


def test_what_a_check_has_weighed_is_lowered_but_not_raised():
    paths = Paths(np.array([[0, 1], [2, 2]]), np.array([0, 0]), np.array([True]))  # by 0 or by 1
    log_odds, open_ = np.array([0.0, 0.0]), np.array([True, True])
    found = follow(paths, log_odds, open_, np.array([True, False]))
    assert found == pytest.approx([0.0, np.log(2.0)], abs=0.01)
    outside = Paths(np.array([[0], [1]]), np.array([0]), np.array([False]))
    assert (follow(outside, log_odds, open_, np.array([True, True])) < -0.3).all()


def test_what_is_likely_only_is_weighed():
    found = around_one_centre(checked={(0, 1): 3.0}, judged={(1, 4): 0.0})
    assert found[1, 4] == pytest.approx(expit(0.0 + np.log1p(-expit(3.0))), rel=0.02)
    assert found[0, 1] == pytest.approx(expit(3.0 + np.log(0.5)), rel=0.02)


def test_a_known_edge_that_leads_out_of_a_ball_does_not_outweigh_the_one_at_the_centre():
    found = around_one_centre(checked={(0, 1): 9.0, (1, 4): 9.0})
    assert found[0, 1] == pytest.approx(expit(9.0))
    assert found[1, 4] == pytest.approx(expit(-CERTAIN))


def test_who_is_inside_was_brought_in():
    known = {(0, 1): 9.0, (0, 2): -9.0, (2, 3): -9.0}
    equal = {(0, 3): -3.0, (1, 3): -3.0}
    found = around_one_centre(checked=known, judged=equal, tells=True)
    p = expit(-3.0)
    assert found[0, 3] == pytest.approx(p / (1 - (1 - p) ** 2), rel=0.02)
    assert found[1, 3] == pytest.approx(found[0, 3], rel=0.02)
    alone = around_one_centre(checked=known | {(0, 3): -9.0}, judged=equal, tells=True)
    assert 1 - alone[1, 3] == pytest.approx(expit(-CERTAIN), rel=1e-3)  # nobody else is left
    verdict = around_one_centre(checked=known | {(0, 3): -9.0}, judged=equal | {(1, 3): -CERTAIN}, tells=True)
    assert verdict[1, 3] == pytest.approx(expit(-CERTAIN))  # what membership decides no fact overrules
    rival = around_one_centre(checked={(0, 1): 9.0, (0, 2): 9.0, (2, 3): -5.5, (0, 3): -9.0},
                              judged={(1, 3): -5.5}, tells=True)  # fmt: skip
    assert 0.3 < rival[1, 3] < 0.7  # a known pair that is not impossible may have done it too
    silent = around_one_centre(checked=known, judged=equal)
    assert silent[0, 3] == pytest.approx(p, rel=1e-4)


def test_an_open_pair_in_reach_keeps_a_floor():
    found = around_one_centre(checked={(0, 1): 9.0}, misfit=0.02)
    assert found[2, 4] == pytest.approx(0.02 * 0.05, rel=0.05)
    assert found[1, 4] == pytest.approx(expit(-CERTAIN))


def test_relabelling_changes_nothing_where_facts_tie():
    """Two facts raise the same pair equally; each must hear of the other."""
    ends = np.array([[0, 1, 0, 2], [3, 3, 3, 3]])
    found = []
    for shift in (-1e-12, 0.0, 1e-12):
        log_odds = np.array([-3.0, -2.0, -2.0 + shift])
        paths = Paths(ends, np.array([0, 0, 1, 1]), np.array([True, True]))
        found.append(expit(follow(paths, log_odds, np.ones(3, dtype=bool), np.zeros(3, dtype=bool))))
    assert np.ptp(found, axis=0).max() < 1e-6


def test_where_all_is_open_and_facts_are_many_messages_do_not_run_away():
    n, rng = 40, np.random.default_rng(2)
    ball, _, instance = balls_of(nx.random_regular_graph(8, n, seed=2), 2, 0.5)
    keys = np.array([i * n + j for i, j in itertools.combinations(range(n), 2)])
    true = np.isin(keys, edge_keys(instance.truth.edges, n))
    judged = np.where(true, 1.0, -1.0) + rng.normal(0, 1.5, len(keys)) + np.log(0.25)
    tells = np.isin(np.arange(n), ball // n)
    found = by_balls(believed(keys, judged, np.zeros(len(keys))), ball, tells, n, 0.02).probability

    def loss(p):
        return -np.log(np.where(true, p, 1 - p)).sum()

    assert loss(found) < 1.05 * loss(expit(judged))


def asked(monkeypatch, settings=None, **parameters):
    """What the attack asks of the balls, and the instance."""
    calls = []

    def record(beliefs, ball, tells, *rest):
        calls.append((ball, tells))
        return by_balls(beliefs, ball, tells, *rest)

    monkeypatch.setattr(module, "by_balls", record)
    graph = nx.powerlaw_cluster_graph(80, 2, 0.5, seed=4)
    instance = lograb.generate(graph, p=0.5, k=16, sigma=0.1, seed=4, **parameters)[0]
    posterior(instance.observations, np.random.default_rng(0), settings or PosteriorSettings())
    return calls, instance


@pytest.mark.parametrize("d", [2, 3])
def test_the_attack_believes_balls_it_has_read(monkeypatch, d):
    calls, instance = asked(monkeypatch, d=d)
    ball, tells = calls[-1]
    seen = instance.observations
    assert np.array_equal(ball, ball_keys(seen, seen.centres))
    large = seen.sizes >= 2
    assert np.array_equal(np.flatnonzero(tells), np.unique(seen.centres[large]) if d == 2 else [])


def test_balls_that_were_not_read_do_not_tell(monkeypatch):
    instance = asked(monkeypatch, d=2)[1]
    entries = np.sort(instance.observations.sizes)
    budget = int((entries * (entries - 1) // 2)[: len(entries) // 2].sum())
    tells = asked(monkeypatch, PosteriorSettings(max_entries=budget), d=2)[0][-1][1]
    centres = instance.observations.centres
    small = instance.observations.sizes <= entries[len(entries) // 2 - 1]
    assert 0 < tells.sum() < len(centres)
    assert not tells[centres[~small]].any()


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
