"""How many edges a patch holds: the volume vol = Σ d, which its first eigenvector leaves open.

With s = d / vol, the squares of the first eigenvector, Σ_i s_i (S²)_ii = Σ_ij a_ij / (vol d_j) = q / vol. The kept
columns give (S²)_ii up to the hidden eigenvalues, of which the mean is known (the diagonal of S is 0), and the
largest possible value. A hub, a member joined to all others, tells more: its entry is √((q - 1) / vol).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from lograb.attacks.posterior.batches import Batch
from lograb.attacks.posterior.evidence import attenuation
from lograb.attacks.posterior.leading import Leading, zero_columns
from lograb.types import Floats

TYPICAL_RATIO = 2.0
"""Volume over that of a tree on the same nodes, where nothing tells."""
BULK = 0.3
"""Variance of hidden eigenvalues over the square of the distance from their mean to the last one kept: 1/4 for a
semicircle, 1/3 for equal spacing."""
NOISE_ERROR = 0.3
"""Relative error by noise for each σ² q, over that of the mean for all members."""
OWN_ERROR = 3.0
"""The same of the mean of a member's hidden eigenvalues."""
LEAST_HIDDEN = 1e-3
LEAST_TOLD = 0.3
"""Least that a patch tells, in units of that mean. There is no most: in a star it is a quarter of the members."""
VOLUME_ERROR = 0.03
"""Variance of the logarithm of a volume that no hub tells."""
FOURTH_ERROR, FEWER = 0.2, 0.16
"""Standard deviation of log tr S⁴ for a given rim, and by how much it is smaller where the rim is dense."""
SOME_DENSE = 0.25
"""Share of patches with a dense rim before any of them is seen."""
STEPS = 20
FINE = 0.25
"""Error of a usual degree up to which whole numbers are told apart."""
REACH, STEPS_OUT, OFF = 0.45, 90, 0.15
"""How far away volumes are tried, as logarithms, in how many steps, and the standard deviation of the estimate."""
FAR = 4
"""Times as far where eigenvalues are withheld."""
SAME = 1.5
"""Errors up to which entries that differ count as equal."""
ROUGH = 0.004
"""Error of entries times √q that comes with the distance between two volumes that are tried."""
LEAST_ENTRY = 1e-2
LEAST_REST = 0.05
CALM = 1.0
"""σ² q up to which a patch tells how much degrees vary."""


@dataclass(frozen=True)
class Usual:
    """What all patches together say about degrees.

    Attributes
    ----------
    spread : float
        Squared coefficient of variation of degrees inside a patch; those of hubs do not count, they are known.
    dense : float
        Share of patches with a hub around which most are joined to each other.
    ratio : float
        Typical vol / (q - 1), of patches that tell.
    """

    spread: float
    ratio: float
    dense: float = SOME_DENSE


def _fourth_powers(first: Leading) -> Floats:
    """Estimate (d / vol)² without bias, shape (b, q)."""
    u, s = first.entries**2, first.variance
    return u * u - 6 * s * u + 3 * s * s


def mean_square(batch: Batch) -> Floats:
    """Estimate the mean of (S²)_ii from the eigenvalues alone, shape (b,)."""
    hidden, mu = batch.size - batch.rank, batch.mu
    total = (mu**2).sum(axis=1)
    if batch.truncated:
        mean = -mu.sum(axis=1) / hidden
        total = total + hidden * (mean**2 + BULK * (mu[:, -1] - mean) ** 2)
    return np.asarray(total / batch.size)


