"""How many edges a patch holds: the volume vol = Σ d, which its first eigenvector leaves open.

With s = d / vol, the squares of the first eigenvector, Σ_i s_i (S²)_ii = Σ_ij a_ij / (vol d_j) = q / vol. The kept
columns give (S²)_ii up to the hidden eigenvalues, of which the sum is known (the trace of S is 0) and the largest
possible value. A hub, a member joined to all others, tells more: its entry is √((q - 1) / vol).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lograb.attacks.posterior.batches import Batch
from lograb.attacks.posterior.evidence import attenuation
from lograb.attacks.posterior.leading import Leading, zero_columns
from lograb.types import Bools, Floats, Ints

TYPICAL_RATIO = 2.0
"""Volume over that of a tree on the same nodes, where nothing tells."""
BULK = 0.3
"""Variance of hidden eigenvalues over the square of the distance from their mean to the last one kept: 1/4 for a
semicircle, 1/3 for equal spacing."""
MAX_MULTIPLE = 200
LEAST_ENTRY = 1e-2
LEAST_REST = 0.05
MAX_ERROR = 0.5
MIN_PATCHES = 20
LINE_STEPS = 20
LEAST_VARIANCE = 0.01


@dataclass(frozen=True)
class Line:
    """What is usual in patches of size q: normal around level + slope log q, or unknown if few patches tell."""

    level: float
    slope: float = 0.0
    variance: float = 0.0
    guessed: bool = False

    def __call__(self, q: int) -> float:
        """Give the mean at size q."""
        return float(self.level + self.slope * np.log(q))


@dataclass(frozen=True)
class Usual:
    """What all patches together say about degrees.

    Attributes
    ----------
    spread : float
        Squared coefficient of variation of degrees inside a patch; those of hubs do not count, they are known.
    ratio : float
        Typical vol / (q - 1), of patches that tell.
    around : Line
        log(vol / (q - 1)) in patches with a hub.
    """

    spread: float
    ratio: float
    around: Line


def _fourth_powers(first: Leading) -> Floats:
    """Estimate (d / vol)² without bias, shape (b, q)."""
    u, s = first.entries**2, first.variance
    return np.asarray(u * u - 6 * s * u + 3 * s * s)


def inverse_volume(batch: Batch, first: Leading) -> Floats:
    """Estimate (members / vol) of the component of each member, shape (b, q), where eigenvalues are known.

    Noise in the columns and in s is the same only in the columns with eigenvalue 0. Where it drowns the products,
    all members get the mean of (S²)_ii, which the eigenvalues alone tell.
    """
    q, r, mu = batch.size, batch.rank, batch.mu
    kept, hidden = (mu**2).sum(axis=1), 0.0
    if batch.truncated:
        mean = -mu.sum(axis=1) / (q - r)
        hidden = mean**2 + BULK * (mu[:, -1] - mean) ** 2
    level = (kept + (q - r) * hidden) / q
    noise = batch.variance[:, None, None]
    inside = (batch.frame**2).sum(axis=2, keepdims=True)
    squares = attenuation(batch)[:, None, None] * batch.frame**2 - noise * (1.0 - inside / 2)
    zero = zero_columns(batch)
    share = first.entries**2 - first.variance
    squares = np.where(zero[:, None, :], 0.0, squares)
    fourth = _fourth_powers(first)
    own = fourth + share * (squares * (mu**2)[:, None, :]).sum(axis=2)
    rest = share * (1.0 - squares.sum(axis=2)) - fourth
    found = first.over_component(own + rest * np.reshape(hidden, (-1, 1)))
    # Relative errors: a quarter if the mean stands for all, 0.08 σ² q of the products.
    trust = 1.0 / (1.0 + (0.3 * batch.variance[:, None] * q) ** 2)
    return np.asarray(np.maximum(trust * found + (1.0 - trust) * level[:, None], 1e-3 * level[:, None]))


def usual_degrees(batches: list[Batch], firsts: list[Leading]) -> Usual:
    """Learn from all patches what degrees are usual."""
    total = weight = 0.0
    ratios, hubs = [np.empty(0)], [np.empty((3, 0))]
    for batch, first in zip(batches, firsts):
        q, whole = batch.size, first.connected
        if q < 4 or not np.isfinite(first.variance).all():
            continue
        fourth, known = _fourth_powers(first), first.hubs
        fourth[known] = 0.0
        entry, noise = first.entries[known], first.variance[known]
        rest, count = np.ones(len(fourth)), np.full(len(fourth), q)
        rest[known[0]] = np.maximum(1.0 - (entry**2 - noise), LEAST_REST)
        count[known[0]] -= 1
        total += float((count * (count * fourth.sum(axis=1) / rest**2 - 1.0))[whole].sum())
        weight += float(count[whole].sum())
        if not batch.guessed:
            ratios.append((q / (q - 1) / inverse_volume(batch, first)[:, 0])[whole])
        hubs.append(np.stack([np.full(len(entry), np.log(q)), np.maximum(entry, LEAST_ENTRY), noise]))
    spread = max(total / weight, 0.05) if weight else 0.5
    ratio = np.concatenate(ratios)
    typical = float(np.clip(np.median(ratio), 2.0, 40.0)) if len(ratio) else 2.0 * TYPICAL_RATIO
    return Usual(spread, typical, _line(*np.concatenate(hubs, axis=1)))


def _line(x: Floats, entry: Floats, noise: Floats) -> Line:
    """Fit a line to -2 log of entries with noise of known variance, and find the variance around it.

    The logarithm has the error 2 √noise / entry, with the entry as the line has it: with the noisy one, entries
    that are too large would count for more.
    """
    y = -2.0 * np.log(entry)
    line = np.full(len(y), np.median(y) if len(y) else 0.0)
    usable = 4.0 * noise * np.exp(line) < MAX_ERROR
    x, y, noise, line = x[usable], y[usable], noise[usable], line[usable]
    if len(x) < MIN_PATCHES:
        return Line(0.0, guessed=True)
    variance = 0.1
    for _ in range(LINE_STEPS):
        error = 4.0 * noise * np.exp(line)
        value, weight = y - error / 4.0, 1.0 / (variance + error)
        mean_x, mean_y = np.average(x, weights=weight), np.average(value, weights=weight)
        slope = (weight * (x - mean_x) * (value - mean_y)).sum() / ((weight * (x - mean_x) ** 2).sum() + 1.0)
        level = mean_y - slope * mean_x
        line = level + slope * x
        variance = max(float(np.average((value - line) ** 2 - error, weights=weight**2)), LEAST_VARIANCE)
    return Line(float(level), float(slope), variance)


def volumes(batch: Batch, first: Leading, usual: Usual) -> Floats:
    """Estimate the volume of the component of each member, shape (b, q)."""
    sizes = first.sizes
    least, most = 2.0 * (sizes - 1), sizes * (sizes - 1)
    found = least * usual.ratio / 2.0
    if np.isfinite(first.variance).all():
        if not batch.guessed:
            found = sizes / inverse_volume(batch, first)
        exact = np.flatnonzero((batch.variance == 0) & batch.truncated)
        if len(exact):
            found[exact] = _whole_numbers(first, exact, found[exact])
        value = -2.0 * np.log(np.maximum(first.entries[first.hubs], LEAST_ENTRY))
        if not usual.around.guessed:
            expected, own = usual.around(batch.size), usual.around.variance
            error = 4.0 * first.variance[first.hubs] * np.exp(expected)
            value = (own * (value - error / 4.0) + error * expected) / (own + error)
        found[first.hubs[0]] = ((batch.size - 1) * np.exp(value))[:, None]
    return np.asarray(np.clip(found, least, most))


def _whole_numbers(first: Leading, exact: Ints, about: Floats) -> Floats:
    """Find the volumes, nearest to some, that make all degrees of a component whole numbers, without noise."""
    shares = first.entries[exact] ** 2
    apart: Bools | None = None if first.together is None else first.together[exact] < 0.5
    least = np.repeat(shares.min(axis=1, keepdims=True), shares.shape[1], axis=1)
    if apart is not None:
        least = np.where(apart, np.inf, shares[:, None, :]).min(axis=2)
    least = np.maximum(least, 1e-12)
    found, distance = about.copy(), np.full(about.shape, np.inf)
    for multiple in range(1, MAX_MULTIPLE + 1):
        degrees = shares / least * multiple
        off = np.abs(degrees - np.rint(degrees))
        if apart is None:
            worst = off.max(axis=1, keepdims=True)
        else:
            worst = np.where(apart, 0.0, off[:, None, :]).max(axis=2)
        away = np.abs(np.log(multiple / least / about))
        nearer = (worst < 1e-3) & (away < distance)
        found, distance = np.where(nearer, multiple / least, found), np.where(nearer, away, distance)
    return found
