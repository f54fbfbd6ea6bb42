"""Work on several cores: complete, in order, and failing where the work fails."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import lograb
from lograb import parallel
from lograb.parallel import ordered_map, split_map
from lograb.tasks.link_prediction import predict_links
from lograb.tasks.node_classification import classify


@pytest.mark.parametrize("cores", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 3, 100])
def test_slices_cover_everything_once(monkeypatch, cores, n):
    monkeypatch.setattr(parallel, "n_cores", lambda: cores)
    hits, threads = np.zeros(n, dtype=int), set()

    def work(part):
        threads.add(threading.get_ident())
        hits[part] += 1

    split_map(work, n, 5)
    assert (hits == 1).all()
    assert threading.get_ident() in threads
    assert len(threads) <= max(1, min(cores, n))
    threads.clear()
    split_map(work, n, 1)
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize("fails", [0, 1])
def test_what_fails_in_a_thread_fails_outside(monkeypatch, fails):
    monkeypatch.setattr(parallel, "n_cores", lambda: 2)

    def work(part):
        if (part.start > 0) == fails:
            raise ValueError("as meant")

    with pytest.raises(ValueError, match="as meant"):
        split_map(work, 10, 2)


def test_results_come_in_the_order_of_the_items():
    assert list(ordered_map(lambda x: x * x, range(50), workers=3)) == [x * x for x in range(50)]


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_overlapping_holders_leave_the_blas_as_it_was():
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        first, second = parallel.one_blas_thread(), parallel.one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)  # the first to come is the first to go
        assert set(blas_threads()) == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before


def test_many_threads_leave_the_blas_as_it_was():
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()

        def work():
            for _ in range(20):
                list(ordered_map(np.linalg.eigh, [np.eye(3)] * 4, workers=2))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert blas_threads() == before


@pytest.mark.parametrize("work", ["classify", "seal", "neo-gnn", "lightgcn", "gae"])
def test_torch_is_held_to_one_thread_where_the_work_is_small(monkeypatch, work):
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    met, step = [], torch.optim.Adam.step

    def recorded(self, *rest):
        met.append(torch.get_num_threads())
        return step(self, *rest)

    monkeypatch.setattr(torch.optim.Adam, "step", recorded)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        if work == "gae":
            lograb.attack(lograb.generate("karate"), lograb.attacks.find_attack("gae")(epochs=2))
        elif work == "classify":
            classify(lograb.generate("karate"), "gcn", settings={"epochs": 2})
        else:
            instance = lograb.generate("karate", strategy="cluster", clusters=3, d=0)
            predict_links(instance, work, settings={"epochs": 2})
        assert set(met) == {1}
        assert torch.get_num_threads() == 2
        with parallel.threads_for(10**6):
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_little_work_stays_in_one_thread_and_much_does_not(monkeypatch):
    """A small graph of many must not pay for threads; what comes after it has all cores again."""
    monkeypatch.setattr(parallel, "_most", 3)
    seen = []

    def attack(observations, rng):
        seen.append(parallel.n_cores())
        none = np.empty(0, np.int64)
        return lograb.Reconstruction(observations.n_nodes, none.reshape(0, 2), np.empty(0), none)

    small, large = lograb.generate("karate"), lograb.generate("citation")
    assert small.observations.sizes @ small.observations.sizes < parallel.FEW_PAIRS
    for instance in (small, large, small):
        lograb.attack(instance, attack)
    assert seen == [1, 3, 1]
    assert parallel.n_cores() == 3
