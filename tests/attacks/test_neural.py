"""The neural attacks: what they see, and that node numbers do not matter."""

import dataclasses
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp

import lograb
from lograb.attacks import ATTACKS, find_attack
from lograb.attacks.baselines.eigenmaps import eigenmaps
from lograb.attacks.baselines.neural import Gae, co_occurrence, input_graph, renumber
from lograb.errors import LograbError, MissingExtraError
from lograb.tasks.reconstruction import stream_of
from lograb.types import Graph

NEURAL = ["gae", "vgae", "gcn-le"]
FEW = {"epochs": 15, "hidden": 12, "out": 6}
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")


def small(seed=0, **changes):
    """A connected graph of 60 nodes with sparse features, fragmented."""
    rng = np.random.default_rng(seed)
    ring = np.stack([np.arange(60), (np.arange(60) + 1) % 60], axis=1)
    edges = np.concatenate([ring, rng.integers(60, size=(60, 2))])
    features = sp.csr_array((rng.random((60, 10)) < 0.3).astype(float))
    graph = Graph.from_edges("small", 60, edges, features=features)
    return lograb.generate(graph, **({"p": 0.6, "k": 32, "sigma": 0.05} | changes))


def relabelled(seen, order):
    nodes, vectors = [], []
    for i in range(seen.n_patches):
        new = order[seen.members(i)]
        nodes.append(np.sort(new))
        vectors.append(seen.block(i)[np.argsort(new)].ravel())
    features = None if seen.features is None else seen.features[np.argsort(order)]
    return dataclasses.replace(seen, nodes=np.concatenate(nodes), vectors=np.concatenate(vectors),
                               centres=order[seen.centres], features=features)  # fmt: skip


@needs_torch
@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("graph", ["local", "co-occurrence"])
@pytest.mark.parametrize("name", NEURAL)
def test_answers_follow_a_relabelling_to_the_bit(name, graph, features):
    seen = small().observe(features=features)
    order = np.random.default_rng(3).permutation(60)
    settings = FEW | {"graph": graph}
    plain, moved = (
        ATTACKS[name](**settings).reconstruct(s, np.random.default_rng(0)) for s in (seen, relabelled(seen, order))
    )
    back = {tuple(sorted(order[pair].tolist())): score for pair, score in zip(plain.edges, plain.scores)}
    assert back == {tuple(pair): score for pair, score in zip(moved.edges.tolist(), moved.scores)}
    assert len(back) > 60


def test_renumbering_forgets_the_numbers():
    seen = small().observe(features=True)
    order = np.random.default_rng(5).permutation(60)
    (one, nodes), (two, others) = renumber(seen), renumber(relabelled(seen, order))
    assert np.array_equal(one.nodes, two.nodes)
    assert np.array_equal(one.vectors, two.vectors)
    assert np.array_equal(order[nodes], others)
    assert (one.features != two.features).nnz == 0
    assert all(np.array_equal(np.sort(nodes[one.members(i)]), seen.members(i)) for i in range(seen.n_patches))


@needs_torch
@pytest.mark.parametrize("name", NEURAL)
def test_the_features_channel_is_optional(name):
    instance = small()
    without = lograb.attack(instance, find_attack(name)(**FEW))
    ignored = lograb.attack(instance, find_attack(name)(**FEW | {"features": False}), features=True)
    used = lograb.attack(instance, find_attack(name)(**FEW), features=True)
    assert np.array_equal(without.edges, ignored.edges)
    assert np.array_equal(without.scores, ignored.scores)
    assert not np.array_equal(without.scores[:20], used.scores[:20])
    assert "features" in used.diagnostics["inputs"]
    assert "features" not in ignored.diagnostics["inputs"]


def test_an_attack_without_use_for_features_refuses_them():
    with pytest.raises(LograbError, match="does not use features"):
        lograb.attack(small(), "membership", features=True)


def test_the_input_graph_holds_pairs_that_share_a_patch_and_no_other():
    seen = small().observations
    settings = Gae()
    together = co_occurrence(seen)
    expected = {(u, w) for i in range(seen.n_patches) for u in seen.members(i) for w in seen.members(i) if u != w}
    assert {tuple(pair) for pair in np.stack(together.nonzero(), axis=1).tolist()} == expected
    local = input_graph(seen, settings)
    assert 0 < local.nnz < together.nnz
    assert (local.astype(int) > together.astype(int)).nnz == 0
    assert (local != local.T).nnz == 0
    assert co_occurrence(seen, max_size=1).nnz == 0


