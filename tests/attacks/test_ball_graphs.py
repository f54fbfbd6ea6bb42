"""Graphs drawn so that their balls of radius 2 are those seen: the moves, and what they find."""

import networkx as nx
import numpy as np
import pytest

import lograb
from lograb.attacks.posterior.ball_graphs import _web, agreed, draw_graphs, possible_pairs
from lograb.attacks.posterior.ball_moves import cost, exchange, find, put, turn_edge, walk
from lograb.attacks.posterior.rules import ball_keys
from lograb.pairs import edge_keys


def balls_of(graph, p=1.0, seed=0):
    instance = lograb.generate(graph, d=2, p=p, k=2, seed=seed)
    seen = instance.observe()
    return instance, ball_keys(seen, seen.centres), seen.n_nodes


def web_of(graph, edges=(), p=1.0):
    """A web on the possible pairs of a graph, with some of them as edges, and its number of nodes."""
    _, ball, n = balls_of(graph, p)
    keys = possible_pairs(ball, n)
    web = _web(keys, ball, n)
    for u, w in edges:
        put(web, u, w, find(web, u, w), 1)
    return web


def cover_by_hand(web):
    adjacency = np.zeros((web.n, web.n), dtype=int)
    for u, w in web.ends[web.edge]:
        adjacency[u, w] = adjacency[w, u] = 1
    ways = adjacency + adjacency @ adjacency
    return ways[web.ends[:, 0], web.ends[:, 1]]


def broken_by_hand(web, weight_in=1, weight_out=1):
    missed = (web.inside & (cover_by_hand(web) == 0)).sum()
    out = 0
    graph = nx.Graph(web.ends[web.edge].tolist())
    for via in graph:
        near = sorted(graph[via])
        out += sum((web.centre[u] or web.centre[w]) and find(web, u, w) < 0
                   for at, u in enumerate(near) for w in near[at + 1 :])  # fmt: skip
    return weight_in * missed + weight_out * out


@pytest.mark.parametrize("p", [1.0, 0.6])
def test_the_true_graph_breaks_no_fact_and_all_its_edges_are_possible(p):
    graph = nx.powerlaw_cluster_graph(80, 2, 0.4, seed=1)
    instance, ball, n = balls_of(graph, p)
    seen_edges = instance.truth.edges[instance.co_observed]
    assert np.isin(edge_keys(seen_edges, n), possible_pairs(ball, n)).all()
    assert broken_by_hand(web_of(graph, seen_edges.tolist(), p)) == 0


def test_walks_keep_count():
    """Whatever moves are made, ways and neighbours are those of the graph that results."""
    web = web_of(nx.barabasi_albert_graph(40, 2, seed=3), p=0.6)
    rng = np.random.default_rng(0)
    for cooling in (True, False):
        walk(web, rng, 20_000, 0.2, 0.3, 2.0, 1.0, cooling)
        assert web.edge.any()
        np.testing.assert_array_equal(web.cover, cover_by_hand(web))
        np.testing.assert_array_equal(web.degree, np.bincount(web.ends[web.edge].ravel(), minlength=web.n))


def test_the_cost_of_an_edge_is_the_difference_it_makes():
    web = web_of(nx.barabasi_albert_graph(30, 2, seed=4))
    walk(web, np.random.default_rng(1), 3000, 0.0, 0.3, 2.0, 1.0, True)
    for pair in range(0, len(web.ends), 7):
        u, w = web.ends[pair]
        told = cost(web, u, w, pair, 3.0, 2.0)
        had = bool(web.edge[pair])
        before = broken_by_hand(web, 3, 2)
        put(web, u, w, pair, -1 if had else 1)
        after = broken_by_hand(web, 3, 2)
        put(web, u, w, pair, 1 if had else -1)
        assert told == pytest.approx(before - after if had else after - before)


def test_an_exchange_that_is_refused_leaves_everything_as_it_was():
    graph = nx.barabasi_albert_graph(40, 2, seed=5)
    web = web_of(graph, graph.edges)
    before = web.edge.copy()
    for pair in range(len(web.ends)):
        exchange(web, np.random.default_rng(pair), pair, 1e6, 1e6, True)
        turn_edge(web, np.random.default_rng(pair), pair, 1e6, 1e6)
    assert broken_by_hand(web) == 0  # so nothing that breaks a fact was kept
    np.testing.assert_array_equal(web.cover, cover_by_hand(web))
    assert (web.edge == before).mean() > 0.9


SPARSE = {"tree": nx.random_labeled_tree(60, seed=1), "grid": nx.grid_2d_graph(7, 7),
          "regular": nx.random_regular_graph(3, 60, seed=2)}  # fmt: skip


@pytest.mark.parametrize("graph", SPARSE.values(), ids=SPARSE)
def test_balls_alone_give_sparse_graphs_away(graph):
    graph = nx.convert_node_labels_to_integers(graph)
    instance, ball, n = balls_of(graph)
    keys = possible_pairs(ball, n)
    drawn = draw_graphs(keys, ball, n, np.random.default_rng(0))
    true = np.isin(keys, edge_keys(instance.truth.edges, n))
    claimed = drawn.probability > 0.5
    assert drawn.agreement > 0.95
    assert 2 * (claimed & true).sum() / (claimed.sum() + true.sum()) > 0.97


