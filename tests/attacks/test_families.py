"""Patches that hold the same open pairs: every formula against brute force, then the check as a whole."""

import itertools
import sys
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from scipy.special import expit

import lograb
from lograb.attacks.posterior import PosteriorSettings, families, posterior
from lograb.attacks.posterior.exchanges import odds_against
from lograb.attacks.posterior.families import Family, check_together, patches_to_ask
from lograb.attacks.posterior.graphs import SAME, Patch, scaled
from lograb.attacks.posterior.rounds import judge_again, judge_in_rounds
from lograb.attacks.posterior.rules import known_centres
from lograb.pairs import edge_keys

attack = sys.modules["lograb.attacks.posterior.posterior"]


def moved(graph, *places):
    """Exchange the members at places 0 and 1, 2 and 3 ..."""
    order = np.arange(len(graph))
    for i, j in zip(places[::2], places[1::2]):
        order[[i, j]] = order[[j, i]]
    return graph[np.ix_(order, order)]


def published(graph, inside, rank, sigma, seed):
    """Publish a patch of a graph; its log-odds leave every pair open."""
    block = graph[np.ix_(inside, inside)]
    values, vectors = np.linalg.eigh(scaled(block))
    noise = np.random.default_rng(seed).standard_normal((len(inside), rank))
    open_ = np.zeros(block.shape)
    return Patch(vectors[:, ::-1][:, :rank] + sigma * noise, values[::-1][:rank], sigma**2, open_, open_)


def around_a_hub(leaves=16, joined=((1, 2), (3, 4)), patches=12):
    """The graph of a hub whose leaves are joined in pairs, and patches that hold it and one stranger each."""
    graph = nx.star_graph(leaves)
    graph.add_edges_from(joined)
    for at in range(patches):
        graph.add_edge(leaves - at % 4, leaves + 1 + at)
    matrix = nx.to_numpy_array(graph)
    return matrix, [np.append(np.arange(leaves + 1), leaves + 1 + at) for at in range(patches)]


def family_of(graph, members, sure=6.0, known=None):
    log_odds = np.where(graph > 0, sure, -sure)
    np.fill_diagonal(log_odds, 0.0)
    return Family(np.arange(len(graph)), members, np.arange(len(members)), log_odds,
                  np.zeros(graph.shape) if known is None else known)  # fmt: skip


def held_by(graph, members):
    held = np.zeros((len(members), len(graph)))
    for at, inside in enumerate(members):
        held[at, inside] = 1.0
    return held


def test_pairs_that_an_exchange_changes_are_those_that_differ_after_it():
    graph = nx.to_numpy_array(nx.gnp_random_graph(9, 0.3, seed=0))
    for places in [*itertools.combinations(range(9), 2), (0, 1, 2, 3), (5, 8, 6, 2), (4, 0, 7, 3)]:
        found = np.zeros_like(graph, dtype=bool)
        found[families._flipped(graph, places)] = True
        np.testing.assert_array_equal(found, graph != moved(graph, *places))


def test_losses_add_up_where_an_exchange_leaves_all_spectra_as_they_are():
    graph, members = around_a_hub(leaves=8, patches=3)
    patches = [published(graph, inside, 5, 0.2, seed) for seed, inside in enumerate(members)]
    losses = [families._losses((patch, graph[np.ix_(i, i)])) for i, patch in zip(members, patches)]
    total = families._total(graph, held_by(graph, members), members, losses, np.zeros(graph.shape))

    def outside(patch, block):
        values, basis = np.linalg.eigh(scaled(block))
        apart = np.abs(values[:, None] - patch.mu) > SAME
        return ((basis.T @ patch.observed)[apart] ** 2).sum() / (2 * patch.variance)

    seen = set()
    for i, j in itertools.combinations(range(len(graph)), 2):
        other = moved(graph, i, j)
        blocks = [np.ix_(inside, inside) for inside in members]
        together = any({i, j} <= set(inside.tolist()) for inside in members)
        broken = any((i in inside) != (j in inside) and (graph[b] != other[b]).any()
                     for inside, b in zip(members, blocks))  # fmt: skip
        same = (graph == other).all()
        if same or broken or not together:
            # What would be too dear anyway is not looked at.
            assert total[i, j] == np.inf or (broken and total[i, j] >= families.MAX_GAIN)
        else:
            expected = sum(outside(p, other[b]) - outside(p, graph[b]) for p, b in zip(patches, blocks))
            assert total[i, j] == pytest.approx(expected, abs=1e-6)
        seen.add((same, broken, together))
    assert len(seen) >= 3