def test_withheld_eigenvalues_leave_the_co_occurrence_graph():
    seen = small(eigenvalues=False).observations
    with pytest.raises(LograbError, match="graph=co-occurrence"):
        input_graph(seen, Gae())
    assert input_graph(seen, Gae(graph="co-occurrence")).nnz


@needs_torch
def test_the_rule_of_output_is_a_setting():
    instance = small()
    free, shared = (
        lograb.attack(instance, find_attack("gae")(**FEW | {"candidates": candidates, "top_k": 4})).edges
        for candidates in ("all", "shared")
    )
    n = len(np.unique(instance.observations.nodes))
    assert 2 * n <= len(free) <= 4 * n
    together = co_occurrence(instance.observations)
    assert together[shared[:, 0], shared[:, 1]].all()
    assert not together[free[:, 0], free[:, 1]].all()


@pytest.mark.parametrize("name", NEURAL)
def test_without_torch_the_extra_is_named(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "lograb.learning.autoencoders", None)
    with pytest.raises(MissingExtraError, match="'gnn'"):
        lograb.attack(lograb.generate("karate"), name)


def test_eigenmaps_solve_their_eigenproblem_on_every_component():
    path = np.stack([np.arange(6), np.arange(1, 7)], axis=1)
    star = 7 + np.stack([np.zeros(5, int), np.arange(1, 6)], axis=1)
    adjacency = Graph.from_edges("two", 14, np.concatenate([path, star])).adjacency.astype(float)
    maps = eigenmaps(adjacency, 3, np.random.default_rng(0))
    degrees = adjacency.sum(axis=1)
    for members, column in [(slice(0, 7), 0), (slice(0, 7), 2), (slice(7, 13), 1)]:
        f = np.zeros(14)
        f[members] = maps[members, column]
        left, right = degrees * f - adjacency @ f, degrees * f
        value = (left @ f) / (right @ f)
        assert value > 1e-6
        assert np.allclose(left, value * right, atol=1e-8)
        assert np.mean(maps[members, column] ** 2) == pytest.approx(1)
    assert not maps[13].any()  # alone


def test_eigenmaps_do_not_depend_on_the_solvers_basis(monkeypatch):
    star = np.stack([np.zeros(8, int), np.arange(1, 9)], axis=1)  # eigenvalue 1 repeats seven times
    adjacency = Graph.from_edges("star", 9, star).adjacency
    plain = eigenmaps(adjacency, 4, np.random.default_rng(0))
    solve = np.linalg.eigh

    def turned(matrix):
        values, vectors = solve(matrix)
        q, _ = np.linalg.qr(np.random.default_rng(9).standard_normal((7, 7)))
        vectors[:, 1:8] = vectors[:, 1:8] @ q
        vectors[:, 0] *= -1
        return values, vectors

    monkeypatch.setattr(np.linalg, "eigh", turned)
    assert np.allclose(plain, eigenmaps(adjacency, 4, np.random.default_rng(0)), atol=1e-8)


@needs_torch
@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("name", NEURAL)
def test_graphs_of_a_dataset_are_attacked_together_and_each_for_itself(name, features):
    empty = Graph.from_edges("none", 4, np.empty((0, 2), np.int64), features=sp.csr_array((4, 10)))
    graphs = [*(small(seed).truth for seed in range(3)), empty]
    instance = lograb.generate(graphs, p=1.0, k=32)
    attack = find_attack(name)(**FEW)
    answers = lograb.attack(instance, attack, features=features)
    assert len(answers) == 4
    assert not len(answers[3].edges)
    for number, (graph, answer) in enumerate(zip(instance, answers)):
        alone = lograb.attack(graph, attack, features=features, seed=stream_of(0, number))
        assert np.array_equal(answer.edges, alone.edges)
        assert np.allclose(answer.scores, alone.scores, atol=1e-4)
        assert answer.method == alone.method
        assert answer.seconds > 0
