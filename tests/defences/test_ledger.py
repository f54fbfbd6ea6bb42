"""What releases add up to."""

import warnings

import networkx as nx
import numpy as np
import pytest

import lograb
from lograb import LograbError, LograbNotice
from lograb.defences.accounting import epsilon_of, mu_of


def test_an_embedding_gets_what_was_asked_for_and_an_edge_what_its_patches_add_up_to():
    instance = lograb.generate("karate", d=1, k=8, defences=["gaussian:epsilon=2"])
    told = lograb.ledger(instance)
    assert told["units"]["embedding"]["epsilon"] == pytest.approx(2.0)
    seen = instance.observations
    inside = np.zeros((seen.n_patches, seen.n_nodes))
    for i in range(seen.n_patches):
        inside[i, seen.members(i)] = 1
    together = np.triu(inside.T @ inside, 1).max()
    assert told["units"]["edge"]["patches"] == together
    composed = epsilon_of(np.sqrt(together) * mu_of(2.0, 1e-5), 1e-5)
    assert told["units"]["edge"]["epsilon"] == pytest.approx(composed)
    assert told["units"]["node"]["patches"] == inside.sum(axis=0).max()
    assert told["whole"] == "conditional"
    assert "membership treated as public" in told["sentence"]


def test_noise_on_both_channels_costs_what_noise_on_one_does():
    both, one = (lograb.ledger(lograb.generate("karate", defences=[text])) for text in
                 ("gaussian:epsilon=2,eigenvalues=noised", "gaussian:epsilon=2"))  # fmt: skip
    assert both["units"]["edge"]["epsilon"] == pytest.approx(one["units"]["edge"]["epsilon"])


@pytest.mark.parametrize("order", [["gaussian:epsilon=1", "pseudonyms"], ["pseudonyms", "gaussian:epsilon=1"]])
def test_pseudonyms_never_lower_epsilon(order):
    plain = lograb.ledger(lograb.generate("karate", d=1, k=8, defences=["gaussian:epsilon=1"]))["units"]
    hidden = lograb.ledger(lograb.generate("karate", d=1, k=8, defences=order))["units"]
    assert hidden["embedding"]["epsilon"] == pytest.approx(plain["embedding"]["epsilon"])
    for unit in ("edge", "node"):
        assert hidden[unit]["epsilon"] >= plain[unit]["epsilon"]
        assert hidden[unit]["patches"] >= plain[unit]["patches"]


def test_releases_add_up():
    once, often = (lograb.ledger(lograb.generate("karate", defences=["gaussian:epsilon=1"], releases=t))
                   for t in (1, 9))  # fmt: skip
    assert often["units"]["edge"]["mu"] == pytest.approx(3 * once["units"]["edge"]["mu"])
    assert "9 releases" in often["sentence"]


@pytest.mark.parametrize("parameters", [
    {"sigma": 0.5}, {"sigma": 0.5, "defences": ["round:bits=2"]}, {"defences": ["round:bits=2", "withhold"]},
    {"defences": ["eigenvalue-noise:epsilon=1"]}, {"defences": ["rotate", "withhold"]}, {},
])  # fmt: skip
def test_one_channel_without_a_mechanism_voids_the_whole(parameters):
    told = lograb.ledger(lograb.generate("karate", d=2, k=8, **parameters))
    assert told["whole"] == "none"
    assert told["units"]["edge"] is None
    assert told["sentence"].startswith("No guarantee")


def test_a_sanitised_graph_covers_membership():
    told = lograb.ledger(lograb.generate("karate", defences=["edge-rand:epsilon=2", "edge-rand:epsilon=3"]))
    assert told["whole"] == "formal"
    assert told["units"]["edge"]["epsilon"] == 2.0
    assert all(line["guarantee"] in ("formal", "-") for line in told["channels"])


def test_membership_of_the_whole_graph_depends_on_no_edge():
    told = lograb.ledger(lograb.generate("karate", strategy="global", defences=["gaussian:epsilon=0.5"]))
    assert told["whole"] == "formal"
    assert told["units"]["edge"]["epsilon"] == pytest.approx(0.5)
    given = lograb.generate("karate", patches=[list(range(34))], defences=["gaussian:epsilon=0.5"])
    assert lograb.ledger(given)["whole"] == "conditional"


def test_files_about_one_graph_add_up():
    pytest.importorskip("dp_accounting")
    one = lograb.generate("karate", strategy="global", defences=["gaussian:epsilon=1"])
    other = lograb.generate("karate", defences=["edge-rand:epsilon=1"])
    twice = lograb.ledger(one, one)["total"]
    assert twice["epsilon"] == pytest.approx(epsilon_of(np.sqrt(2) * mu_of(1.0, 1e-5), 1e-5))
    mixed = lograb.ledger(one, other)["total"]
    assert 1.0 < mixed["epsilon"] < 2.0
    assert lograb.ledger(one, lograb.generate("karate"))["total"]["whole"] == "none"
    with pytest.raises(LograbError, match="instances"):
        lograb.ledger("karate")


def test_a_seed_and_the_truth_in_the_file_are_told(tmp_path):
    instance = lograb.generate("karate")
    told = lograb.ledger(instance)
    assert told["seed_in_file"]
    assert told["truth_in_file"]
    instance.save(tmp_path / "a.lograb", truth=False)
    told = lograb.ledger(lograb.load(tmp_path / "a.lograb"))
    assert not told["seed_in_file"]
    assert not told["truth_in_file"]


def test_files_about_different_graphs_are_noticed():
    edges = [("ann", "bob"), ("bob", "cyd"), ("cyd", "dan")]
    one, renamed = (lograb.generate(nx.Graph([(a + end, b + end) for a, b in edges])) for end in ("", "2"))
    longer = lograb.generate(nx.Graph([*edges, ("dan", "eve")]))
    karate = lograb.generate("karate")
    for other, what in ((renamed, "the names"), (longer, "the number of nodes"), (karate, "the source")):
        with pytest.warns(LograbNotice, match=f"differ in {what}"):
            lograb.ledger(one, other)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lograb.ledger(karate, lograb.defend(karate, "rotate", seed=1))
        lograb.ledger(karate, lograb.defend(karate, "pseudonyms", seed=1))
