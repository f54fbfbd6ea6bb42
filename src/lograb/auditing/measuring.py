"""One setting: attack what would be shared, and measure what that leaks, guarantees and is good for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lograb.auditing.readable import Reading, estimated_interval, guess, read
from lograb.auditing.scale import loose_pairs
from lograb.auditing.usefulness import measure_use
from lograb.defences import as_defences
from lograb.defences.accounting import FALSE_RATE, NOTHING
from lograb.errors import LograbError
from lograb.instance import Instance
from lograb.metrics.intervals import share_interval
from lograb.pairs import edge_keys, shared_pairs
from lograb.progress import Progress
from lograb.tasks import attack, evaluate
from lograb.tasks.privacy import bound, ledger
from lograb.types import Bools, Floats, Ints, Observations, Reconstruction

BOUND_EFFORT = 5e8
"""How much work the bound of a setting may take; beyond it, edges are sampled."""
MEMBERSHIP, OURS = "membership", "posterior"
"""The attack that reads no embedding, and the one whose scores are probabilities."""

HALF = 0.5
"""Share of right claims at which nothing is sure any more."""
MOST_LOOSE = 0.05
"""Share of the edges up to which pairs that may have any probability leave the scale known."""
GUESSED = ("guessed", "guesses", "guessed_share")
EXPOSURE = ("readable", "claims", "share", "share_interval", "scale_known", "share_half", *GUESSED,
            "by_membership", "attack", "sure")
NUMBERS = (*EXPOSURE, "draws", "f1", "f1_by", "f1_interval", "precision", "recall", "floor", "floor_by",
           "ceiling", "expected_f1", "measured_f1", "expected_share", "expected_precision", "bound", "utility",
           "guarantee", "epsilon", "heuristic")
"""All that is measured of a setting."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the attacks said about one setting, pair by pair; only pairs that share a patch.

    Attributes
    ----------
    answers : by attack, its answer, with pairs that share no patch left out of the ranking
    readings : by attack, what it reads
    half : by attack, what it reads if half of its claims need to be right only
    guesses : by attack, what it knows without being sure
    total : true edges in patches; expected, where there is no truth
    truth : keys of these edges; None without truth
    chances : keys and probabilities of the pairs that posterior lists
    unlisted : the probability of a pair that is not listed
    calibrated : whether these are probabilities at all
    loose : of the pairs that posterior lists, those of which nothing tells how many are edges (`scale`); none with
        the truth
    """

    answers: Mapping[str, Reconstruction]
    readings: Mapping[str, Reading]
    half: Mapping[str, Reading]
    guesses: Mapping[str, Reading]
    total: float
    truth: Ints | None
    chances: tuple[Ints, Floats]
    unlisted: float
    calibrated: bool
    loose: Bools

    def chance(self, keys: Ints) -> Floats:
        """Give what posterior says of some pairs."""
        known, chances = self.chances
        if not len(known):
            return np.full(len(keys), self.unlisted)
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return np.where(known[at] == keys, chances[at], self.unlisted)

    def weight(self, keys: Ints) -> Floats:
        """Say of some pairs whether they are edges, or how probable that is where there is no truth."""
        return self.chance(keys) if self.truth is None else np.isin(keys, self.truth).astype(float)

    @property
    def claimed(self) -> Bools:
        """Tell which of the pairs that posterior lists it claims."""
        cut = self.answers[OURS].scores.min(initial=np.inf)
        return np.asarray(self.chances[1] >= min(cut, 1.0))

    @property
    def loose_edges(self) -> float:
        """Count the edges whose number nothing tells: as many as expected, or as claimed if these are more."""
        expected = float(self.chances[1][self.loose].sum())
        return max(expected, float((self.loose & self.claimed).sum()))

    @property
    def scale_known(self) -> bool:
        """Whether something tells how many edges there are, of nearly all."""
        firm = self.total - float(self.chances[1][self.loose].sum())
        return self.loose_edges <= MOST_LOOSE * (firm + self.loose_edges)

    @property
    def best(self) -> str:
        """The attack that reads most; of equals the one whose scores are probabilities."""
        return max(self.readings, key=lambda name: (self.readings[name].right, name == OURS))


def gather(instance: Instance, attacks: Mapping[str, Any], confidence: float, tell: Progress) -> Evidence:
    """Run attacks, posterior first among them, and see what each reads."""
    n, seen = max(instance.n_nodes, 1), instance.observations
    answers: dict[str, Reconstruction] = {}
    for name, attacker in attacks.items():
        try:
            answers[name] = attack(instance, attacker, progress=lambda stage, *_: tell(stage, 0, None))
        except LograbError:
            if name in (OURS, MEMBERSHIP):
                raise  # the others need what is not always shared
    ranked = {}
    for name, answer in answers.items():
        pairs, scores = answer.ranked
        n_pairs, shared = shared_pairs(n, seen.nodes, seen.ptr, pairs)
        ranked[name] = edge_keys(pairs[shared], n), scores[shared]
    keys, chances = ranked[OURS]
    order = np.argsort(keys)
    known = keys[order], np.clip(chances[order], 0.0, 1.0)
    unlisted = answers[OURS].unlisted
    truth = edge_keys(instance.truth.edges[instance.co_observed], n) if instance.has_truth else None
    total = float(len(truth)) if truth is not None else expected_edges(known[1], unlisted or 0.0, n_pairs)
    loose = np.zeros(len(keys), dtype=bool)
    if truth is None:
        loose = loose_pairs(seen, answers[OURS], edge_keys(answers[MEMBERSHIP].edges, n), known)
    evidence = Evidence(answers, {}, {}, {}, total, truth, known, unlisted or 0.0, unlisted is not None, loose)
    weights = {name: evidence.weight(keys) for name, (keys, _) in ranked.items()}
    readings, half = ({name: read(scores, weights[name], least) for name, (_, scores) in ranked.items()}
                      for least in (confidence, HALF))  # fmt: skip
    guesses = {name: guess(scores, weights[name]) for name, (_, scores) in ranked.items()}
    return replace(evidence, readings=readings, half=half, guesses=guesses)


def expected_edges(chances: Floats, unlisted: float, n_pairs: int) -> float:
    """Add up what posterior expects: the one place that reads its probabilities as a number of edges."""
    return float(chances.sum()) + unlisted * max(n_pairs - len(chances), 0)


def measure(
    instance: Instance, evidence: Evidence, *, confidence: float, scope: float | None, exact: Observations
) -> dict[str, Any]:
    """Put one setting into numbers; `scope` as for `exposure_of`, `exact` as for `measure_use`."""
    told = exposure_of(instance, evidence, confidence, scope)
    return (told | {"draws": [told["share"]]} | _scores(instance, evidence)
            | expected(instance, evidence, confidence) | _guarantee(instance)
            | {"bound": _bound(instance), "utility": measure_use(instance, exact)})  # fmt: skip


def exposure_of(
    instance: Instance, evidence: Evidence, confidence: float, scope: float | None
) -> dict[str, Any]:
    """Say how much is read; `scope` is the number of edges that the plan's patches contain."""
    renamed = any(one.renames for one in as_defences(instance.spec.defences))
    total = evidence.total if renamed or scope is None else max(scope, evidence.total)
    best, reading = evidence.best, evidence.readings[evidence.best]
    guessed = max(evidence.guesses.values(), key=lambda one: one.right)
    return {
        "readable": round(reading.right),
        "claims": reading.claims,
        "share": _share(reading.right, total),
        "share_interval": _interval(evidence, total, confidence),
        "scale_known": evidence.scale_known,
        "share_half": _share(max(one.right for one in evidence.half.values()), total),
        "guessed": round(guessed.right),
        "guesses": guessed.claims,
        "guessed_share": _share(guessed.right, total),
        "by_membership": _share(evidence.readings[MEMBERSHIP].right, total),
        "attack": best,
        "sure": reading.precision,
    }


