"""What patches say about degrees.

On a connected patch the first eigenvector is √(d_i / vol) with vol = Σ d, so the embedding gives degrees up to
the one number vol. That follows from the centre (in a ball of radius 1 it has degree q - 1); or from the entries,
because scaled entries are 0 or 1: vol Σ_ij S_ij² u_i² u_j² = Σ_ij S_ij u_i u_j = 1; or, where the hidden part of S
spoils that sum, from the other patches.

A disconnected patch has as many columns with eigenvalue 0 as components. Its rows in those columns are parallel
inside a component and orthogonal across, with squared length d_i / vol of the component: they show the components,
isolated nodes included, and the degrees in each.

Small entries of a noisy first eigenvector say little, so a prior steps in: degrees are log-normal with the mean
vol / q and a spread that all patches share and estimate together. Once there is an estimate of the edges, counted
neighbours and the values of likely edges join.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lograb.attacks.posterior.batches import Batch
from lograb.attacks.posterior.evidence import attenuation, kept_entries
from lograb.types import Bools, Floats, Ints

ZERO = 1e-6
"""Eigenvalues below this count as 0."""
TYPICAL_RATIO = 2.0
"""Volume over that of a tree on the same nodes, where no patch tells. Too large costs little; too small would have
edges read less than 1, and then be missed."""
SMALL = 30.0
FINE = 60
LIKELY = 0.3
MAX_PRECISION = 10.0
MAX_MULTIPLE = 5


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
class Leading:
    """What the columns with eigenvalue 0 say about a batch.

    Attributes
    ----------
    entries : float array, shape (b, q)
        Estimates of √(d_i / vol).
    variance : float array, shape (b, q)
        Of the entries; infinite where the columns are not paired with eigenvalues.
    together : float array, shape (b, q, q), or None
        How surely two members lie in one component, 0 to 1; None where every patch is connected.
    """

    entries: Floats
    variance: Floats
    together: Floats | None

    @property
    def sizes(self) -> Floats:
        """Members of the component of each member, shape (b, q)."""
        if self.together is None:
            return np.full(self.entries.shape, float(self.entries.shape[1]))
        return np.asarray(self.together.sum(axis=2))

    @property
    def isolated(self) -> Bools:
        """Members without an edge in the patch, shape (b, q): d / vol is 1 there, and at most 1/2 elsewhere."""
        return np.asarray(self.entries**2 > 0.75) & (self.together is not None)


def leading(batch: Batch) -> Leading:
    """Read √(d_i / vol), and the components, off a batch."""
    b, q = len(batch.which), batch.size
    if not batch.paired:
        return Leading(np.full((b, q), q**-0.5), np.full((b, q), np.inf), None)
    scale = attenuation(batch)[:, None]
    first = batch.frame[:, :, 0]
    inside = (batch.frame**2).sum(axis=2)
    zero = batch.mu > 1.0 - ZERO
    zero[:, 0] = True
    alike = (batch.frame**2 * zero[:, None, :]).sum(axis=2)  # in which any basis would do
    variance = batch.variance[:, None] * (1.0 - inside + 0.5 * np.maximum(inside - alike, 0.0))
    sign = np.where(first.sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    entries, together = first * sign * np.sqrt(scale), None
    if batch.valued and (zero.sum(axis=1) > 1).any():
        several = zero.sum(axis=1, keepdims=True) > 1
        rows = batch.frame * (zero * np.sqrt(scale))[:, None, :]
        lengths = np.maximum((rows**2).sum(axis=2) - variance * zero.sum(axis=1, keepdims=True), 1e-3)
        entries = np.where(several, np.sqrt(lengths), entries)
        # cos² of two rows is 1 inside a component and 0 across, but for what noise adds to it.
        products = (rows @ rows.swapaxes(1, 2)) ** 2
        noise = variance[:, :, None] * lengths[:, None, :]
        both = lengths[:, :, None] * lengths[:, None, :]
        together = np.clip((products - noise - noise.swapaxes(1, 2)) / both, 0.0, 1.0)
        together = np.where(several[:, :, None], together, 1.0)
        together[:, np.arange(q), np.arange(q)] = 1.0
    return Leading(entries, variance, together)


def _inverse_volume(batch: Batch, first: Leading) -> Floats:
    """Estimate 1 / vol from the entries of complete patches: Σ_ij S_ij² u_i² u_j², without its bias."""
    entries, noise = kept_entries(batch)
    diagonal = np.arange(batch.size)
    squares = entries**2 - noise
    squares[:, diagonal, diagonal] = 0.0
    shares = first.entries**2 - first.variance
    return np.asarray(np.einsum("bij,bi,bj->b", squares, shares, shares))


def spread_and_ratio(batches: list[Batch], firsts: list[Leading]) -> tuple[float, float]:
    """Estimate, over all patches, the squared coefficient of variation of degrees and vol / (2 (q - 1))."""
    total = weight = 0.0
    inverse = []
    for batch, first in zip(batches, firsts):
        q = batch.size
        if q < 4 or first.together is not None or not np.isfinite(first.variance).all():
            continue
        u, s = first.entries**2, first.variance
        total += float((q * (q * (u * u - 6 * s * u + 3 * s * s).sum(axis=1) - 1.0)).sum())
        weight += q * len(u)
        if not batch.truncated:
            inverse.append(_inverse_volume(batch, first) * 2 * (q - 1))
    spread = max(total / weight, 0.05) if weight else 0.5
    mean = float(np.mean(np.concatenate(inverse))) if inverse else 1.0 / TYPICAL_RATIO
    return spread, float(np.clip(1.0 / max(mean, 1e-3), 1.0, 20.0))


def volumes(batch: Batch, first: Leading, centre: Ints | None, ratio: float) -> Floats:
    """Estimate the volume of the component of each member, shape (b, q).

    Parameters
    ----------
    centre : int64 array, shape (b,), optional
        Position of a member that is joined to all others; -1 for none.
    ratio : float
        Typical vol / (2 (q - 1)).
    """
    sizes = first.sizes
    least, most = 2.0 * (sizes - 1), sizes * (sizes - 1)
    found = np.minimum(least * (1.0 + (ratio - 1.0) * np.clip((sizes - 2.0) / SMALL, 0.0, 1.0)), most)
    readable = np.isfinite(first.variance).all()
    if readable and first.together is None and not batch.truncated and batch.size >= 4:
        found = 1.5 / np.maximum(_inverse_volume(batch, first)[:, None] + 0.5 / found, 1e-9)
    exact = np.flatnonzero((batch.variance == 0) & readable)
    if len(exact):
        found[exact] = _whole_numbers(first, exact, found[exact])
    if centre is not None and readable:
        known = np.flatnonzero(centre >= 0)
        shares = np.maximum(first.entries[known, centre[known]], 1e-3) ** 2
        found[known] = ((batch.size - 1) / shares)[:, None]
    return np.clip(found, least, most)


def _whole_numbers(first: Leading, exact: Ints, otherwise: Floats) -> Floats:
    """Find the least volumes that make all degrees of a component whole numbers, without noise."""
    shares = first.entries[exact] ** 2
    if first.together is None:
        least = np.repeat(shares.min(axis=1, keepdims=True), shares.shape[1], axis=1)
        apart: Bools | None = None
    else:
        apart = first.together[exact] < 0.5
        least = np.where(apart, np.inf, shares[:, None, :]).min(axis=2)
    least = np.maximum(least, 1e-12)
    found = otherwise.copy()
    for multiple in range(MAX_MULTIPLE, 0, -1):
        degrees = shares / least * multiple
        off = np.abs(degrees - np.rint(degrees))
        if apart is None:
            worst = off.max(axis=1, keepdims=True)
        else:
            worst = np.where(apart, 0.0, off[:, None, :]).max(axis=2)
        found = np.where(worst < 1e-3, multiple / least, found)
    return found


def _grid(q: int) -> tuple[Floats, Floats]:
    """Degrees 1 .. q - 1, thinned out above `FINE`, and how many each stands for."""
    fine = np.arange(1.0, min(q, FINE))
    if q <= FINE:
        return fine, np.ones(len(fine))
    edges = np.geomspace(FINE, q, 20)
    return np.append(fine, np.sqrt(edges[1:] * edges[:-1])), np.append(np.ones(len(fine)), np.diff(edges))


@dataclass(frozen=True)
class Scale:
    """Degrees as the values of likely edges tell them: an edge reads 1 if the degrees of its ends are right.

    Attributes
    ----------
    degrees : float array, shape (b, q)
    precision : float array, shape (b, q)
        Of their logarithm.
    """

    degrees: Floats
    precision: Floats


def read_scale(means: Floats, estimate: Floats, variance: Floats, degrees: Floats) -> Scale:
    """Correct degrees by how far from 1 the likely edges of each member read.

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
    return Scale(degrees * np.exp(change), np.minimum(total / 4, MAX_PRECISION))


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
    centre = np.log(np.maximum(volume / first.sizes, 1.0)) - width / 2
    prior = -((np.log(grid) - centre[:, :, None]) ** 2) / (2 * width) - np.log(grid) + np.log(stands_for)
    gap = first.entries[:, :, None] - np.sqrt(grid / np.maximum(volume, 1.0)[:, :, None])
    weight = prior - gap**2 / (2 * first.variance[:, :, None] + 1e-7)
    if counted is not None and doubt is not None:
        weight -= (grid - counted[:, :, None]) ** 2 / (2 * doubt[:, :, None])
    if scale is not None:
        weight -= (np.log(grid) - np.log(scale.degrees)[:, :, None]) ** 2 * scale.precision[:, :, None] / 2
    weight = np.exp(weight - weight.max(axis=2, keepdims=True))
    weight /= weight.sum(axis=2, keepdims=True)
    mean = weight @ grid
    variance = np.maximum(weight @ grid**2 - mean**2, 0.0)
    gain = np.zeros(mean.shape) if doubt is None else np.minimum(variance / doubt, 1.0)
    return Degrees(mean, variance, volume, gain)


