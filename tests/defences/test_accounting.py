"""Calibration and composition, against dp-accounting to four digits."""

import numpy as np
import pytest

from lograb.defences.accounting import (
    classical_sigma,
    compose,
    delta_of,
    epsilon_of,
    largest_tpr,
    largest_tpr_at,
    mu_of,
    sigma_of,
)

CASES = [(epsilon, delta) for epsilon in (0.1, 1.0, 2.0, 5.0, 10.0, 50.0) for delta in (1e-3, 1e-5, 1e-9)]


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_noise_is_that_of_dp_accounting(epsilon, delta):
    dp = pytest.importorskip("dp_accounting")
    assert sigma_of(epsilon, delta, 2.0) == pytest.approx(2.0 * dp.get_sigma_gaussian(epsilon, delta), rel=1e-4)
    assert epsilon_of(mu_of(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-9)
    assert epsilon_of(0.7, delta) == pytest.approx(dp.get_epsilon_gaussian(1 / 0.7, delta), rel=1e-4)


def test_gaussians_compose_by_their_squares():
    dp = pytest.importorskip("dp_accounting")
    mus = [0.2, 0.5, 1.1]
    accountant = dp.pld.PLDAccountant(value_discretization_interval=1e-4)
    for mu in mus:
        accountant.compose(dp.GaussianDpEvent(1 / mu))
    assert compose(mus, [], 1e-5) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-4)
    accountant = dp.pld.PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(dp.GaussianDpEvent(4.0), 9)
    assert compose([0.25] * 9, [], 1e-5) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-4)


def test_mixtures_lie_between_their_parts_and_the_sum():
    pytest.importorskip("dp_accounting")
    alone, mixed = compose([0.5], [], 1e-5), compose([0.5], [1.0], 1e-5)
    assert max(alone, 1.0) < mixed < alone + 1.0
    assert compose([], [1.0, 2.0], 1e-5) == 3.0
    assert compose([np.inf], [], 1e-5) == np.inf


def test_the_classical_formula_promises_too_much_above_one():
    for epsilon, holds in ((0.5, True), (1.0, True), (20.0, False), (50.0, False)):
        mu = 1.0 / classical_sigma(epsilon, 1e-5, 1.0)
        assert (delta_of(epsilon, mu) <= 1e-5) == holds


def test_what_a_test_can_do():
    # The (ε, δ) bound is looser than that of the Gaussian which satisfies it.
    for epsilon, delta in CASES:
        assert largest_tpr(mu_of(epsilon, delta)) <= largest_tpr_at(epsilon, delta) + 1e-12
    assert largest_tpr(0.0) == pytest.approx(1e-3)
    assert largest_tpr_at(0.0, 0.0) == pytest.approx(1e-3)
    assert largest_tpr_at(1e9, 0.0) == 1.0
