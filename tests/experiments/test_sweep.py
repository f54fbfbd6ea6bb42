"""Sweeps: what is stored is returned, what is missing is run, nothing stops the others."""

import time
from dataclasses import replace

import numpy as np
import pytest

import lograb
from lograb.attacks import Attack
from lograb.attacks.catalog import ATTACKS
from lograb.errors import LograbNotice
from lograb.experiments import Store, sweep, work
from lograb.experiments.workers import ADDRESS
from lograb.graphs import download
from lograb.graphs.catalog import DATASETS
from lograb.graphs.fetch import RawFile, fetch
from lograb.types import Graph

LASTING = ("key", "name", "spec", "status", "reason", "scores", "diagnostics")
"""What two runs of one spec agree in."""


def lasting(results):
    return {key: [getattr(result, name) for name in LASTING] for key, result in results.items()}


class Odd(Attack):
    """Fails on one seed, sleeps on another."""

    name, uses, scenario, cost = "odd", ("members",), "a test", "nothing"
    fails: bool = True

    def reconstruct(self, seen, rng, progress=None):
        if self.fails and seen.n_patches == 34:
            raise ZeroDivisionError("by design")
        if seen.n_patches == 17:
            for _ in range(1000):
                time.sleep(0.01)
        return lograb.Reconstruction(seen.n_nodes, [], [], [])


@pytest.fixture
def odd(monkeypatch):
    monkeypatch.setitem(ATTACKS, "odd", Odd)


def test_a_sweep_gives_what_the_pipeline_gives(plan, store, scheduler):
    specs = plan().specs
    found = sweep(specs, store, scheduler=scheduler)
    assert {result.status for result in found.values()} == {"done"}
    for spec in specs:
        instance = lograb.generate("karate", **spec.instance.model_dump())
        answer = lograb.attack(instance, spec.method, seed=spec.instance.seed)
        assert found[spec.key].scores["f1"] == lograb.evaluate(instance, answer)["f1"]
        assert np.array_equal(store.arrays(spec.key)["0/edges"], answer.edges)
        assert found[spec.key].peak_memory > 1e6
        assert found[spec.key].seconds["method"] > 0


def test_what_is_stored_is_not_run(plan, store, scheduler):
    first = sweep(plan(attacks=[{"name": "afr"}]).specs, store, scheduler=scheduler)
    ran = []
    every = sweep(plan().specs, store, scheduler=scheduler, finished=ran.append)
    assert {result.name for result in ran} == {"membership"}
    assert first.items() <= every.items()
    # Nothing to run: nobody is asked to.
    assert sweep(plan().specs, store, scheduler="tcp://127.0.0.1:1") == every


def test_two_sweeps_share_a_store(plan, store, scheduler):
    from concurrent.futures import ThreadPoolExecutor

    specs = plan(seeds=4).specs
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda order: sweep(order, Store(store.folder), scheduler=scheduler),
                             (specs, specs[::-1])))  # fmt: skip
    assert lasting(both[0]) == lasting(both[1])
    assert lasting({result.key: result for result in store.results()}) == lasting(both[0])


@pytest.mark.usefixtures("odd")
def test_failures_and_delays_stop_nobody(plan, store, scheduler):
    changed = {"instances": [{"dataset": "karate", "k": 4, "p": [0.5, 0.6, 1.0]}], "seeds": 1,
               "attacks": [{"name": "odd"}, {"name": "membership"}]}  # fmt: skip
    specs = plan(**changed).specs
    found = sweep(specs, store, scheduler=scheduler, timeout=0.5)
    by = {(result.name, result.spec["instance"].get("p", 1.0)): result for result in found.values()}
    assert by["odd", 1.0].status == "failed"
    assert "ZeroDivisionError: by design" in by["odd", 1.0].reason
    assert by["odd", 0.5].status == "timed-out"
    assert by["odd", 0.6].status == "done"
    assert {result.status for (name, _), result in by.items() if name == "membership"} == {"done"}
    again = []
    sweep(specs, store, scheduler=scheduler, timeout=0.5, finished=again.append)
    assert again == []
    sweep(specs, store, scheduler=scheduler, timeout=0.5, finished=again.append, retry_failed=True)
    assert {result.key for result in again} == {by["odd", 1.0].key, by["odd", 0.5].key}