def test_prices_count_what_is_known_against_an_exchange():
    rng = np.random.default_rng(3)
    graph = nx.to_numpy_array(nx.gnp_random_graph(8, 0.4, seed=3))
    cost, loss = rng.normal(0, 2.0, (2, 8, 8))
    cost, loss = cost + cost.T, np.abs(loss + loss.T)
    np.fill_diagonal(cost, 0.0)
    np.fill_diagonal(loss, np.inf)

    def against(other):
        """To take a pair out costs its log-odds, to put it in the negative."""
        return np.triu(np.where(graph > other, cost, 0.0) - np.where(graph < other, cost, 0.0)).sum()

    prices = families._prices(graph, cost)
    singles = dict((places, price) for price, places in families._singles(loss + prices))
    assert singles
    for i, j in itertools.combinations(range(8), 2):
        price = loss[i, j] + against(moved(graph, i, j))
        assert (i, j) not in singles if price >= families.MAX_GAIN else singles[i, j] == pytest.approx(price)
    doubles = dict((places, price) for price, places in families._doubles(graph, cost, np.ones((1, 8)), loss))
    rated = 0
    for a, b in np.argwhere(np.triu(graph)).tolist():
        for c, d in itertools.permutations(set(range(8)) - {a, b}, 2):
            other, price = moved(graph, a, c, b, d), loss[a, c] + loss[b, d]
            if price < families.MAX_GAIN and (other != graph).any():
                price += against(other)
                rated += 1
                assert ((a, c, b, d) in doubles) == (price < families.MAX_GAIN)
                assert doubles.get((a, c, b, d), price) == pytest.approx(price)
    assert rated > len(doubles) > 0


def test_members_are_exchanged_until_all_patches_together_agree():
    """Alone a patch prefers another pair of leaves; all together find the one that is joined."""
    graph, members = around_a_hub()
    patches = [published(graph, inside, 9, 0.4, seed) for seed, inside in enumerate(members)]
    wrong = moved(graph, 1, 6, 2, 7)
    cost = np.zeros(graph.shape)
    found, against = families._exchange(wrong, cost, members, patches)
    np.testing.assert_array_equal(found, graph)
    leaves = np.ix_(range(1, 9), range(1, 9))
    assert against[leaves].max() < 0.05
    right = 0
    for inside, patch in zip(members, patches):
        block = np.ix_(inside, inside)
        alone, odds = families._exchange(wrong[block], cost[block], [np.arange(len(inside))], [patch])
        right += (alone == graph[block]).all()
        assert odds[leaves].max() > 0.05
    assert right < len(members) / 2


def test_odds_are_those_of_all_graphs_that_exchanges_lead_to():
    graph, members = around_a_hub(leaves=7, joined=((1, 2),), patches=1)
    patch = published(graph, members[0], 4, 0.3, 0)
    found, against = families._exchange(graph, np.zeros(graph.shape), members, [patch])
    base = found[np.ix_(members[0], members[0])]

    def outside(block):
        values, basis = np.linalg.eigh(scaled(block))
        apart = np.abs(values[:, None] - patch.mu) > SAME
        return ((basis.T @ patch.observed)[apart] ** 2).sum() / (2 * patch.variance)

    exchanges = [*itertools.combinations(range(9), 2)]
    for a, b in np.argwhere(np.triu(base)).tolist():
        exchanges += [(a, c, b, d) for c, d in itertools.permutations(set(range(9)) - {a, b}, 2)]
    graphs = {moved(base, *places).tobytes(): moved(base, *places) for places in exchanges}
    graphs.pop(base.tobytes(), None)
    losses = [(outside(other) - outside(base), np.flatnonzero(other != base)) for other in graphs.values()]
    expected = odds_against(len(base), [one for one in losses if one[0] < families.MAX_GAIN])
    ratio = against / expected
    assert np.median(ratio) == pytest.approx(1.0, abs=0.1)
    assert (np.abs(np.log(ratio)) < 1.0).all()  # losses of both ends nearly add up


