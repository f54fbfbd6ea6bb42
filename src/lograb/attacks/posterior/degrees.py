"""Degrees inside patches, from prior, first eigenvector and counted neighbours.

Small entries of a noisy first eigenvector say little, so a prior steps in: degrees are log-normal with the mean
vol / q and a spread that all patches share and estimate together. Once there is an estimate of the edges, counted
neighbours and the values of likely edges join.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lograb.attacks.posterior.batches import Batch
from lograb.attacks.posterior.leading import Leading
from lograb.attacks.posterior.volumes import Usual
from lograb.types import Floats

FINE = 60
LIKELY = 0.3
MAX_PRECISION = 10.0
LEAST_LEFT = 0.1
MOST_VARIED = -10.0


@dataclass(frozen=True)
class Degrees:
    """Degrees inside the patches of a batch, each shape (b, q).

    Attributes
    ----------
    mean, variance : of the degree of each member
    volume : sum of the degrees in its component
    gain : how far the mean would follow if one more neighbour were counted, 0 to 1
    """

    mean: Floats
    variance: Floats
    volume: Floats
    gain: Floats


@dataclass(frozen=True)
class Work:
    """A batch that is judged: as observed, and with eigenvalues filled in (`guessed`); what it tells of degrees.

    `start` are the degrees by the first eigenvectors alone, `degrees` those found last.
    """

    batch: Batch
    guessed: Batch
    first: Leading
    usual: Usual
    start: Degrees
    degrees: Degrees


def _grid(q: int) -> tuple[Floats, Floats]:
    """Degrees 1 .. q - 1, thinned out above `FINE`, and how many each stands for."""
    fine = np.arange(1.0, min(q, FINE))
    if q <= FINE:
        return fine, np.ones(len(fine))
    edges = np.geomspace(FINE, q, 20)
    return np.append(fine, np.sqrt(edges[1:] * edges[:-1])), np.append(np.ones(len(fine)), np.diff(edges))


Scale = tuple[Floats, Floats]
"""Degrees as the values of likely edges tell them, and the precision of their logarithm, both (b, q)."""


def read_scale(means: Floats, estimate: Floats, variance: Floats, degrees: Floats) -> Scale:
    """Correct degrees by how far from 1 the likely edges of each member read: they read 1 if degrees are right.

    Parameters
    ----------
    means, estimate, variance : float arrays, shape (b, q, q)
        Probabilities of the pairs, and the patch's own estimates of them (see `Evidence`).
    degrees : float array, shape (b, q)
        With which the estimates were made: they grow with √(d_i d_j).
    """
    weight = np.where(means > LIKELY, means, 0.0) / np.maximum(variance, 1e-4)
    total, short = weight.sum(axis=2), (weight * (1.0 - estimate)).sum(axis=2)
    change = np.clip(2 * short / (total + 4.0), -0.7, 0.7)
    return degrees * np.exp(change), np.minimum(total / 4, MAX_PRECISION)


def infer_degrees(
    first: Leading, volume: Floats, spread: float, counted: Floats | None = None, doubt: Floats | None = None,
    scale: Scale | None = None,
) -> Degrees:  # fmt: skip
    """Combine prior, first eigenvector and counted neighbours into mean and variance of each degree.

    Parameters
    ----------
    first : Leading
    volume : float array, shape (b, q)
    spread : float
        Squared coefficient of variation of the prior.
    counted, doubt : float arrays, shape (b, q), optional
        Expected number of neighbours under the current estimate, and its variance.
    scale : Scale, optional
    """
    grid, stands_for = _grid(first.entries.shape[1])
    width = np.log1p(spread)
    known, others = first.hubs, first.entries.shape[1] - 1
    typical = volume / first.sizes
    typical[known[0]] = volume[known[0]] / others - 1.0
    centre = np.log(np.maximum(typical, 1.0)) - width / 2
    prior = -((np.log(grid) - centre[:, :, None]) ** 2) / (2 * width) - np.log(grid) + np.log(stands_for)
    gap = first.entries[:, :, None] - np.sqrt(grid / np.maximum(volume, 1.0)[:, :, None])
    weight = prior - gap**2 / (2 * first.variance[:, :, None] + 1e-7)
    if counted is not None and doubt is not None:
        weight -= (grid - counted[:, :, None]) ** 2 / (2 * doubt[:, :, None])
    if scale is not None:
        told, precision = scale
        weight -= (np.log(grid) - np.log(told)[:, :, None]) ** 2 * precision[:, :, None] / 2
    weight = np.exp(weight - weight.max(axis=2, keepdims=True))
    weight /= weight.sum(axis=2, keepdims=True)
    mean = weight @ grid
    variance = np.maximum(weight @ grid**2 - mean**2, 0.0)
    mean[known], variance[known] = others, 0.0
    gain = np.zeros(mean.shape) if doubt is None else np.minimum(variance / doubt, 1.0)
    return Degrees(mean, variance, volume, gain)


def degrees_left(first: Leading, degrees: Degrees, counted: Floats, can: Floats) -> Floats:
    """Expect the degree of each member in open pairs, shape (b, q).

    A member has K known edges in decided pairs, which hold a share f of where its edges could be. If its degree d
    is certain, d - K are left; if it is Poisson, (1 - f) d, whatever K; if it varies more, many known edges
    promise more. With π = 1 - variance / mean all that is (d - π K) (1 - f) / (1 - π f): binomial, Poisson and
    negative binomial degrees, thinned.

    Parameters
    ----------
    counted : float array, shape (b, q)
        Known edges of each member.
    can : float array, shape (b, q, q)
        How far each pair is open, 0 to 1.
    """
    mean, counted = degrees.mean.copy(), counted.copy()
    mean[first.hubs[0]] -= 1.0  # the edge to the hub is no question
    counted[first.hubs[0]] -= 1.0
    mean = np.maximum(mean, LEAST_LEFT)
    mean[first.hubs] = 0.0
    partners = np.maximum(first.over_component(mean) - mean, LEAST_LEFT)
    decided = np.clip(1.0 - (can @ mean[:, :, None])[:, :, 0] / partners, 0.0, 1.0)
    pi = np.maximum(1.0 - degrees.variance / np.maximum(mean, LEAST_LEFT), MOST_VARIED)
    left = (mean - pi * counted) * (1.0 - decided) / np.maximum(1.0 - pi * decided, 1e-6)
    return np.maximum(left, LEAST_LEFT)


def count_degrees(means: Floats, first: Leading, start: Degrees, usual: Usual, scale: Scale | None) -> Degrees:
    """Infer degrees anew from the current probabilities (b, q, q) of the pairs inside each patch.

    The count of a row is trusted to 30 %, that of all edges to 20 %; the volume found at the start to 5 %.
    Without that anchor missed edges would lower degrees, lower degrees raise the value that an edge must have,
    and so miss more. For the same reason a count below what was expected is trusted no more than one that meets
    it, unless the expectation was a guess.
    """
    doubtful = means * (1.0 - means)
    counted = means.sum(axis=2)
    expected = np.maximum(counted, start.mean)
    doubt = doubtful.sum(axis=2) + 0.05 + (0.3 * expected) ** 2
    total, unsure = first.over_component(counted), first.over_component(doubtful.sum(axis=2))
    one = 1.0 / (2 * unsure + (0.2 * total) ** 2 + 1e-9)
    other = 1.0 / (0.05 * np.maximum(start.volume, 1.0)) ** 2
    volume = (total * one + start.volume * other) / (one + other)
    found = infer_degrees(first, volume, usual.spread, counted, doubt, scale)
    return replace(found, mean=np.maximum(found.mean * volume / first.over_component(found.mean), 1.0))
