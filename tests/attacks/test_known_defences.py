"""Attackers know the mechanism; and no attack beats what nobody can exceed."""

import networkx as nx
import numpy as np
import pytest

import lograb
from lograb.defences.bound import bound


@pytest.mark.parametrize("text", ["edge-rand:epsilon=5", "edge-rand:epsilon=8", "lap-graph:epsilon=6"])
@pytest.mark.parametrize("attack", ["membership", "posterior"])
def test_flips_are_reckoned_with(text, attack):
    instance = lograb.generate("citation", d=1, p=0.6, k=16, defences=[text])
    answer = lograb.attack(instance, attack)
    score = lograb.evaluate(instance, answer)
    promised = answer.diagnostics["expected"]["precision"]
    assert score.precision == pytest.approx(promised, abs=0.06)
    assert promised < 0.95  # an attacker who does not know of the flips is sure


@pytest.mark.parametrize("p", [1.0, 0.6])
@pytest.mark.parametrize("text", ["edge-rand:epsilon=5", "lap-graph:epsilon=5", "lap-graph:epsilon=7"])
@pytest.mark.parametrize("attack", ["membership", "posterior"])
def test_true_edges_that_are_not_shown_count_as_missed(text, attack, p):
    graph = nx.connected_watts_strogatz_graph(200, 6, 0.1, seed=3)
    instance = lograb.generate(graph, d=1, p=p, k=16, sigma=0.05, defences=[text])
    answer = lograb.attack(instance, attack)
    score, promised = lograb.evaluate(instance, answer), answer.diagnostics["expected"]
    assert score.f1 == pytest.approx(promised["f1"], abs=0.04)
    assert score["recall"] == pytest.approx(promised["recall"], abs=0.04)


def test_without_flips_nothing_changes():
    instance = lograb.generate("karate", d=1, k=8, sigma=0.05, defences=["round:bits=30"])
    assert "flip_rates" not in lograb.attack(instance, "posterior").diagnostics
    plain = lograb.generate("karate", d=1, k=8, sigma=0.05)
    assert lograb.attack(plain, "membership").diagnostics == lograb.attack(instance, "membership").diagnostics


def test_noised_eigenvalues_are_evidence_but_no_checksum():
    def f1(*texts):
        instance = lograb.generate("citation", d=2, p=0.03, k=16, sigma=0.1, defences=texts)
        answer = lograb.attack(instance, "posterior")
        return lograb.evaluate(instance, answer).f1, answer.diagnostics

    exact, told = f1()
    assert sum(told["passed"]) > 0
    noised, told = f1("eigenvalue-noise:sigma=0.05")
    assert not sum(told["passed"])
    drowned, _ = f1("eigenvalue-noise:sigma=5")
    withheld, _ = f1("withhold")
    assert exact >= noised > withheld
    assert drowned == pytest.approx(withheld, abs=0.05)


@pytest.mark.parametrize(("attack", "runs"), [("heat-kernel", 400), ("posterior", 150), ("eigen-sync", 150)])
def test_no_attack_beats_the_bound(attack, runs):
    """An edge that is there or not, all else fixed: how often does the attack score it higher when it is?"""
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((10, 10)) < 0.4, 1)
    upper[np.arange(9), np.arange(1, 10)] = True
    edges, patches = np.argwhere(upper), [list(range(10))]
    parameters = {"patches": patches, "k": 5, "sigma": 0.25, "defences": ["eigenvalue-noise:sigma=0.2"]}
    graph = lograb.Graph.from_edges("whole", 10, edges)
    instance = lograb.generate(graph, **parameters)
    found = bound(instance.observations, instance.patch_edges, rng)
    at = int(np.argsort(found.mu)[len(found.mu) // 3])
    missing = found.edges[at]
    less = lograb.Graph.from_edges("less", 10, edges[~(edges == missing).all(axis=1)])
    scores = []
    for one, first in ((graph, 0), (less, 10_000)):
        drawn = []
        for seed in range(runs):
            answer = lograb.attack(lograb.generate(one, seed=first + seed, **parameters), attack)
            pairs = answer.edges if answer.judged is None else answer.judged
            values = answer.scores if answer.judged is None else answer.judged_scores
            hit = np.flatnonzero((pairs == missing).all(axis=1))
            drawn.append(values[hit[0]] if len(hit) else -np.inf)
        scores.append(np.array(drawn))
    for fpr in (0.1, 0.3):
        cut = np.quantile(scores[1], 1 - fpr, method="higher")
        real = float((scores[1] > cut).mean())
        error = 3 * np.sqrt(0.25 / runs) + abs(real - fpr)
        assert float((scores[0] > cut).mean()) <= found.tpr(fpr)[at] + error