def test_an_exchange_of_both_ends_may_break_a_patch_that_neither_breaks_alone():
    """In the path 2-1-0-3 the edge 0-1 may change places with the pair 2-3, if no patch holds 0 and 1 only."""
    graph = nx.to_numpy_array(nx.Graph([(2, 1), (1, 0), (0, 3)]), nodelist=range(4))
    loss = np.where(np.eye(4) > 0, np.inf, 0.5)
    whole = np.ones((1, 4))
    part = np.array([[1.0, 1.0, 0.0, 0.0]])
    cost = np.zeros((4, 4))
    assert (0, 2, 1, 3) in [moves for _, moves in families._doubles(graph, cost, whole, loss)]
    assert not families._doubles(graph, cost, np.concatenate([whole, part]), loss)


def test_a_patch_that_fails_on_pairs_that_others_confirm_casts_doubt_on_them():
    graph, members = around_a_hub(leaves=10, joined=((1, 2),), patches=2)
    small = np.array([0, 1, 2, 3, 4])
    patches = [published(graph, inside, 6, 0.05, seed) for seed, inside in enumerate(members)]
    other = moved(graph, 1, 5, 2, 6)
    agrees, differs = (published(which, small, 4, 0.05, 9) for which in (graph, other))
    family = family_of(graph, [*members, small])
    assert families._check(family, [*patches, agrees])[0][1, 2] > 5
    odds, failed = families._check(family, [*patches, differs])
    assert failed[np.ix_(small, small)].all()
    assert not failed.all()
    assert (odds[np.ix_(small, small)] == 0).all()
    assert (odds != 0).any()


def test_a_graph_that_is_off_in_a_few_pairs_is_mended_for_all():
    graph, members = around_a_hub()
    patches = [published(graph, inside, 10, 0.05, seed) for seed, inside in enumerate(members)]
    family = family_of(graph, members)
    for i, j in ((1, 2), (5, 9), (3, 7)):
        family.log_odds[i, j] = family.log_odds[j, i] = -0.1 * np.sign(family.log_odds[i, j])
    assert families._mend(family, patches)[1] == list(range(len(members)))
    odds, failed = families._check(family, patches)
    assert not failed.any()
    assert ((odds > 0) == (graph > 0))[odds != 0].all()
    assert (odds != 0)[:17, :17].mean() > 0.9
    assert (np.diag(odds) == 0).all()


def test_what_is_known_is_not_overruled():
    """If the eigenvalues ask for a pair that is known to be none, nothing is settled."""
    graph, members = around_a_hub(joined=((1, 2),))
    patches = [published(graph, inside, 10, 0.05, seed) for seed, inside in enumerate(members)]
    known = np.zeros(graph.shape)
    known[1:17, 1:17] = -9.0
    np.fill_diagonal(known, 0.0)
    family = family_of(graph, members, known=known)
    family.log_odds[1:17, 1:17] = -9.0
    assert (families._check(family, patches)[0] == 0).all()
    free = replace(family, known=np.zeros(graph.shape))
    assert families._check(free, patches)[0][1, 2] > 0


def instance_around_hubs(sigma=0.1, k=8, d=2, **parameters):
    graph = nx.star_graph(24)
    graph.add_edges_from([(1, 2), (3, 4), (5, 6)])
    graph = nx.disjoint_union(graph, nx.star_graph(5))
    graph.add_edges_from([(24, 25), (7, 26)])
    return lograb.generate(graph, d=d, p=1.0, k=k, sigma=sigma, seed=1, **parameters)[0]


