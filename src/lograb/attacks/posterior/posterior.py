"""The attack itself: a list of stages, each of which takes what is believed of all pairs and improves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from lograb.attacks.attack import Attack
from lograb.attacks.baselines.membership import membership
from lograb.attacks.cut import best_expected_f1
from lograb.attacks.known_defences import EXACT, read_values, unsanitise, value_noise
from lograb.attacks.posterior.ball_graphs import balls, draw_graphs, possible_pairs
from lograb.attacks.posterior.batches import readable, stack
from lograb.attacks.posterior.beliefs import Beliefs, Scene, survey
from lograb.attacks.posterior.checksum import again, check
from lograb.attacks.posterior.fusion import judge
from lograb.attacks.posterior.isolated import drop_isolated, edgeless, members_only
from lograb.attacks.posterior.noise import patch_noise
from lograb.attacks.posterior.paths import paths
from lograb.attacks.posterior.relaxing import relax
from lograb.attacks.posterior.rows import rows
from lograb.attacks.posterior.rules import ball_keys, known_centres
from lograb.attacks.posterior.settings import PosteriorSettings
from lograb.attacks.posterior.temper import temper
from lograb.attacks.posterior.unread import unread_edges
from lograb.attacks.posterior.withheld import fill_in
from lograb.pairs import edge_keys, shared_pairs, unpair
from lograb.progress import Progress, ignore
from lograb.types import Bools, Floats, Ints, Observations, Reconstruction

STAGES: tuple[tuple[str, Callable[[Scene, Beliefs], Beliefs]], ...] = (
    ("rows", rows),
    ("judge", judge),
    ("paths", balls),
    ("check", check),
    ("relax", relax),
    ("again", again),
    ("paths", paths),
    ("temper", temper),
)
"""What is done, in this order. What balls say comes twice: as a whole where much is open, and path by path."""
DEFAULTS = PosteriorSettings()
SURE = 1e-6
"""Distance from 0 and 1 that certain pairs keep."""
LISTED = 1e-3
"""Pairs below this probability are not listed."""
CO_OCCURRENCE = 0.25
"""Probability of the pairs that co-occurrence alone picks out."""


class Posterior(PosteriorSettings, Attack):
    """The strongest attack; its parameters are those of `PosteriorSettings`."""

    name = "posterior"
    version = "9"
    uses = ("members", "centres", "eigenvalues", "eigenvectors")
    scenario = "weighs all evidence on every pair and gives it a probability: the strongest here"
    cost = "pairs in patches, times patch sizes"

    def reconstruct(
        self, seen: Observations, rng: np.random.Generator, progress: Progress = ignore
    ) -> Reconstruction:
        """Give every pair that shares a patch a probability."""
        return unsanitise(seen, posterior(read_values(seen), rng, self, progress))

    def costs(self, seen: Observations) -> Ints:
        """Count the pairs of the patches that fit into the budget."""
        seen = read_values(seen)
        variance = patch_noise(seen)
        seen = drop_isolated(seen, variance, _blur(seen, self) <= EXACT)
        which = readable(seen, variance, self.max_entries)[0]
        return np.where(np.isin(np.arange(seen.n_patches), which), super().costs(seen), 0)

    def for_part(self, entries: int) -> Attack:
        """Give a part its share of the budget, so that it reads the patches that the whole would read."""
        return self.model_copy(update={"max_entries": entries})


def posterior(
    seen: Observations, rng: np.random.Generator, settings: PosteriorSettings = DEFAULTS,
    progress: Progress = ignore,
) -> Reconstruction:
    """Give every pair that shares a patch the probability that it is an edge, and claim the likely ones."""
    if "eigenvectors" not in settings.channels:
        return _by_membership(seen, np.zeros(seen.n_patches, dtype=bool), rng, settings, progress)
    variance = patch_noise(seen)
    whole, blur, found = fill_in(seen, variance, _blur(seen, settings))
    empty = edgeless(whole, blur <= EXACT)
    seen = drop_isolated(whole, variance, blur <= EXACT)
    which, patches = readable(seen, variance, settings.max_entries)
    batches = stack(seen, which, variance, blur)
    scene, beliefs = survey(seen, whole, batches, variance, blur, found, rng, settings, progress)
    for name, stage in STAGES:
        if name in settings.stages and (len(which) or name == "rows"):  # which also reads what is over the budget
            beliefs = stage(scene, beliefs)
    beyond = beliefs.beyond
    if not len(which) and not len(beyond.keys):
        answer = _by_membership(whole, empty, rng, settings, progress)
        return replace(answer, diagnostics={**answer.diagnostics, "patches": patches})
    sigma = float(np.sqrt(np.median(variance[which if len(which) else seen.sizes > 1])))
    told = {"passed": []} | beliefs.told | {"patches": patches, "sigma": sigma}
    keys, probability = np.append(beliefs.keys, beyond.keys), np.append(beliefs.probability, beyond.probability)
    return _answer(whole, empty, keys, probability, told, missing=beyond.missing + unread_edges(scene, beliefs))


def _blur(seen: Observations, settings: PosteriorSettings) -> Floats:
    """Say how much the eigenvalues of each patch err, infinite where they are withheld or not to be used."""
    used = "eigenvalues" in settings.channels and seen.values is not None
    return np.full(seen.n_patches, value_noise(seen) if used else np.inf)


def _answer(
    seen: Observations, empty: Bools, keys: Ints, probability: Floats, told: dict[str, Any],
    calibrated: bool = True, missing: float = 0.0,
) -> Reconstruction:  # fmt: skip
    """List the pairs that are not negligible, and claim those above the best cut; none in `empty` patches."""
    if empty.any():
        without = members_only(seen, empty)
        pairs = unpair(keys, seen.n_nodes)
        probability = np.where(shared_pairs(seen.n_nodes, without.nodes, without.ptr, pairs)[1], SURE, probability)
    listed = probability >= LISTED
    judged, scores = unpair(keys[listed], seen.n_nodes), probability[listed]
    rest = float(probability[~listed].sum()) + missing
    cut, expected = best_expected_f1(scores, rest)
    claimed = scores >= cut
    told = told | {"cut": cut if np.isfinite(cut) else None, "expected": expected, "judged": len(keys),
                   "rest": rest, "unlisted": float(probability[~listed].mean()) if not listed.all() else 0.0}
    return Reconstruction(seen.n_nodes, judged[claimed], scores[claimed], np.unique(seen.nodes), judged, scores,
                          diagnostics=told, unlisted=told["unlisted"] if calibrated else None)  # fmt: skip


def _by_membership(
    whole: Observations, empty: Bools, rng: np.random.Generator, settings: PosteriorSettings, progress: Progress
) -> Reconstruction:
    """Answer from membership alone, or with nothing."""
    if "membership" not in settings.channels:
        return _answer(whole, empty, np.empty(0, np.int64), np.empty(0), {"rule": "none"})
    seen = members_only(whole, ~empty)
    centres = known_centres(seen)
    if seen.protocol.d == 2 and (centres >= 0).all() and len(np.unique(centres)) == len(centres):
        ball = ball_keys(seen, centres)
        keys = possible_pairs(ball, seen.n_nodes)
        drawn = draw_graphs(keys, ball, seen.n_nodes, rng, progress=progress)
        if drawn is not None:
            told = {"rule": "balls", "balls": drawn.agreement}
            return _answer(whole, empty, keys, np.clip(drawn.probability, SURE, 1.0 - SURE), told)
    found = membership(seen)
    keys = edge_keys(found.edges, seen.n_nodes)
    sure = found.diagnostics["rule"] != "co-occurrence"
    probability = np.full(len(keys), 1 - SURE if sure else CO_OCCURRENCE)
    return _answer(whole, empty, keys, probability, {"rule": found.diagnostics["rule"]}, calibrated=sure)
