"""`lograb compare`: attacks side by side in 80 columns, and as files."""

import json

import pytest
from tests.cli.command import lograb, ok, words

METHODS = ("--methods", "random,afr,posterior")
MAKING = ("-p", 0.6, "-k", 8, "--sigma", 0.05)


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    path = tmp_path_factory.mktemp("instances") / "k.lograb"
    ok("generate", "karate", *MAKING, "-o", path)
    return path


def test_the_table_marks_the_best_and_who_fails(instance):
    done = ok("compare", instance, *METHODS)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    names = ("random", "afr", "posterior")
    rows = {name: next(line for line in lines if line[3:].startswith(name)) for name in names}
    assert rows["posterior"].startswith("*")
    assert rows["afr"].startswith("↓")
    assert rows["random"].startswith("↓")
    assert "floor 0.953 (membership), ceiling 0.994" in lines[0]
    assert words(done.stdout).endswith("Best is posterior: it finds 77 of the 77 edges that some patch contains "
                                       "(100 %), 100 % of its claims are right.")
    assert done.stderr.splitlines()[1].startswith("  afr: F1 0.")  # a line as each finishes


def test_a_source_makes_an_instance_per_seed(instance):
    told = json.loads(ok("compare", "karate", *METHODS, *MAKING, "--seeds", 3, "--json").stdout)
    assert (told["seeds"], told["instance_per_seed"], told["best"]) == (3, True, "posterior")
    assert all(row["sd"] is not None for row in told["attacks"])
    assert told["instance"]["k"] == 8
    same = json.loads(ok("compare", "karate", *METHODS, *MAKING, "--json").stdout)
    loaded = json.loads(ok("compare", instance, *METHODS, "--json").stdout)
    assert [row["f1"] for row in same["attacks"]] == [row["f1"] for row in loaded["attacks"]]
    assert "NaN" not in ok("compare", instance, *METHODS, "--seeds", 2, "--json").stdout


def test_several_seeds_fit_too(instance):
    shown = ok("compare", "karate", *METHODS, *MAKING, "--seeds", 3).stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert "behind best" in shown
    assert "±" in shown


def test_all_attacks_by_default(instance):
    told = json.loads(ok("compare", instance, "--json").stdout)
    assert {"membership", "posterior"} <= {row["method"] for row in told["attacks"]}
    assert not any(row["method"] in ("gae", "variational") for row in told["attacks"])


@pytest.mark.parametrize("option", [["-d", 2], ["--sigma", 0.1], ["--no-eigenvalues"], ["--seed", 1], ["-k", 32]])
def test_an_instance_has_its_parameters(instance, option):
    done = lograb("compare", instance, *option)
    assert done.returncode == 2
    assert option[0] in done.stderr
    assert "name the graph instead" in done.stderr


@pytest.mark.parametrize(("name", "begin"), [("t.html", "<!doctype html>"), ("t.md", "| method | F1 |"),
                                             ("t.tex", r"\begin{tabular}")])  # fmt: skip
def test_it_can_be_kept(instance, tmp_path, name, begin):
    path = tmp_path / name
    for _ in range(2):  # an earlier one is replaced
        assert name in ok("compare", instance, "--methods", "afr,membership", "-o", path).stderr
    assert path.read_text().startswith(begin)
    path.write_text("my notes")
    done = lograb("compare", instance, "--methods", "afr,membership", "-o", path)
    assert done.returncode == 2
    assert path.read_text() == "my notes"


def test_the_page_says_what_makes_it_again(instance, tmp_path):
    ok("compare", instance, "--methods", "afr,membership", "-o", tmp_path / "t.html")
    assert "lograb compare" in (tmp_path / "t.html").read_text()


def test_who_cannot_run_stops_nobody(instance, tmp_path):
    (tmp_path / "own.py").write_text("def bad(seen, rng):\n    raise ValueError('no')\n")
    done = ok("compare", instance, "--methods", "own.py:bad,membership", cwd=tmp_path)
    assert "'own.py:bad' failed: ValueError: no (own.py, line 2)" in words(done.stdout)
    assert "membership" in done.stdout
    alone = lograb("compare", instance, "--methods", "own.py:bad", cwd=tmp_path)
    assert alone.returncode == 2
    assert "no attack could run" in alone.stderr


def test_nothing_is_said_about_embeddings_that_no_attack_read(instance, tmp_path):
    (tmp_path / "own.py").write_text("def bad(seen, rng):\n    raise ValueError('no')\n")
    for methods in ("random,membership", "own.py:bad,membership"):
        done = ok("compare", instance, "--methods", methods, "-o", "t.html", cwd=tmp_path)
        for told in (done.stdout, (tmp_path / "t.html").read_text()):
            assert "No attack that reads embeddings ran, so nothing is said about them" in words(told)
            assert "nothing measurable" not in told
            assert "No attack clearly beats" not in told
        (tmp_path / "t.html").unlink()


def test_the_best_may_be_below_the_floor_and_a_crash_is_never_best(tmp_path):
    (tmp_path / "own.py").write_text("""
import lograb

def none(seen, rng):
    return lograb.Reconstruction(seen.n_nodes, [], [], [])

def bad(seen, rng):
    raise ValueError("no")
""")
    ok("generate", "karate", *MAKING, "-o", "k.lograb", cwd=tmp_path)
    done = ok("compare", "k.lograb", "--methods", "own.py:bad,own.py:none", cwd=tmp_path)
    assert any(line.split()[:2] == ["*↓", "own.py:none"] for line in done.stdout.splitlines())
    assert "best is own.py:none" in words(done.stdout)