def pairs_of(instance):
    """All pairs that share a patch, and whether they are edges."""
    seen = instance.observations
    blocks = [seen.nodes[seen.ptr[i] : seen.ptr[i + 1]] for i in range(seen.n_patches)]
    keys = np.unique([i * seen.n_nodes + j for nodes in blocks for i, j in itertools.combinations(nodes, 2)])
    return keys, np.isin(keys, edge_keys(instance.truth.edges, seen.n_nodes))


def test_patches_are_asked_that_hold_open_pairs_and_are_not_too_open(monkeypatch):
    instance = instance_around_hubs()
    seen, (keys, _) = instance.observations, pairs_of(instance)
    which = np.arange(seen.n_patches)
    n = seen.n_nodes

    def holding(i, j):
        return [p for p in which if {i, j} <= set(seen.nodes[seen.ptr[p] : seen.ptr[p + 1]].tolist())]

    doubt = np.where(keys == 1 * n + 9, 0.4, 0.0)
    asked = patches_to_ask(seen, which, keys, doubt)
    assert len(asked) == families.ENOUGH < len(holding(1, 9))
    assert set(asked.tolist()) <= set(holding(1, 9))
    assert (np.diff(seen.sizes[asked]) >= 0).all()
    assert not len(patches_to_ask(seen, which, keys, np.zeros(len(keys))))
    small = patches_to_ask(seen, which, keys, np.full(len(keys), 0.3))
    assert len(small)
    assert (0.3 * seen.sizes[small] * (seen.sizes[small] - 1) / 2 < 20).all()  # in others far too much is open
    few = patches_to_ask(seen, which[:3], keys, doubt)
    assert set(few.tolist()) <= {0, 1, 2}
    monkeypatch.setattr(families, "MAX_SIZE", int(seen.sizes[asked].min()) - 1)
    assert not len(patches_to_ask(seen, which, keys, doubt))
    monkeypatch.undo()
    monkeypatch.setattr(families, "MOST_HELD", 3)
    assert not len(patches_to_ask(seen, which, keys, doubt))


