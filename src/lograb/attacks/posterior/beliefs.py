"""What stages hand on: all pairs that are judged, what is believed of each, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from lograb.attacks.baselines.membership import closest
from lograb.attacks.posterior.batches import Batch
from lograb.attacks.posterior.degrees import Work
from lograb.attacks.posterior.halos import narrow
from lograb.attacks.posterior.rules import Ball, ball_keys, known_centres, star_keys, verdicts
from lograb.attacks.posterior.settings import PosteriorSettings
from lograb.attacks.posterior.withheld import Found
from lograb.pairs import pair_keys, unpair
from lograb.progress import Progress, ignore
from lograb.types import Bools, Floats, Ints, Observations

CERTAIN = 13.8
"""Log-odds of what membership decides: a millionth from 0 or 1."""
COMPANIONS = (2.0, 0.8)
"""Log-odds by which pairs that co-occur most are likelier edges: in balls, and in other patches."""
SOUND = 5.0
"""Log-odds by a check beyond which a pair is known."""


def log_odds_of(probability: Floats) -> Floats:
    """Log-odds, up to certainty."""
    return np.asarray(np.clip(logit(probability), -CERTAIN, CERTAIN))


class Status(IntEnum):
    """What the log-odds of a pair rest on."""

    OPEN = 0
    """Evidence, if any."""
    WEIGHED = 1
    """A patch that passed its check, or a solved row."""
    CERTAIN = 2
    """Membership."""


@dataclass(frozen=True)
class Beyond:
    """Patches beyond the budget whose rows were tried, pairs that may be edges, (n,), and edges still missing."""

    patches: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    keys: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    probability: Floats = field(default_factory=lambda: np.empty(0))
    missing: float = 0.0


@dataclass(frozen=True)
class Beliefs:
    """Of all pairs that are judged, each shape (m,).

    Attributes
    ----------
    keys : int64 array, u * n_nodes + w, increasing
    log_odds : float array
    status : int8 array of `Status`
    chance : float array
        Probability before any evidence but degrees and membership.
    own : float array
        For each pair in each patch: the part of its log-odds that comes from this patch.
    works : dict of Work
        Of each batch that was judged, by the start of its entries.
    beyond : Beyond
        What solved rows tell of patches beyond the budget.
    drawn : float array, shape (m,), or None
        Log-odds by what balls of radius 2 say, where graphs were drawn from them.
    told : dict
        What is told about the attack in the end.
    """

    keys: Ints
    log_odds: Floats
    status: npt.NDArray[np.int8]
    chance: Floats
    own: Floats
    works: dict[int, Work] = field(default_factory=dict)
    beyond: Beyond = field(default_factory=Beyond)
    drawn: Floats | None = None
    told: dict[str, Any] = field(default_factory=dict)

    @property
    def open(self) -> Bools:
        """Pairs on which nothing but evidence has been said."""
        return np.asarray(self.status == Status.OPEN)

    @property
    def known(self) -> npt.NDArray[np.int8]:
        """1 and -1 for pairs that are no question any more, else 0."""
        checked = (self.status == Status.WEIGHED) & (np.abs(self.log_odds) > SOUND)
        sure = (self.status == Status.CERTAIN) | checked
        return np.asarray(np.where(sure, np.sign(self.log_odds), 0), dtype=np.int8)

    @property
    def probability(self) -> Floats:
        """Of being an edge."""
        return np.asarray(expit(np.clip(self.log_odds, -CERTAIN, CERTAIN)))

    def settle(self, where: Bools, log_odds: Floats, status: Status) -> Beliefs:
        """Give some pairs new log-odds, those at `where` of (m,), and say what they rest on."""
        return replace(self, log_odds=np.where(where, log_odds, self.log_odds),
                       status=np.where(where, status, self.status).astype(np.int8))  # fmt: skip

    def tell(self, **facts: Any) -> Beliefs:
        """Add to what is told in the end."""
        return replace(self, told=self.told | facts)


@dataclass(frozen=True)
class Scene:
    """What all stages look at, and none of them changes.

    Attributes
    ----------
    seen : Observations
        Without isolated members.
    batches : list of Batch
        The patches that are read.
    variance, blur : float arrays, shape (n_patches,)
        σ² of embeddings, and the standard deviation of the eigenvalues' errors, infinite where they are unknown.
    found : dict of Found
        By patch: eigenvalues that follow from the eigenvectors, of some columns.
    centres : int64 array, shape (n_patches,), -1 for unknown
    entry : int32 array
        For each pair in each batch: its position in the keys.
    counts : int64 array, shape (m,)
        Patches read that contain the pair.
    lift : float array, shape (m,)
        By how much log-odds are raised because a pair co-occurs more than others.
    ball : Ball
    radius : int
        Of the balls; 0 where there are none.
    halos : bool
        Whether patches are clusters with halos of one step, and narrow.
    rng : Generator
    settings : PosteriorSettings
    progress : Progress
    """

    seen: Observations
    batches: list[Batch]
    variance: Floats
    blur: Floats
    found: dict[int, Found]
    centres: Ints
    entry: npt.NDArray[np.int32]
    counts: Ints
    lift: Floats
    ball: Ball
    radius: int
    halos: bool
    rng: np.random.Generator
    settings: PosteriorSettings
    progress: Progress = ignore

    @property
    def checked(self) -> list[Batch]:
        """Batches whose eigenvalues are a checksum."""
        return [batch for batch in self.batches if batch.exact]

    def places(self, batch: Batch) -> npt.NDArray[np.int32]:
        """Where the pairs of each patch of a batch stand in the keys, shape (b, pairs)."""
        return self.entry[batch.entries].reshape(len(batch.which), -1)


def survey(
    seen: Observations, whole: Observations, batches: list[Batch], variance: Floats, blur: Floats,
    found: dict[int, Found], rng: np.random.Generator, settings: PosteriorSettings, progress: Progress = ignore,
) -> tuple[Scene, Beliefs]:  # fmt: skip
    """Number the pairs of all batches, and let membership decide what it can; `whole` is what came."""
    n, use_members = whole.n_nodes, "membership" in settings.channels
    centres = known_centres(whole) if use_members else np.full(whole.n_patches, -1, dtype=np.int64)
    ball = ball_keys(whole, centres)
    radius = whole.protocol.d if len(ball) else 0
    inside = [pair_keys(batch.members, n)[0].ravel() for batch in batches]
    stars = star_keys(ball, n) if radius == 1 else np.empty(0, np.int64)
    keys, places = np.unique(np.concatenate([*inside, stars]), return_inverse=True)
    entry = places[: len(places) - len(stars)].astype(np.int32)
    counts = np.bincount(entry, minlength=len(keys))
    pairs = unpair(keys, n)
    verdict, lift = verdicts(pairs, ball, centres, n, radius), np.zeros(len(keys))
    halos = use_members and narrow(whole, np.concatenate([batch.which for batch in batches] or [centres[:0]]))
    if use_members and radius != 1 and not halos:
        members = [batch.members.ravel() for batch in batches]
        occurrences = np.bincount(np.concatenate([*members, ball[:0]]), minlength=n)
        lift[closest(pairs, counts, occurrences)[1]] = COMPANIONS[0 if radius else 1]
    scene = Scene(seen, batches, variance, blur, found, centres, entry, counts, lift, ball, radius, halos, rng,
                  settings, progress)  # fmt: skip
    status = np.where(verdict == 0, Status.OPEN, Status.CERTAIN).astype(np.int8)
    return scene, Beliefs(keys, CERTAIN * verdict.astype(float), status, np.zeros(len(keys)), np.zeros(len(entry)))
