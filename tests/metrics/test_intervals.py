"""Intervals for the area under the ROC curve."""

import numpy as np
import pytest
from scipy.stats import norm

from lograb.metrics.intervals import auroc_interval
from lograb.metrics.ranking import Ranking


def area(positives, negatives):
    scores = np.concatenate([positives, negatives])
    true = np.arange(len(scores)) < len(positives)
    return Ranking.of(scores, true, len(positives), len(scores)).auroc()


@pytest.mark.parametrize("theta", [0.5, 0.8, 0.95])
@pytest.mark.parametrize(("m", "n"), [(10, 10), (19, 57), (100, 100)])
def test_the_interval_covers_the_truth_as_often_as_promised(theta, m, n):
    """Normal scores with a shift have the area Φ(shift / √2)."""
    rng, shift = np.random.default_rng(0), np.sqrt(2) * norm.ppf(theta)
    covered = []
    for _ in range(600):
        low, high = auroc_interval(area(rng.standard_normal(m) + shift, rng.standard_normal(n)), m, n)
        covered.append(low <= theta <= high)
    assert 0.92 < np.mean(covered) <= 1


def test_a_perfect_ranking_of_few_pairs_is_not_certainty():
    low, high = auroc_interval(1.0, 10, 10)
    assert 0.6 < low < 0.9
    assert high == 1.0
    assert auroc_interval(0.0, 10, 10) == pytest.approx((0.0, 1 - low))


def test_more_pairs_narrow_the_interval_around_the_estimate():
    widths = []
    for m in (10, 100, 1000):
        low, high = auroc_interval(0.7, m, m)
        assert low < 0.7 < high
        widths.append(high - low)
    assert widths[0] > 2 * widths[1] > 4 * widths[2]


def test_nothing_asked_nothing_known():
    assert auroc_interval(float("nan"), 0, 5) == (0.0, 1.0)
