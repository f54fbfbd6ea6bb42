"""What patch membership alone reveals, with centres published or not."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lograb
from lograb.attacks.baselines import centres
from lograb.attacks.baselines import membership as membership_module
from lograb.attacks.baselines.centres import possible_centres
from lograb.attacks.baselines.membership import membership
from lograb.metrics import count_edges
from lograb.ragged import owners
from lograb.types import Graph


def without_centres(instance):
    return dataclasses.replace(instance.observations, centres=None)


def f1(instance, seen):
    return count_edges(instance.truth.edges, membership(seen).edges, instance.n_nodes).f1


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 9))
    pairs = [(u, w) for u in range(n) for w in range(u)]
    chosen = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    return Graph.from_edges("small", n, np.array([p for p, c in zip(pairs, chosen) if c]).reshape(-1, 2))


@settings(max_examples=60)
@given(graphs(), st.sampled_from(["d-hop", "random"]), st.sampled_from([0.3, 0.6, 1.0]), st.integers(1, 2))
def test_a_true_centre_is_never_dropped(graph, strategy, p, d):
    seen = lograb.generate(graph, strategy=strategy, p=p, d=d, k=1).observations
    possible = possible_centres(seen)
    assert possible is not None
    assert possible[seen.nodes == seen.centres[owners(seen.ptr)]].all()


@settings(max_examples=40)
@given(graphs(), st.sampled_from([0.6, 1.0]))
def test_certain_pairs_are_edges(graph, p):
    instance = lograb.generate(graph, p=p, k=1)
    answer = membership(without_centres(instance))
    sure = answer.edges[answer.scores == 1]
    assert {tuple(e) for e in sure.tolist()} <= {tuple(e) for e in instance.truth.edges.tolist()}


def test_work_in_small_blocks_gives_the_same_candidates(monkeypatch):
    seen = lograb.generate("citation", p=0.3, k=1).observations
    expected = possible_centres(seen)
    monkeypatch.setattr(centres, "AT_ONCE", 50)
    assert np.array_equal(possible_centres(seen), expected)


@pytest.mark.parametrize(("source", "p"), [("citation", 1.0), ("citation", 0.6), ("karate", 0.7)])
def test_withholding_the_centres_hardly_helps(source, p):
    gap = 0.02 if p < 1 else 0.0
    instance = lograb.generate(source, p=p, k=1)
    seen = without_centres(instance)
    assert membership(seen).diagnostics["rule"] == "inferred centre-member"
    assert f1(instance, seen) >= f1(instance, instance.observations) - gap


@pytest.mark.parametrize("parameters", [{"d": 2}, {"strategy": "random", "d": 2},
                                        {"strategy": "cluster", "clusters": 3}])
def test_other_patches_fall_back_to_co_occurrence(parameters):
    seen = without_centres(lograb.generate("karate", p=0.8, k=1, **parameters))
    assert membership(seen).diagnostics == {"rule": "co-occurrence", "skipped_patches": 0}


def test_ego_networks_that_a_user_brings_are_recognised():
    instance = lograb.generate("karate", p=0.8, k=1)
    seen = instance.observations
    lists = [seen.members(i) for i in range(seen.n_patches)]
    brought = lograb.generate("karate", strategy="custom", patches=lists, k=1)
    assert membership(brought.observations).diagnostics["rule"] == "inferred centre-member"
    assert f1(brought, brought.observations) > f1(instance, seen) - 0.02


@pytest.mark.parametrize(("patches", "rule"), [
    ([[0, 1], [1, 2], [0, 2]], "none"),  # contradiction: every two share one node, the centre of only one
    ([[0, 1], [1, 2], [0, 2], [0, 1]], "co-occurrence"),
    ([list(range(20)), list(range(14, 34))], "co-occurrence"),  # any of the shared nodes would do
])  # fmt: skip
def test_other_lists_are_not_taken_for_ego_networks(patches, rule):
    seen = lograb.generate("karate", strategy="custom", patches=patches, k=1).observations
    assert membership(seen).diagnostics == {"rule": rule, "skipped_patches": 0}


@pytest.mark.parametrize("parameters", [
    {"strategy": "global"}, {"strategy": "custom", "patches": [list(range(12)), list(range(12, 30))]},
], ids=["one patch", "no overlap"])  # fmt: skip
def test_patches_that_say_nothing_give_no_claim(parameters):
    answer = membership(lograb.generate("karate", k=1, **parameters).observations)
    assert answer.diagnostics["rule"] == "none"
    assert len(answer.edges) == 0


def test_patches_that_are_too_large_are_counted(monkeypatch):
    monkeypatch.setattr(membership_module, "MAX_SIZE", 9)
    seen = lograb.generate("karate", d=2, k=1).observations
    answer = membership(dataclasses.replace(seen, centres=None))
    assert answer.diagnostics["skipped_patches"] == (seen.sizes > 9).sum() > 0


def test_a_contradiction_is_proven():
    lists = [[0, 1], [1, 2], [0, 2]]
    assert possible_centres(lograb.generate("karate", strategy="custom", patches=lists, k=1).observations) is None


def test_balls_that_contradict_the_protocol_fall_back():
    seen = without_centres(lograb.generate("karate", strategy="custom", patches=[[0, 1], [1, 2], [0, 2]], k=1))
    announced = dataclasses.replace(seen, protocol=seen.protocol.model_copy(update={"strategy": "d-hop"}))
    assert membership(announced).diagnostics["rule"] == "none"


def test_undecided_centres_share_the_odds():
    """A star of which the hub and one leaf are observed: which of the two is the hub is anybody's guess."""
    star = Graph.from_edges("star", 5, [(0, w) for w in range(1, 5)])
    seen = lograb.generate(star, strategy="custom", patches=[[0, 1, 2, 3, 4], [0, 1]], k=1).observations
    seen = dataclasses.replace(seen, protocol=seen.protocol.model_copy(update={"strategy": "d-hop"}))
    answer = membership(seen)
    found = dict(zip(map(tuple, answer.edges.tolist()), answer.scores))
    assert found == {(0, 1): 1.0} | {(u, w): 0.5 for u in (0, 1) for w in (2, 3, 4)}
    assert answer.diagnostics["undecided_patches"] == 2
