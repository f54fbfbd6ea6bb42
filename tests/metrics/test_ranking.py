import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lograb.metrics import Ranking


def test_hand_computed():
    ranking = Ranking.of(np.array([0.9, 0.8, 0.7]), np.array([True, False, True]), n_true=3, n_pairs=5)
    assert ranking.average_precision() == pytest.approx((1 + 2 / 3 + 3 / 5) / 3)
    # pairs: true 0.9, 0.7, unlisted; false 0.8, unlisted
    assert ranking.auroc() == pytest.approx((2 + 1 + 0.5) / 6)
    assert ranking.recall_at_false_rate(0.0) == pytest.approx(1 / 3)
    assert ranking.recall_at_false_rate(0.5) == pytest.approx(2 / 3)
    assert ranking.precision_at_recall(0.5) == pytest.approx(2 / 3)


def test_ties_are_one_step():
    ranking = Ranking.of(np.array([1.0, 1.0]), np.array([True, False]), n_true=1, n_pairs=2)
    assert ranking.auroc() == 0.5
    assert ranking.average_precision() == 0.5
    assert ranking.recall_at_false_rate(0.1) == 0.0


SCORED = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=30)


@given(SCORED, st.integers(0, 5), st.integers(0, 5))
def test_auroc_is_the_chance_that_a_true_pair_outranks_a_false_one(pairs, more_true, more_false):
    scores = np.array([float(s) for s, _ in pairs])
    true = np.array([t for _, t in pairs])
    n_true, n_pairs = int(true.sum()) + more_true, len(pairs) + more_true + more_false
    found = Ranking.of(scores, true, n_true, n_pairs).auroc()
    high = [*scores[true], *[-1.0] * more_true]
    low = [*scores[~true], *[-1.0] * more_false]
    if not high or not low:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(np.mean([(a > b) + 0.5 * (a == b) for a in high for b in low]))


def test_infinite_scores_tie():
    ranking = Ranking.of(np.array([np.inf, np.inf, -np.inf, -np.inf]), np.array([True, False, True, False]), 2, 4)
    assert ranking.auroc() == 0.5
    assert ranking.average_precision() == 0.5


def test_without_false_pairs_there_is_no_false_rate():
    ranking = Ranking.of(np.array([0.9]), np.array([True]), n_true=1, n_pairs=1)
    assert np.isnan(ranking.recall_at_false_rate(0.1))
    assert ranking.average_precision() == 1.0
