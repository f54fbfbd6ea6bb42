"""Mean field and its ascent: one probability per pair, moved along stochastic gradients of the ELBO.

    ELBO(φ) = -γ E[S_ε(P, U(A))] - KL(q_φ ‖ prior),    q_φ = Π Bernoulli(φ_ij),

up to a constant. The second term is exact; the first is estimated from K drawn graphs, in one of two ways.

``score``
    ∇ E[S] = E[S ∇ log q]. With respect to the log-odds θ the derivative of log q is A - φ. The mean of the
    other K - 1 draws is subtracted from each S, which keeps the estimate unbiased and lowers its variance.
``relaxed``
    Draw weights W = sigmoid((θ + logistic noise) / τ) and differentiate S through the eigenvectors of W.
    This is the exact derivative of another objective, whose graphs are weighted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit, logit

from lograb.attacks.variational.eigenpairs import decompose, pull_back
from lograb.attacks.variational.likelihood import Target, divergence
from lograb.types import Floats

EstimatorName = Literal["score", "relaxed"]


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything that defines the ELBO of patches of one size."""

    target: Target  # b patches of n nodes
    gamma: Floats  # (b,)
    prior: float  # edge probability of the Erdős–Rényi prior
    estimator: EstimatorName = "score"
    temperature: float = 0.5

    @property
    def n_pairs(self) -> int:
        """Number of pairs of nodes of one patch."""
        n = int(self.target.rows.shape[1])
        return n * (n - 1) // 2


def candidate_weights(problem: Problem, log_odds: Floats, uniform: Floats) -> Floats:
    """Turn log-odds (b, n_pairs) and uniform numbers (K, b, n_pairs), strictly between 0 and 1, into candidates.

    They are 0 or 1, or weights between them, by the estimator.
    """
    if problem.estimator == "score":
        return np.asarray((uniform < expit(log_odds)).astype(float))
    # The same numbers mean the same in both: with τ towards 0 this is the line above.
    return np.asarray(expit((log_odds - logit(uniform)) / problem.temperature))


def as_matrices(weights: Floats, n: int) -> Floats:
    """Lay weights of pairs (i < j, row by row) out as symmetric matrices, shape (..., n, n)."""
    upper = np.triu_indices(n, k=1)
    out = np.zeros((*weights.shape[:-1], n, n))
    out[..., upper[0], upper[1]] = weights
    out[..., upper[1], upper[0]] = weights
    return out


def distances(problem: Problem, weights: Floats, slopes: bool) -> tuple[Floats, Floats | None]:
    """Compute S_ε of candidates, shape (K, b), and, if asked for, its derivatives (K, b, n_pairs)."""
    times, b, _ = weights.shape
    _, n, k = problem.target.rows.shape
    # Candidates of one patch stand together.
    candidates = decompose(as_matrices(weights.swapaxes(0, 1), n).reshape(times * b, n, n))
    distance, slope = divergence(problem.target.repeat(times), candidates.vectors[:, :, :k])
    by_candidate = distance.reshape(b, times).T
    if not slopes:
        return by_candidate, None
    upper = np.triu_indices(n, k=1)
    derivative = pull_back(candidates, slope)[:, upper[0], upper[1]]
    return by_candidate, derivative.reshape(b, times, -1).swapaxes(0, 1)


def kl_to_prior(log_odds: Floats, prior: float) -> tuple[Floats, Floats]:
    """Compute KL(q ‖ prior), shape (b,), and its derivative with respect to the log-odds."""
    phi = expit(log_odds)
    shift = log_odds - logit(prior)
    # log (1 - φ) / (1 - p0), without cancellation for large log-odds.
    rest = -np.logaddexp(0.0, log_odds) - np.log1p(-prior)
    return (phi * shift + rest).sum(axis=-1), phi * (1 - phi) * shift


def estimate(problem: Problem, log_odds: Floats, uniform: Floats) -> tuple[Floats, Floats]:
    """Estimate the ELBO, shape (b,), and its gradient, shape (b, n_pairs), from given random numbers."""
    weights = candidate_weights(problem, log_odds, uniform)
    relaxed = problem.estimator == "relaxed"
    distance, derivative = distances(problem, weights, slopes=relaxed)
    if derivative is not None:
        slope = (derivative * weights * (1 - weights)).mean(axis=0) / problem.temperature
    else:
        times = len(uniform)
        advantage = (distance - distance.mean(axis=0)) * times / (times - 1)
        # The advantages sum to 0, so that A may be centred by its mean in place of φ: the same sum, but
        # exactly 0 for a pair on which all draws agree, where Adam would blow rounding up to a full step.
        slope = (advantage[:, :, None] * (weights - weights.mean(axis=0))).mean(axis=0)
    kl, kl_slope = kl_to_prior(log_odds, problem.prior)
    return -problem.gamma * distance.mean(axis=0) - kl, -problem.gamma[:, None] * slope - kl_slope


@dataclass(frozen=True, eq=False)
class Ascent:
    """Where the ascent ended."""

    log_odds: Floats  # (b, n_pairs)
    elbo: Floats  # (2, b), estimates at the start and at the end, from the same random numbers


def ascend(
    problem: Problem, start: Floats, rng: np.random.Generator, steps: int, samples: int, learning_rate: float
) -> Ascent:
    """Climb the ELBO by Adam with K samples per step, from log-odds `start`, shape (b, n_pairs)."""
    shape = (samples, *start.shape)
    ruler = open_uniform(rng, (max(samples, 16), *start.shape))
    theta = start.copy()
    mean, square = np.zeros_like(theta), np.zeros_like(theta)
    for step in range(1, steps + 1):
        _, gradient = estimate(problem, theta, open_uniform(rng, shape))
        mean += 0.1 * (gradient - mean)
        square += 0.001 * (gradient**2 - square)
        pace = np.sqrt(square / (1 - 0.999**step)) + 1e-8
        theta = theta + learning_rate * (mean / (1 - 0.9**step)) / pace
    elbo = np.stack([estimate(problem, odds, ruler)[0] for odds in (start, theta)])
    return Ascent(theta, elbo)


def open_uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Draw numbers strictly between 0 and 1."""
    return np.asarray(np.maximum(rng.random(shape), np.finfo(float).tiny))
