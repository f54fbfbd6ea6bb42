"""Instances on the command line: outputs, exit codes, one clear line for each mistake."""

import json
import subprocess
import sys

import networkx as nx
import pytest
from tests.cli.command import lograb, ok, words

from lograb import load

REQUIRED = {"source", "n_nodes", "n_edges", "n_patches", "strategy", "d", "p", "k", "sigma", "gauge", "seed",
            "patch_sizes", "complete_share", "co_observed_edges", "sha256"}  # fmt: skip


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
    shown = ok("info", path).stdout
    assert "n_patches" in shown
    assert made["sha256"] in shown  # in one piece
    again = tmp_path / "y.lograb"
    ok("generate", "karate", "-o", again, "-p", 0.6, "-k", 8, "--sigma", 0.05)
    assert again.read_bytes() == path.read_bytes()


def test_a_process_of_its_own():
    command = [sys.executable, "-c", "from lograb.cli import main; main()"]
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("lograb ")
    done = subprocess.run([*command, "list", "cats"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")


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
    assert made["seed"] is None  # as in the file
    assert "the seed 77 is not in the file" in done.stderr
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
    # Each notice once, and no trace of Python's warnings; also the second time.
    again = ok("generate", "club.graphml", "--patches-by", "club", "-o", "a.lograb", "--json", cwd=tmp_path)
    assert again.stderr.count("note: node attributes not used as features") == 1
    assert by_attribute.stderr.count("note: node attributes not used as features") == 1
    for done in (by_attribute, by_table):
        assert "Warning" not in done.stderr
        assert "LograbNotice" not in done.stderr
    compared = ok("compare", "karate", "--patches", "p.csv", "--methods", "membership,posterior", "--json",
                  cwd=tmp_path)  # fmt: skip
    assert json.loads(compared.stdout)["instance"]["n_patches"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate", "karate", "-o", "x.lograb", "--strategy", "custom"], "--patches FILE"),
        (["generate", "karate", "-o", "x.lograb", "--strategy", "d-hop", "--patches-by", "label"], "leave one of"),
        (["generate", "karate", "-o", "x.lograb", "--patches-by", "labels"], "Did you mean 'label'"),
        (["generate", "karate", "-o", "x.lograb", "--patches", "none.csv"], "cannot read the patches"),
        (["pack", "missing.npz", "-o", "x.npz"], "ends in .lograb"),
        (["generate", "karat", "-o", "x.lograb"], "Did you mean 'karate'"),
        (["generate", "missing.csv", "-o", "x.lograb"], "missing.csv"),
        (["generate", "karate", "-o", "x.lograb", "-k", "0"], "k:"),
        (["generate", "karate", "-o", "x.lograb", "-p", "2"], "p:"),
        (["generate", "karate", "-o", "x.lograb", "--strategy", "cut"], "strategy"),
        (["generate", "karate", "-o", "no/such/folder/x.lograb"], "no/such/folder"),
        (["generate", "karate", "-o", "x.lograb", "--graph", "5"], "graph"),
        (["generate", "karate"], "-o"),
        (["generate", "karate", "-o", "x.lograb", "--strategy", "cluster", "--clusters", "99"],
         "34 observed nodes"),
        (["generate", "citation-170k", "-o", "x.csv"], "ends in .lograb, got 'x.csv': write -o 'x.lograb'"),
        (["generate", "citation-170k", "-o", "x"], "write -o 'x.lograb'"),
        (["demo", "-o", "x.txt"], "ends in .html"),
        (["demo", "-o", "no/such/folder/x.html"], "no folder"),
        (["compare", "citation-170k", "-o", "x.pdf"], ".html"),
        (["compare", "citation-170k", "--methods", "afr,,magic"], "unknown attack 'magic'"),
        (["compare", "citation-170k", "--methods", ","], "at least one attack"),
        (["compare", "missing.lograb"], "missing.lograb"),
        (["info", "missing.lograb"], "missing.lograb"),
        (["verify", "missing.lograb"], "missing.lograb"),
        (["list", "cats"], "datasets"),
        (["frobnicate"], "frobnicate"),
    ],
)  # fmt: skip
def test_mistakes_exit_2_and_touch_nothing(tmp_path, arguments, message):
    done = lograb(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_demo(tmp_path):
    done = ok("demo", cwd=tmp_path)
    assert "An eavesdropper reads 5,300 of your 5,300 edges (100 %)" in words(done.stdout)
    assert "Membership is to blame" in words(done.stdout)
    assert max(map(len, done.stdout.splitlines())) <= 80
    page = (tmp_path / "lograb-demo.html").read_text()
    assert "http" not in page  # it must open without a network


@pytest.mark.parametrize("name", ["notes.html", "notes.htm"])
def test_the_demo_replaces_earlier_reports_only(tmp_path, name):
    (tmp_path / name).write_text("mine")
    done = lograb("demo", "-o", tmp_path / name)
    assert done.returncode == 2
    assert "is not an earlier report" in done.stderr
    assert (tmp_path / name).read_text() == "mine"
