"""What counts as read, and how sure an estimate of it is."""

import numpy as np
import pytest

from lograb.auditing.readable import estimated_interval, guess, read

SCORES = np.array([0.9, 0.8, 0.8, 0.7, 0.1])


@pytest.mark.parametrize(("right", "confidence", "expected"), [
    ([1, 1, 1, 0, 0], 0.9, (3, 3, 0.8)),
    ([1, 1, 0, 1, 0], 0.9, (1, 1, 0.9)),  # the tie at 0.8 stands or falls together
    ([1, 1, 0, 1, 0], 0.7, (3, 4, 0.7)),  # a later prefix may do where an earlier one does not
    ([0, 0, 0, 0, 0], 0.9, (0, 0, np.inf)),
    ([1, 1, 1, 1, 1], 0.9, (5, 5, 0.1)),
])  # fmt: skip
def test_the_longest_list_that_is_right_often_enough(right, confidence, expected):
    assert read(SCORES, np.array(right, dtype=bool), confidence) == expected


def test_nothing_ranked_is_nothing_read():
    assert read(np.empty(0), np.empty(0), 0.9).claims == 0
    assert guess(np.empty(0), np.empty(0)).claims == 0


def test_what_just_misses_the_limit_is_guessed():
    """89 of every 100 claims are right, and below them none is."""
    scores = np.repeat([0.7, 0.6, 0.1], [100, 100, 500])
    right = np.concatenate([np.arange(200) % 100 < 89, np.zeros(500, dtype=bool)])
    assert read(scores, right, 0.9).claims == 0
    assert guess(scores, right) == (178, 200, 0.6)
    assert guess(scores, ~right[::-1] & (scores > 0.5)).claims == 200
    assert guess(scores, np.zeros(700)).claims == 0


def test_any_order_of_the_same_pairs_reads_the_same():
    rng = np.random.default_rng(0)
    scores, right = rng.integers(20, size=300) / 20, rng.random(300) < 0.8
    order = rng.permutation(300)
    assert read(scores, right, 0.75) == read(scores[order], right[order], 0.75)


def test_an_estimate_of_the_certain_is_sure_and_of_the_rest_is_not():
    low, high = estimated_interval(np.full(500, 1 - 1e-6), 500.0, 0.9)
    assert low > 0.98
    assert high == 1.0
    low, high = estimated_interval(np.full(500, 0.92), 460.0, 0.9)
    assert low == 0.0
    assert high == 1.0
    low, high = estimated_interval(np.full(500, 0.1), 50.0, 0.9)
    assert low == 0.0
    assert high < 0.1
