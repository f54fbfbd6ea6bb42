"""Attacks of others in a process of their own: what goes in, what comes out, and how they may fail."""

import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.cli.command import ok

import lograb
from lograb.errors import LograbError
from lograb.experiments.work import TimedOut, time_limit
from lograb.tasks.isolation import FileAttack

ATTACKS = '''
import gc, json, os, signal, sys, time
import numpy as np
import lograb
import beside

def members(seen, rng):
    return lograb.attacks.Membership()(seen, rng)

def nothing(seen, **rest):
    return lograb.Reconstruction(seen.n_nodes, [], [], [], **rest)

def draws(seen, rng):
    return nothing(seen, diagnostics={"drawn": rng.random(), "seed": str(rng.bit_generator.seed_seq.entropy)})

def tells(seen, rng):
    told = {name: np.asarray(getattr(seen, name)).tolist() for name in ("nodes", "ptr", "ranks", "vectors")}
    told |= {"protocol": seen.protocol.model_dump(), "names": seen.node_names, "modules": sorted(sys.modules)}
    told["features"] = None if seen.features is None else float(seen.features.sum())
    return nothing(seen, diagnostics=told)

def searches(seen, rng):
    here = [thing for thing in gc.get_objects() if isinstance(thing, (lograb.Instance, lograb.Graph))]
    folder = sys.argv[1]
    return nothing(seen, diagnostics={"found": len(here), "files": sorted(os.listdir(folder)), "size": sum(
        os.stat(os.path.join(folder, name)).st_size for name in os.listdir(folder))})

def where(seen, rng):
    return nothing(seen, diagnostics={"pid": os.getpid()})

def counted(seen, rng):
    with open(os.environ["SLEEPER"], "a") as pids:
        pids.write(f"{os.getpid()} ")
    found = members(seen, rng)
    found.diagnostics["drawn"] = rng.random()
    return found

class NeedsFeatures(lograb.attacks.Attack):
    name = "needs"; uses = ("features",); scenario = ""; cost = ""
    def reconstruct(self, seen, rng, progress=None):
        return nothing(seen)

def fails(seen, rng):
    print("about to fail")
    raise KeyError("some key")

def stops(seen, rng):
    sys.exit(3)

def vanishes(seen, rng):
    os._exit(5)

def dies(seen, rng):
    os.kill(os.getpid(), signal.SIGKILL)

def sleeps(seen, rng):
    open(os.environ["SLEEPER"], "w").write(str(os.getpid()))
    time.sleep(60)

def wrong_type(seen, rng):
    return 7

def wrong_size(seen, rng):
    return lograb.Reconstruction(seen.n_nodes + 1, [], [], [])

def lays_pipe(seen, rng):
    os.mkfifo(os.path.join(sys.argv[1], "answer.npz"))
    os._exit(0)

def forges(seen, rng):
    np.savez(os.path.join(sys.argv[1], "answer.npz"), **{"0/edges": np.array([[0, 10**9]]), "0/scores": np.ones(1),
             "0/nodes": np.arange(3)})
    os._exit(0)

def pickles(seen, rng):
    np.savez(os.path.join(sys.argv[1], "answer.npz"), **{"0/edges": np.array([nothing], dtype=object)})
    os._exit(0)

def odd_diagnostics(seen, rng):
    return nothing(seen, diagnostics={"what": object()})

class Settled(lograb.attacks.Attack):
    name = "settled"; uses = (); scenario = ""; cost = ""
    level: float = 0.5
    def reconstruct(self, seen, rng, progress=None):
        return nothing(seen, diagnostics={"level": self.level})
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacks")
    (folder / "beside.py").write_text("")
    (folder / "own.py").write_text(ATTACKS)
    return folder / "own.py"


@pytest.fixture(scope="module")
def instance():
    graph = lograb.load_graph("karate")
    names = tuple(f"member {i}" for i in range(34))
    graph = lograb.Graph.from_edges("k", 34, graph.edges, features=np.eye(34, 3), node_names=names)
    return lograb.generate(graph, d=1, p=0.6, k=4, sigma=0.05, seed=987654321987654321)


def test_the_answer_is_that_of_the_same_function_in_process(file, instance):
    isolated = lograb.attack(instance, FileAttack(file, "members"))
    here = lograb.attack(instance, "membership")
    assert isolated.method == "own.py:members"
    for part in ("edges", "scores", "nodes", "judged", "judged_scores"):
        assert np.array_equal(getattr(isolated, part), getattr(here, part))
    assert isolated.node_names == instance.node_names


def test_it_sees_all_observations_and_the_features_only_if_asked(file, instance):
    told = lograb.attack(instance, FileAttack(file, "tells")).diagnostics
    seen = instance.observations
    for name in ("nodes", "ptr", "ranks", "vectors"):
        assert np.array_equal(told[name], getattr(seen, name))
    assert told["protocol"] == seen.protocol.model_dump(mode="json")
    assert tuple(told["names"]) == instance.node_names
    assert told["features"] is None
    assert lograb.attack(instance, FileAttack(file, "tells"), features=True).diagnostics["features"] > 0


def test_nothing_but_the_observations_is_in_its_process(file, instance):
    told = lograb.attack(instance, FileAttack(file, "searches")).diagnostics
    assert told["found"] == 0
    assert told["files"] == ["job.json", "observations.npz"]


def test_its_stream_follows_from_the_seed_and_does_not_tell_it(file, instance):
    first, again, other = (lograb.attack(instance, FileAttack(file, "draws"), seed=seed).diagnostics
                           for seed in (5, 5, 987654321987654321))  # fmt: skip
    assert first == again
    assert first["drawn"] != other["drawn"]
    assert "987654321987654321" not in other["seed"]


@pytest.mark.parametrize(("function", "message"), [
    ("fails", r"own.py:fails' failed: KeyError: 'some key' \(own.py, line \d+\)"),
    ("stops", "own.py:stops' failed: SystemExit: 3"),
    ("vanishes", "own.py:vanishes' ended with exit code 5 and without an answer"),
    ("dies", "own.py:dies' ended with signal SIGKILL and without an answer"),
    ("wrong_type", "own.py:wrong_type' must return a lograb.Reconstruction, got int"),
    ("wrong_size", "answers about 35 nodes"),
    ("lays_pipe", "without an answer"),
    ("forges", "34"),
    ("pickles", "Python objects are not read"),
    ("membres", "Did you mean 'members'"),
])  # fmt: skip
def test_failures_are_one_clear_error(file, instance, function, message):
    with pytest.raises(LograbError, match=message):
        lograb.attack(instance, FileAttack(file, function))


def test_what_it_prints_goes_to_stderr(file, instance, capfd):
    with pytest.raises(LograbError):
        lograb.attack(instance, FileAttack(file, "fails"))
    out, err = capfd.readouterr()
    assert "about to fail" in err
    assert out == ""


def test_a_time_limit_ends_it_and_its_children(file, instance, tmp_path, monkeypatch):
    monkeypatch.setenv("SLEEPER", str(tmp_path / "pid"))
    with pytest.raises(LograbError, match="ended after"):
        lograb.attack(instance, FileAttack(file, "sleeps", timeout=8))
    if (tmp_path / "pid").exists():  # unless the machine was too busy to start it
        pid = int((tmp_path / "pid").read_text())
        deadline = time.monotonic() + 5
        while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
            time.sleep(0.05)
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def wait_until_gone(pid):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return
        if state == "Z":  # ended; whoever adopted it has not looked yet
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} is still there")


def wait_for_pid(path):
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        if path.exists() and (text := path.read_text()):
            return int(text)
        time.sleep(0.05)
    raise AssertionError("the attack never started")


def test_the_time_limit_of_a_run_ends_it(file, instance, tmp_path, monkeypatch):
    monkeypatch.setenv("SLEEPER", str(tmp_path / "pid"))
    start = time.monotonic()
    with pytest.raises(TimedOut), time_limit(6):
        lograb.attack(instance, FileAttack(file, "sleeps"))
    assert time.monotonic() - start < 30
    if (tmp_path / "pid").exists():  # unless the machine was too busy to start it
        wait_until_gone(int((tmp_path / "pid").read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent ended")
def test_it_ends_with_the_process_that_asked(file, tmp_path, monkeypatch):
    monkeypatch.setenv("SLEEPER", str(tmp_path / "pid"))
    code = f"import lograb; lograb.attack(lograb.generate('karate'), {str(file) + ':sleeps'!r})"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as asking:
        try:
            pid = wait_for_pid(tmp_path / "pid")
        finally:
            asking.kill()
    wait_until_gone(pid)


def test_classes_take_settings_and_modules_work(file, instance):
    assert lograb.attack(instance, FileAttack(file, "Settled", {"level": 0.25})).diagnostics["level"] == 0.25
    assert lograb.attack(instance, FileAttack(file, "Settled")).diagnostics["level"] == 0.5
    with pytest.raises(LograbError, match="level"):
        lograb.attack(instance, FileAttack(file, "Settled", {"levels": 1}))
    assert len(lograb.attack(instance, FileAttack("lograb.attacks", "Membership")).edges)


def test_files_that_do_not_run_are_a_clear_error(tmp_path, instance):
    with pytest.raises(LograbError, match="no such file"):
        FileAttack(tmp_path / "none.py", "f")
    (tmp_path / "bad.py").write_text("def f(:\n")
    with pytest.raises(LograbError, match="SyntaxError.*line 1"):
        lograb.attack(instance, FileAttack(tmp_path / "bad.py", "f"))
    with pytest.raises(LograbError, match="ModuleNotFoundError"):
        lograb.attack(instance, FileAttack("no.such.module", "f"))


def test_compare_runs_it_beside_others_and_survives_its_failure(file, instance):
    table = lograb.compare(instance, ["membership", FileAttack(file, "members"), FileAttack(file, "fails")])
    rows = {method.name: method for method in table.methods}
    assert rows["own.py:members"].scores[0].f1 == rows["membership"].scores[0].f1
    assert "KeyError" in rows["own.py:fails"].problem


def test_it_travels(file):
    attack = FileAttack(file, "members", {"a": 1}, timeout=3)
    assert pickle.loads(pickle.dumps(attack)) == attack


def test_diagnostics_that_are_no_json_are_dropped(file, instance):
    answer = lograb.attack(instance, FileAttack(file, "odd_diagnostics"))
    assert answer.diagnostics == {}
    json.dumps(answer.diagnostics)


def test_several_graphs_are_attacked_in_one_process(file, tmp_path, monkeypatch):
    monkeypatch.setenv("SLEEPER", str(tmp_path / "pids"))
    graphs = lograb.generate("superpixels", p=0.1, k=4)
    isolated, here = (lograb.attack(graphs, attack) for attack in (FileAttack(file, "counted"), "membership"))
    assert len(isolated) == len(here) == 100
    assert all(np.array_equal(one.edges, two.edges) for one, two in zip(isolated, here))
    assert len(set((tmp_path / "pids").read_text().split())) == 1
    assert len({answer.diagnostics["drawn"] for answer in isolated}) == 100


def test_foreign_attacks_run_apart_however_they_are_named(file, instance, tmp_path, monkeypatch):
    package = tmp_path / "theirs-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[lograb.attacks]\ntheirs = theirs:where\n")
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "theirs.py").write_text(ATTACKS)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in (f"{file}:where", "theirs:where", "theirs"):
        answer = lograb.attack(instance, name)
        assert answer.diagnostics["pid"] != os.getpid()
        assert answer.method == name.rpartition("/")[2]
        assert "theirs" not in sys.modules
        row = lograb.compare(instance, ["membership", name]).methods[1]
        assert not row.problem
        assert row.name == answer.method
    with pytest.raises(LograbError, match="theirs"):
        lograb.attack(instance, "thiers")
    with pytest.raises(LograbError, match="needs features"):
        lograb.attack(instance, f"{file}:NeedsFeatures")


def test_what_the_command_line_names_runs_apart(file, instance, tmp_path):
    instance.save(tmp_path / "k.lograb")
    method = f"{file}:where"
    told = json.loads(ok("attack", tmp_path / "k.lograb", "--method", method, "--json").stdout)
    assert told["diagnostics"]["pid"] != os.getpid()
    told = json.loads(ok("attack", tmp_path / "k.lograb", "--method", f"{file}:searches", "--json").stdout)
    assert told["diagnostics"]["found"] == 0
