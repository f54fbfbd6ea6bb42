"""``lograb defend``, ``ledger``, ``bound`` and ``utility``."""

import csv
import json

import pytest
from tests.cli.command import lograb, ok

from lograb import Graph, generate


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
    both = lograb("ledger", folder / "plain.lograb", folder / "defended.lograb")
    assert both.stdout.startswith("All 2 files together for one edge: no guarantee.")
    assert both.stderr.count("this file also holds the true graph") == 1
    same = lograb("ledger", folder / "defended.lograb", folder / "defended.lograb")
    assert "All 2 files together, 1 of them a repetition that adds nothing" in " ".join(same.stdout.split())
    assert "counts once" in same.stderr


def test_the_bound_is_kept_edge_by_edge(folder):
    (folder / "edges.csv").write_text("earlier")
    (folder / "before.csv").hardlink_to(folder / "edges.csv")
    told = json.loads(lograb("bound", folder / "defended.lograb", "-o", folder / "edges.csv", "--json").stdout)
    assert (folder / "before.csv").read_text() == "earlier"  # replaced when all is written, never half written
    lines = (folder / "edges.csv").read_text().splitlines()
    assert lines[0] == "u,v,mu,tpr_at_fpr_0.001"
    assert len(lines) == told["looked_at"] + 1
    assert told["curve"][0]["largest"] <= 1
    assert "No guarantee" in lograb("bound", folder / "plain.lograb").stdout


def test_the_bound_names_nodes_and_graphs(tmp_path):
    (tmp_path / "friends.csv").write_text('"Ann, dr",bob\nbob,cyd\ncyd,"Ann, dr"\ncyd,dan\n')
    ok("generate", tmp_path / "friends.csv", "--strategy", "global", "-o", tmp_path / "a.lograb")
    ok("bound", tmp_path / "a.lograb", "-o", tmp_path / "edges.csv")
    with (tmp_path / "edges.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {frozenset((row["u"], row["v"])) for row in rows} == {
        frozenset(pair) for pair in (("Ann, dr", "bob"), ("bob", "cyd"), ("cyd", "Ann, dr"), ("cyd", "dan"))}
    generate([Graph.from_edges("path", 3, [(0, 1), (1, 2)])] * 2).save(tmp_path / "many.lograb")
    ok("bound", tmp_path / "many.lograb", "-o", tmp_path / "edges.csv")
    assert (tmp_path / "edges.csv").read_text().startswith("graph,u,v,")


def test_truth_in_what_is_shared_is_told_and_left_out(folder, tmp_path):
    told = "this file also holds the true graph"
    with_truth = ok("defend", folder / "plain.lograb", "--method", "rotate", "-o", tmp_path / "a.lograb")
    assert told in with_truth.stderr
    assert told in ok("ledger", tmp_path / "a.lograb").stderr
    without = ok("defend", folder / "plain.lograb", "--method", "rotate", "--no-truth", "--json", "-o",
                 tmp_path / "b.lograb")  # fmt: skip
    assert told not in without.stderr + ok("ledger", tmp_path / "b.lograb").stderr
    info = json.loads(ok("info", tmp_path / "b.lograb", "--json").stdout)
    summary = json.loads(without.stdout)
    assert (summary["truth"], summary["n_edges"]) == (False, None)
    assert summary == {key: info[key] for key in summary}


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
