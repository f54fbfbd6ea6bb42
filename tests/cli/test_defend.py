"""``lograb defend``, ``ledger``, ``bound`` and ``utility``."""

import json

import pytest
from tests.cli.command import lograb


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("defend")
    plain, defended = place / "plain.lograb", place / "defended.lograb"
    lograb("generate", "karate", "--strategy", "cluster", "--clusters", "3", "-k", "8", "-o", plain)
    lograb("defend", plain, "--method", "truncate:k=4", "--method", "subspace:sigma=0.5", "--releases", "4",
           "-o", defended)  # fmt: skip
    return place


def test_what_was_applied_stands_in_the_file(folder):
    told = json.loads(lograb("info", folder / "defended.lograb", "--json").stdout)
    assert told["defences"] == ["truncate:k=4", "subspace:delta=1e-05,sigma=0.5"]
    assert (told["releases"], told["gauge"], told["eigenvalues"], told["k"]) == (4, "rotation", False, 4)


def test_the_ledger_is_a_sentence_and_tables(folder):
    shown = lograb("ledger", folder / "defended.lograb").stdout
    assert shown.startswith("No guarantee as it stands")
    assert "4 releases" in " ".join(shown.split())
    assert "eigenvectors" in shown
    plain = json.loads(lograb("ledger", folder / "plain.lograb", "--json").stdout)
    assert plain["whole"] == "none"
    both = lograb("ledger", folder / "plain.lograb", folder / "defended.lograb").stdout
    assert "All 2 files together" in both


def test_the_bound_is_kept_edge_by_edge(folder):
    (folder / "edges.csv").write_text("earlier")
    (folder / "before.csv").hardlink_to(folder / "edges.csv")
    told = json.loads(lograb("bound", folder / "defended.lograb", "-o", folder / "edges.csv", "--json").stdout)
    assert (folder / "before.csv").read_text() == "earlier"  # replaced when all is written, never half written
    lines = (folder / "edges.csv").read_text().splitlines()
    assert lines[0] == "graph,u,v,mu,tpr_at_fpr_0.001"
    assert len(lines) == told["looked_at"] + 1
    assert told["curve"][0]["largest"] <= 1
    assert "No guarantee" in lograb("bound", folder / "plain.lograb").stdout


def test_utility_and_slips(folder):
    assert "subspace" in lograb("utility", folder / "defended.lograb").stdout
    wrong = lograb("defend", folder / "plain.lograb", "--method", "edge-rand:epsilon=1", "-o", folder / "x.lograb")
    assert wrong.returncode == 2
    assert "before it is cut" in " ".join(wrong.stderr.split())
    same = lograb("defend", folder / "plain.lograb", "--method", "rotate", "-o", folder / "plain.lograb")
    assert same.returncode == 2


def test_generating_with_defences_is_refused_without_their_settings(folder):
    wrong = lograb("generate", "karate", "--defence", "gaussian", "-o", folder / "y.lograb")
    assert wrong.returncode == 2
    assert "epsilon" in wrong.stderr