def test_patches_of_a_hub_settle_which_leaves_are_joined():
    instance = instance_around_hubs()
    seen, (keys, true) = instance.observations, pairs_of(instance)
    n = seen.n_nodes
    probability = np.where(true, 0.99, 0.002)
    probability[(keys == 1 * n + 2) | (keys == 9 * n + 10)] = 0.4, 0.6
    known = np.where(np.minimum(keys // n, keys % n) == 0, np.where(true, 9.0, -9.0), 0.0)
    variance = np.full(seen.n_patches, 0.01)
    asked = patches_to_ask(seen, np.arange(seen.n_patches), keys, np.minimum(probability, 1 - probability))
    found, failed = check_together(seen, asked, variance, keys, probability, known)
    assert not failed.any()
    hub = (keys // n < 25) & (keys % n < 25)
    assert (found[hub] != 0).mean() > 0.9
    assert ((found > 0) == true)[found != 0].all()
    assert found[keys == 1 * n + 2][0] > 5


def test_pairs_of_patches_that_cannot_be_mended_are_told(monkeypatch):
    """Without any mending a family with a wrong pair fails: its open pairs are told, those known are not."""
    instance = instance_around_hubs()
    seen, (keys, true) = instance.observations, pairs_of(instance)
    n = seen.n_nodes
    probability = np.where(true, 0.99, 0.002)
    probability[keys == 1 * n + 2] = 0.4
    known = np.where(np.minimum(keys // n, keys % n) == 0, np.where(true, 9.0, -9.0), 0.0)
    asked = patches_to_ask(seen, np.arange(seen.n_patches), keys, np.minimum(probability, 1 - probability))
    monkeypatch.setattr(families, "few_wrong", lambda *_: None)
    monkeypatch.setattr(families, "descend", lambda graph, *_: graph)
    found, failed = check_together(seen, asked, np.full(seen.n_patches, 0.01), keys, probability, known)
    assert failed[keys == 1 * n + 2].all()
    assert not (failed & ((known != 0) | (found != 0))).any()


def test_judgements_on_pairs_of_failed_patches_count_less():
    probability = np.array([0.98, 0.001, 0.98, 1.0 - 1e-6, 1e-6, 0.4])
    failed = np.array([True, True, False, True, True, False])
    found = attack._doubted(probability, failed)
    np.testing.assert_array_equal(found[2:], probability[2:])
    share = (0.98 + 0.001) / 2
    np.testing.assert_allclose(found[:2], [0.8 * 0.98 + 0.2 * share, 0.8 * 0.001 + 0.2 * share])
    np.testing.assert_array_equal(attack._doubted(probability, np.zeros(6, dtype=bool)), probability)


def test_pairs_are_judged_again_whatever_was_thought_of_them():
    instance = instance_around_hubs()
    seen, (keys, true) = instance.observations, pairs_of(instance)
    n, which = seen.n_nodes, np.arange(0, seen.n_patches, 2)
    known = np.where(keys // n == 0, np.where(true, 9.0, -9.0), 0.0)
    centres = known_centres(seen)

    def number(batches):
        return attack._pairs(seen, batches, centres, True)

    variance = np.full(seen.n_patches, 0.01)
    *_, usual, _ = judge_in_rounds(seen, which, variance, centres, number, PosteriorSettings())

    def again(judged):
        rest = (number, PosteriorSettings(), usual, keys, judged, known)
        return judge_again(seen, which, variance, centres, *rest)

    one, other = again(np.full(len(keys), 7.0)), again(np.full(len(keys), -7.0))
    fixed = known != 0
    assert (one[fixed] == 7.0).all()
    assert (other[fixed] == -7.0).all()
    np.testing.assert_array_equal(one[~fixed & (np.abs(one) != 7.0)], other[~fixed & (np.abs(one) != 7.0)])
    changed = ~fixed & (one == other)
    assert changed.mean() > 0.5
    assert (expit(one[changed & true]).mean() > 10 * expit(one[changed & ~true]).mean())


def asked_of(monkeypatch, instance, settings=None):
    calls = []

    def record(seen, asked, *rest):
        calls.append(asked)
        return check_together(seen, asked, *rest)

    monkeypatch.setattr(attack, "check_together", record)
    answer = posterior(instance.observations, np.random.default_rng(0), settings or PosteriorSettings())
    return calls, answer


def with_open_pairs(seed=0, **parameters):
    graph = nx.powerlaw_cluster_graph(200, 2, 0.5, seed=seed)
    return lograb.generate(graph, **{"d": 2, "p": 0.6, "k": 10, "sigma": 0.08, "seed": seed} | parameters)[0]


def test_the_attack_checks_together_where_it_can(monkeypatch):
    calls, _ = asked_of(monkeypatch, with_open_pairs())
    assert calls
    assert all(len(asked) for asked in calls)


@pytest.mark.parametrize("parameters", [{"gauge": "rotation"}, {"eigenvalues": False}, {"d": 1}])
def test_without_eigenvalues_their_columns_or_large_balls_it_does_not(monkeypatch, parameters):
    assert not asked_of(monkeypatch, with_open_pairs(**parameters))[0]


@pytest.mark.parametrize("settings", [{"checks": 0}, {"channels": ("membership", "eigenvectors")}])
def test_if_checks_or_eigenvalues_are_not_wanted_it_does_not(monkeypatch, settings):
    assert not asked_of(monkeypatch, with_open_pairs(), PosteriorSettings(**settings))[0]


def test_checks_together_make_the_attack_better(monkeypatch):
    before = after = 0.0
    for seed in range(3):
        instance = with_open_pairs(seed)
        true = edge_keys(instance.truth.edges, 200)

        def loss(instance=instance, true=true):
            found = posterior(instance.observations, np.random.default_rng(0))
            edge = np.isin(edge_keys(found.judged, 200), true)
            p = np.clip(found.judged_scores, 1e-6, 1 - 1e-6)
            return -np.log(np.where(edge, p, 1 - p)).sum() + 6.9 * (instance.co_observed.sum() - edge.sum())

        after += loss()
        with monkeypatch.context() as patched:
            patched.setattr(attack, "TOGETHER", 0)
            before += loss()
    assert after < 0.9 * before
