"""The attacks that exist so far, and what must hold for each of them."""

import numpy as np
import pytest

import lograb
from lograb.attacks import ATTACKS, find_attack
from lograb.attacks.heat_kernel import two_groups
from lograb.errors import LograbError
from lograb.spec import Protocol
from lograb.tasks import ceiling, compare, evaluate, run_attack
from lograb.types import Graph, Observations


def empty(n_nodes=3):
    none = np.empty(0, np.int64)
    return Observations(Protocol(), n_nodes, none, np.zeros(1, np.int64), none, np.empty(0), np.empty(0),
                        np.empty(0), none)  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_seen_nothing_claimed(name):
    attack = ATTACKS[name]
    for seen in (empty(), lograb.generate(Graph.from_edges("alone", 3, np.empty((0, 2)))).observations):
        answer = attack.reconstruct(seen, np.random.default_rng(0))
        assert len(answer.edges) == 0


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("strategy", ["d-hop", "cluster", "random"])
def test_claims_are_pairs_that_share_a_patch(name, strategy):
    instance = lograb.generate("karate", strategy=strategy, d=1, p=0.7, k=4, sigma=0.1)
    answer, _ = run_attack(instance, name)
    seen = instance.observations
    together = {(u, w) for i in range(seen.n_patches) for u in seen.members(i) for w in seen.members(i) if u < w}
    assert len(answer.edges)
    assert {tuple(e) for e in answer.edges.tolist()} <= together


def test_membership_is_certain_about_one_hop_balls():
    instance = lograb.generate("citation", d=1, p=0.3)
    answer, _ = run_attack(instance, "membership")
    scores = evaluate(instance, answer)
    assert scores["precision"] == 1.0
    incident = np.isin(instance.truth.edges, instance.observations.centres).any(axis=1)
    assert len(answer.edges) == incident.sum()


def test_heat_kernel_inverts_complete_noiseless_karate():
    row = next(r for r in compare(lograb.generate("karate", d=1, k=40), ["heat-kernel"]))
    assert row["f1"]["global"] > 0.97


def test_heat_kernel_says_what_it_lacks():
    with pytest.raises(LograbError, match="withhold"):
        run_attack(lograb.generate("karate", eigenvalues=False), "heat-kernel")


def test_two_groups():
    rows = np.array([[0.0, 0.1, 0.9, 1.0], [5.0, 5.0, 5.0, 5.0]])
    assert (rows > two_groups(rows)[:, None]).tolist() == [[False, False, True, True], [True] * 4]
    assert (np.array([[0.3]]) > two_groups(np.array([[0.3]]))[:, None]).all()


def test_floor_and_ceiling_enclose():
    instance = lograb.generate("citation", d=1, p=0.6, sigma=0.05)
    rows = compare(instance)
    flags = instance.co_observed
    assert ceiling(instance) == pytest.approx(2 * flags.sum() / (flags.sum() + len(flags)))
    best = max(r["f1"]["global"] for r in rows if ATTACKS[r["method"]].trivial)
    assert compare(instance, ["heat-kernel"])[0]["floor"] == best
    assert all(r["f1"]["global"] <= r["ceiling"] for r in rows)
    assert 0.9 < rows[0]["floor"] < rows[0]["ceiling"] < 1


def test_unknown_attack_names_the_closest():
    with pytest.raises(LograbError, match="Did you mean 'membership'"):
        find_attack("membershop")


def test_scopes_differ_where_nodes_are_missing():
    instance = lograb.generate("karate")
    truth = instance.truth.edges
    half = np.arange(17)
    inside = truth[np.isin(truth, half).all(axis=1)]
    scores = evaluate(instance, lograb.Reconstruction(34, inside, np.ones(len(inside)), half))
    assert scores["f1"]["recovered"] == 1.0
    assert scores["f1"]["global"] == pytest.approx(2 * len(inside) / (len(inside) + len(truth)))
    assert scores["node_coverage"] == 0.5


def test_the_judge_does_not_trust_the_answer():
    none = np.empty((0, 2), np.int64)
    with pytest.raises(LograbError, match="distinct"):
        lograb.Reconstruction(34, none, np.empty(0), np.zeros(9, np.int64))
    with pytest.raises(LograbError, match="about 35 nodes"):
        evaluate(lograb.generate("karate"), lograb.Reconstruction(35, none, np.empty(0), np.arange(35)))
