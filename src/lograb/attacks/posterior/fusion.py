"""Evidence of all patches on all pairs, summed and iterated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from lograb.attacks.posterior.batches import Batch
from lograb.attacks.posterior.box import box_inversion
from lograb.attacks.posterior.degrees import Degrees, Leading, Scale, count_degrees, read_scale
from lograb.attacks.posterior.evidence import pair_evidence
from lograb.attacks.posterior.gauge import first_guess, refit
from lograb.parallel import ordered_map
from lograb.types import Floats, Ints

MAX_LOG_ODDS = 60.0
MIN_SHIFT, MAX_SHIFT = -4.0, 1.0
CHANCE_APART = 1e-4
PROMISED = (0.7, 1.3)


@dataclass(frozen=True)
class Patchwork:
    """One batch with what was settled about it before the iterations.

    Attributes
    ----------
    batch : Batch
    first : Leading
        Its first eigenvectors.
    spread : float
        Squared coefficient of variation of degrees.
    start : Degrees
    """

    batch: Batch
    first: Leading
    spread: float
    start: Degrees


@dataclass(frozen=True)
class Pairs:
    """All pairs that are judged.

    Attributes
    ----------
    keys : int64 array, shape (m,), u * n_nodes + w, increasing
    entry : int32 array
        For each pair in each batch: its position in `keys`.
    counts : int64 array, shape (m,)
        Patches read that contain the pair.
    verdict : int64 array, shape (m,)
        1 and -1 where membership decides, else 0.
    bins : int64 array, shape (m,)
    """

    keys: Ints
    entry: np.ndarray
    counts: Ints
    verdict: Ints
    bins: Ints


def _chance(work: Patchwork) -> Floats:
    """Probability of each pair if edges fell at random for these degrees, shape (b, q, q)."""
    mean, together = work.start.mean, work.first.together
    chance = np.minimum(mean[:, :, None] * mean[:, None, :] / np.maximum(work.start.volume, 1.0)[:, :, None], 0.5)
    if together is not None:
        chance = np.maximum(chance * together, CHANCE_APART)
    diagonal = np.arange(mean.shape[1])
    chance[:, diagonal, diagonal] = 0.0
    return (chance + chance.swapaxes(1, 2)) / 2


def iterate(
    works: list[Patchwork], pairs: Pairs, iterations: int, damping: float
) -> tuple[Floats, Floats]:
    """Judge all pairs again and again, each given the current estimate of all others.

    Returns
    -------
    evidence, prior : float arrays, shape (m,)
        Log-likelihood ratios, summed over patches, and log-odds before them.
    """
    size = len(pairs.keys)
    free = pairs.verdict == 0
    flat = np.empty(len(pairs.entry))
    for work in works:
        flat[work.batch.entries] = logit(np.maximum(work.batch.pairs(_chance(work)), 1e-5))
    by_chance = np.bincount(pairs.entry, flat, size) / np.maximum(pairs.counts, 1)
    # A truncated patch without its eigenvalues, or with columns in any order, fixes no scale: judged once.
    again = [at for at, work in enumerate(works) if not work.batch.truncated or work.batch.readable]
    scales: list[Scale | None] = [None] * len(works)
    shift = np.zeros(int(pairs.bins.max(initial=0)) + 1)
    prior: Floats = by_chance
    evidence: Floats = np.zeros(size)
    probability: Floats | None = None
    for _ in range(iterations):
        current: Floats | None = probability

        def judge(at: int, current: Floats | None = current) -> tuple[Floats, Scale]:
            work = works[at]
            entry = pairs.entry[work.batch.entries]
            means = None if current is None else work.batch.matrix(current[entry])
            return _judge(work, means, pairs.counts[entry], scales[at])

        revised = range(len(works)) if current is None else again
        for at, (part, scale) in zip(revised, ordered_map(judge, revised)):
            flat[works[at].batch.entries], scales[at] = part, scale
        total: Floats = np.asarray(np.bincount(pairs.entry, flat, size))
        evidence = total if probability is None else damping * evidence + (1 - damping) * total
        if probability is not None:
            shift = _shift(shift, pairs.bins, free, by_chance, probability)
            prior = by_chance + shift[pairs.bins]
        log_odds = np.clip(evidence + prior, -MAX_LOG_ODDS, MAX_LOG_ODDS)
        probability = np.where(free, expit(log_odds), pairs.verdict > 0)
    return evidence, prior


def _shift(shift: Floats, bins: Ints, free: np.ndarray, by_chance: Floats, probability: Floats) -> Floats:
    """Move the prior of each bin towards the share of edges found in it (one step of expectation-maximisation)."""
    expected = expit(by_chance + shift[bins])
    found = np.bincount(bins[free], probability[free], len(shift)) + 1.0
    promised = np.bincount(bins[free], expected[free], len(shift)) + 1.0
    moved = np.clip(shift + np.log(found / promised), MIN_SHIFT, MAX_SHIFT)
    # Bins may trade edges, but all together keep about as many as the degrees promise: else a weak estimate that
    # finds few edges would come to expect few.
    ratio = expit(by_chance + moved[bins])[free].sum() / max(expit(by_chance)[free].sum(), 1e-9)
    return np.asarray(moved - np.log(ratio / np.clip(ratio, *PROMISED)) if ratio > 0 else moved)


def _start(work: Patchwork, batch: Batch) -> Floats:
    """First probabilities of the pairs: by chance, or by the box where there is no noise but a hidden part."""
    means, degrees = _chance(work), work.start
    exact = np.flatnonzero((batch.variance == 0) & batch.truncated & batch.readable)
    if len(exact):
        root = np.sqrt(degrees.mean[exact])
        upper = 1.0 / (root[:, :, None] * root[:, None, :])
        diagonal = np.arange(batch.size)
        upper[:, diagonal, diagonal] = 0.0
        found = box_inversion(batch.frame[exact], batch.mu[exact], upper)
        # The box is an estimate, not a verdict: keep a tenth of the doubt.
        means[exact] = 0.9 * found * root[:, :, None] * root[:, None, :] + 0.1 * means[exact]
    return means


def _log_ratio(estimate: Floats, variance: Floats, doubt: Floats) -> Floats:
    """Log-likelihood ratio of an edge, whose value is 1 up to the doubt about degrees, against none, at 0."""
    variance = np.maximum(variance, 1e-9)
    edge = variance + doubt
    ratio = (estimate**2 / variance - (estimate - 1.0) ** 2 / edge - np.log(edge / variance)) / 2
    return np.clip(ratio, -MAX_LOG_ODDS, MAX_LOG_ODDS)


def _judge(work: Patchwork, means: Floats | None, counts: Ints, scale: Scale | None) -> tuple[Floats, Scale]:
    """Log-likelihood ratios of the pairs of a batch, flat, and what they say about degrees.

    `means` and `scale` are None before the first iteration.
    """
    batch, degrees = work.batch, work.start
    if means is None:
        batch = first_guess(batch)
        means = _start(work, batch)
    else:
        degrees = count_degrees(means, work.first, work.start, work.spread, scale)
        root = 1.0 / np.sqrt(degrees.mean)
        batch = refit(batch, means * root[:, :, None] * root[:, None, :])
    found = pair_evidence(batch, means, degrees.mean, work.first.isolated)
    scale = read_scale(means, found.estimate, found.variance + found.shared, degrees.mean)
    noise, shared = batch.pairs(found.variance), found.shared
    hidden = batch.pairs(shared) * counts if shared.ndim else np.zeros(len(noise))
    exact = np.repeat(batch.variance == 0, batch.size * (batch.size - 1) // 2)
    if batch.truncated:  # without noise all error is interference, which overlapping patches share
        noise = np.where(exact, noise * counts, noise)
    relative = degrees.variance / degrees.mean**2 / 4
    doubt = batch.pairs(relative[:, :, None] + relative[:, None, :])
    return _log_ratio(batch.pairs(found.estimate), np.maximum(noise, hidden), doubt), scale
