"""What the benchmarks accept, without running them: --help and wrong words answer at once."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = {
    "alignment": ["procrustes", "ransac", "calls", "assembly", "synchronisation", "disconnected", "many", "real"],
    "attack_quality": ["table", "grid", "calibration", "channels", "speed", "reliability", "simulation",
                       "generated"],
    "audits": ["seen", "unseen", "real"],
    "defences": ["subspace"],
    "generation": ["cora", "citation", "large", "growth", "global"],
    "neural": ["speed", "graphs"],
    "reconstruction": ["rules", "rivals", "pairs", "speed", "many"],
    "self_knowledge": ["generated", "real", "ablation", "show"],
    "sweeps": ["overhead", "memory"],
    "variational": ["exact", "recovery", "rivals", "truth", "budget", "growth"],
}  # fmt: skip


def call(script, *words):
    """Run a script; the standard error lists the modules that it imports, too."""
    return subprocess.run([sys.executable, "-X", "importtime", FOLDER / f"{script}.py", *words],
                          capture_output=True, text=True, check=False)  # fmt: skip


def heavy(done):
    return re.findall(r"\| +(numpy|scipy|torch|networkx)$", done.stderr, re.M)


def test_every_script_is_listed_here():
    assert {path.stem for path in FOLDER.glob("*.py")} == {*SCRIPTS, "command", "timing"}


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_lists_the_parts_and_what_they_take(script):
    done = call(script, "--help")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^  ([a-z-]+).*\n      .* \(.+\)$", done.stdout, re.M) == SCRIPTS[script]
    assert heavy(done) == []


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("word", ["no-such-part", "--no-such-option"])
def test_what_is_unknown_is_refused_at_once(script, word):
    done = call(script, word)
    assert (done.returncode, done.stdout, heavy(done)) == (2, "", [])
    assert word in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(("script", "words", "problem"), [
    ("alignment", ["ransac", "no-such-part"], "no-such-part"),
    ("attack_quality", ["table", "15"], "'15' is none of 1, 2"),
    ("attack_quality", ["grid", "1"], "unrecognized arguments: 1"),
    ("attack_quality", ["grid", "--seed", "1"], "unrecognized arguments: --seed"),
    ("attack_quality", ["reliability"], "required: FILE"),
    ("reconstruction", ["rivals", "cora", "no-such-attack"], "is none of random, membership"),
    ("reconstruction", ["rivals", "cora"], "required: ATTACK"),
    ("variational", ["recovery", "4"], "'4' is no whole number from 5 on"),
])  # fmt: skip
def test_wrong_arguments_are_refused(script, words, problem):
    done = call(script, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr


@pytest.mark.parametrize(("script", "words", "runs"), [
    ("alignment", [], SCRIPTS["alignment"]),
    ("attack_quality", [], ["table"]),
    ("attack_quality", ["table", "grid", "calibration"], ["table", "grid", "calibration"]),
    ("attack_quality", ["table", "1", "4"], ["table 1 4"]),
    ("reconstruction", ["rivals", "cora", "afr", "eigen-sync"], ["rivals cora afr eigen-sync"]),
])  # fmt: skip
def test_a_dry_run_says_what_would_run(script, words, runs):
    done = call(script, *words, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert [line.rpartition(" (")[0] for line in done.stdout.splitlines()] == runs


def test_a_part_runs():
    done = call("reconstruction", "rivals", "karate", "posterior", "membership")
    assert done.returncode == 0, done.stderr
    assert heavy(done)
    assert [line.split(" | ")[0] for line in done.stdout.splitlines()[2:]] == ["| posterior", "| membership"]
