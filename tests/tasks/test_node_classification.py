"""Task 2 as a user meets it: scores beside their floors, both splits, errors, the command line."""

import json
import subprocess
import sys

import numpy as np
import pytest
from tests.learning.tiny import four_patches
from typer.testing import CliRunner

import lograb
from lograb.cli.app import app
from lograb.errors import LograbError
from lograb.learning.nodes.splits import make_split, unseen_rows
from lograb.learning.patchset import patch_set
from lograb.tasks import node_classification
from lograb.tasks.node_classification import check_choices, classify, combine, score_floors

REQUIRED = {"model", "split", "f1_micro", "f1_macro", "floor", "seen_share", "parameters", "seconds"}
NAMES = {"sage", "gcn", "gat", "gin", "gps", "san", "graphormer", "gin-vn", "gps-lappe", "san-lappe", "san-rwse",
         "attention"}  # fmt: skip


@pytest.fixture(scope="module")
def instance():
    return lograb.generate("superpixels", graph=0, d=1, p=0.2, k=8, sigma=0.05, seed=0)


def test_scores_stand_beside_their_floors(instance):
    pytest.importorskip("torch_geometric")
    score = classify(instance, "gcn", "patch", repeats=2, settings={"epochs": 3})
    found = score.to_dict()
    assert score.interval[0] <= score.value <= score.interval[1]
    assert score.floor == found["floor"]
    again = classify(instance, "gcn", "patch", repeats=2, settings={"epochs": 3})
    assert found.keys() >= REQUIRED
    assert all(isinstance(found[key], int | float) for key in REQUIRED - {"model", "split"})
    floors = found["floors"]
    assert floors.keys() == {"majority", "memory", "mlp"}
    assert 0 < found["seen_share"] < 1
    assert len(found["runs"]) == 2
    assert found["f1_micro"] == pytest.approx(np.mean([run["f1_micro"] for run in found["runs"]]))
    assert found["f1_micro_interval"][0] <= found["f1_micro"] <= found["f1_micro_interval"][1]
    timeless = ("f1_micro", "f1_macro", "centres", "unseen", "floor", "seen_share", "f1_micro_sd", "epochs")
    assert all(found[key] == again[key] for key in timeless)
    assert json.loads(json.dumps(found)) == found


def test_node_disjoint_scores_only_nodes_that_training_has_not_labelled(instance):
    pytest.importorskip("torch_geometric")
    found = classify(instance, "sage", "node-disjoint", settings={"epochs": 2})
    assert found["seen_share"] == 0
    assert found["f1_micro"] == found["unseen"]["f1_micro"]
    assert found["floors"]["memory"]["f1_micro"] == found["floors"]["majority"]["f1_micro"]
    assert found["f1_micro_sd"] is None


def test_memory_is_right_on_every_seen_node():
    # without features no network is needed
    patches = patch_set(lograb.generate("karate", d=1, p=0.6, k=4))
    assert patches.n_features == 0
    split = make_split(patches, "patch", np.random.default_rng(0))
    floors = score_floors(patches, split, np.random.default_rng(0))
    assert floors.keys() == {"majority", "memory"}
    unseen = unseen_rows(patches, split)[split.test].mean()
    share = floors["memory"]["unseen"]["f1_micro"] or 0.0
    assert floors["memory"]["f1_micro"] == pytest.approx(1 - unseen + unseen * share)
    common = np.bincount(patches.labels[patches.nodes[split.train]]).argmax()
    wanted = (patches.labels[patches.nodes[split.test]] == common).mean()
    assert floors["majority"]["f1_micro"] == pytest.approx(wanted)


def test_majority_of_several_labels_is_the_likeliest():
    labels = np.zeros((14, 4), dtype=bool)
    labels[:, 2] = True
    labels[::2, 1] = True
    split = make_split(four_patches(labels=labels), "node-disjoint", np.random.default_rng(0))
    patches = four_patches(labels=labels, features=np.zeros((14, 0), dtype=np.float32))
    found = score_floors(patches, split, np.random.default_rng(0))["majority"]
    tested = labels[split.test]
    always = np.zeros_like(tested)
    always[:, labels[split.train].mean(axis=0) > 0.5] = True
    assert found["f1_micro"] == pytest.approx(2 * (tested & always).sum() / (tested.sum() + always.sum()))


def test_clusters_have_no_centres():
    pytest.importorskip("torch_geometric")
    instance = lograb.generate("superpixels", graph=0, strategy="cluster", clusters=6, d=1, k=4)
    assert classify(instance, "mlp", settings={"epochs": 1})["centres"] is None


def test_all_models_meet_the_same_split(instance, monkeypatch):
    pytest.importorskip("torch_geometric")
    met, make = [], node_classification.make_split
    monkeypatch.setattr(node_classification, "make_split", lambda *args: met.append(make(*args)) or met[-1])
    # The Transformer draws for its encodings too, and by another number of weights.
    one, two = (classify(instance, name, "patch", seed=3, repeats=2, settings={"epochs": 1})
                for name in ("gcn", "gps-lappe"))  # fmt: skip
    for key in ("test_nodes", "seen_share", "seen_occurrences", "test_occurrences"):
        assert one[key] == two[key], key
    first, second, again, last = met
    assert np.array_equal(first.test, again.test)
    assert np.array_equal(second.train, last.train)
    assert not np.array_equal(first.test, second.test)
    assert one["floors"]["memory"] == two["floors"]["memory"]