def test_balls_that_leave_many_graphs_promise_little():
    """Nearly everybody is within two steps of everybody: walks end at graphs of their own, sure of themselves."""
    graph = nx.watts_strogatz_graph(30, 8, 0.2, seed=5)
    instance, ball, n = balls_of(graph)
    keys = possible_pairs(ball, n)
    drawn = draw_graphs(keys, ball, n, np.random.default_rng(0))
    true = np.isin(keys, edge_keys(instance.truth.edges, n))
    assert drawn.agreement < 0.5
    claimed = drawn.probability > 0.5
    assert drawn.probability[claimed].sum() == pytest.approx(true[claimed].sum(), abs=15)  # one walk: 75 more


def test_two_estimates_are_worth_what_a_third_would_say():
    """Pairs have rates of their own, of which each estimate is a draw: so it is known what a third one finds."""
    rng = np.random.default_rng(0)
    rates = np.where(rng.random(40_000) < 0.05, rng.beta(0.5, 0.5, 40_000), 0.0)
    one, other, third = rng.random((3, 40_000)) < rates
    found, share = agreed(one.astype(float), other.astype(float))
    assert share == pytest.approx(0.75, abs=0.03)
    for group in (one & other, one ^ other):
        assert found[group].mean() == pytest.approx(third[group].mean(), abs=0.08)
    same, share = agreed(one.astype(float), one.astype(float))
    assert share == 1.0
    np.testing.assert_array_equal(same, one)


@pytest.mark.parametrize("sigma", [0.3, 1.0])
def test_noise_does_not_hide_balls_of_radius_2(sigma):
    """Not even noise that drowns every embedding; and the attack knows how good it is."""
    graph = nx.powerlaw_cluster_graph(200, 2, 0.3, seed=2)
    instance = lograb.generate(graph, d=2, p=1.0, k=8, sigma=sigma, seed=1)
    guess = lograb.attack(instance, "posterior")
    score = lograb.evaluate(instance, guess)
    assert score.f1 > 0.9
    assert score.f1 == pytest.approx(guess.diagnostics["expected"]["f1"], abs=0.08)
    alone = lograb.attack(instance, lograb.attacks.Posterior(channels=("membership",)))
    assert alone.diagnostics["rule"] == "balls"
    assert lograb.evaluate(instance, alone).f1 > 0.9
    assert lograb.attack(instance, "posterior").edges.tolist() == guess.edges.tolist()  # one seed, one answer


def test_dense_graphs_are_found_too():
    """A walk that prefers few edges from the start ends at graphs that share a third of theirs."""
    instance, ball, n = balls_of(nx.barabasi_albert_graph(150, 4, seed=5))
    keys = possible_pairs(ball, n)
    drawn = draw_graphs(keys, ball, n, np.random.default_rng(0))
    assert drawn.agreement > 0.9
    true = np.isin(keys, edge_keys(instance.truth.edges, n))
    assert ((drawn.probability > 0.5) == true).mean() > 0.99


def test_balls_of_nearly_everybody_tell_nothing():
    """All balls of a star, and of dense random graphs, are everybody: it would be a guess which of them it is."""
    for graph in (nx.star_graph(30), nx.gnm_random_graph(60, 530, seed=2)):
        _, ball, n = balls_of(graph)
        assert draw_graphs(possible_pairs(ball, n), ball, n, np.random.default_rng(0)) is None


@pytest.mark.parametrize("hidden", [{"eigenvalues": False}, {"gauge": "rotation"}], ids=str)
def test_balls_that_say_little_do_not_drown_embeddings_without_a_scale(hidden):
    """Judged again from what balls say, all probabilities would drift to 0."""
    graph = nx.gnm_random_graph(70, 350, seed=2)
    instance = lograb.generate(graph, d=2, p=1.0, k=16, sigma=0.05, seed=2, **hidden)
    with_balls = lograb.evaluate(instance, lograb.attack(instance, "posterior"))
    without = lograb.attacks.Posterior(stages=("rows", "judge", "check", "relax", "again", "temper"))
    assert with_balls.f1 > lograb.evaluate(instance, lograb.attack(instance, without)).f1 - 0.05


def test_turns_draw_what_flips_draw():
    web = web_of(nx.path_graph(5))
    web.odds[:] = -1.0, 0.0
    means = []
    for turns in (0.0, 0.6):
        rng, total = np.random.default_rng(0), 0
        for _ in range(4000):
            walk(web, rng, 20, 0.0, turns, 0.0, 0.0, False)
            total += web.edge.sum()
        means.append(total / 4000)
    assert means[0] == pytest.approx(means[1], abs=0.12)


def test_nothing_is_drawn_from_balls_that_contradict_each_other():
    _, ball, n = balls_of(nx.barabasi_albert_graph(40, 2, seed=1))
    one_way = ball[(ball // n < ball % n) | (ball % 3 > 0)]  # some know of others that do not know of them
    assert draw_graphs(possible_pairs(one_way, n), one_way, n, np.random.default_rng(0)) is None
