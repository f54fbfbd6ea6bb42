"""What releases add up to."""

import warnings

import networkx as nx
import numpy as np
import pytest

import lograb
from lograb import LograbError, LograbNotice
from lograb.defences.accounting import NOTHING, epsilon_of, largest_tpr, mu_of


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


def test_rounded_eigenvalues_are_not_called_exact():
    channels = lograb.ledger(lograb.generate("karate", defences=["round:bits=2"]))["channels"]
    assert channels[1]["mechanism"] == "rounded, without noise"


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
    again = lograb.generate("karate", strategy="global", defences=["gaussian:epsilon=1"], seed=1)
    twice = lograb.ledger(one, again)["total"]
    assert twice["epsilon"] == pytest.approx(epsilon_of(np.sqrt(2) * mu_of(1.0, 1e-5), 1e-5))
    assert twice["tpr"] == pytest.approx(largest_tpr(np.sqrt(2) * mu_of(1.0, 1e-5)))
    mixed = lograb.ledger(one, other)["total"]
    assert 1.0 < mixed["epsilon"] < 2.0
    assert lograb.ledger(one, lograb.generate("karate"))["total"]["whole"] == "none"
    with pytest.raises(LograbError, match="instances"):
        lograb.ledger("karate")


@pytest.mark.parametrize("defence", ["gaussian:epsilon=1", "edge-rand:epsilon=1"])
def test_one_release_given_twice_counts_once(defence, tmp_path):
    one = lograb.generate("karate", strategy="global", defences=[defence])
    one.save(tmp_path / "a.lograb", truth=False)
    with pytest.warns(LograbNotice, match=r"number 2 shares the same as number 1 .* counts once"):
        found = lograb.ledger(one, lograb.load(tmp_path / "a.lograb"))
    assert found["total"]["epsilon"] == pytest.approx(1.0)
    assert (found["total"]["files"], found["total"]["repeated"]) == (1, 1)
    assert [part["repeats"] for part in found["parts"]] == [None, 1]


def watts(n, seed=1):
    """A graph, and the eigenvalues and eigenvectors that its owner computed."""
    graph = nx.connected_watts_strogatz_graph(n, 6, 0.3, seed=seed)
    return graph, *np.linalg.eigh(nx.normalized_laplacian_matrix(graph).toarray())


def packed(vectors, truth=None, **parameters):
    seen = lograb.Observations.from_arrays(list(range(len(vectors))), vectors, **parameters)
    return lograb.Instance.from_observations(seen, None if truth is None else lograb.load_graph(truth))


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_rounding_errors_of_given_columns_are_not_called_private(kind):
    graph, _, vectors = watts(40)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((40, 40)))[0]
    announced = packed((vectors @ turn).astype(kind), graph, gauge="rotation")
    assert lograb.ledger(announced)["whole"] == "none"
    assert lograb.bound(announced)[0]["infinite"] == graph.number_of_edges()
    rotated = lograb.defend(packed(vectors.astype(kind), graph), ["withhold", "rotate"])  # which leaves nothing
    assert lograb.ledger(rotated)["units"]["edge"]["epsilon"] == 0
    assert lograb.bound(rotated)[0]["mu"]["largest"] == 0


def test_given_columns_are_as_far_apart_as_the_clip_lets_them():
    rng = np.random.default_rng(0)
    vectors = watts(60)[2][:, :6] + 0.1 * rng.standard_normal((60, 6))  # noise that is not announced
    assert np.linalg.norm(vectors) > np.sqrt(6)
    for clip, most in ((100, 100), (3, 3), (1, np.sqrt(6))):
        told = lograb.ledger(lograb.defend(packed(vectors), f"gaussian:sigma=4,clip={clip}"))
        assert told["units"]["edge"]["mu"] == pytest.approx(2 * most / 4)
        assert told["units"]["edge"]["mu"] >= 2 * min(np.linalg.norm(vectors), clip) / 4
    own = lograb.defend(lograb.generate("karate", k=8), "gaussian:sigma=4,clip=100")
    assert lograb.ledger(own)["units"]["embedding"]["mu"] == pytest.approx(2 * np.sqrt(8) / 4)  # orthonormal ones


def test_an_announced_rotation_lowers_no_epsilon():
    rng = np.random.default_rng(0)
    noised = watts(40)[2] + 0.5 * rng.standard_normal((40, 40))
    found = [lograb.ledger(packed(noised, sigma=0.5, gauge=gauge))["units"]["edge"]["mu"]
             for gauge in ("sign", "rotation")]  # fmt: skip
    assert found == pytest.approx([2 * np.sqrt(40) / 0.5] * 2)


def test_withheld_eigenvalues_are_withheld_all():
    graph, values, vectors = watts(40)
    noised = vectors[:, :16] + 20 * np.random.default_rng(0).standard_normal((40, 16))
    instance = packed(noised, graph, values=None, next_values=values[16], sigma=20.0)
    assert lograb.ledger(instance)["whole"] == "conditional"
    assert instance.observations.next_values is None
    assert lograb.defend(instance, "truncate:k=2").observations.next_values is None


def test_one_rule_says_what_epsilon_rules_out():
    sanitised = lograb.generate("karate", defences=["edge-rand:epsilon=8"])
    noised = lograb.generate("karate", strategy="global", k=8, defences=["gaussian:epsilon=10"])
    for instance, nothing in ((sanitised, True), (noised, False)):
        told = lograb.ledger(instance)
        assert (told["units"]["edge"]["tpr"] > NOTHING) == nothing
        assert ("rules out nothing" in told["sentence"]) == nothing
    said = lograb.bound(sanitised)[0]["sentence"]
    assert "rules out nothing" in said
    assert "above 1" not in said


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
