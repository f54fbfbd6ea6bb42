"""F1 of a classification, against hand-computed values."""

import numpy as np
import pytest

from lograb.metrics.classification import choose_labels, f1_scores


def test_micro_is_accuracy_and_macro_by_hand():
    truth, answer = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 2, 2])
    found = f1_scores(truth, answer, 5)
    assert found.micro == pytest.approx(4 / 6)
    # classes 0, 1, 2: 2*2/(3+2), 2*1/(2+2), 2*1/(1+2); classes 3 and 4 do not occur
    assert found.macro == pytest.approx((0.8 + 0.5 + 2 / 3) / 3)


def test_sets_of_labels_by_hand():
    truth = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0]], dtype=bool)
    answer = np.array([[1, 0, 0], [0, 1, 1], [0, 0, 0]], dtype=bool)
    found = f1_scores(truth, answer, 3)
    assert found.micro == pytest.approx(2 * 2 / (3 + 3))
    assert found.macro == pytest.approx((1 + 2 / 3 + 0) / 3)


def test_nothing_to_compare():
    assert np.isnan(f1_scores(np.empty(0, int), np.empty(0, int), 3)).all()


def test_labels_are_chosen_without_knowing_their_number():
    scores = np.array([[1.0, 2.0, -1.0], [-3.0, -1.0, -2.0]])
    assert choose_labels(scores, multi_label=False).tolist() == [1, 1]
    assert choose_labels(scores, multi_label=True).tolist() == [[True, True, False], [False, True, False]]
