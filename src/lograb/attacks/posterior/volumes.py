"""How many edges a patch holds: the volume vol = Σ d, which its first eigenvector leaves open.

It follows from a hub, a member joined to all others, whose entry is √((q - 1) / vol); or from the entries of S,
because scaled entries are 0 or 1: vol Σ_ij S_ij² u_i² u_j² = Σ_ij S_ij u_i u_j = 1; or, where the hidden part of S
spoils that sum or noise drowns the hub, from the other patches: log(vol / (q - 1)) is close to a line in log q.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lograb.attacks.posterior.batches import Batch
from lograb.attacks.posterior.evidence import kept_entries
from lograb.attacks.posterior.leading import Leading
from lograb.types import Bools, Floats, Ints

TYPICAL_RATIO = 2.0
"""Volume over that of a tree on the same nodes, where no patch tells. Too large costs little; too small would have
edges read less than 1, and then be missed."""
SMALL = 30.0
MAX_MULTIPLE = 5
MAX_NOISE = 1.0
LEAST_ENTRY = 1e-2
LEAST_REST = 0.05
MAX_ERROR = 0.5
MIN_PATCHES = 20
LINE_STEPS = 20
LEAST_VARIANCE = 0.01
CLASS_WIDTH = 0.25


@dataclass(frozen=True)
class Line:
    """What is usual in patches of size q: normal around level + slope log q, or a guess if few patches tell."""

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
    whole, around : Line
        log(vol / (q - 1)) in connected patches, and in patches with a hub.
    """

    spread: float
    whole: Line
    around: Line


def _inverse_volume(batch: Batch, first: Leading) -> Floats:
    """Estimate 1 / vol = Σ_ij S_ij² s_i s_j, with s = d / vol, from the entries of complete patches, shape (b,).

    The same noise is in S and in s, and to leading order adds 4 σ² (Σ_j s_j² - 1 / vol) to the sum, which is taken
    away; as long as σ² is small.
    """
    entries, noise = kept_entries(batch)
    diagonal = np.arange(batch.size)
    squares = entries**2 - noise
    squares[:, diagonal, diagonal] = 0.0
    shares = first.entries**2 - first.variance
    both = np.einsum("bij,bi,bj->b", squares, shares, shares)
    bias = 4.0 * batch.variance
    return np.asarray((both - bias * _fourth_powers(first).sum(axis=1)) / np.maximum(1.0 - bias, 0.5))


def _tells(batch: Batch, first: Leading) -> Bools:
    """Patches whose entries tell their volume: complete and connected, with little noise; shape (b,)."""
    calm = batch.variance * batch.size < MAX_NOISE
    return np.asarray(first.connected & calm & (not batch.truncated) & (batch.size >= 4))


def _fourth_powers(first: Leading) -> Floats:
    """Estimate (d / vol)² without bias, shape (b, q)."""
    u, s = first.entries**2, first.variance
    return np.asarray(u * u - 6 * s * u + 3 * s * s)


def usual_degrees(batches: list[Batch], firsts: list[Leading]) -> Usual:
    """Learn from all patches what degrees are usual."""
    total = weight = 0.0
    shares, hubs = [np.empty((2, 0))], [np.empty((3, 0))]
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
        if not batch.truncated:
            inverse = _inverse_volume(batch, first)[_tells(batch, first)] * (q - 1)
            shares.append(np.stack([np.full(len(inverse), np.log(q)), inverse]))
        hubs.append(np.stack([np.full(len(entry), np.log(q)), np.maximum(entry, LEAST_ENTRY), noise]))
    spread = max(total / weight, 0.05) if weight else 0.5
    return Usual(spread, _by_size(*np.concatenate(shares, axis=1)), _line(*np.concatenate(hubs, axis=1)))


def _by_size(x: Floats, inverse: Floats) -> Line:
    """Fit a line in x = log q to -log of the means of estimates of (q - 1) / vol.

    Single ones may be negative, so that they are averaged over classes of size first.
    """
    group = np.rint(x / CLASS_WIDTH).astype(np.int64)
    count = np.bincount(group)
    mean_x, mean = (np.bincount(group, values) / np.maximum(count, 1) for values in (x, inverse))
    chosen = (count > 0) & (mean > 0)
    if not chosen.any():
        return Line(np.log(2.0 * TYPICAL_RATIO), guessed=True)
    weight, a, b = count[chosen], mean_x[chosen], np.clip(-np.log(mean[chosen]), np.log(2), np.log(40))
    at, level = np.average(a, weights=weight), np.average(b, weights=weight)
    slope = (weight * (a - at) * (b - level)).sum() / ((weight * (a - at) ** 2).sum() + 1.0)
    slope = max(slope, 0.0)  # larger balls are not thinner; too large a volume costs little, too small a lot
    return Line(float(level - slope * at), float(slope))


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
    more = np.maximum(np.exp(usual.whole(batch.size)) / 2.0 - 1.0, 0.0)
    nearer = np.clip((sizes - 2.0) / SMALL, 0.0, 1.0)  # small components are nearer to trees
    found = np.minimum(least * (1.0 + more * np.where(first.connected[:, None], 1.0, nearer)), most)
    readable = np.isfinite(first.variance).all()
    tells, exact = _tells(batch, first) & readable, (batch.variance == 0) & readable
    if tells.any():
        inverse = _inverse_volume(batch, first)[:, None]
        trust = np.where(exact, 0.0, 0.5)[:, None]  # how much the guess counts
        found[tells] = ((1.0 + trust) / np.maximum(inverse + trust / found, 1e-9))[tells]
    hidden = np.flatnonzero(exact & ~tells)
    if len(hidden):
        found[hidden] = _whole_numbers(first, hidden, found[hidden])
    if readable:
        value = -2.0 * np.log(np.maximum(first.entries[first.hubs], LEAST_ENTRY))
        if not usual.around.guessed:
            expected, own = usual.around(batch.size), usual.around.variance
            error = 4.0 * first.variance[first.hubs] * np.exp(expected)
            value = (own * (value - error / 4.0) + error * expected) / (own + error)
        found[first.hubs[0]] = ((batch.size - 1) * np.exp(value))[:, None]
    return np.asarray(np.clip(found, least, most))


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
