"""Large patches that pair by pair cannot be judged: solved as one convex problem each.

Where a patch has many more members than columns, every pair's evidence leans on that of hundreds of others, and
judging all of them at a time does not settle. The residual of the eigen-equation tells: it is far beyond what
noise makes. Such a patch is solved as a whole. With S relaxed to all symmetric matrices between 0 and what an edge
would be, 0 ≤ S_ij ≤ w_ij, the most likely one is the least of

    ½ Σ_a<=b (Uᵀ S U - M)²_ab / v_ab + ½ Σ_a |(I - P) S u_a|² / v_a + Σ_i<j S_ij / w_ij log((1 - c_ij) / c_ij),

with c the chance of a pair and v the variances of the residual (`evidence`): a convex function, so that descent
finds it. If that explains what was seen, S_ij / w_ij is taken for the probability of the pair.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from lograb.attacks.posterior.batches import Batch
from lograb.attacks.posterior.beliefs import Beliefs, Scene, Status, log_odds_of
from lograb.attacks.posterior.checksum import check
from lograb.attacks.posterior.degrees import Work, infer_degrees
from lograb.attacks.posterior.volumes import whole_volumes
from lograb.parallel import ordered_map
from lograb.types import Bools, Floats

FAILS, EXPLAINS = 1.2, 5.0
"""Squared residual, in units of noise, from which a judgement fails, and up to which a solution counts."""
MEMBERS = (40, 1500)
QUIET, LOUD, SHARE = 0.005, 1.0, 0.3
"""σ² q up to which a solution takes the place of the judgement, and up to which it has a share in it."""
WORK, PASSES = 2e8, 30
"""Members² times columns, over all patches, up to which they are solved, smallest first: bounds the time, to
about a minute; and what passes over a matrix cost, in columns."""
OPEN = 0.02
"""Share of the pairs that must be open."""
LEAST_NOISE = 1e-6
"""σ² q that rounding leaves at least."""
SOFT = 0.5
"""Added to the variances (μ_a - μ_b)² / 2 and (μ_a - θ)², so that a few components do not outweigh all others."""
SLACK = 1.05
"""By which an edge may be larger than degrees tell."""
ROUNDS, FULL = 4, 0.95
"""How often volumes are read off the solution, unless edges read as much."""
TOLERATED, NOTHING = 1.5, 0.2
"""Factor by which the misfit may grow with the volume, and a misfit that is none."""
STEPS, MOST_STEPS = 100, 1000
"""After how many steps it is looked whether more are worth it, and how many are made at most."""
SLOW = 0.9
"""Factor by which the residual must fall in so many steps."""
DOUBT, SHARP = 0.02, 1.5
"""Share of chance in the probabilities, and the factor on their log-odds: least squares draw to the middle."""


@dataclass(frozen=True)
class Fit:
    """One patch: U (q, r), μ (r,), σ², weights of the residual inside (r, r) and outside (r,) the frame."""

    frame: Floats
    mu: Floats
    variance: float
    inside: Floats
    outside: Floats

    def residual(self, matrix: Floats) -> tuple[Floats, Floats]:
        """Give Uᵀ S U - M and (I - P) S U."""
        image = matrix @ self.frame
        inner = self.frame.T @ image
        return inner - np.diag(self.mu), image - self.frame @ inner

    def misfit(self, matrix: Floats) -> float:
        """Weigh the squared residual, in units of what noise makes of each of its q r components."""
        inner, outer = self.residual(matrix)
        total = (inner**2 * self.inside).sum() / 2 + (outer**2 * self.outside).sum()
        return float(total / self.variance / self.frame.size)


def fit_of(batch: Batch, at: int) -> Fit:
    """Take one patch out of a batch."""
    mu, q, r = batch.mu[at], batch.size, batch.rank
    theta = -mu.sum() / (q - r)  # mean of what is hidden: the trace of S is 0
    inside = 1.0 / ((mu[:, None] - mu) ** 2 / 2 + SOFT)
    variance = float(batch.variance[at]) + LEAST_NOISE / q
    return Fit(batch.frame[at], mu, variance, inside, 1.0 / ((mu - theta) ** 2 + SOFT))


def descend(fit: Fit, found: Floats, least: Floats, most: Floats, cost: Floats) -> Floats:
    """Minimise half the weighted squares and σ² Σ_{i<j} cost_ij S_ij over symmetric S between bounds, (q, q).

    Accelerated projected gradients, which start anew whenever they point uphill.
    """
    rate = 2.0 / max(float(fit.inside.max()), float(fit.outside.max()))  # entries of S count twice
    ahead, pace, misfit = found, 1.0, np.inf
    for step in range(1, MOST_STEPS + 1):
        inner, outer = fit.residual(ahead)
        half = (outer * fit.outside + fit.frame @ (inner * fit.inside) / 2) @ fit.frame.T
        following = np.clip(ahead - rate / 2 * (half + half.T + fit.variance * cost), least, most)
        change = following - found
        uphill = float(((ahead - following) * change).sum()) > 0
        after = 1.0 if uphill else (1.0 + np.sqrt(1.0 + 4.0 * pace**2)) / 2
        ahead = following if uphill else following + (pace - 1.0) / after * change
        found, pace = following, after
        if step % STEPS == 0:
            misfit, before = fit.misfit(found), misfit
            if misfit > SLOW * before:
                break
    return found


class Solution(NamedTuple):
    """S, S_ij / w_ij, the degrees that w is made of, and the misfit of S."""

    matrix: Floats
    share: Floats
    mean: Floats
    misfit: float

    @property
    def reads(self) -> float:
        """What an edge reads."""
        return float(np.clip((self.share**2).sum() / max(self.share.sum(), 1e-9), 0.3, 1.0))


def relax(scene: Scene, beliefs: Beliefs) -> Beliefs:
    """Solve the patches whose judgement does not explain what was seen, and check them."""
    asked = [(work, at) for work in beliefs.works.values() for at in _failing(scene, beliefs, work)]
    costs = np.cumsum([float(work.batch.size**2 * (work.batch.rank + PASSES)) for work, _ in asked])
    asked = asked[: int((costs <= WORK).sum())]
    size, works, own = len(beliefs.keys), dict(beliefs.works), beliefs.own.copy()
    total, times, done = np.zeros(size), np.zeros(size), []

    def one(question: tuple[Work, int]) -> tuple[Floats, Floats] | None:
        return _solve(scene, beliefs, *question)

    for number, ((work, at), found) in enumerate(zip(asked, ordered_map(one, asked))):
        scene.progress("solving patches", number, len(asked))
        if found is not None:
            start, entry = work.batch.entries.start, scene.places(work.batch)[at]
            total[entry] += found[0]
            times[entry] += 1.0
            mean = works[start].degrees.mean.copy()
            mean[at] = found[1]
            works[start] = replace(work, degrees=replace(work.degrees, mean=mean))
            done.append((work.batch, at, entry))
    if not done:
        return beliefs
    solved = 2.0 * times >= np.maximum(scene.counts, 1)  # else most of what is known of a pair would be lost
    odds = log_odds_of(total / np.maximum(times, 1.0))
    own[solved[scene.entry]] = 0.0
    for batch, at, entry in done:  # what it says itself is not to be held against it
        mine = (odds[entry] - log_odds_of(beliefs.chance[entry])) / times[entry]
        own[batch.entries].reshape(len(batch.which), -1)[at] = mine  # into a view
    beliefs = replace(beliefs, works=works, own=own).settle(beliefs.open & solved, odds, Status.OPEN)
    beliefs = beliefs.tell(relaxed=len(done))
    if "check" not in scene.settings.stages:
        return beliefs
    batches = {batch.entries.start: batch for batch, _, _ in done}
    return replace(check(replace(scene, batches=list(batches.values())), beliefs), told=beliefs.told)


def _failing(scene: Scene, beliefs: Beliefs, work: Work) -> list[int]:
    """Find the patches of a batch that are worth it, and whose judgement does not explain what was seen."""
    batch, places = work.batch, scene.places(work.batch)
    if not (batch.exact and batch.truncated and MEMBERS[0] <= batch.size <= MEMBERS[1]):
        return []
    worth = beliefs.open[places].mean(axis=1) > OPEN
    worth &= (batch.variance * batch.size < LOUD) & (batch.strength > 0)
    probable, root = batch.matrix(beliefs.probability[places]), 1.0 / np.sqrt(work.degrees.mean)
    return [at for at in np.flatnonzero(worth).tolist()
            if fit_of(batch, at).misfit(probable[at] * root[at][:, None] * root[at]) > FAILS]  # fmt: skip


def _solve(scene: Scene, beliefs: Beliefs, work: Work, at: int) -> tuple[Floats, Floats] | None:
    """Solve a patch: how far each of its pairs is an edge, and degrees; None if that does not explain it either.

    If degrees are too small by a factor, what an edge may be is too large by it, and edges read less than 1, all
    alike. So larger volumes are tried, as long as they explain what was seen as well.
    """
    batch, entry = work.batch, scene.places(work.batch)[at]
    first, volume = work.first.of(np.array([at])), work.start.volume[[at]]
    fit, known = fit_of(batch, at), batch.matrix(beliefs.known[entry].astype(float))[0]
    apart: Bools = (known < 0) | np.eye(batch.size, dtype=bool)
    if first.together is not None:
        apart |= first.together[0] < 0.5
    cost = -logit(np.clip(batch.matrix(beliefs.chance[entry])[0], 1e-4, 0.95))

    def solve(volume: Floats, start: Floats) -> Solution:
        mean = infer_degrees(first, volume, work.usual.spread).mean[0]
        value = 1.0 / np.sqrt(mean[:, None] * mean)
        most = np.where(apart, 0.0, SLACK * value)
        least = np.where((known > 0) & ~apart, value, 0.0)
        found = descend(fit, np.clip(start, least, most), least, most, cost / value)
        return Solution(found, found / value, mean, fit.misfit(found))

    best = solve(volume, np.zeros(apart.shape))
    if best.misfit > EXPLAINS:
        return None
    worst = TOLERATED * max(best.misfit, NOTHING)
    tried = 1.0 / best.reads
    quiet = bool(batch.variance[at] * batch.size < QUIET)  # else edges read less because noise is in the way
    for _ in range(ROUNDS if quiet and best.reads < FULL else 0):
        larger = whole_volumes(first, tried * volume)
        other = solve(larger, best.matrix)
        if other.misfit <= worst:
            best, volume, tried = other, larger, 1.0 / other.reads
            if other.reads > FULL:
                break
        else:
            tried = np.sqrt(tried)
    found = (1.0 - DOUBT) * np.minimum(batch.pairs(best.share[None]), 1.0) + DOUBT * beliefs.chance[entry]
    found = expit(SHARP * logit(found))
    if quiet:
        return found, best.mean
    return SHARE * found + (1.0 - SHARE) * beliefs.probability[entry], work.degrees.mean[at]