def count_degrees(
    means: Floats, first: Leading, start: Degrees, spread: float, scale: Scale | None
) -> Degrees:
    """Infer degrees anew from the current probabilities (b, q, q) of the pairs inside each patch.

    The estimate of a whole row is trusted to 30 %, of the volume to 20 %; the volume found at the start to 15 %.
    Without that anchor missed edges would lower degrees, lower degrees raise the value that an edge must have,
    and so miss more.
    """
    doubtful = means * (1.0 - means)
    counted = means.sum(axis=2)
    doubt = doubtful.sum(axis=2) + 0.05 + (0.3 * counted) ** 2
    total, unsure = _over_component(counted, first), _over_component(doubtful.sum(axis=2), first)
    one = 1.0 / (2 * unsure + (0.2 * total) ** 2 + 1e-9)
    other = 1.0 / (0.15 * np.maximum(start.volume, 1.0)) ** 2
    volume = (total * one + start.volume * other) / (one + other)
    return infer_degrees(first, volume, spread, counted, doubt, scale)


def _over_component(values: Floats, first: Leading) -> Floats:
    """Sum values (b, q) over the component of each member."""
    if first.together is None:
        return np.repeat(values.sum(axis=1, keepdims=True), values.shape[1], axis=1)
    return np.asarray(np.einsum("bij,bj->bi", first.together, values))
