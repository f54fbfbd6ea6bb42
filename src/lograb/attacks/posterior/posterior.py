"""The attack itself: all evidence on all pairs, fused and iterated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lograb.attacks.attack import Attack
from lograb.attacks.baselines.membership import membership
from lograb.attacks.cut import best_expected_f1
from lograb.attacks.known_defences import EXACT, read_values, unsanitise, value_noise
from lograb.attacks.posterior.batches import Batch, patch_noise, readable
from lograb.attacks.posterior.families import FAINT, check_together, patches_to_ask
from lograb.attacks.posterior.fusion import Pairs
from lograb.attacks.posterior.isolated import drop_isolated, edgeless, members_only
from lograb.attacks.posterior.paths import reconcile
from lograb.attacks.posterior.rounds import judge_again, judge_in_rounds, probabilities
from lograb.attacks.posterior.rules import ball_keys, known_centres, likeness_bins, star_keys, verdicts
from lograb.attacks.posterior.settings import PosteriorSettings
from lograb.pairs import pair_keys, shared_pairs, unpair
from lograb.progress import Progress, ignore
from lograb.types import Bools, Floats, Ints, Observations, Reconstruction

DEFAULTS = PosteriorSettings()
SURE = 1e-6
"""Distance from 0 and 1 that certain pairs keep."""
LISTED = 1e-3
"""Pairs below this probability are not listed."""
TOGETHER = 2
"""How often patches are checked together."""
UNMENDED = 0.2
"""Share of open pairs on which the judgement is worth nothing where patches cannot be mended."""
CO_OCCURRENCE = 0.25
"""Probability of the pairs that co-occurrence alone picks out."""


class Posterior(PosteriorSettings, Attack):
    """The strongest attack; its parameters are those of `PosteriorSettings`."""

    name = "posterior"
    uses = ("members", "centres", "eigenvalues", "eigenvectors")
    scenario = "weighs all evidence on every pair and gives it a probability: the strongest here"
    cost = "pairs in patches, times patch sizes"

    def reconstruct(
        self, seen: Observations, rng: np.random.Generator, progress: Progress = ignore
    ) -> Reconstruction:
        """Give every pair that shares a patch a probability."""
        exact = value_noise(seen) <= EXACT  # else eigenvalues are no checksum
        settings = self if exact else self.model_copy(update={"checks": 0})
        return unsanitise(seen, posterior(read_values(seen), rng, settings, progress))


def posterior(
    seen: Observations, rng: np.random.Generator, settings: PosteriorSettings = DEFAULTS,
    progress: Progress = ignore,
) -> Reconstruction:
    """Give every pair that shares a patch the probability that it is an edge, and claim the likely ones."""
    use_members = "membership" in settings.channels
    if "eigenvectors" not in settings.channels:
        return _by_membership(seen, rng, use_members)
    variance = patch_noise(seen)
    whole, empty = seen, None
    if "eigenvalues" in settings.channels and value_noise(seen) <= EXACT:
        empty = edgeless(seen)
        seen, variance = drop_isolated(seen, variance)
    which, patches = readable(seen, variance, settings.max_entries)
    if not len(which):
        rest = whole if empty is None else members_only(whole, ~np.isin(np.arange(whole.n_patches), empty))
        answer = _by_membership(rest, rng, use_members, empty=_members(whole, empty))
        told = {**answer.diagnostics, "patches": patches}
        return replace(answer, nodes=np.unique(whole.nodes), diagnostics=told)
    centres = known_centres(whole) if use_members else np.full(whole.n_patches, -1, dtype=np.int64)

    def number(batches: list[Batch]) -> Pairs:
        return _pairs(whole, batches, centres, use_members)

    rounds = judge_in_rounds(seen, which, variance, centres, number, settings, progress)
    keys, judged, checked, usual, told = rounds
    radius, ball = whole.protocol.d, ball_keys(whole, centres)
    if radius < 2 or not len(ball):
        probability = probabilities(judged, checked, settings.misfit)
    else:
        tells = np.isin(np.arange(whole.n_nodes), centres[which]) & (radius == 2)

        def reconciled(judged: Floats, checked: Floats) -> tuple[Floats, Floats]:
            return reconcile(keys, judged, checked, ball, tells, whole.n_nodes, settings)

        failed = np.zeros(len(keys), dtype=bool)
        for left in range(TOGETHER if _checkable(seen, settings) else 0, -1, -1):
            probability, known = reconciled(judged, checked)
            doubt = np.where(known == 0, np.minimum(probability, 1.0 - probability), 0.0)
            asked = patches_to_ask(seen, which, keys, doubt) if left else which[:0]
            if not len(asked):
                break
            again = judge_again(seen, asked, variance, centres, number, settings, usual, keys, judged, known)
            found, failed = check_together(seen, asked, variance, keys, reconciled(again, checked)[0], known,
                                           progress)  # fmt: skip
            new = (known == 0) & (found != 0) & (found != checked)
            if not new.any():
                break
            checked = np.where(new, found, checked)
        probability = _doubted(probability, failed & (known == 0))
    told |= {"patches": patches, "sigma": float(np.sqrt(np.median(variance[which])))}
    return _answer(whole, keys, probability, told, empty=_members(whole, empty))


def _members(seen: Observations, which: Ints | None) -> Observations | None:
    return None if which is None else members_only(seen, np.isin(np.arange(seen.n_patches), which))


def _doubted(probability: Floats, failed: Bools) -> Floats:
    """Take back some certainty about open pairs of patches that fail the check and cannot be mended."""
    failed = failed & (np.minimum(probability, 1.0 - probability) > FAINT)
    share = float(probability[failed].mean()) if failed.any() else 0.0
    return np.where(failed, (1.0 - UNMENDED) * probability + UNMENDED * share, probability)


def _checkable(seen: Observations, settings: PosteriorSettings) -> bool:
    """Whether patches can be checked: their eigenvalues are known, and which columns they belong to."""
    valued = "eigenvalues" in settings.channels and seen.values is not None
    return settings.checks > 0 and valued and seen.protocol.gauge != "rotation"


def _answer(
    seen: Observations,
    keys: Ints,
    probability: Floats,
    told: dict[str, Any],
    calibrated: bool = True,
    empty: Observations | None = None,
) -> Reconstruction:
    """List the pairs that are not negligible, and claim those above the best cut; none in `empty` patches."""
    if empty is not None:
        inside = shared_pairs(seen.n_nodes, empty.nodes, empty.ptr, unpair(keys, max(seen.n_nodes, 1)))[1]
        probability = np.where(inside, SURE, probability)
    listed = probability >= LISTED
    judged, scores = unpair(keys[listed], seen.n_nodes), probability[listed]
    cut, expected = best_expected_f1(scores)
    claimed = scores >= cut
    told = told | {"cut": cut if np.isfinite(cut) else None, "expected": expected, "judged": len(keys),
                   "unlisted": float(probability[~listed].mean()) if not listed.all() else 0.0}
    return Reconstruction(seen.n_nodes, judged[claimed], scores[claimed], np.unique(seen.nodes), judged, scores,
                          diagnostics=told, unlisted=told["unlisted"] if calibrated else None)  # fmt: skip


def _by_membership(
    seen: Observations, rng: np.random.Generator, allowed: bool, empty: Observations | None = None
) -> Reconstruction:
    """Answer from membership alone, or with nothing."""
    if not allowed:
        return _answer(seen, np.empty(0, np.int64), np.empty(0), {"rule": "none"})
    found = membership(seen, rng)
    keys = found.edges[:, 0] * seen.n_nodes + found.edges[:, 1]
    sure = found.diagnostics["rule"] != "co-occurrence"
    probability = np.full(len(keys), 1 - SURE if sure else CO_OCCURRENCE)
    return _answer(seen, keys, probability, {"rule": found.diagnostics["rule"]}, sure, empty)


def _pairs(seen: Observations, batches: list[Batch], centres: Ints, use_members: bool) -> Pairs:
    """Number the pairs of all batches, and let membership decide what it can."""
    n = seen.n_nodes
    ball = ball_keys(seen, centres) if use_members else np.empty(0, np.int64)
    inside = [pair_keys(batch.members, n)[0].ravel() for batch in batches]
    radius = seen.protocol.d
    stars = star_keys(ball, n) if radius == 1 else np.empty(0, np.int64)
    keys, entry = np.unique(np.concatenate([*inside, stars]), return_inverse=True)
    entry = entry[: len(entry) - len(stars)].astype(np.int32)
    counts = np.bincount(entry, minlength=len(keys))
    pairs = unpair(keys, n)
    verdict, bins = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
    if use_members:
        verdict = verdicts(pairs, ball, centres, n, radius)
        occurrences = np.bincount(np.concatenate([b.members.ravel() for b in batches]), minlength=n)
        bins = likeness_bins(pairs, counts, occurrences, verdict == 0)
    return Pairs(keys, entry, counts, verdict, bins)
