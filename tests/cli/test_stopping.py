"""Mistakes, Ctrl-C and odd names: one line each, and nothing that a terminal would obey."""

import contextlib
import csv
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from pydantic import BaseModel
from tests.cli.command import lograb, ok, start

from lograb import pipeline
from lograb.cli import listing
from lograb.cli.output import print_json


def wait_for(condition, process, seconds=120):
    """Wait until something is so, while a process runs."""
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "it ended first"
        assert time.monotonic() < end
        time.sleep(0.05)


def test_ctrl_c_while_an_instance_is_made(tmp_path):
    process = start("generate", "citation-170k", "-o", "x.lograb", cwd=tmp_path, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, text=True)  # fmt: skip
    wait_for(lambda: any(tmp_path.iterdir()), process)  # the temporary folder
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (130, "", "lograb: interrupted: nothing was written\n")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_while_a_bar_is_shown(tmp_path):
    ours, theirs = pty.openpty()
    process = start("generate", "citation-170k", "-o", "x.lograb", cwd=tmp_path, stdout=subprocess.DEVNULL,
                    stderr=theirs)  # fmt: skip
    os.close(theirs)
    shown = b""
    while b"reading the graph" not in shown:
        shown += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # Linux says so at the end
        pass
    assert process.wait(timeout=120) == 130
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert text.splitlines()[-1].strip() == "lograb: interrupted: nothing was written"
    assert "Traceback" not in text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_in_a_terminal_while_a_sweep_runs(tmp_path):
    """It reaches all processes of the terminal, the workers too."""
    config = 'seeds = 300\ninstances = [{ dataset = "karate" }]\nattacks = [{ name = "afr" }]'
    (tmp_path / "x.toml").write_text(config)
    shown = b""
    child, terminal = pty.fork()
    if not child:
        os.chdir(tmp_path)
        words = ("sweep", "x.toml", "--store", "store", "--workers", "2")
        os.execv(sys.executable, [sys.executable, "-c", "from lograb.cli import main; main()", *words])
    pressed = False
    with contextlib.suppress(OSError):  # Linux says so at the end
        while piece := os.read(terminal, 4096):
            shown += piece
            if not pressed and len(list(tmp_path.glob("store/runs/*/*.json"))) > 5:
                pressed = os.write(terminal, b"\x03") == 1
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 130
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    kept = len(list(tmp_path.glob("store/runs/*/*.json")))
    said = f"lograb: interrupted: {kept} of the 300 runs of 'x' are kept in 'store', and the same command goes on"
    assert text.splitlines()[-1].strip() == f"{said} with the others"
    assert "Traceback" not in text
    assert "Error" not in text