def _share(right: float, total: float) -> float:
    return min(right / total, 1.0) if total > 0 else 0.0


def _interval(evidence: Evidence, total: float, confidence: float) -> list[float]:
    """Enclose the share: by chance with the truth, by the attack's doubts without it."""
    reading = evidence.readings[evidence.best]
    if evidence.truth is not None:
        return list(share_interval(min(reading.right, total), total))
    if not evidence.calibrated:
        return [0.0, 1.0]
    _, chances = evidence.chances
    low, high = estimated_interval(chances, total, confidence, evidence.loose, evidence.claimed)
    share = _share(reading.right, total)
    return [min(low, share), max(high, share)]


def _scores(instance: Instance, evidence: Evidence) -> dict[str, Any]:
    """Score the attack whose F1 is highest: what is nine tenths right may be read by none, and all but known."""
    if not instance.has_truth:
        return dict.fromkeys(("f1", "f1_by", "f1_interval", "precision", "recall", "floor", "floor_by", "ceiling"))
    scores = {name: evaluate(instance, answer) for name, answer in evidence.answers.items()}
    best = max(scores, key=lambda name: (scores[name].f1, name == OURS))
    score = scores[best]
    return {"f1": score.f1, "f1_by": best, "f1_interval": list(score.interval or ()) or None,
            "precision": score.precision, "recall": score.recall, "floor": score.floor,
            "floor_by": score["floor_by"], "ceiling": score.ceiling}  # fmt: skip


