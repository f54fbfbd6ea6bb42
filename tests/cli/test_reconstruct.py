"""`lograb attack`, `evaluate` and `certify`: the sentence first, five lines, the rest when asked for."""

import json

import numpy as np
import pytest
from tests.cli.command import lograb, ok, words

from lograb import Instance, attack, generate
from lograb.archive import schema
from lograb.ragged import pack_names

KEYS = {"method", "f1", "precision", "recall", "node_coverage", "island_cohesion", "floor", "ceiling",
        "seconds", "diagnostics"}  # fmt: skip
OWN = """
import helper
import numpy as np
import lograb

NUMBER = 7

def first_pairs(seen, rng):
    pairs = np.array([sorted(seen.members(i)[:2]) for i in range(seen.n_patches) if len(seen.members(i)) > 1])
    return lograb.Reconstruction(seen.n_nodes, np.unique(pairs, axis=0), np.ones(len(np.unique(pairs, axis=0))),
                                 np.unique(seen.nodes))

def divides_by_zero(seen, rng):
    return helper.ONE / 0

def returns_nothing(seen, rng):
    pass

class Patient(lograb.attacks.Attack):
    name, uses, scenario, cost = "patient", ("members",), "waits", "nothing"
    steps: int = 1

    def reconstruct(self, seen, rng, progress=lambda *_: None):
        return first_pairs(seen, rng)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("instances")
    ok("generate", "karate", "-p", 0.6, "-k", 8, "--sigma", 0.05, "-o", path / "k.lograb")
    ok("generate", "karate", "-p", 0.6, "-k", 8, "--sigma", 0.05, "--no-truth", "-o", path / "hidden.lograb")
    (path / "own.py").write_text(OWN)
    (path / "helper.py").write_text("ONE = 1\n")
    (path / "broken.py").write_text("import numpy\nraise RuntimeError('not today')\n")
    (path / "unfinished.py").write_text("x = 1\ndef f(:\n")
    return path


def test_attack_evaluate_certify(tmp_path):
    path = tmp_path / "x.lograb"
    ok("generate", "karate", "-o", path, "-k", 40)
    made = json.loads(ok("attack", path, "--method", "afr", "--set", "align_dim=auto", "--set", "top_k=null",
                         "-o", tmp_path / "a.npz", "--json").stdout)  # fmt: skip
    assert made.keys() >= KEYS | {"seed"}
    assert all(isinstance(made[key], float) for key in ("precision", "recall", "floor", "ceiling", "seconds"))
    again = json.loads(ok("evaluate", path, tmp_path / "a.npz", "--json").stdout)
    assert {key: again[key] for key in ("f1", "auroc", "island_cohesion", "floor")} == {
        key: made[key] for key in ("f1", "auroc", "island_cohesion", "floor")}
    ok("attack", path, "--method", "membership", "-o", tmp_path / "a.csv")
    assert json.loads(ok("evaluate", path, tmp_path / "a.csv", "--json").stdout)["f1"]["global"] == 1.0
    certified = json.loads(ok("certify", path, "--json").stdout)
    assert certified["guaranteed"]["without_truth"] == 34
    shown = ok("certify", path).stdout
    assert "complete-spectrum" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert again.keys() >= KEYS
    assert again["method"] is again["seconds"] is again["diagnostics"] is None
    (tmp_path / "own.csv").write_text("u,v,score\n0,1,0.9\n0,9,0.1\n")
    for options, claimed in (([], 2), (["--threshold", 0.5], 1)):
        found = json.loads(ok("evaluate", path, tmp_path / "own.csv", *options, "--json").stdout)
        assert found["claimed"] == claimed


def test_a_sentence_then_five_lines(folder):
    done = ok("attack", folder / "k.lograb", "--method", "posterior")
    said, _, facts = done.stdout.partition("\n\n")
    told = json.loads(ok("attack", folder / "k.lograb", "--method", "posterior", "--json").stdout)
    assert words(said) == (
        f"posterior finds {told['found']} of the 77 edges that some patch contains (100 %), 100 % of its claims "
        "are right; 20 of 20 patches pass the check against their eigenvalues, 20 are recovered exactly.")
    assert [line.split("  ")[0] for line in facts.splitlines()] == [
        "F1", "floor, ceiling", "precision", "recall", "seconds"]
    low, high = told["f1_interval"]
    assert f"{told['f1']['global']:.3f}, 95 % interval {low:.3f} to {high:.3f}" in facts
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "%" not in said.replace(" %", "")


def test_without_a_check_there_is_no_word_of_one(folder):
    said = words(ok("attack", folder / "k.lograb", "--method", "heat-kernel").stdout)
    assert "pass the check" not in said
    assert "patches are recovered exactly." in said


def test_verbose_shows_all_numbers_and_patches(folder):
    short = ok("attack", folder / "k.lograb", "--method", "posterior").stdout
    full = ok("attack", folder / "k.lograb", "--method", "posterior", "--verbose").stdout
    for word in ("average_precision", "degree_spread", " members "):
        assert word not in short
        assert word in full
    rows = [line.split() for line in full.split("exact\n")[1].splitlines()[1:] if line]
    assert len(rows) == 20
    assert all(row[2] == row[3] and row[4:] == ["0", "yes"] for row in rows)
    listed = json.loads(ok("attack", folder / "k.lograb", "--method", "posterior", "-v", "--json").stdout)
    assert len(listed["patch_scores"]) == 20


def test_patches_are_called_by_their_names(tmp_path):
    instance = generate("karate", p=0.2, k=8)
    tables = dict(instance.tables)
    names = tuple(f"silo {i}\x1b[2J" for i in range(instance.n_patches))
    tables[schema.PATCH_NAME_PTR], tables[schema.PATCH_NAMES] = pack_names(names)
    Instance(instance.manifest, tables).save(tmp_path / "x.lograb")
    shown = ok("attack", tmp_path / "x.lograb", "--method", "membership", "--verbose").stdout
    assert "silo 3\\x1b[2J" in shown
    assert "\x1b" not in shown


def test_below_the_floor_is_said_aloud(folder):
    done = ok("attack", folder / "k.lograb", "--method", "afr")
    said = words(done.stdout)
    assert "BELOW THE FLOOR" in said
    assert "the attack fails here: who looks at no embedding does better. That is no proof of safety." in said
    told = ok("attack", folder / "k.lograb", "--method", "afr", "--json")
    assert json.loads(told.stdout)["below_floor"] is True
    assert "That is no proof of safety" in told.stderr
    for method in ("posterior", "random"):  # the floor is made of attacks like random
        assert "FLOOR" not in ok("attack", folder / "k.lograb", "--method", method).stdout
    random = ok("attack", folder / "k.lograb", "--method", "random", "--json")
    assert json.loads(random.stdout)["below_floor"] is True
    assert "below the floor" not in random.stderr


def test_without_truth_the_attack_estimates_itself(folder):
    done = ok("attack", folder / "hidden.lograb", "--method", "posterior")
    said = words(done.stdout)
    expected = json.loads(ok("attack", folder / "hidden.lograb", "--method", "posterior", "--json").stdout)
    assert "f1" not in expected
    assert said.startswith(f"posterior claims {expected['claimed']} edges among 34 nodes. By its own estimate")
    assert "which nothing here can check" in said
    assert "no truth" in done.stderr
    plain = ok("attack", folder / "hidden.lograb", "--method", "membership").stdout
    assert "estimate" not in plain
    assert lograb("evaluate", folder / "hidden.lograb", folder / "hidden.lograb").returncode == 2
    assert lograb("compare", folder / "hidden.lograb").returncode == 2


def test_repeats_count_seeds_up(folder, tmp_path):
    options = ("attack", folder / "k.lograb", "--method", "random", "--seed", 5)
    done = ok(*options, "--repeats", 3, "--json", "-o", tmp_path / "a.npz")
    told = json.loads(done.stdout)
    assert [run["seed"] for run in told["runs"]] == [5, 6, 7]
    f1 = [run["f1"]["global"] for run in told["runs"]]
    assert (told["f1_mean"], told["f1_sd"]) == pytest.approx((np.mean(f1), np.std(f1, ddof=1)))
    assert json.loads(ok(*options, "--json").stdout)["f1"]["global"] == f1[0] == told["f1"]["global"]
    kept = json.loads(ok("evaluate", folder / "k.lograb", tmp_path / "a.npz", "--json").stdout)
    assert kept["f1"]["global"] == f1[0]
    assert "seed 5" in done.stderr
    said = words(ok(*options, "--repeats", 3).stdout)
    assert f"F1 {told['f1_mean']:.3f} ± {told['f1_sd']:.3f}" in said
    assert "draws nothing" not in said
    same = words(ok("attack", folder / "k.lograb", "--method", "membership", "--repeats", 2).stdout)
    assert "draws nothing here: 2 runs are the same" in same
    hidden = words(ok("attack", folder / "hidden.lograb", "--method", "random", "--repeats", 2).stdout)
    assert "claims (mean and standard deviation)" in hidden


def test_an_attack_of_ones_own(folder, tmp_path):
    for name in ("first_pairs", "Patient"):
        method = f"{folder / 'own.py'}:{name}"
        told = json.loads(ok("attack", folder / "k.lograb", "--method", method, "--json").stdout)
        assert told["method"] == method
        assert told["claimed"] > 0
    ok("attack", folder / "k.lograb", "--method", "own.py:Patient", "--set", "steps=3", cwd=folder)
    table = json.loads(ok("compare", "k.lograb", "--methods", "own.py:first_pairs,membership", "--json",
                          cwd=folder).stdout)  # fmt: skip
    assert [row["method"] for row in table["attacks"]] == ["own.py:first_pairs", "membership"]


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("missing.py:f", "no such file: 'missing.py'"),
        ("own.py", "which function of 'own.py'"),
        ("own.py:", "which function of 'own.py"),
        ("own.py:first_pair", "Did you mean 'first_pairs'"),
        ("own.py:NUMBER", "got int"),
        ("own.py:divides_by_zero", "failed: ZeroDivisionError: division by zero (own.py, line 1"),
        ("own.py:returns_nothing", "must return a lograb.Reconstruction"),
        ("broken.py:f", "'broken.py:f' failed: RuntimeError: not today (broken.py, line 2)"),
        ("unfinished.py:f", "SyntaxError"),
    ],
)
def test_slips_with_an_attack_of_ones_own(folder, method, message):
    done = lograb("attack", "k.lograb", "--method", method, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_function_has_no_settings(folder):
    done = lograb("attack", "k.lograb", "--method", "own.py:first_pairs", "--set", "a=1", cwd=folder)
    assert done.returncode == 2
    assert "takes no settings" in done.stderr


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
    shown = ok("evaluate", path, tmp_path / "a.csv", "--verbose").stdout
    assert "more patches are left out" in words(shown)
    assert max(map(len, shown.splitlines())) <= 80


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
        (["--method", "random", "--repeats", "0"], "'--repeats'"),
        (["--method", "afr", "--set", "alpha"], "key=value"),
        (["--method", "afr", "--set", "alpha=7"], "alpha"),
        (["--method", "random", "-o", "k.lograb"], "an answer is written to .npz"),
        (["--method", "random", "-o", "y.lograb"], "an answer is written to .npz"),
        (["--method", "random", "-o", "x"], "an answer is written to .npz"),
        (["--method", "random", "-o", "no/such/a.npz"], "no folder"),
    ],
)
def test_bad_attacks(folder, arguments, message):
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.is_file()}
    done = lograb("attack", "k.lograb", *arguments, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("text", ["0,1,x", "0,99,1", "0", "a,b,c,d,e"])
def test_bad_answers(folder, tmp_path, text):
    (tmp_path / "bad.csv").write_text(text)
    done = lograb("evaluate", folder / "k.lograb", tmp_path / "bad.csv")
    assert done.returncode == 2
    assert "line 1" in done.stderr


def test_an_answer_replaces_earlier_answers_only(folder, tmp_path):
    path, mine = folder / "k.lograb", tmp_path / "friends.csv"
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


def test_it_is_said_why_nothing_is_claimed(tmp_path):
    path = tmp_path / "x.lograb"
    ok("generate", "karate", "-o", path, "--strategy", "global", "-k", 8)
    assert "none of 1 patches is core" in words(ok("attack", path, "--method", "afr").stderr)


def test_who_cannot_read_any_patch_expects_what_membership_gives():
    instance = generate("karate", d=1, k=34, gauge="rotation", sigma=0.05, strategy="cluster", clusters=3)
    told = attack(instance, "posterior").diagnostics
    assert told["patches"]["read"] == 0
    assert told["expected"]["f1"] < 0.5
