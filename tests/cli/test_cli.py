"""The command line as a user meets it: outputs, exit codes, one clear line for each mistake."""

import json
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest

from lograb import load
from lograb.attacks import ATTACKS
from lograb.cli.listing import CATALOGS, show_catalogs

REQUIRED = {"source", "n_nodes", "n_edges", "n_patches", "strategy", "d", "p", "k", "sigma", "gauge", "seed",
            "patch_sizes", "complete_share", "co_observed_edges", "sha256"}  # fmt: skip


def lograb(*arguments, cwd=None):
    command = [sys.executable, "-c", "from lograb.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def ok(*arguments, cwd=None):
    done = lograb(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done


def test_generate_info_verify(tmp_path):
    path = tmp_path / "x.lograb"
    made = json.loads(ok("generate", "karate", "-o", path, "-p", 0.6, "-k", 8, "--sigma", 0.05, "--json").stdout)
    described = json.loads(ok("info", path, "--json").stdout)
    assert made.keys() >= REQUIRED
    assert described.keys() >= REQUIRED
    assert all(made[key] == described[key] for key in REQUIRED)
    assert made["n_patches"] == 20
    assert made["seed"] == 0
    assert json.loads(ok("verify", path, "--json").stdout)["sha256"] == made["sha256"]
    assert "n_patches" in ok("info", path).stdout
    again = tmp_path / "y.lograb"
    ok("generate", "karate", "-o", again, "-p", 0.6, "-k", 8, "--sigma", 0.05)
    assert again.read_bytes() == path.read_bytes()


def test_verify_names_the_member_and_exits_1(tmp_path):
    path = tmp_path / "x.lograb"
    ok("generate", "karate", "-o", path)
    data = bytearray(path.read_bytes())
    at = data.index(b"observations/vectors.npy") + 300
    data[at] ^= 1
    path.write_bytes(data)
    done = lograb("verify", path)
    assert done.returncode == 1
    assert "observations/vectors.npy" in done.stderr
    assert "Traceback" not in done.stderr
    told = json.loads(lograb("verify", path, "--json").stdout)
    assert (told["ok"], told["member"]) == (False, "observations/vectors.npy")
    assert ok("info", path, "--json")  # what info shows does not lie in the damaged block


def test_one_graph_of_many_and_no_truth(tmp_path):
    path = tmp_path / "x.lograb"
    options = ("--graph", 3, "--no-truth", "--sigma", 0.1, "--seed", 77, "-o", path, "--json")
    done = ok("generate", "molecules", *options)
    made = json.loads(done.stdout)
    assert made["n_graphs"] == 1
    assert made["n_edges"] is None
    assert made["seed"] == 77
    assert "seed" in done.stderr
    assert json.loads(ok("info", path, "--json").stdout)["seed"] is None


def test_own_graph_with_notices_and_custom_patches(tmp_path):
    (tmp_path / "g.csv").write_text("source,target,weight\nann,bob,1\nbob,ann,2\nbob,bob,1\nbob,eve,1\n")
    (tmp_path / "p.txt").write_text("ann bob\neve bob bob\n")
    ok("generate", "g.csv", "--header", "-o", "h.lograb", cwd=tmp_path)
    options = ("--strategy", "custom", "--patches", "p.txt", "-o", "x.lograb", "--json")
    done = ok("generate", "g.csv", *options, cwd=tmp_path)
    made = json.loads(done.stdout)
    assert (made["n_nodes"], made["n_edges"], made["n_patches"]) == (3, 2, 2)
    assert "note:" in done.stderr
    assert made["notices"]


def test_silos_by_table_and_by_attribute(tmp_path):
    nx.write_graphml(nx.karate_club_graph(), tmp_path / "club.graphml")
    clubs = nx.get_node_attributes(nx.karate_club_graph(), "club")
    (tmp_path / "p.csv").write_text("node,club\n" + "".join(f"{node},{club}\n" for node, club in clubs.items()))
    by_attribute = ok("generate", "club.graphml", "--patches-by", "club", "-o", "a.lograb", "--json", cwd=tmp_path)
    by_table = ok("generate", "karate", "--patches", "p.csv", "-o", "b.lograb", cwd=tmp_path)
    made = json.loads(by_attribute.stdout)
    assert (made["strategy"], made["n_patches"]) == ("custom", 2)
    a, b = (load(tmp_path / name) for name in ("a.lograb", "b.lograb"))
    assert a.patch_names == b.patch_names == ("Mr. Hi", "Officer")
    assert a.observations.nodes.tolist() == b.observations.nodes.tolist()
    ok("verify", "a.lograb", cwd=tmp_path)
    # Each notice once, and no trace of Python's warnings.
    assert by_attribute.stderr.count("note: node attributes not used as features") == 1
    for done in (by_attribute, by_table):
        assert "Warning" not in done.stderr
        assert "LograbNotice" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate", "karate", "-o", "x", "--strategy", "custom"], "--patches FILE"),
        (["generate", "karate", "-o", "x", "--strategy", "d-hop", "--patches-by", "label"], "leave one of"),
        (["generate", "karate", "-o", "x", "--patches-by", "labels"], "Did you mean 'label'"),
        (["generate", "karate", "-o", "x", "--patches", "none.csv"], "cannot read the patches"),
        (["generate", "karat", "-o", "x"], "Did you mean 'karate'"),
        (["generate", "missing.csv", "-o", "x"], "missing.csv"),
        (["generate", "karate", "-o", "x", "-k", "0"], "k:"),
        (["generate", "karate", "-o", "x", "-p", "2"], "p:"),
        (["generate", "karate", "-o", "x", "--strategy", "cut"], "strategy"),
        (["generate", "karate", "-o", "no/such/folder/x"], "no/such/folder"),
        (["generate", "karate", "-o", "x", "--graph", "5"], "graph"),
        (["generate", "karate"], "-o"),
        (["generate", "karate", "-o", "x", "--strategy", "cluster", "--clusters", "99"], "34 observed nodes"),
        (["info", "missing.lograb"], "missing.lograb"),
        (["verify", "missing.lograb"], "missing.lograb"),
        (["list", "cats"], "datasets"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_mistakes_exit_2_and_touch_nothing(tmp_path, arguments, message):
    done = lograb(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", CATALOGS)
def test_list(kind):
    rows = json.loads(ok("list", kind, "--json").stdout)
    assert all(row["name"] for row in rows)
    assert rows[0]["name"] in ok("list", kind).stdout


def test_list_everything():
    assert json.loads(ok("list", "--json").stdout).keys() == CATALOGS.keys()
    text = ok("list").stdout
    assert "citation-170k" in text
    assert "MIT" in text
    assert "built in" in text


def test_demo(tmp_path):
    done = ok("demo", cwd=tmp_path)
    assert "membership" in done.stdout
    assert "ceiling" in done.stdout
    page = (tmp_path / "lograb-demo.html").read_text()
    assert "heat-kernel" in page
    assert "http" not in page  # it must open without a network


def test_version():
    assert ok("--version").stdout.startswith("lograb ")


def test_attack_evaluate_certify(tmp_path):
    path = tmp_path / "x.lograb"
    ok("generate", "karate", "-o", path, "-k", 40)
    keys = {"method", "f1", "precision", "recall", "node_coverage", "island_cohesion", "floor", "ceiling",
            "seconds", "diagnostics"}  # fmt: skip
    made = json.loads(ok("attack", path, "--method", "afr", "--set", "align_dim=auto", "--set", "top_k=null",
                         "-o", tmp_path / "a.npz", "--json").stdout)  # fmt: skip
    assert made.keys() >= keys
    assert all(isinstance(made[key], float) for key in ("precision", "recall", "floor", "ceiling", "seconds"))
    again = json.loads(ok("evaluate", path, tmp_path / "a.npz", "--json").stdout)
    assert {key: again[key] for key in ("f1", "auroc", "island_cohesion", "floor")} == {
        key: made[key] for key in ("f1", "auroc", "island_cohesion", "floor")}
    ok("attack", path, "--method", "membership", "-o", tmp_path / "a.csv")
    assert json.loads(ok("evaluate", path, tmp_path / "a.csv", "--json").stdout)["f1"]["global"] == 1.0
    certified = json.loads(ok("certify", path, "--json").stdout)
    assert certified["guaranteed"]["without_truth"] == 34
    assert "complete-spectrum" in ok("certify", path).stdout
    assert "F1, global" in ok("attack", path, "--method", "random").stdout
    assert again.keys() >= keys
    assert again["method"] is again["seconds"] is again["diagnostics"] is None
    assert "F1, global" in ok("evaluate", path, tmp_path / "a.csv").stdout
    (tmp_path / "own.csv").write_text("u,v,score\n0,1,0.9\n0,9,0.1\n")
    for options, claimed in (([], 2), (["--threshold", 0.5], 1)):
        found = json.loads(ok("evaluate", path, tmp_path / "own.csv", *options, "--json").stdout)
        assert found["claimed"] == claimed


def test_attack_without_truth_scores_nothing(tmp_path):
    path = tmp_path / "x.lograb"
    ok("generate", "karate", "-o", path, "--no-truth", "--sigma", 0.1)
    done = ok("attack", path, "--method", "membership", "--json")
    assert "f1" not in json.loads(done.stdout)
    assert lograb("evaluate", path, path).returncode == 2


def test_several_graphs_are_averaged(tmp_path):
    path = tmp_path / "x.lograb"
    ok("generate", "superpixels", "-p", 0.1, "-k", 8, "-o", path)
    row = json.loads(ok("attack", path, "--method", "heat-kernel", "-o", tmp_path / "a.csv", "--json").stdout)
    assert 0 < row["f1"]["global"] <= row["ceiling"] < 1
    assert row["diagnostics"] == {"graphs": 100, "certified_patches": 0, "skipped_patches": 0}
    with (tmp_path / "a.csv").open() as file:
        claimed = [line.split(",") for line in file if line.endswith(",1\n")]
    assert row["claimed"] == len(claimed)
    assert len({graph for graph, *_ in claimed}) == 100
    again = json.loads(ok("evaluate", path, tmp_path / "a.csv", "--json").stdout)
    for key in ("precision", "recall", "average_precision", "floor", "claimed"):
        assert again[key] == pytest.approx(row[key])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "magic"], "unknown attack"),
        (["--method", "afr", "--set", "alfa=1"], "unknown afr setting 'alfa'. Did you mean 'alpha'? Choices: t,"),
        (["--method", "random", "--set", "alfa=1"], "unknown random setting 'alfa'. Choices: none"),
        (["--method", "afr", "--set", "alpha=0.5", "--set", "alpha=0.7"], "'alpha' is given twice"),
        (["--method", "afr", "--set", "t=Infinity"], "t: "),
        (["--method", "heat-kernel", "--set", "t=NaN"], "t: "),
        (["--method", "afr", "--set", "output=fill", "--set", "top_k=null"], "set top_k"),
        (["--method", "random", "--seed", "-1"], "'--seed'"),
        (["--method", "afr", "--set", "alpha"], "key=value"),
        (["--method", "afr", "--set", "alpha=7"], "alpha"),
    ],
)
def test_bad_attacks(tmp_path, arguments, message):
    path = tmp_path / "x.lograb"
    ok("generate", "karate", "-o", path)
    done = lograb("attack", path, *arguments)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize(("name", "output"), [("x.lograb", "x.lograb"), ("x.lograb", "y.lograb"), ("x", "x")])
