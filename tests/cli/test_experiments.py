"""``lograb sweep``, ``reproduce``, ``report`` and ``submit-check``, as a user types them."""

import json
import os
from contextlib import contextmanager

import pytest
from tests.cli.command import lograb, ok, words

from lograb.errors import LograbError
from lograb.experiments import store

CONFIG = """
title = "Two attacks"
seeds = 2
instances = [{ dataset = "karate", p = 0.6, k = 8, sigma = 0.05 }]
attacks = [{ name = "membership" }, { name = "posterior" }, { name = "afr", settings = { alpha = 0.5 } }]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory, scheduler):
    place = tmp_path_factory.mktemp("experiments")
    (place / "two.toml").write_text(CONFIG)
    done = ok("sweep", "two.toml", "--store", "store", "--scheduler", scheduler, cwd=place)
    assert len(done.stderr.splitlines()) == 6
    assert "left]" in done.stderr
    return place


def test_a_second_sweep_runs_nothing_and_prints_the_same(folder):
    done = ok("sweep", "two.toml", "--store", "store", "--scheduler", "tcp://127.0.0.1:1", cwd=folder)
    assert done.stderr == ""
    assert "karate posterior" in words(done.stdout)
    assert words(done.stdout).endswith("6 runs in 'store': 6 done.")
    told = json.loads(ok("sweep", "two.toml", "--store", "store", "--json", cwd=folder).stdout)
    assert told["statuses"] == {"done": 6}
    assert {run["name"] for run in told["runs"]} == {"membership", "posterior", "afr(alpha=0.5)"}


def test_the_report_reads_the_store(folder):
    ok("report", "store", "-o", "page.html", cwd=folder)
    text = (folder / "page.html").read_text()
    assert "6 runs, 6 of them done" in text
    assert "Two attacks" in text
    assert "lograb sweep two.toml --store DIR" in text


@pytest.mark.parametrize(("arguments", "problem"), [
    (("sweep", "nothing.toml", "--store", "x"), "cannot read 'nothing.toml'"),
    (("sweep", "smok", "--store", "x"), "Did you mean 'smoke'"),
    (("reproduce", "corre", "--store", "x"), "Did you mean 'core'"),
    (("reproduce", "smoke", "--store", "x", "--format", "word"), "unknown format 'word'"),
    (("reproduce", "smoke", "--store", "x", "--datasets", "cora"), "unknown dataset of this experiment 'cora'"),
    (("reproduce", "smoke", "--store", "x", "--datasets", "karate,citatoin"), "Did you mean 'citation'"),
    (("report", "nowhere", "-o", "page.html"), "is no store"),
    (("report", "nowhere"), "a report needs a page"),
])  # fmt: skip
def test_mistakes_are_said_before_anything_is_made(folder, arguments, problem):
    done = lograb(*arguments, cwd=folder)
    assert done.returncode == 2
    assert problem in done.stderr
    assert not (folder / "x").exists()


def test_reproduce_prints_every_form(folder, scheduler):
    common = (
        "reproduce",
        "smoke",
        "--store",
        "store",
        "--seeds",
        1,
        "--datasets",
        "karate",
        "--scheduler",
        scheduler,
    )
    assert "| karate d=1 k=8 | posterior |" in ok(*common, "--format", "markdown", cwd=folder).stdout
    assert r"\toprule" in ok(*common, "--format", "latex", cwd=folder).stdout
    assert ok(*common, "--format", "csv", cwd=folder).stdout.startswith("instance,method,F1,AUROC,seeds")


def test_reproduce_shows_what_is_stored_and_runs_nothing(folder):
    wrong = lograb("reproduce", "smoke", "--store", "mistyped", "--stored", cwd=folder)
    assert "no store" in words(wrong.stderr)
    assert not (folder / "mistyped").exists()
    (folder / "empty" / "runs").mkdir(parents=True)
    done = ok("reproduce", "smoke", "--store", "empty", "--datasets", "karate", "--stored", cwd=folder)
    assert "Not run: membership, afr, posterior, degree on karate" in words(done.stdout)
    assert list(folder.glob("empty/runs/*")) == []


@pytest.mark.parametrize(("name", "dataset"), [("sensitivity", "citation"), ("studies", "pubmed")])
def test_a_family_is_one_csv_however_few_of_its_tables_are_asked_for(folder, name, dataset):
    (folder / "empty" / "runs").mkdir(parents=True, exist_ok=True)
    told = ok("reproduce", name, "--store", "empty", "--stored", "--datasets", dataset, "--format", "csv",
              cwd=folder)  # fmt: skip
    first, *rest = [line.partition(",")[0] for line in told.stdout.splitlines()]
    assert first == "table"
    assert all(table.startswith(f"{name}-") for table in rest)  # rows without data say so


def test_a_preset_of_several_takes_datasets_that_only_some_have(folder):
    (folder / "none" / "runs").mkdir(parents=True)
    told = ("reproduce", "figures", "--store", "none", "--stored", "--datasets")
    shown = words(ok(*told, "citation", cwd=folder).stdout)
    assert "on citation" in shown
    assert "cora" not in shown
    wrong = lograb(*told, "citation,coral", cwd=folder)
    assert (wrong.returncode, "Did you mean 'cora'" in wrong.stderr) == (2, True)


def test_tables_fit_the_terminal(folder, monkeypatch):
    told = ("sweep", "two.toml", "--store", "store")
    monkeypatch.delenv("COLUMNS", raising=False)
    assert ok(*told, cwd=folder).stdout.count("posterior") == 1
    monkeypatch.setenv("COLUMNS", "50")
    shown = ok(*told, cwd=folder).stdout
    assert max(map(len, shown.splitlines())) <= 50
    assert shown.count("posterior") == 2


def test_with_nothing_to_run_a_store_need_not_be_writable(folder, monkeypatch):
    @contextmanager
    def read_only(path, **_):
        raise LograbError(f"cannot write '{path}': Read-only file system")
        yield

    monkeypatch.setattr(store, "replacing", read_only)
    for told in (("sweep", "two.toml", "--store", "store"),
                 ("reproduce", "two.toml", "--store", "store", "--stored")):  # fmt: skip
        done = ok(*told, cwd=folder)
        assert "karate posterior" in words(done.stdout)
        assert "note: the table of 'two' is not kept for the report: cannot write" in words(done.stderr)


def test_the_report_writes_tables_as_markdown(folder):
    ok("report", "store", "--markdown", "pages", cwd=folder)
    assert "| karate | posterior |" in (folder / "pages" / "two.md").read_text()
    ok("report", "pages", "-o", "again.html", cwd=folder)  # the runs are beside the tables
    assert "posterior" in (folder / "again.html").read_text()


def test_a_submission_is_checked_and_scored(tmp_path):
    making = ("generate", "karate", "-p", 0.6, "-k", 8, "--sigma", 0.05)
    ok(*making, "-o", "full.lograb", cwd=tmp_path)
    ok(*making, "--no-truth", "-o", "challenge.lograb", cwd=tmp_path)
    ok(*making, "--seed", 1, "-o", "other.lograb", cwd=tmp_path)
    ok("attack", "challenge.lograb", "--method", "posterior", "-o", "guess.csv", cwd=tmp_path)
    told = json.loads(ok("submit-check", "challenge.lograb", "guess.csv", "--truth", "full.lograb", "--json",
                         cwd=tmp_path).stdout)  # fmt: skip
    direct = json.loads(ok("attack", "full.lograb", "--method", "posterior", "--json", cwd=tmp_path).stdout)
    assert told["valid"]
    assert told["score"]["f1"] == direct["f1"]
    assert (
        json.loads(ok("submit-check", "challenge.lograb", "guess.csv", "--json", cwd=tmp_path).stdout)["score"]
        is None
    )
    wrong = lograb("submit-check", "challenge.lograb", "guess.csv", "--truth", "other.lograb", cwd=tmp_path)
    assert (wrong.returncode, "different instances" in wrong.stderr) == (2, True)
    (tmp_path / "bad.csv").write_text("u,v,score\n0,99,1\n")
    bad = lograb("submit-check", "challenge.lograb", "bad.csv", cwd=tmp_path)
    assert (bad.returncode, "no node '99'" in bad.stderr) == (2, True)


def test_a_submission_with_rows_that_are_no_pairs_or_come_twice_is_told(tmp_path):
    ok("generate", "karate", "--no-truth", "-o", "c.lograb", cwd=tmp_path)
    (tmp_path / "guess.csv").write_text("u,v,score\n0,0,0.5\n0,1,0.5\n1,0,0.7\n")
    done = ok("submit-check", "c.lograb", "guess.csv", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["claimed"] == 1
    assert "1 rows name one node twice" in words(done.stderr)
    assert "1 rows name a pair again" in words(done.stderr)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_submission_is_no_pipe(tmp_path, which):
    ok("generate", "karate", "-o", "c.lograb", cwd=tmp_path)
    (tmp_path / "guess.csv").write_text("u,v,score\n0,1,0.5\n")
    os.mkfifo(tmp_path / "pipe")
    names = ["c.lograb", "guess.csv", "c.lograb"]
    names[which] = "pipe"
    done = lograb("submit-check", *names[:2], "--truth", names[2], cwd=tmp_path)
    assert (done.returncode, "'pipe' must be a regular file" in done.stderr) == (2, True)
