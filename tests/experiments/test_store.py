"""A store keeps what it is given, whole, and nothing else."""

import dataclasses
import errno
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from lograb import LograbError
from lograb.experiments import RunResult, Store
from lograb.experiments import store as store_module


@pytest.fixture
def result(plan):
    spec = plan().specs[0]
    return RunResult(spec.key, spec.name, spec.identity(), "done", scores={"f1": {"global": 0.5}})


def test_a_run_comes_back_as_it_was(store, result):
    store.put(result, {"0/edges": np.array([[0, 1]])})
    assert store.get(result.key) == result
    assert store.arrays(result.key)["0/edges"].tolist() == [[0, 1]]
    assert list(Store(store.folder).results()) == [result]


def test_another_spec_never_takes_a_run_s_place(store, result):
    store.put(result)
    other = dataclasses.replace(result, spec=result.spec | {"method": "other"})
    with pytest.raises(LograbError, match="another run"):
        store.put(other)
    assert store.get(result.key) == result


@pytest.mark.parametrize("published", [False, True])
def test_only_what_is_done_replaces_what_is_done(store, result, tmp_path, published):
    store.put(result, {"0/edges": np.array([[0, 1]])})
    if published:
        other = Store(tmp_path / "other")
        store.publish(other.folder)
        store = other
    for status in ("failed", "timed-out", "not-applicable"):
        assert store.put(dataclasses.replace(result, status=status, reason="too slow", scores={})) == result
    assert store.get(result.key) == result
    again = dataclasses.replace(result, scores={"f1": {"global": 0.75}})
    assert store.put(again) == again == store.get(result.key)


def test_a_failure_gives_way(store, result):
    failed = dataclasses.replace(result, status="failed", reason="by design", scores={})
    late = dataclasses.replace(failed, status="timed-out")
    for each in (failed, late, result):
        assert store.put(each) == each == store.get(result.key)


def test_two_sweeps_decide_one_after_the_other_who_may_write(store, result, monkeypatch):
    """A result that comes between a failure's look and its writing is not lost."""
    failed, threads = dataclasses.replace(result, status="failed", scores={}), []
    write = store_module._write

    def slowly(path, content):
        if content["status"] == "failed":
            threads.append(threading.Thread(target=Store(store.folder).put, args=(result,)))
            threads[0].start()
            threads[0].join(0.3)
        write(path, content)

    monkeypatch.setattr(store_module, "_write", slowly)
    store.put(failed)
    threads[0].join()
    assert store.get(result.key) == result


def test_a_run_that_was_changed_by_hand_is_not_believed(store, result):
    store.put(result)
    path = store.path(result.key)
    path.write_text(path.read_text().replace('"karate"', '"cora"'))
    with pytest.raises(LograbError, match="changed"):
        store.get(result.key)
    path.write_text(path.read_text()[:50])
    with pytest.raises(LograbError, match="damaged"):
        store.get(result.key)


def test_unfinished_files_of_the_dead_are_swept_up(store, result):
    store.put(result)
    old, new = (store.path(result.key).parent / name for name in (".lograb-old", ".lograb-new"))
    for path in (old, new):
        path.write_text("half")
    os.utime(old, (0, 0))
    Store(store.folder)
    assert not old.exists()
    assert new.exists()


def test_a_file_is_no_store(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(LograbError, match="folder"):
        Store(tmp_path / "x")


def test_published_runs_are_runs_of_another_store(store, result, tmp_path):
    store.put(result, {"0/edges": np.array([[0, 1]])})
    other = Store(tmp_path / "other")
    store.publish(other.folder)
    assert other.get(result.key) == result
    assert list(other.results()) == [result]
    assert other.arrays(result.key) == {}
    mine = dataclasses.replace(result, reason="run again")
    other.put(mine)
    assert list(other.results()) == [mine]


def test_published_runs_that_were_changed_are_not_believed(store, result, tmp_path):
    store.put(result)
    path = store.publish(tmp_path)
    path.write_text(path.read_text().replace('"karate"', '"cora"'))
    with pytest.raises(LograbError, match="changed"):
        Store(tmp_path).get(result.key)


@pytest.mark.parametrize("damage", [b'{"key": "ab', b"[]", b"\xff\xfe\xfa", b'{"key": "ab"}', b"[" * 100_000])
def test_a_damaged_line_of_published_runs_is_named(store, result, tmp_path, damage):
    store.put(result)
    path = store.publish(tmp_path)
    path.write_bytes(path.read_bytes() + b"\n" + damage + b"\n")
    with pytest.raises(LograbError, match="runs.jsonl, line 3'.*remove that line"):
        Store(tmp_path).get(result.key)
    path.write_bytes(path.read_bytes().replace(damage, b""))
    assert Store(tmp_path).get(result.key) == result


def test_published_runs_may_hold_any_letter(store, result, tmp_path):
    odd = dataclasses.replace(result, reason="one\u2028two\x85three")
    store.put(odd)
    store.publish(tmp_path)
    assert list(Store(tmp_path).results()) == [odd]


def test_a_run_that_is_no_text_is_damaged(store, result):
    store.put(result)
    store.path(result.key).write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(LograbError, match="is damaged"):
        store.get(result.key)


def read_only(*_, **__):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def test_published_runs_can_be_read_where_nothing_can_be_written(store, result, tmp_path, monkeypatch):
    store.put(result)
    other = tmp_path / "other"
    other.mkdir()
    store.publish(other)
    monkeypatch.setattr(Path, "mkdir", read_only)
    assert list(Store(other).results()) == [result]
    assert Store(other).tables() == {}
    with pytest.raises(LograbError, match="cannot write .* Read-only"):
        Store(other).put(result)
    with pytest.raises(LograbError, match="cannot make the store"):
        Store(tmp_path / "new")