def inverse_volume(batch: Batch, first: Leading) -> Floats:
    """Estimate members / vol of the component of each member, shape (b, q), where eigenvalues are known.

    Noise in the columns and in s is the same only in the columns with eigenvalue 0. Where it drowns the products,
    all members get the mean of (S²)_ii, which the eigenvalues alone tell.
    """
    level, mu, loud = mean_square(batch), batch.mu, batch.variance[:, None] * batch.size
    inside = (batch.frame**2).sum(axis=2, keepdims=True)
    noise = batch.variance[:, None, None] * (1.0 - inside / 2)
    squares = attenuation(batch)[:, None, None] * batch.frame**2 - noise
    squares = np.where(zero_columns(batch)[:, None, :], 0.0, squares)
    share, fourth = first.entries**2 - first.variance, _fourth_powers(first)
    found = fourth + share * (squares * (mu**2)[:, None, :]).sum(axis=2)
    if batch.truncated:
        # The diagonal of S is 0, which tells each member the mean of its hidden eigenvalues.
        mean = -mu.sum(axis=1, keepdims=True) / (batch.size - batch.rank)
        rest = np.clip(1.0 - share - squares.sum(axis=2), LEAST_HIDDEN, 1.0)
        own = np.clip(-(share + (squares * mu[:, None, :]).sum(axis=2)) / rest, -1.0, mu[:, -1:])
        own = mean + (own - mean) / (1.0 + (OWN_ERROR * loud) ** 2)
        gap = np.maximum(mu[:, -1:] - own, 0.0)
        hidden = own**2 + BULK * gap * np.minimum(gap, 1.0 + own)
        found = found + (share * (1.0 - squares.sum(axis=2)) - fourth) * hidden
    found = first.over_component(found)
    trust = 1.0 / (1.0 + (NOISE_ERROR * loud) ** 2)
    return level[:, None] * (1.0 - trust + trust * np.maximum(found / level[:, None], LEAST_TOLD))


def usual_degrees(batches: list[Batch], firsts: list[Leading]) -> Usual:
    """Learn from all patches what degrees are usual."""
    total = weight = 0.0
    ratios, rims = [np.empty(0)], [np.empty((2, 0))]
    for batch, first in zip(batches, firsts):
        q, whole = batch.size, first.connected & (batch.variance * batch.size < CALM)
        whole &= (first.variance < 1.0).all(axis=1)  # else the first column is not that of degrees
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
        rims.append(_rims(batch, first, np.full(len(known[0]), 4.0 * (q - 1)))[1])
    spread = max(total / weight, 0.05) if weight else 0.5
    ratio = np.concatenate(ratios)
    typical = float(np.clip(np.median(ratio), 2.0, 40.0)) if len(ratio) else 2.0 * TYPICAL_RATIO
    return Usual(spread, typical, _share_dense(np.concatenate(rims, axis=1)))


def volumes(batch: Batch, guessed: Batch, first: Leading, usual: Usual) -> Floats:
    """Estimate the volume of the component of each member, shape (b, q).

    Parameters
    ----------
    batch, guessed : Batch
        As observed, and with eigenvalues filled in.
    """
    sizes = first.sizes
    least, most = 2.0 * (sizes - 1), sizes * (sizes - 1)
    found = least * usual.ratio / 2.0
    if not np.isfinite(first.variance).all():
        found = sizes / mean_square(batch)[:, None] if batch.valued else found
    elif not guessed.guessed:
        found = sizes / inverse_volume(guessed, first)
    if batch.truncated and batch.paired:
        found = whole_volumes(first, np.clip(found, least, most), FAR if guessed.guessed else 1)
    known = first.hubs
    if len(known[0]):
        volume, off = _rims(batch, first, found[known])
        dense = off[1] - off[0] < 2.0 * logit(usual.dense)
        found[known[0]] = ((batch.size - 1) * np.exp(np.where(dense, volume[1], volume[0])))[:, None]
    return np.clip(found, least, most)


def _rims(batch: Batch, first: Leading, otherwise: Floats) -> tuple[Floats, Floats]:
    """Estimate volumes of patches with a known hub, around a sparse rim and a dense one, both (2, hubs).

    If the degrees on the rim are 1 / x, tr S² is (q - 1) (x - x²) + 2 x: for a given one there are two solutions.
    Where the whole spectrum is known, tr S⁴ tells which it is. Given are the logarithm of vol / (q - 1), by the
    hub's entry and the eigenvalues, each by its error; and squared differences to what was seen, in units of their
    variance.
    """
    (patch, _), q = first.hubs, batch.size
    expected = np.tile(np.log(np.maximum(otherwise / (q - 1), 2.0)), (2, 1))
    shape = np.zeros(expected.shape)
    if batch.valued and q > 3:
        trace = q * mean_square(batch)[patch]
        root = np.sqrt(np.maximum((q + 1.0) ** 2 - 4.0 * (q - 1.0) * trace, 0.0))
        x = (q + 1.0 + np.stack([root, -root])) / (2.0 * (q - 1.0))
        x = np.clip(x, 1.0 / (q - 1.0), 1.0)
        expected = np.log1p(1.0 / x)
        if not batch.truncated:
            fourth = np.log((batch.mu[patch] ** 4).sum(axis=1))
            shape = ((fourth - _log_fourth(x, q)) / FOURTH_ERROR) ** 2
    if not np.isfinite(first.variance).all():
        return expected, shape
    error = 4.0 * first.variance[first.hubs] * np.exp(expected)
    value = -2.0 * np.log(np.maximum(first.entries[first.hubs], LEAST_ENTRY)) - np.minimum(error, 1.0) / 4.0
    share = VOLUME_ERROR / (VOLUME_ERROR + error)
    off = (value - expected) ** 2 / (error + VOLUME_ERROR) + np.log(error + VOLUME_ERROR)
    return share * value + (1.0 - share) * expected, off + shape


