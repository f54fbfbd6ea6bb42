"""Rounds: judge all pairs, check patches against their eigenvalues, judge again those that fail the check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

from lograb.attacks.posterior.batches import Batch, observed_blocks, stack
from lograb.attacks.posterior.checksum import check
from lograb.attacks.posterior.degrees import infer_degrees
from lograb.attacks.posterior.fusion import Pairs, Patchwork, iterate
from lograb.attacks.posterior.gauge import first_guess
from lograb.attacks.posterior.leading import leading
from lograb.attacks.posterior.settings import PosteriorSettings
from lograb.attacks.posterior.volumes import Usual, usual_degrees, volumes
from lograb.parallel import ordered_map
from lograb.progress import Progress, ignore
from lograb.types import Floats, Ints, Observations

CERTAIN = 13.8
"""Log-odds of what membership decides: a millionth from 0 or 1."""
LIKELY = 2.0
"""Log-odds by a check above which a pair is no question any more."""
SUREST = 10.0
"""Log-odds at which a judgement is cut before it is averaged with another."""
TRUST = 0.9
"""Weight of the mended graphs, against the log-odds before, where a round starts."""


@dataclass(frozen=True)
class Settled:
    """Pairs in patches that passed the check.

    Attributes
    ----------
    keys : int64 array, shape (m,), increasing
    log_odds : float array, shape (m,)
    """

    keys: Ints
    log_odds: Floats

    def join(self, keys: Ints, log_odds: Floats) -> Settled:
        """Add the pairs that are new and have log-odds."""
        new = (log_odds != 0) & (self.look_up(keys) == 0)
        both = np.concatenate([self.keys, keys[new]])
        order = np.argsort(both, kind="stable")
        return Settled(both[order], np.concatenate([self.log_odds, log_odds[new]])[order])

    def look_up(self, keys: Ints) -> Floats:
        """Give the log-odds of pairs, 0 where they are not settled."""
        if not len(self.keys):
            return np.zeros(len(keys))
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.log_odds[place], 0.0)


def judge_in_rounds(
    seen: Observations,
    which: Ints,
    variance: Floats,
    centres: Ints,
    number: Callable[[list[Batch]], Pairs],
    settings: PosteriorSettings,
    progress: Progress = ignore,
) -> tuple[Ints, Floats, Floats, Usual, dict[str, Any]]:
    """Judge the pairs of some patches.

    Parameters
    ----------
    seen : Observations
    which : int64 array
        The patches to read.
    variance : float array, shape (n_patches,)
    centres : int64 array, shape (n_patches,), -1 for unknown
    number : function
        Numbers the pairs of batches.
    settings : PosteriorSettings

    Returns
    -------
    keys : int64 array, shape (m,)
    judged, checked : float arrays, shape (m,)
        Log-odds as in `probabilities`.
    usual : Usual
    told : dict
    """
    settled, passed, n_read = Settled(np.empty(0, np.int64), np.empty(0)), [], len(which)
    usual: Usual | None = None
    start: Settled | None = None
    keys, known = np.empty(0, np.int64), np.empty(0)
    for left in range(settings.checks, -1, -1):
        batches = stack(seen, which, variance, "eigenvalues" in settings.channels)
        pairs = number(batches)
        odds = settled.look_up(pairs.keys)
        sure = np.where(np.abs(odds) > LIKELY, np.sign(odds), 0.0).astype(np.int64)
        verdict = np.where(pairs.verdict == 0, sure, pairs.verdict)
        works, usual = _settle(seen.protocol.d, batches, centres, usual)
        first = None if start is None else np.where(verdict == 0, start.look_up(pairs.keys), verdict > 0)
        evidence, prior, own = iterate(
            works, replace(pairs, verdict=verdict), settings.iterations, settings.damping, first, progress
        )
        odds = np.where(odds == 0, evidence + prior, odds)
        odds = np.where(pairs.verdict == 0, odds, CERTAIN * pairs.verdict)
        if start is None:
            keys, known = pairs.keys, odds
        else:
            again = np.searchsorted(keys, pairs.keys)
            known[again] = np.where(pairs.verdict == 0, _average(known[again], odds, settings.damping), odds)
        if not left or not batches[0].readable:
            break
        own = np.where(verdict[pairs.entry] == 0, own, 0.0)
        blocks = [observed_blocks(seen, batch.which) for batch in batches]
        outcome = check(batches, blocks, pairs, odds, own, progress)
        passed.append(outcome.passed)
        settled = settled.join(pairs.keys, np.where(pairs.verdict == 0, outcome.log_odds, 0.0))
        start = Settled(pairs.keys, TRUST * outcome.likely + (1.0 - TRUST) * expit(odds))
        which = outcome.left
        if not passed[-1] or not len(which):
            break
    assert usual is not None
    told = {"degree_spread": usual.spread, "passed": passed, "not_passed": n_read - sum(passed)}
    return keys, known, settled.look_up(keys), usual, told


def judge_again(
    seen: Observations,
    which: Ints,
    variance: Floats,
    centres: Ints,
    number: Callable[[list[Batch]], Pairs],
    settings: PosteriorSettings,
    usual: Usual,
    keys: Ints,
    judged: Floats,
    known: Floats,
) -> Floats:
    """Judge the open pairs of some patches as if for the first time, given all that is known by now.

    A wrong judgement can hold itself up: the degrees are counted with it, and with these degrees it fits. So
    nothing is kept but what is known.

    Parameters
    ----------
    seen, which, variance, centres, number, settings
        As in `judge_in_rounds`.
    usual : Usual
    keys : int64 array, shape (m,), increasing
    judged : float array, shape (m,)
    known : float array, shape (m,)
        Log-odds of pairs that are no question any more, 0 for open ones.

    Returns
    -------
    float array, shape (m,)
        `judged`, with new log-odds for the open pairs of these patches.
    """
    batches = stack(seen, which, variance, True)
    pairs = number(batches)
    place = np.searchsorted(keys, pairs.keys)
    verdict = np.sign(known[place]).astype(np.int64)
    works, _ = _settle(seen.protocol.d, batches, centres, usual)
    evidence, prior, _ = iterate(works, replace(pairs, verdict=verdict), settings.iterations, settings.damping)
    odds = np.clip(evidence + prior, -SUREST, SUREST)
    again = judged.copy()
    again[place] = np.where(verdict == 0, odds, judged[place])
    return again


def _average(before: Floats, now: Floats, damping: float) -> Floats:
    """Average the log-odds of two judgements, of which neither may be surer than `SUREST`."""
    before, now = (np.clip(values, -SUREST, SUREST) for values in (before, now))
    return damping * before + (1.0 - damping) * now


def probabilities(judged: Floats, checked: Floats, misfit: float, share: float | None = None) -> Floats:
    """Turn log-odds into probabilities; where no check stands behind them the model itself may be wrong.

    Parameters
    ----------
    judged, checked : float arrays, shape (m,)
        Log-odds by evidence, ±`CERTAIN` by membership; and by checks, 0 for none.
    misfit : float
        Share of pairs on which the model is wrong.
    share : float, optional
        Of edges among those; as among all that no check stands behind unless given.
    """
    probability = expit(np.where(checked == 0, judged, checked))
    open_ = (checked == 0) & (np.abs(judged) != CERTAIN)
    if open_.any():
        share = float(probability[open_].mean()) if share is None else share
        probability[open_] = (1.0 - misfit) * probability[open_] + misfit * share
    return np.asarray(probability)


def _settle(
    radius: int, batches: list[Batch], centres: Ints, usual: Usual | None
) -> tuple[list[Patchwork], Usual]:
    """Find degrees before anything is known about the pairs."""
    guessed = [first_guess(batch) for batch in batches]
    firsts = [leading(batch, _hubs(batch, centres) if radius == 1 else None) for batch in batches]
    known = usual or usual_degrees(guessed, firsts)

    def settle(position: int) -> Patchwork:
        first = firsts[position]
        volume = volumes(guessed[position], first, known)
        return Patchwork(batches[position], first, known, infer_degrees(first, volume, known.spread))

    return list(ordered_map(settle, range(len(batches)))), known


def _hubs(batch: Batch, centres: Ints) -> Ints:
    """Give the positions of the known centres, -1 for the others."""
    centre = centres[batch.which]
    return np.where(centre >= 0, (batch.members < centre[:, None]).sum(axis=1), -1)