def test_floors_are_trained_once_for_all_models(monkeypatch):
    pytest.importorskip("torch_geometric")
    calls, real = [], score_floors
    monkeypatch.setattr(node_classification, "score_floors", lambda *args: calls.append(1) or real(*args))
    instance = lograb.generate("superpixels", graph=0, d=1, p=0.2, k=8, sigma=0.05, seed=0)
    few = {"epochs": 2}
    first, second = (classify(instance, name, settings=few)["floors"] for name in ("gcn", "sage"))
    assert len(calls) == 1
    assert first == second
    for changed in ({"split": "node-disjoint"}, {"seed": 1}, {"settings": {"epochs": 3}}):
        classify(instance, "gcn", **{"settings": few} | changed)
    assert len(calls) == 4
    again = lograb.generate("superpixels", graph=0, d=1, p=0.2, k=8, sigma=0.05, seed=0)
    assert classify(again, "gcn", settings=few)["floors"]["mlp"]["f1_micro"] == first["mlp"]["f1_micro"]
    assert len(calls) == 5


def test_numbers_are_averaged_and_missing_ones_left_out():
    runs = [{"f1_micro": a, "f1_macro": a, "floor": 0.1, "seconds": 1.0, "unseen": {"f1_micro": b}}
            for a, b in ((0.49, None), (0.51, 0.5))]  # fmt: skip
    found = combine(runs)
    assert found["f1_micro"] == pytest.approx(0.5)
    assert found["f1_micro_sd"] == pytest.approx(0.02 / np.sqrt(2))
    # Student's t with one degree of freedom: 12.706
    assert found["f1_micro_interval"][1] - 0.5 == pytest.approx(12.7062 * 0.01, rel=1e-4)
    assert found["unseen"]["f1_micro"] == 0.5
    runs[0]["f1_micro"] = 0.9
    assert combine(runs)["f1_micro_interval"] == [0.0, 1.0]  # nothing else is an F1


def test_mistakes_are_told_before_any_work():
    with pytest.raises(LograbError, match="Did you mean 'gin-vn'"):
        check_choices("gin-vm", "patch", None)
    with pytest.raises(LograbError, match="unknown split 'node'"):
        check_choices("gin", "node", None)
    with pytest.raises(LograbError, match="epochs: .*greater than or equal to 1, got 0"):
        check_choices("gin", "patch", {"epochs": 0})
    with pytest.raises(LograbError, match="unknown setting of gin 'width'"):
        check_choices("gin", "patch", {"width": 3})
    _, training, special = check_choices("gin", "patch", {"patience": 3, "hidden": 8})
    assert training.patience == 3
    assert special == {"hidden": 8}
    with pytest.raises(LograbError, match="gin: dropout: .*less than 1, got 1.5"):
        check_choices("gin", "patch", {"dropout": 1.5})
    assert check_choices("san", "patch", {"learning_rate": 0.001})[1].learning_rate == 0.001


def test_without_labels_there_is_nothing_to_learn():
    pytest.importorskip("torch_geometric")
    with pytest.raises(LograbError, match="no node labels"):
        classify(lograb.generate("molecules", graph=0), "gcn")
    with pytest.raises(LograbError, match="repeats must be at least 1"):
        classify(lograb.generate("karate"), "gcn", repeats=0)
    with pytest.raises(LograbError, match="seed must be at least 0"):
        classify(lograb.generate("karate"), "gcn", seed=-1)


def test_without_features_there_is_no_perceptron():
    pytest.importorskip("torch_geometric")
    made = lograb.generate("karate", d=1, p=0.6, k=4)
    with pytest.raises(LograbError, match="'karate' has no node features: mlp needs some"):
        classify(made, "mlp")
    assert classify(made, "gcn", settings={"epochs": 1})["floors"].keys() == {"majority", "memory"}


def test_command_line(instance, tmp_path):
    pytest.importorskip("torch_geometric")
    path = tmp_path / "x.lograb"
    instance.save(path)
    options = ("--model", "gcn", "--split", "node-disjoint", "--set", "epochs=2")
    done = CliRunner().invoke(app, ["classify", str(path), *options, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found.keys() >= REQUIRED
    assert (found["model"], found["split"], found["seed"]) == ("gcn", "node-disjoint", 0)
    assert found["f1_micro"] == classify(instance, "gcn", "node-disjoint", settings={"epochs": 2})["f1_micro"]
    shown = CliRunner().invoke(app, ["classify", str(path), *options, "--repeats", "2"])
    assert "0 % of the test nodes were seen in training" in shown.stdout
    assert "majority" in shown.stdout


def test_command_line_tells_mistakes_in_one_line():
    code = "from lograb.cli import main; main()"
    wrong = ["classify", "no-such-file", "--model", "graphormr"]
    done = subprocess.run([sys.executable, "-c", code, *wrong], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("lograb: unknown model 'graphormr'. Did you mean 'graphormer'?")
    assert "Traceback" not in done.stderr


def test_models_are_listed_without_torch():
    code = ("import sys, lograb.cli.listing as l; sys.modules['torch'] = None; rows = l.CATALOGS['models'](); "
            "print(*(r['name'] for r in rows))")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) >= NAMES


def test_without_the_extra_the_error_names_it():
    code = ("import sys; sys.modules['torch'] = None; import lograb; "
            "from lograb.tasks.node_classification import classify; classify(lograb.generate('karate'), 'gcn')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingExtraError: lograb classify needs the extra 'gnn'" in done.stderr


def test_a_misspelt_setting_of_the_training_is_recognised():
    with pytest.raises(LograbError, match="unknown setting of gcn 'epoch'. Did you mean 'epochs'?.*hidden"):
        check_choices("gcn", "patch", {"epoch": 3})