def _log_fourth(x: Floats, q: int) -> Floats:
    """Logarithm of tr S⁴ for a hub and a rim of degrees 1 / x, sparse in the first row and dense in the second.

    S has the eigenvalues 1 and -x, and those of the rim times x. With m = 1 / x - 1 neighbours on the rim,
    2 m² - m closed walks of four steps begin at each of its q - 1 members (m if m < 1), on a dense rim fewer.
    """
    m = 1.0 / x - 1.0
    walks = (q - 1.0) * m * np.maximum(2.0 * m - 1.0, 1.0)
    return np.log(1.0 + x**4 * (1.0 + walks)) - [[0.0], [FEWER]]


def _share_dense(off: Floats) -> float:
    """Find the share of patches with a dense rim, by expectation-maximisation; shape (2, hubs)."""
    share = SOME_DENSE
    for _ in range(STEPS):
        dense = expit((off[0] - off[1]) / 2 + logit(share))
        share = float((dense.sum() + SOME_DENSE) / (len(dense) + 1.0))
    return share


def whole_volumes(first: Leading, about: Floats, times_as_far: int = 1) -> Floats:
    """Find the volumes near some, (b, q), with which degrees are whole numbers, as far as noise lets them be told.

    With d the whole number next to vol s, a member's entry √s ~ N(√(d / vol), v), and 1 / vol its chance, times
    the number of degrees that noise leaves open, each volume has a likelihood. Members with equal entries have one
    degree, and count once. Given is the mean over it, and what was given where noise hides too much.
    """
    error = 2.0 * about * np.sqrt(first.variance.mean(axis=1, keepdims=True) / first.sizes)
    fine = np.flatnonzero((error < FINE).all(axis=1))
    found = about.copy()
    if len(fine):
        part = first.of(fine)
        whole = _nearest_whole(part, np.maximum(about[fine], 1.0), times_as_far)
        found[fine] = np.where(part.sizes > 1.5, whole, about[fine])
    return found


def _nearest_whole(first: Leading, about: Floats, times_as_far: int) -> Floats:
    rough = ROUGH**2 / first.entries.shape[1]
    wide, gaps = first.variance + rough, first.entries[:, :, None] - first.entries[:, None, :]
    alike = (np.abs(gaps) < SAME * np.sqrt(wide[:, :, None] + wide[:, None, :])).astype(float)
    if first.together is not None:
        alike *= first.together
    times = alike.sum(axis=2)
    entries, variance = (alike @ first.entries[:, :, None])[:, :, 0] / times, first.variance / times + rough
    highest, total, moment = np.full(about.shape, -np.inf), np.zeros(about.shape), np.zeros(about.shape)
    for step in REACH / STEPS_OUT * np.arange(-STEPS_OUT * times_as_far, STEPS_OUT * times_as_far + 1):
        volume = about * np.exp(step)
        degrees = np.maximum(np.rint(volume * entries**2), 1.0)
        square = (entries - np.sqrt(degrees / volume)) ** 2 / variance
        open_ = np.maximum(np.sqrt(8.0 * np.pi * variance * degrees * volume), 1.0)
        each = (np.log(open_) - np.log(volume) - square / 2) / times
        weight = first.over_component(each) - (step / OFF / times_as_far) ** 2 / 2
        higher = np.maximum(highest, weight)
        kept, new, highest = np.exp(highest - higher), np.exp(weight - higher), higher
        total, moment = kept * total + new, kept * moment + step * new
    return about * np.exp(moment / total)
