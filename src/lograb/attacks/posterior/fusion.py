"""Evidence of all patches on all pairs, fused and iterated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_ndtr, logit

from lograb.attacks.posterior.batches import DROWNED, Batch
from lograb.attacks.posterior.beliefs import Beliefs, Scene, Status
from lograb.attacks.posterior.degrees import (
    LEAST_LEFT,
    Degrees,
    Scale,
    Work,
    count_degrees,
    degrees_left,
    infer_degrees,
    read_scale,
)
from lograb.attacks.posterior.evidence import pair_evidence
from lograb.attacks.posterior.gauge import first_guess
from lograb.attacks.posterior.halos import odds_with_halos
from lograb.attacks.posterior.isolated import ZERO
from lograb.attacks.posterior.leading import leading
from lograb.attacks.posterior.volumes import usual_degrees, volumes
from lograb.pairs import upper_pairs
from lograb.parallel import ordered_map
from lograb.types import Bools, Floats, Ints

Verdicts = npt.NDArray[np.int8]

MAX_LOG_ODDS = 60.0
CHANCE_APART = 1e-4
LEAST_CHANCE, MOST_BY_CHANCE = 1e-5, 0.95
BALANCE_STEPS = 3
UNSEEN = 0.2
"""Share of the edges that a patch holds which shows no eigenvalue but 0, and may hide more."""
LARGE, LITTLE = 500, 0.02
"""Members from which a patch is not judged if a smaller share of its pairs is open: they are left to chance."""
ENOUGH_PAIRS = 100
"""From which the spread of errors is measured."""
LEAST_DISPERSION = 0.1
LEAST_VARIANCE = 1.0 / (2 * MAX_LOG_ODDS)
"""Of what a patch reads, so that one that reads 0 or 1 says no more than `MAX_LOG_ODDS`."""
SHARED = 0.05
"""Relative variance up to which doubt about the value of an edge is the same in all patches."""
LEAST_FACTOR = 0.65
"""By which an edge is off in all patches: with less, whatever non-edges have in common would pass for edges."""


def _chance(work: Work, verdict: Verdicts) -> Floats:
    """Probability of each open pair if edges fell at random for these degrees, shape (b, q, q).

    With r the degrees left for open pairs and O_i the sum of r over the open partners of i, that is
    r_i r_j / √(O_i O_j). `verdict` is that on the pairs of the batch, 0 where they are open.
    """
    batch, together = work.batch, work.first.together
    known = batch.matrix((verdict > 0).astype(float))
    can = batch.matrix((verdict == 0).astype(float))
    if together is not None:
        can *= together
    left = degrees_left(work.first, work.start, known.sum(axis=2), can)
    partners = np.sqrt(np.maximum((can @ left[:, :, None])[:, :, 0], LEAST_LEFT))
    rate = left / partners
    chance = np.minimum(rate[:, :, None] * rate[:, None, :], MOST_BY_CHANCE)
    if together is not None:
        chance = np.maximum(chance * together, CHANCE_APART)
    if batch.readable and batch.truncated:  # isolated members do not show
        chance[(batch.mu[:, -1] > 1.0 - ZERO) & ~batch.bounded] *= UNSEEN
    diagonal = np.arange(batch.size)
    chance[:, diagonal, diagonal] = 0.0
    return chance


def judge(scene: Scene, beliefs: Beliefs) -> Beliefs:
    """Judge all open pairs, each given the current estimate of all others, again and again."""
    verdict, open_, all_works = beliefs.known, beliefs.open, prepare(scene)
    works: list[Work] = []
    others: list[Work] = []
    for work in all_works:
        share = open_[scene.places(work.batch)].mean()
        if share:
            (others if work.batch.size > LARGE and share < LITTLE else works).append(work)
    evidence, prior, by_chance, own, degrees = iterate(works, scene, beliefs.keys, verdict, beliefs.drawn, others)
    odds = np.clip(evidence + prior, -MAX_LOG_ODDS, MAX_LOG_ODDS)
    own = np.where(verdict[scene.entry] == 0, own, 0.0)
    done = {work.batch.entries.start: replace(work, degrees=found) for work, found in zip(works, degrees)}
    judged = replace(beliefs, own=own, chance=expit(by_chance), works=done)
    return judged.tell(degree_spread=all_works[0].usual.spread).settle(open_, odds, Status.OPEN)


def prepare(scene: Scene) -> list[Work]:
    """Find degrees before anything is known about the pairs."""
    batches = scene.batches
    guessed = [first_guess(batch) for batch in batches]
    known = [guess if guess.readable and not guess.guessed else batch for batch, guess in zip(batches, guessed)]
    firsts = [leading(batch, hubs(batch, scene.centres) if scene.radius == 1 else None) for batch in known]
    usual = usual_degrees(guessed, firsts)

    def one(position: int) -> Work:
        first = firsts[position]
        volume = volumes(batches[position], guessed[position], first, usual)
        start = infer_degrees(first, volume, usual.spread)
        return Work(batches[position], guessed[position], first, usual, start, start)

    return list(ordered_map(one, range(len(batches))))


def hubs(batch: Batch, centres: Ints) -> Ints:
    """Give the positions of the known centres, -1 for the others."""
    centre = centres[batch.which]
    return np.where(centre >= 0, (batch.members < centre[:, None]).sum(axis=1), -1)


def odds_by_chance(works: list[Work], scene: Scene, verdict: Verdicts) -> Floats:
    """Log-odds of all pairs before any evidence but degrees and verdicts, averaged over patches, shape (m,)."""
    flat, asked = np.zeros(len(scene.entry)), np.zeros(len(scene.entry))

    def by_chance(work: Work) -> Floats:
        chance = _chance(work, verdict[scene.entry[work.batch.entries]])
        return np.asarray(logit(np.maximum(work.batch.pairs(chance), LEAST_CHANCE)))

    for work, odds in zip(works, ordered_map(by_chance, works)):
        flat[work.batch.entries], asked[work.batch.entries] = odds, 1.0
    total, counts = (np.bincount(scene.entry, each, len(verdict)) for each in (flat, asked))
    return np.where(counts > 0, total / np.maximum(counts, 1.0), logit(LEAST_CHANCE))


def iterate(
    works: list[Work], scene: Scene, keys: Ints, verdict: Verdicts, drawn: Floats | None = None,
    others: Sequence[Work] = (),
) -> tuple[Floats, Floats, Floats, Floats, list[Degrees]]:
    """Judge all pairs, whole rounds at a time.

    Parameters
    ----------
    keys : int64 array, shape (m,)
        The pairs.
    verdict : int8 array, shape (m,)
        1 and -1 for pairs that are no question, else 0.
    drawn : float array, shape (m,), optional
        Log-odds by what balls say, in place of those by chance.
    others : list of Work
        Patches of which nothing but degrees is asked.

    Returns
    -------
    evidence, prior, by_chance : float arrays, shape (m,)
        Log-likelihood ratios, summed over patches; log-odds before them; and those by degrees and verdicts alone.
    own : float array
        For each pair in each patch: by how much the ratio would fall without what this patch read last.
    degrees : list of Degrees, for each batch
    """
    size, entry, settings = len(verdict), scene.entry, scene.settings
    free, read, ratio = verdict == 0, np.zeros((4, len(entry))), np.zeros(size)
    by_chance = prior = odds_by_chance([*works, *others], scene, verdict) if drawn is None else drawn
    if scene.halos:
        by_chance = prior = odds_with_halos(scene, [*works, *others], keys, by_chance, free)
    elif drawn is None:
        prior = _balanced(scene.lift, free, by_chance)
    # A truncated patch without its eigenvalues, or with columns in any order, fixes no scale: it is judged once,
    # and by degrees alone. Given what is believed by now, its probabilities would drift to 0.
    again = [at for at, work in enumerate(works) if not work.batch.truncated or work.batch.readable]
    scales: list[Scale | None] = [None] * len(works)
    degrees = [work.start for work in works]
    probability: Floats | None = None if drawn is None else np.where(free, expit(drawn), verdict > 0)

    def judge(at: int) -> tuple[Floats, Scale | None, Degrees]:
        work, place = works[at], entry[works[at].batch.entries]
        means = None if probability is None or at not in again else work.batch.matrix(probability[place])
        return _judge(work, means, verdict[place], scene.counts[place], scales[at], last)

    for number in range(settings.iterations):
        scene.progress("judging pairs", number, settings.iterations)
        last = number == settings.iterations - 1
        revised, kept = (again, settings.damping) if number else (range(len(works)), 0.0)
        for at, found in zip(revised, ordered_map(judge, revised)):
            read[:, works[at].batch.entries], scales[at], degrees[at] = found
        fused = _fuse(read, entry, size)
        ratio = kept * ratio + (1 - kept) * (_over_factor(*fused[:3]) + fused[3])
        judged = np.where(free, expit(np.clip(ratio + prior, -MAX_LOG_ODDS, MAX_LOG_ODDS)), verdict > 0)
        kept = settings.damping
        probability = judged if probability is None else kept * probability + (1 - kept) * judged
    return ratio, prior, by_chance, _parts(read, entry, works, fused), degrees


def _balanced(lift: Floats, free: Bools, by_chance: Floats) -> Floats:
    """Log-odds by chance with a lift, lowered alike until they promise as many edges as the degrees do."""
    promised, odds = float(expit(by_chance)[free].sum()), by_chance + lift
    for _ in range(BALANCE_STEPS if lift.any() else 0):
        p = expit(odds[free])
        odds = odds - (float(p.sum()) - promised) / max(float((p * (1.0 - p)).sum()), 1e-9)
    return odds


def _weigh(estimate: Floats, variance: Floats, value: Floats, doubt: Floats, counts: Ints) -> Floats:
    """What has to be summed over the patches of a pair, `counts` of them, shape (4, n).

    A patch reads x ~ N(0, v) if the pair is no edge, and x ~ N(s t, w) if it is one. There t is the value that an
    edge should have, and s the factor by which it is off in all patches, because the same neighbours are missed in
    all of them; w is v and t² times the rest of the doubt. Given s, the log-likelihood ratio is
    s Σ t x / w - s² Σ t² / 2w, and a part without s.
    """
    variance = np.maximum(variance, LEAST_VARIANCE)
    shared = np.where(counts > 1, np.minimum(doubt, SHARED), 0.0)
    wide = variance + value**2 * (doubt - shared)
    information = value**2 / wide
    alone = (estimate**2 * (1.0 / variance - 1.0 / wide) - np.log(wide / variance)) / 2
    return np.stack([information, value * estimate / wide, information * shared, alone])


def _fuse(read: Floats, entry: npt.NDArray[np.int32], size: int) -> Floats:
    """Sum what patches read: information, score and part without s of all pairs, and the variance of s, (4, m)."""
    information, score, shared, alone = (np.bincount(entry, row, size) for row in read)
    return np.stack([information, score, shared / np.maximum(information, 1e-12), alone])


def _over_factor(information: Floats, score: Floats, spread: Floats) -> Floats:
    """log of the mean of exp(s score - s² information / 2) over s ~ N(1, spread), s > `LEAST_FACTOR`."""
    spread = np.maximum(spread, 1e-9)
    more = 1.0 + spread * information
    everywhere = ((spread * score**2 + 2.0 * score - information) / more - np.log(more)) / 2
    after = ((1.0 + spread * score) / more - LEAST_FACTOR) / np.sqrt(spread / more)
    return np.asarray(everywhere + log_ndtr(after) - log_ndtr((1.0 - LEAST_FACTOR) / np.sqrt(spread)))


def _parts(read: Floats, entry: npt.NDArray[np.int32], works: list[Work], fused: Floats) -> Floats:
    """By how much the log-likelihood ratio of a pair would fall without each of its patches, for each reading."""
    joint, found = _over_factor(*fused[:3]), np.zeros(len(entry))
    for work in works:
        at = work.batch.entries
        pair, (information, score, _, alone) = entry[at], read[:, at]
        others = np.maximum(fused[0, pair] - information, 0.0)
        found[at] = joint[pair] - _over_factor(others, fused[1, pair] - score, fused[2, pair]) + alone
    return found


def _judge(
    work: Work, means: Floats | None, verdict: Verdicts, counts: Ints, scale: Scale | None, last: bool
) -> tuple[Floats, Scale | None, Degrees]:
    """What a batch says about its pairs (see `_weigh`), and what that says about degrees.

    `means` and `scale` are None before the first iteration. In the last one the variance that theory claims gives
    way to the one that is measured where that is smaller; before, it would have guesses harden too early.
    """
    batch, degrees = work.guessed, work.start
    if means is None:
        means = np.maximum(_chance(work, verdict), batch.matrix((verdict > 0).astype(float)))
    else:
        degrees = count_degrees(means, work.first, work.start, work.usual, scale)
    strength = batch.for_pairs(work.batch.strength)
    if strength.max() < DROWNED:
        return np.zeros((4, len(strength))), None, degrees
    found = pair_evidence(batch, means, degrees.mean, work.first.isolated)
    scale = read_scale(means, found.estimate, found.variance + found.shared, degrees.mean)
    noise, shared = batch.pairs(found.variance), batch.pairs(found.shared)
    claimed, hidden = np.maximum(noise, shared), shared * counts
    if batch.truncated:  # without noise all error is interference, which overlapping patches share
        noise = np.where(batch.for_pairs(batch.variance) == 0, noise * counts, noise)
    relative = degrees.variance / degrees.mean**2 / 4
    doubt = batch.pairs(relative[:, :, None] + relative[:, None, :])
    # If the pair is an edge, its ends have more neighbours than counted now, and an edge reads less than 1.
    p = batch.pairs(means)
    growth = degrees.gain / degrees.mean
    one, two = (growth[:, index].ravel() for index in upper_pairs(batch.size))
    value = 1.0 / np.sqrt((1.0 + one * (1.0 - p)) * (1.0 + two * (1.0 - p)))
    estimate = batch.pairs(found.estimate)
    if last:
        factor = _dispersion(batch, (estimate - (p > 0.5)) ** 2 / claimed)
        noise, hidden = factor * noise, factor * hidden
    return strength * _weigh(estimate, np.maximum(noise, hidden), value, doubt, counts), scale, degrees


def _dispersion(batch: Batch, squares: Floats) -> Floats:
    """Average the squares of errors over claimed variances in each noisy patch, one factor for each pair.

    Errors are counted against the likeliest graph: most pairs are clearly no edges, and show the noise.
    """
    each, noisy = squares.reshape(len(batch.which), -1), batch.variance > 0
    factor = np.ones(len(each))
    if each.shape[1] >= ENOUGH_PAIRS:
        factor[noisy] = each[noisy].mean(axis=1)
    elif each[noisy].size >= ENOUGH_PAIRS:
        factor[noisy] = each[noisy].mean()
    return batch.for_pairs(np.clip(factor, LEAST_DISPERSION, 1.0))
