"""What dies does not take finished runs with it: workers, the sweep itself, the disk."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from lograb import LograbError
from lograb.experiments import Store, sweep
from lograb.experiments.work import join_pieces, make_instances, run_piece
from lograb.experiments.workers import KEPT, open_client
from lograb.parallel import hold_threads
from lograb.plugins import plugins

LASTING = ("key", "name", "spec", "status", "reason", "scores")


def lasting(results):
    return {result.key: [getattr(result, name) for name in LASTING] for result in results}


def run_here(specs):
    """Run without any scheduler."""
    found = [join_pieces(spec, [run_piece(make_instances(spec, None), spec, None, None)])[0] for spec in specs]
    hold_threads(None)
    return lasting(found)


@pytest.fixture
def processes(tmp_path):
    """Start a scheduler and two workers, each a process; all are ended afterwards."""
    address, started = tmp_path / "scheduler.json", []

    def start(kind, *words):
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--scheduler-file", str(address), *words]
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return started[-1]

    start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    workers = [start("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard") for _ in range(2)]
    for _ in range(300):
        if address.exists() and address.stat().st_size:
            break
        time.sleep(0.1)
    try:
        yield json.loads(address.read_text())["address"], workers
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_a_killed_worker_costs_nothing(plan, store, processes):
    address, workers = processes
    specs = plan(seeds=3, attacks=[{"name": "posterior"}, {"name": "afr"}, {"name": "membership"}]).specs
    done = []

    def finished(result):
        done.append(result)
        if len(done) == 4:
            workers[0].send_signal(signal.SIGKILL)

    found = sweep(specs, store, scheduler=address, finished=finished)
    assert workers[0].wait(10) == -signal.SIGKILL
    assert lasting(found.values()) == lasting(store.results()) == run_here(specs)


DEADLY = """
import os, signal
from lograb.learning.links.catalog import LinkMethod
from lograb.learning.links.settings import NoSettings

METHOD = LinkMethod("deadly", "deadly.kill:kill", NoSettings, "a test", (), True)
"""


def test_a_run_that_kills_its_workers_is_given_up_alone(plan, store, tmp_path, monkeypatch):
    """On workers of this machine, which are started anew."""
    about = tmp_path / "deadly-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: deadly\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[lograb.links]\ndeadly = deadly:METHOD\n")
    (tmp_path / "deadly").mkdir()
    (tmp_path / "deadly" / "__init__.py").write_text(DEADLY)
    (tmp_path / "deadly" / "kill.py").write_text("import os\n\ndef kill(*_):\n    os.kill(os.getpid(), 9)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins.cache_clear()
    try:
        specs = plan(instances=[{"dataset": "citation", "p": 0.6, "k": 4}], seeds=[0], attacks=[],
                     links=[{"name": "deadly"}, {"name": "degree"}]).specs  # fmt: skip
        found = sweep(specs, store, workers=2)
    finally:
        plugins.cache_clear()
    told = [(result.name, result.status) for result in found.values()]
    assert sorted(told) == [("deadly", "failed"), ("degree", "done")]
    assert all("memory" in result.reason for result in found.values() if result.status == "failed")


DRIVER = """
import os, sys
from pathlib import Path
from lograb.experiments import Store, make_plan, read_config, sweep
import distributed, lograb.attacks.posterior  # imported once, before each sweep is forked off
plan = make_plan("x", read_config(Path(sys.argv[1])))
for line in sys.stdin:
    child = os.fork()
    if not child:
        sweep(plan.specs, Store(sys.argv[2]), scheduler=sys.argv[3])
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
CONFIG = """
seeds = 40
instances = [{ dataset = "karate", p = 0.6, k = 8, sigma = 0.05 }]
attacks = [{ name = "membership" }, { name = "afr" }, { name = "random" }]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_sweep_killed_again_and_again_ends_with_the_same_store(tmp_path, scheduler):
    from lograb.experiments import make_plan, read_config

    (tmp_path / "x.toml").write_text(CONFIG)
    folder, draw, kills = tmp_path / "store", random.Random(0), 0
    words = [sys.executable, "-c", DRIVER, str(tmp_path / "x.toml"), str(folder), scheduler]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as driver:
        while True:
            driver.stdin.write("\n")
            driver.stdin.flush()
            child = int(driver.stdout.readline())
            if kills < 20:
                before, until = len(list(folder.glob("runs/*/*"))), time.monotonic() + 20
                while len(list(folder.glob("runs/*/*"))) == before and time.monotonic() < until:
                    time.sleep(0.001)
                time.sleep(draw.uniform(0, 0.02))
                os.kill(child, signal.SIGKILL)
            code = int(driver.stdout.readline())
            if code == 0:
                break
            assert code == -signal.SIGKILL
            kills += 1
        driver.stdin.close()
    assert kills == 20
    specs = make_plan("x", read_config(tmp_path / "x.toml")).specs
    assert lasting(Store(folder).results()) == run_here(specs)
    assert {path.stem for path in folder.glob("runs/*/*.npz")} == {spec.key for spec in specs}
    for spec in specs:
        assert Store(folder).arrays(spec.key)


@pytest.fixture
def small_disk(tmp_path):
    """Mount a file system of few bytes."""
    place = tmp_path / "disk"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(words, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("cannot mount a file system here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_said_and_leaves_what_is_there(plan, small_disk, scheduler):
    specs, done = plan(seeds=20).specs, []
    with pytest.raises(LograbError, match="No space left"):
        sweep(specs, Store(small_disk / "store"), scheduler=scheduler, finished=done.append)
    assert done
    kept = Store(small_disk / "store")
    assert lasting(kept.results()) == lasting(done)
    assert all(kept.arrays(result.key) for result in done)
    assert not list(kept.folder.glob("runs/*/.lograb-*"))


def test_workers_keep_the_memory_of_large_arrays(monkeypatch):
    for name in KEPT:
        monkeypatch.delenv(name, raising=False)  # what is set there holds for workers too
    with open_client(1) as client:
        for name, size in KEPT.items():
            assert client.submit(os.getenv, name).result() == str(size)


def test_a_cluster_leaves_the_environment_as_it_was(monkeypatch):
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    before = dict(os.environ)
    with open_client(1):
        assert dict(os.environ) != before, "Dask sets nothing here any more: this test shows nothing"
    assert dict(os.environ) == before