def test_an_instance_is_not_written_over(tmp_path, name, output):
    ok("generate", "karate", "-o", name, cwd=tmp_path)
    before = (tmp_path / name).read_bytes()
    done = lograb("attack", name, "--method", "random", "-o", output, cwd=tmp_path)
    assert done.returncode == 2
    assert "is the name of an instance" in done.stderr
    assert (tmp_path / name).read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("text", ["0,1,x", "0,99,1", "0", "a,b,c,d,e"])
def test_bad_answers(tmp_path, text):
    path = tmp_path / "x.lograb"
    ok("generate", "karate", "-o", path)
    (tmp_path / "bad.csv").write_text(text)
    done = lograb("evaluate", path, tmp_path / "bad.csv")
    assert done.returncode == 2
    assert "line 1" in done.stderr


def test_an_answer_replaces_earlier_answers_only(tmp_path):
    path, mine = tmp_path / "x.lograb", tmp_path / "friends.csv"
    ok("generate", "karate", "-o", path, "-d", 1, "-p", 0.6)
    for name in ("guess.csv", "guess.npz"):
        for _ in range(2):
            assert name in ok("attack", path, "--method", "membership", "-o", tmp_path / name).stderr
    mine.write_text("a,b\nb,c\n")
    (tmp_path / "blank.csv").write_text("\na,b\n")
    (tmp_path / "other.npz").write_bytes(b"not ours")
    np.savez(tmp_path / "graph.npz", edges=[[0, 1]])
    for name in ("friends.csv", "blank.csv", "other.npz", "graph.npz"):
        done = lograb("attack", path, "--method", "membership", "-o", tmp_path / name)
        assert done.returncode == 2
        assert "is not an earlier answer" in done.stderr
    assert mine.read_text() == "a,b\nb,c\n"
    (tmp_path / "empty.csv").touch()
    ok("attack", path, "--method", "membership", "-o", tmp_path / "empty.csv")
    done = lograb("evaluate", path, tmp_path / "guess.csv", "--threshold", "nan")
    assert done.returncode == 2
    assert "finite" in done.stderr


def test_who_cannot_read_any_patch_says_so(tmp_path):
    path = tmp_path / "x.lograb"
    ok("generate", "karate", "-o", path, "-d", 2, "-k", 34, "--gauge", "rotation", "--sigma", 0.05)
    assert "no probabilities" in ok("attack", path, "--method", "posterior").stderr


@pytest.mark.parametrize("width", [80, 120])
def test_names_of_attacks_are_never_cut(monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    show_catalogs("attacks", json=False)
    printed = capsys.readouterr().out
    assert all(name in printed for name in ATTACKS)
    assert "scenario" in printed
    assert "\x1b[1m" in printed  # as in a terminal


def test_the_demo_replaces_earlier_reports_only(tmp_path):
    (tmp_path / "notes.md").write_text("mine")
    done = lograb("demo", "-o", tmp_path / "notes.md")
    assert done.returncode == 2
    assert "is not an earlier report" in done.stderr
    assert (tmp_path / "notes.md").read_text() == "mine"