@pytest.fixture
def heeds_ctrl_c():
    """A process that was started in the background ignores SIGINT, and so does what it starts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_after_the_answer_says_that_it_is_kept(tmp_path, monkeypatch):
    ok("generate", "karate", "-o", tmp_path / "k.lograb")
    monkeypatch.setattr(pipeline, "evaluate", lambda *_: os.kill(os.getpid(), signal.SIGINT) or time.sleep(5))
    done = lograb("attack", "k.lograb", "--method", "membership", "-o", "a.npz", cwd=tmp_path)
    assert done.returncode == 130
    assert done.stderr == "lograb: interrupted: 'a.npz' is written and whole, nothing else\n"
    monkeypatch.undo()
    ok("evaluate", tmp_path / "k.lograb", tmp_path / "a.npz")


class Strict(BaseModel):
    number: int


def foreign_errors():
    try:
        Strict(number="x")
    except ValueError as error:
        yield error
    yield csv.Error("line contains NUL")
    yield np.linalg.LinAlgError("Eigenvalues did not converge")
    yield MemoryError()
    yield PermissionError(13, "Permission denied", "secret.txt")
    yield type("Mine", (np.linalg.LinAlgError,), {})("a subclass")


@pytest.mark.parametrize("error", list(foreign_errors()), ids=lambda error: type(error).__name__)
def test_errors_of_other_libraries_take_one_line(error, monkeypatch):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(listing, "show_catalogs", fail)
    done = lograb("list")
    assert done.returncode == 2
    assert done.stderr.startswith("lograb: ")
    assert done.stderr.count("\n") == 1


def test_our_own_errors_keep_their_traceback(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("a bug")

    monkeypatch.setattr(listing, "show_catalogs", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        lograb("list")


def test_names_reach_the_terminal_escaped(tmp_path):
    evil = "eve\x1b]0;title\x07"
    (tmp_path / "g.csv").write_text(f"ann,bob\nbob,{evil}\n{evil},{evil}\n")
    (tmp_path / "p.txt").write_text("ann bob mallory\x1b[31m\n")
    cut = ("--strategy", "custom", "--patches", "p.txt")
    done = lograb("generate", "g.csv", *cut, "-o", "x.lograb", cwd=tmp_path)
    assert done.returncode == 2
    assert "mallory\\x1b[31m" in done.stderr
    assert "\x1b" not in done.stderr
    ok("generate", "g.csv", "-o", "x.lograb", cwd=tmp_path)
    (tmp_path / "odd\x1b[2J.lograb").write_bytes((tmp_path / "x.lograb").read_bytes())
    shown = ok("info", "odd\x1b[2J.lograb", cwd=tmp_path)
    assert "odd\\x1b[2J.lograb" in shown.stdout
    assert "\x1b" not in shown.stdout + shown.stderr


def test_names_are_not_taken_for_emoji(tmp_path):
    (tmp_path / "g.csv").write_text(":top:,:cat:\n:cat:,:dog:\n:dog:,:top:\n")
    (tmp_path / "p.csv").write_text("node,group\n:top:,:smile:\n:cat:,:smile:\n:dog:,:smile:\n")
    ok("generate", "g.csv", "--patches", "p.csv", "-k", 2, "-o", "x.lograb", cwd=tmp_path)
    done = ok("attack", "x.lograb", "--method", "posterior", "--verbose", cwd=tmp_path)
    assert ":smile:" in done.stdout
    (tmp_path / "mine.py").write_text("def top(seen, rng):\n    raise ValueError(':top:')\n")
    done = ok("compare", "x.lograb", "--methods", "mine.py:top,membership", cwd=tmp_path)
    assert "mine.py:top" in done.stdout
    assert "mine.py:top" in done.stderr


def test_json_is_escaped_and_stays_json():
    odd = {"c1": "a\x9b2Jb", "bidi": "a\u202eb", "lone": "a\udcffb", "name": "Zoë", "nan": float("nan")}
    with contextlib.redirect_stdout(io.StringIO()) as out:
        print_json(odd)
    assert json.loads(out.getvalue()) == odd | {"nan": None}
    assert not set(out.getvalue()) & set("\x9b\u202e\udcff")
    assert "Zoë" in out.getvalue()


LONG, DEEP, DIGITS = "x" * 200_000 + ",1\n", "[" * 100_000, "[[" + "9" * 5000 + "]]"


@pytest.mark.parametrize(("name", "content", "arguments"), [
    ("a.csv", LONG, ["evaluate", "k.lograb", "a.csv"]),
    ("p.csv", LONG, ["generate", "karate", "--patches", "p.csv", "-o", "x.lograb"]),
    ("p.json", DEEP, ["generate", "karate", "--patches", "p.json", "-o", "x.lograb"]),
    ("p.json", DIGITS, ["generate", "karate", "--patches", "p.json", "-o", "x.lograb"]),
    ("none", "", ["attack", "k.lograb", "--method", "afr", "--set", "alpha=" + DEEP]),
    ("none", "", ["attack", "k.lograb", "--method", "afr", "--set", "alpha=" + DIGITS]),
])
def test_what_no_parser_takes_ends_in_one_line(tmp_path, name, content, arguments):
    ok("generate", "karate", "-o", "k.lograb", cwd=tmp_path)
    (tmp_path / name).write_text(content)
    done = lograb(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("lograb: ")
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) < 2000