def expected(instance: Instance, evidence: Evidence, confidence: float) -> dict[str, Any]:
    """Say what posterior expects of itself without the truth, and what its F1 is: both of pairs in patches."""
    promised = evidence.answers[OURS].diagnostics.get("expected") or {}
    if not evidence.calibrated:
        return dict.fromkeys(("expected_f1", "measured_f1", "expected_share", "expected_precision"))
    _, chances = evidence.chances
    reading = read(chances, chances, confidence)
    total = expected_edges(chances, 0.0, 0)
    return {"expected_f1": promised.get("f1"), "measured_f1": _measured_f1(instance, evidence),
            "expected_share": _share(reading.right, total),
            "expected_precision": reading.precision}  # fmt: skip


def _measured_f1(instance: Instance, evidence: Evidence) -> float | None:
    if evidence.truth is None:
        return None
    claims = edge_keys(evidence.answers[OURS].edges, max(instance.n_nodes, 1))
    return 2.0 * int(np.isin(claims, evidence.truth).sum()) / max(len(claims) + len(evidence.truth), 1)


def _guarantee(instance: Instance) -> dict[str, Any]:
    """Say what is guaranteed; an ε that rules out nothing is no guarantee."""
    told = ledger(instance)
    edge = told["units"]["edge"]
    if told["whole"] == "none":
        return {"guarantee": "none", "epsilon": None, "heuristic": True}
    epsilon = {unit: _finite(told["units"][unit]["epsilon"]) for unit in ("edge", "node")}
    public = ", if membership is public" if told["whole"] == "conditional" else ""
    if edge["tpr"] > NOTHING:
        said = f"none: for the edge that fares worst ε is so large that it rules out nothing{public}"
        return {"guarantee": said, "epsilon": epsilon, "heuristic": True}
    kind = "ε-DP per edge" if edge["mu"] is None else "(ε, δ)-DP per edge"
    return {"guarantee": kind + public, "epsilon": epsilon, "heuristic": False}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _bound(instance: Instance) -> dict[str, Any] | None:
    """Say what nobody can exceed, at a false-positive rate of 0.1 %."""
    if not instance.has_truth or instance.key is not None:
        return None
    told, _ = bound(instance, effort=BOUND_EFFORT)
    row = next((row for row in told["curve"] if row["fpr"] == FALSE_RATE), None)
    if row is None:
        return None
    return {"tpr_median": row["median"], "tpr_largest": row["largest"],
            "infinite_share": told["infinite"] / max(told["looked_at"], 1), "sentence": told["sentence"]}
