"""How much noise (ε, δ) asks for, and what several releases add up to.

The analytic Gaussian mechanism (Balle & Wang 2018): noise σ on an answer of sensitivity Δ is (ε, δ)-private
exactly if

    δ >= Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ),    μ = Δ/σ.

All that matters is μ. Gaussians compose exactly: μ² adds up (Dong, Roth & Su 2022). Any test of a release with
parameter μ has a true-positive rate of at most Φ(Φ⁻¹(FPR) + μ). The classical σ = Δ √(2 ln(1.25/δ)) / ε is proved
for ε < 1 only, and too small for large ε.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

from lograb.errors import LograbError, MissingExtraError

FALSE_RATE = 1e-3
"""The false-positive rate at which ε is shown as what it allows."""
NOTHING = 0.999
"""A largest true-positive rate, at that false-positive rate, beyond which nothing is ruled out, whatever ε is."""
LARGEST_MU = 1e6


def delta_of(epsilon: float, mu: float) -> float:
    """Give the smallest δ at which a Gaussian with parameter μ is (ε, δ)-private."""
    if mu <= 0:
        return 0.0
    # The second term is e^ε times a tiny number: together in the exponent, so that neither overflows.
    return float(ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


def mu_of(epsilon: float, delta: float) -> float:
    """Give the largest μ = Δ/σ that is (ε, δ)-private."""
    if not (0 < delta < 1 and 0 < epsilon < np.inf):
        raise LograbError(f"a Gaussian needs epsilon > 0 and 0 < delta < 1, got {epsilon} and {delta}")
    high = 1.0
    while delta_of(epsilon, high) < delta:
        high *= 2.0
    return float(brentq(lambda mu: delta_of(epsilon, mu) - delta, 0.0, high, xtol=1e-13, rtol=1e-13))


def epsilon_of(mu: float, delta: float) -> float:
    """Give the smallest ε at which a Gaussian with parameter μ is (ε, δ)-private."""
    if mu > LARGEST_MU or not 0 < delta < 1:
        return float("inf")
    if delta_of(0.0, mu) <= delta:
        return 0.0
    high = mu * mu / 2 + mu * float(-ndtri(delta)) + 1.0
    return float(brentq(lambda epsilon: delta_of(epsilon, mu) - delta, 0.0, high, xtol=1e-12, rtol=1e-13))


def sigma_of(epsilon: float, delta: float, sensitivity: float) -> float:
    """Give the smallest noise that makes an answer of some L2 sensitivity (ε, δ)-private."""
    return sensitivity / mu_of(epsilon, delta)


def classical_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """Give the textbook noise: too much below ε = 1, and above some ε too little."""
    return float(sensitivity * np.sqrt(2 * np.log(1.25 / delta)) / epsilon)


def largest_tpr(mu: float, fpr: float = FALSE_RATE) -> float:
    """Bound the true-positive rate of any test of a Gaussian release."""
    return float(ndtr(ndtri(fpr) + mu))


def largest_tpr_at(epsilon: float, delta: float, fpr: float = FALSE_RATE) -> float:
    """Bound the true-positive rate of any test of any (ε, δ)-private release."""
    one, other = np.exp(min(epsilon, 700.0)) * fpr + delta, 1 - np.exp(-epsilon) * (1 - delta - fpr)
    return float(min(one, other, 1.0))


def compose(mus: Sequence[float], epsilons: Sequence[float], delta: float) -> float:
    """Compose Gaussians and purely ε-private mechanisms on the same unit: ε at δ.

    Closed form for either kind alone. A mixture needs dp-accounting (the extra ``dp``); it counts a pure mechanism
    as randomised response, the worst one of its ε.
    """
    mu, pure = float(np.sqrt(np.square(mus).sum())), float(np.sum(epsilons))
    if not pure or not np.isfinite(mu + pure):
        return epsilon_of(mu, delta) if np.isfinite(mu + pure) else float("inf")
    if not mu:
        return pure
    try:
        from dp_accounting import pld
    except ImportError:
        raise MissingExtraError("composing Gaussian noise with randomised response", "dp") from None
    total: Any = pld.privacy_loss_distribution.from_gaussian_mechanism(1.0 / mu)
    for epsilon in epsilons:
        flips = pld.privacy_loss_distribution.from_randomized_response(2.0 / (1.0 + np.exp(epsilon)), 2)
        total = total.compose(flips)
    return float(total.get_epsilon_for_delta(delta))
