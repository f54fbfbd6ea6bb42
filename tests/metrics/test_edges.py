import numpy as np
import pytest

from lograb.metrics import EdgeCounts, count_edges, list_f1


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


def test_the_list_counts_an_edge_once_for_every_end_that_lists_it():
    truth = np.array([[0, 1], [1, 2], [3, 4]])
    claimed = np.array([[0, 1], [1, 2], [0, 2]])
    # Of two entries per node all are listed: four right, two wrong; (3, 4) is missed in both directions.
    assert list_f1(truth, claimed, np.array([3.0, 2.0, 1.0]), 5) == pytest.approx(2 * 4 / (2 * 4 + 2 + 2))
    # With one per node, 0 and 1 list each other, and 2 lists 1: three right ones.
    assert list_f1(truth, claimed, np.array([3.0, 2.0, 1.0]), 5, top=1) == pytest.approx(2 * 3 / (2 * 3 + 2))
    none = np.empty((0, 2), np.int64)
    assert list_f1(truth, none, np.empty(0), 5) == list_f1(none, none, np.empty(0), 5) == 0


def test_the_list_agrees_with_the_plain_f1_where_no_node_has_more_than_its_places():
    rng = np.random.default_rng(0)
    pairs = np.array([(u, w) for w in range(30) for u in range(w)])
    truth, claimed = (pairs[np.sort(rng.choice(len(pairs), 20, replace=False))] for _ in range(2))
    claimed = np.unique(np.concatenate([claimed, truth[:15]]), axis=0)
    scores = rng.random(len(claimed))
    assert list_f1(truth, claimed, scores, 30, top=30) == pytest.approx(count_edges(truth, claimed, 30).f1)
