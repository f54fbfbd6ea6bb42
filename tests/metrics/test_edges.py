import numpy as np
import pytest

from lograb.metrics import EdgeCounts, count_edges


def test_hand_computed():
    truth = np.array([[0, 1], [1, 2], [2, 3], [3, 4]])
    claimed = np.array([[0, 1], [1, 2], [0, 4]])
    everywhere = count_edges(truth, claimed, 5)
    assert (everywhere.precision, everywhere.recall) == (2 / 3, 2 / 4)
    assert everywhere.f1 == pytest.approx(2 * 2 / 7)
    recovered = count_edges(truth, claimed, 5, nodes=np.array([0, 1, 2]))
    assert (recovered.claimed, recovered.true, recovered.hits) == (2, 2, 2)
    assert recovered.f1 == 1.0


def test_silence_earns_nothing():
    none = np.empty((0, 2), np.int64)
    assert count_edges(np.array([[0, 1]]), none, 2).f1 == 0
    assert EdgeCounts(0, 0, 0).f1 == 0


def test_interval_is_about_the_binomial_one():
    low, high = EdgeCounts(claimed=1000, true=1000, hits=800).f1_interval()
    assert low < 0.8 < high
    assert 0.02 < high - low < 0.08
    assert EdgeCounts(10, 10, 10).f1_interval() == (1.0, 1.0)
    assert EdgeCounts(0, 0, 0).f1_interval() == (0.0, 0.0)
