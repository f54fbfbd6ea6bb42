"""What one patch says about each of its pairs, given the current estimate of all the others.

S = I - L has entries a_ij w_ij with w_ij = 1 / √(d_i d_j). Write S = Σ + δ with the current estimate Σ, and let U
be the frame that was read off the patch, P = U Uᵀ, M = I - Λ. In the basis of the true eigenvectors the noise of U
has independent components, so the residuals of the eigen-equation

    inside   M - Uᵀ Σ U       noise variance σ² (μ_a - μ_b)² / 2    for a pair of kept columns a, b,
    outside  -(I - P) Σ U     noise variance σ² (μ_a - θ)²          for a column a, θ typical of the hidden part,

are independent observations of the same components of δ, to which the doubt about all other pairs adds a common
variance τ². A pair adds w_ij (e_i e_jᵀ + e_j e_iᵀ) to δ; weighting each residual by its inverse variance gives the
pair's score and its information. Terms of second order in σ bias both, and are removed: a frame that nears
σ² q = 1 shrinks by `attenuation`, and noise in U meets itself in the residuals.

Below, `estimate` (b, q, q) is Σ, `image` (b, q, r) Σ U, `inner` (b, r, r) Uᵀ Σ U, `tau` (b,) τ² and `second` (b,)
σ⁴ ‖Σ‖².
See docs/methods/posterior-derivations.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lograb.attacks.posterior.batches import Batch
from lograb.types import Bools, Floats

LEAST_DOUBT = 1e-6
WEIGHT_ERROR = 0.02
"""Relative variance of w_ij that remains when an edge itself is certain."""
GUESS_ERROR = 0.1
"""Variance of eigenvalues that were withheld and guessed, in units of σ."""
FACTORS = 4
"""Rank at which the table of weights is cut where pairs of columns meet pairs of nodes."""
LEAST_SLOPE = 0.2
"""Least response of the score to the pair itself, as a share of the information."""


@dataclass(frozen=True)
class Evidence:
    """Estimates of a_ij (1 for an edge, 0 for none) from one batch, each shape (b, q, q).

    Attributes
    ----------
    estimate : what this patch says, with the pair's own part of the current estimate taken out
    variance : of the estimate, from noise and from doubt about other pairs
    shared : the part from what the patch hides, which overlapping patches have in common
    """

    estimate: Floats
    variance: Floats
    shared: Floats


def attenuation(batch: Batch) -> Floats:
    """Factor by which noise shrinks U M Uᵀ, to second order: 1 + σ² (q - r / 2); shape (b,)."""
    return 1.0 + batch.variance * (batch.size - batch.rank / 2)


def shortfall(batch: Batch) -> Floats:
    """Factor by which edges still read too little, by terms of fourth order in the noise; shape (b,).

    With g = σ² r and h = σ² (q - r) it is 1 + g (0.4 g + 2 h / (1 + h)): a fit to patches of generated graphs
    whose other pairs were known, for σ² q up to about 2.
    """
    inside, outside = batch.variance * batch.rank, batch.variance * (batch.size - batch.rank)
    return 1.0 + inside * (0.4 * inside + 2.0 * outside / (1.0 + outside))


def _outer(x: Floats, y: Floats) -> Floats:
    return x[:, :, None] * y[:, None, :]


def _times(frame: Floats, diagonal: Floats) -> Floats:
    """U diag(c) Uᵀ for stacked frames (b, q, r) and diagonals (b, r)."""
    return (frame * diagonal[:, None, :]) @ frame.swapaxes(1, 2)


def pair_evidence(batch: Batch, means: Floats, degrees: Floats, isolated: Bools) -> Evidence:
    """Judge every pair of every patch of a batch.

    Parameters
    ----------
    means : float array, shape (b, q, q)
        Current probabilities of the pairs, zero on the diagonal.
    degrees : float array, shape (b, q)
    isolated : bool array, shape (b, q)
        Members without an edge in the patch; L has a zero row there, S a one on the diagonal.
    """
    root = 1.0 / np.sqrt(degrees)
    weights = _outer(root, root)
    estimate = means * weights
    patch, node = np.nonzero(isolated)
    estimate[patch, node, node] = 1.0
    doubt = weights**2 * (means * (1.0 - means) + WEIGHT_ERROR * means)
    frame = batch.frame
    image = estimate @ frame
    inner = frame.swapaxes(1, 2) @ image
    tau = (doubt @ frame**2).mean(axis=(1, 2)) + LEAST_DOUBT
    second = batch.variance**2 * (estimate**2).sum(axis=(1, 2))
    score, information, table = _inside(batch, inner, tau, second)
    slope = attenuation(batch)[:, None, None] * information
    shared = np.zeros_like(score)
    if batch.truncated:
        cross = np.eye(batch.size) - frame @ frame.swapaxes(1, 2)  # I - P
        outside, mixing = np.einsum("bii->bi", cross), cross**2
        own = _outer(outside, outside) + mixing  # share of each pair that is hidden
        more, added, by_hidden = _outside(batch, cross, estimate, image, inner, tau, second, table)
        score, information, slope = score + more, information + added, slope + added - by_hidden * own
        rest = np.maximum(mixing @ doubt @ mixing - own**2 * doubt, 0.0)
        shared = rest / (np.maximum(1.0 - own, 0.02) * weights) ** 2
    information = np.maximum(information, 1e-12)
    # By this the score falls with the pair's own part of the estimate, which cancels in the quotient. Where noise
    # hides a pair it would be near 0 or negative, and is held up: the pair says next to nothing.
    steepness = weights * np.maximum(slope, LEAST_SLOPE * information)
    full = shortfall(batch)[:, None, None]
    return Evidence(full * (means + score / steepness), full**2 * information / steepness**2, shared)


def _inside(batch: Batch, inner: Floats, tau: Floats, second: Floats) -> tuple[Floats, Floats, Floats]:
    """Score and information from the residual M - Uᵀ Σ U, both (b, q, q), and the sum of the weights, (b,)."""
    frame, mu, s = batch.frame, batch.mu, batch.variance[:, None]
    scale = attenuation(batch)[:, None]
    diagonal = np.arange(batch.rank)
    one, two = mu[:, :, None], mu[:, None, :]
    higher = (s**2)[:, :, None] * (one**2 + two**2) / 2 * batch.size + second[:, None, None]
    weight = 1.0 / (s[:, :, None] / 2 * (one - two) ** 2 + tau[:, None, None] + higher)
    weight[:, diagonal, diagonal] = 1.0 / (tau[:, None] + 2 * higher[:, diagonal, diagonal])
    if not batch.valued:  # all but μ_1 = 1 are guesses
        rest = diagonal[1:]
        weight[:, rest, rest] = 1.0 / (1.0 / weight[:, rest, rest] + GUESS_ERROR * np.sqrt(s))
    residual = -scale[:, :, None] * inner
    residual[:, diagonal, diagonal] += mu - s / 2 * scale * mu.sum(axis=1, keepdims=True)
    met = s * (weight * (one - two)).sum(axis=2)  # noise of U that meets itself in the residual
    score = frame @ (weight * residual) @ frame.swapaxes(1, 2) + _times(frame, met)
    squares = frame**2
    information = squares @ weight @ squares.swapaxes(1, 2) + _paired_products(frame, weight)
    return score, information, weight.sum(axis=(1, 2))


def _paired_products(frame: Floats, weight: Floats) -> Floats:
    """Σ_ab weight_ab (u_ia u_ja) (u_ib u_jb), with the table cut at a few factors and its diagonal exact."""
    values, factors = np.linalg.eigh(weight)
    rest = np.einsum("baa->ba", weight).copy()
    total = np.zeros((len(frame), frame.shape[1], frame.shape[1]))
    for n in range(1, min(FACTORS, weight.shape[1]) + 1):
        factor = factors[:, :, -n] * np.sqrt(np.maximum(values[:, -n], 0.0))[:, None]
        total += _times(frame, factor) ** 2
        rest -= factor**2
    squares = frame**2
    return np.asarray(total + (squares * np.maximum(rest, 0.0)[:, None, :]) @ squares.swapaxes(1, 2))


def _outside(
    batch: Batch, cross: Floats, estimate: Floats, image: Floats, inner: Floats, tau: Floats, second: Floats,
    table: Floats,
) -> tuple[Floats, Floats, Floats]:  # fmt: skip
    """Score and information from the residual (I - P) Σ U, and by how much the score rises with what is hidden.

    `cross` (b, q, q) is I - P, and `table` (b,) the sum of the weights of the components inside.
    """
    frame, mu, s = batch.frame, batch.mu, batch.variance[:, None]
    transposed, q = frame.swapaxes(1, 2), batch.size
    scale = attenuation(batch)[:, None]
    residual = image - frame @ inner
    hidden = estimate - image @ transposed - frame @ image.swapaxes(1, 2) + frame @ inner @ transposed
    n_hidden = q - batch.rank
    theta = (np.einsum("bii->b", hidden) / n_hidden)[:, None]
    theta2 = ((hidden**2).sum(axis=(1, 2)) / n_hidden)[:, None]
    higher = s**2 * (mu**2 + theta2) / 2 * q + second[:, None]
    weight = 1.0 / (s * (mu**2 - 2 * mu * theta + theta2) + tau[:, None] + higher)
    # What noise alone makes of residual @ frame.T: the frame leans out of the true span by a factor, and
    # the part outside meets itself.
    lean = mu * (1 - 1 / scale) + s * mu.sum(axis=1, keepdims=True) / scale
    thin = s / scale
    by_noise = _times(frame, weight * lean) - (thin * (weight * mu).sum(axis=1, keepdims=True))[:, :, None] * cross
    one_sided = (residual * weight[:, None, :]) @ transposed
    by_hidden = (thin * (2 * weight.sum(axis=1, keepdims=True) + s * table[:, None]))[:, :, None]
    score = 2 * by_noise - one_sided - one_sided.swapaxes(1, 2) + by_hidden * hidden
    outside = np.einsum("bii->bi", cross)
    strength = np.einsum("bqa,ba->bq", frame**2, weight)
    information = _outer(outside, strength) + _outer(strength, outside) + 2 * cross * _times(frame, weight)
    return score, information, by_hidden
