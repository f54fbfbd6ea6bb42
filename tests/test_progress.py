"""Whoever waits is told: stages in order, how much is done, and each finished run."""

import threading

import pytest

import lograb
from lograb.parallel import ordered_map


class Told(list):
    def __call__(self, what, done, total):
        self.append((what, done, total))

    def stages(self):
        return list(dict.fromkeys(what for what, _, _ in self))


def test_one_graph_tells_of_its_stages():
    told = Told()
    quiet = lograb.generate("citation", sigma=0.05)
    instance = lograb.generate("citation", sigma=0.05, progress=told)
    assert told.stages() == ["cutting patches", "spectra", "noise"]
    spectra = [(done, total) for what, done, total in told if what == "spectra"]
    assert [done for done, _ in spectra] == sorted(done for done, _ in spectra)
    assert spectra[-1][0] == spectra[-1][1]
    assert len(spectra) > 10
    assert (instance.observations.vectors == quiet.observations.vectors).all()


def test_a_file_tells_of_its_writing(tmp_path):
    told = Told()
    lograb.generate_file("karate", tmp_path / "x.lograb", progress=told)
    assert told.stages()[-1] == "writing"
    assert "noise" not in told.stages()


def test_many_graphs_are_counted():
    told = Told()
    lograb.generate("superpixels", p=0.05, k=4, progress=told)
    assert told == [("fragmenting", number, 100) for number in range(100)]


def test_a_comparison_tells_of_stages_and_runs():
    told, runs = Told(), []
    table = lograb.compare("karate", ["membership", "posterior"], seeds=2, sigma=0.05, progress=told,
                           finished=lambda *run: runs.append(run))  # fmt: skip
    assert [name for name, _, _ in runs] == ["membership", "posterior"] * 2
    assert tuple(score for name, score, _ in runs if name == "posterior") == table["posterior"].scores
    assert {"posterior: judging pairs", "posterior: scoring", "spectra"} <= set(told.stages())
    assert {total for _, _, total in told} == {4}
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


def test_who_cannot_run_is_told_once_and_not_asked_again():
    calls, runs = [], []

    def fails(seen, rng):
        calls.append(1)
        raise lograb.LograbError("no")

    lograb.compare("karate", [fails, "membership"], seeds=2, finished=lambda *run: runs.append(run[:2]))
    assert len(calls) == 1
    assert runs[0] == ("fails", None)
    assert [name for name, _ in runs] == ["fails", "membership", "membership"]


def test_without_truth_nothing_is_compared(tmp_path):
    lograb.generate("karate", sigma=0.1).save(tmp_path / "x.lograb", truth=False)
    with pytest.raises(lograb.LograbError, match="without its truth"):
        lograb.compare(lograb.load(tmp_path / "x.lograb"), [lambda *_: pytest.fail("no attack should run")])


def test_whoever_stops_early_does_not_wait_for_the_rest():
    go, done = threading.Event(), []

    def work(item):
        if item:
            go.wait(10)
        done.append(item)
        return item

    results = ordered_map(work, range(100), workers=1 + 1)
    assert next(results) == 0
    threading.Timer(0.2, go.set).start()
    results.close()
    assert len(done) <= 3  # the first, and what was already under way