def test_what_a_method_cannot_take_is_not_its_failure(plan, store, scheduler):
    changed = {"instances": [{"dataset": "karate", "k": 4, "eigenvalues": False}], "seeds": 1,
               "attacks": [{"name": "afr"}, {"name": "membership"}], "links": [{"name": "degree"}]}  # fmt: skip
    found = sweep(plan(**changed).specs, store, scheduler=scheduler)
    by = {result.name: result for result in found.values()}
    assert (by["afr"].status, by["membership"].status) == ("not-applicable", "done")
    assert "eigenvalues" in by["afr"].reason
    assert by["degree"].status == "not-applicable"
    assert "fragment" in by["degree"].reason


def test_what_is_out_of_reach_fails_and_runs_again(plan, store, scheduler, monkeypatch, tmp_path):
    monkeypatch.delenv("LOGRAB_MIRROR", raising=False)
    monkeypatch.setenv("LOGRAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(download, "PAUSES", ())
    file = RawFile("one/graph.csv", url="http://127.0.0.1:1/graph.csv")

    def load(progress):
        fetch([file])
        yield Graph.from_edges("one", 3, [(0, 1), (1, 2)])

    known = replace(DATASETS["karate"], name="one", load=load)
    monkeypatch.setitem(DATASETS, "one", known)
    (tmp_path / "cache" / "one").mkdir(parents=True)
    theirs = tmp_path / "cache" / "one" / "graph.csv"
    theirs.write_text("")
    mine = tmp_path / "mine.py"
    mine.write_text("import lograb\n\ndef f(seen, rng):\n    return lograb.attacks.Membership()(seen, rng)\n")
    specs = plan(instances=[{"dataset": "one", "k": 2}], attacks=[{"name": "membership"}], seeds=1).specs
    specs += plan(attacks=[{"name": f"{mine}:f"}], instances=[{"dataset": "karate"}], seeds=1).specs
    theirs.rename(tmp_path / "theirs.away")
    mine.rename(tmp_path / "mine.away")
    found = sweep(specs, store, scheduler=scheduler)
    assert [result.status for result in found.values()] == ["failed", "failed"]
    assert "cannot get one/graph.csv" in found[specs[0].key].reason
    assert "no such file" in found[specs[1].key].reason
    (tmp_path / "theirs.away").rename(theirs)
    (tmp_path / "mine.away").rename(mine)
    found = sweep(specs, store, scheduler=scheduler, retry_failed=True)
    assert [result.status for result in found.values()] == ["done", "done"]


def test_stored_answers_are_scored_again_without_running(plan, store, scheduler, monkeypatch):
    specs = plan().specs
    before = sweep(specs, store, scheduler=scheduler)
    for result in before.values():
        store.put(replace(result, scores={"old": 1}))
    monkeypatch.setattr(ATTACKS["afr"], "reconstruct", None)
    after = sweep(specs, store, scheduler=scheduler, rescore=True)
    assert {result.scores.pop("old") for result in after.values()} == {1}
    assert lasting(after) == lasting(before)


def test_graphs_are_spread_over_workers(plan, store, scheduler, monkeypatch):
    rng = np.random.default_rng(0)
    graphs = [Graph.from_edges(f"small{i}", 12, [(j, (j + 1) % 12) for j in range(12)] + [tuple(rng.choice(12, 2,
              replace=False))]) for i in range(23)]  # fmt: skip
    known = replace(DATASETS["molecules"], name="small", n_graphs=23, load=lambda progress: iter(graphs))
    monkeypatch.setitem(DATASETS, "small", known)
    changed = {"instances": [{"dataset": "small", "p": 0.6, "k": 4, "sigma": 0.05}], "seeds": 1,
               "attacks": [{"name": "random"}, {"name": "afr"}, {"name": "posterior"}]}  # fmt: skip
    found = sweep(plan(**changed).specs, store, scheduler=scheduler)
    assert [result.reason for result in found.values()] == [""] * 3
    whole = lograb.generate("small", p=0.6, k=4, sigma=0.05, seed=0)
    for result in found.values():
        score = lograb.evaluate(whole, lograb.attack(whole, result.name, seed=0)).to_dict()
        for name in ("f1", "f1_interval", "floor", "ceiling", "claimed", "auroc"):
            assert result.scores[name] == pytest.approx(score[name]), name


def test_no_scheduler_no_sweep(plan, store, monkeypatch):
    import distributed

    with pytest.raises(lograb.LograbError, match="no Dask scheduler answers"):
        monkeypatch.setattr(distributed, "Client", lambda *_, **__: (_ for _ in ()).throw(OSError("refused")))
        sweep(plan().specs, store, scheduler="tcp://127.0.0.1:1")


@pytest.mark.parametrize(("address", "problem"), [
    ("foo", "must be tcp://"), ("http://x", "must be tcp://"), ("tcp://host", "must be tcp://"),
    ("tls://127.0.0.1:1", "needs certificates"),
])  # fmt: skip
def test_an_address_that_is_none_makes_no_client(plan, store, monkeypatch, address, problem):
    import distributed

    monkeypatch.setattr(distributed, "Client", None)
    with pytest.raises(lograb.LograbError, match=problem):
        sweep(plan().specs, store, scheduler=address)


@pytest.mark.parametrize("address", ["host:8786", "tcp://127.0.0.1:1", "tls://[::1]:8786", "[fe80::1%eth0]:80"])
def test_addresses_of_schedulers(address):
    assert ADDRESS.fullmatch(address)


def test_protection_tells_what_is_guaranteed_and_left(plan, store, scheduler):
    blocks = [{"dataset": "karate", "k": 8, "defences": ["none", "gaussian:epsilon=2"]}]
    made = plan(instances=blocks, attacks=[], protection=True, seeds=1)
    found = sweep(made.specs, store, scheduler=scheduler)
    plain, defended = (found[spec.key].scores for spec in made.specs)
    assert (plain["guarantee"], plain["epsilon"]) == ("none", {})
    assert defended["guarantee"] == "conditional"
    assert defended["epsilon"]["embedding"] == pytest.approx(2)
    instance = lograb.generate("karate", k=8, defences=["gaussian:epsilon=2"], seed=0)
    assert defended["epsilon"]["edge"] == lograb.ledger(instance)["units"]["edge"]["epsilon"]
    assert defended["subspace"] == lograb.utility(instance)["subspace"]


def test_what_cannot_be_scored_again_stays_as_it_is(plan, store, scheduler, monkeypatch):
    specs = plan(seeds=1).specs
    before = sweep(specs, store, scheduler=scheduler)
    with monkeypatch.context() as slow:
        slow.setattr(work, "score_graph", lambda *_: [time.sleep(0.01) for _ in range(1000)])
        with pytest.warns(LograbNotice, match=f"^{len(specs)} of {len(specs)} runs could not.* timed-out"):
            assert sweep(specs, store, scheduler=scheduler, rescore=True, timeout=0.2) == before
    one, other = (store.path(spec.key, ".npz") for spec in specs[:2])
    one.unlink()
    other.write_bytes(other.read_bytes()[:100])
    with pytest.warns(LograbNotice, match=rf"^2 of {len(specs)} runs .*{other.name}.* is damaged"):
        after = sweep(specs, store, scheduler=scheduler, rescore=True)
    assert lasting(after) == lasting(before) == lasting({result.key: result for result in store.results()})


def test_a_file_that_changed_after_the_plan_is_no_result(plan, store, scheduler, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("0,1\n1,2\n2,3\n")
    changed = {"instances": [{"dataset": str(file), "k": 2}], "attacks": [{"name": "membership"}], "seeds": 1}
    old = plan(**changed)
    file.write_text("0,1\n1,2\n0,2\n")
    found = sweep(old.specs, store, scheduler=scheduler)
    assert [(result.status, "has changed" in result.reason) for result in found.values()] == [("failed", True)]
    new = plan(**changed)
    assert new.specs[0].key != old.specs[0].key
    assert sweep(new.specs, store, scheduler=scheduler)[new.specs[0].key].status == "done"
    file.unlink()
    gone = sweep(old.specs, store, scheduler=scheduler, retry_failed=True)[old.specs[0].key]
    assert (gone.status, "no file" in gone.reason) == ("failed", True)
