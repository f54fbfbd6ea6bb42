"""``lograb audit``, as a user calls it."""

import json
import signal
import time

import pytest
from tests.cli.command import lograb, ok, start, words


@pytest.fixture
def friends(tmp_path):
    (tmp_path / "friends.csv").write_text("ann,bob\nbob,cy\ncy,ann\ncy,dee\ndee,eve\neve,flo\nflo,dee\n")
    (tmp_path / "teams.csv").write_text("node,group\nann,red\nbob,red\ncy,red\ndee,blue\neve,blue\nflo,blue\n")
    return tmp_path


def test_three_questions_are_answered(friends):
    done = ok("audit", "friends.csv", "--patches", "teams.csv", "--quick", cwd=friends)
    text = words(done.stdout)
    assert "Each of 2 teams shares one embedding" in text
    assert "reads 6 of your 6 edges inside teams (100 %)" in text
    assert "Most exposed, by edges inside teams: ann (2 of 2)" in text
    assert "Page: report.html" in text
    assert max(map(len, done.stdout.splitlines())) <= 80
    names = {path.name for path in friends.iterdir()}
    assert names >= {"report.html", "report.json", "report.csv", "report.audit"}
    found = json.loads((friends / "report.json").read_text())
    assert found["run"]["command"] == "lograb audit friends.csv --patches teams.csv --quick"


def test_json_is_what_is_written(friends):
    done = ok("audit", "friends.csv", "--quick", "-o", "x.html", "--json", cwd=friends)
    assert json.loads(done.stdout) == json.loads((friends / "x.json").read_text())


@pytest.mark.parametrize(("arguments", "message"), [
    (["audit", "karate", "-o", "x.txt"], "ends in .html"),
    (["audit", "karate", "--scenario", "mesh"], "Choices: ego, silos, global"),
    (["audit", "karate", "--tolerate", "2"], "tolerate"),
    (["audit", "karate", "--policy", "none.toml"], "none.toml"),
    (["audit", "no-such-graph"], "no-such-graph"),
    (["audit", "karate", "--patches-by", "shoe"], "shoe"),
])  # fmt: skip
def test_mistakes_exit_2_and_touch_nothing(tmp_path, arguments, message):
    done = lograb(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_it_writes_over_nothing_that_is_not_its_own(friends):
    (friends / "report.json").write_text("{}")
    done = lograb("audit", "friends.csv", "--quick", cwd=friends)
    assert done.returncode == 2
    assert "not an earlier audit" in done.stderr
    assert (friends / "report.json").read_text() == "{}"
    assert not (friends / "report.html").exists()


def test_ctrl_c_says_what_was_kept(tmp_path):
    running = start("audit", "citation", "--scenario", "silos", cwd=tmp_path, text=True, stdout=-1, stderr=-1)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("report.audit/*.json")) and time.monotonic() < deadline:
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "settings are kept in 'report.audit', and the same command goes on from there" in told
    assert not (tmp_path / "report.html").exists()
    assert list(tmp_path.glob("report.audit/*.json"))
