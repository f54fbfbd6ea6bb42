"""The audit itself: the plan, then every other point of the grid, then what follows from all of them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lograb import __version__
from lograb.attacks import ATTACKS
from lograb.attacks.posterior import Posterior
from lograb.attacks.posterior.settings import Channel
from lograb.auditing.exposure import certificates, expose, list_exposed
from lograb.auditing.findings import Audit, assemble, versions
from lograb.auditing.grid import PLAN, Setting, grid
from lograb.auditing.measuring import (
    EXPOSURE,
    GUESSED,
    MEMBERSHIP,
    NUMBERS,
    OURS,
    Evidence,
    exposure_of,
    gather,
    measure,
)
from lograb.auditing.points import Points
from lograb.auditing.policy import Policy, make_policy, read_policy, recommend, tolerated
from lograb.auditing.sketch import sketch
from lograb.auditing.subject import Subject, find_subject
from lograb.auditing.wording import CHANNELS, IN_VECTORS
from lograb.errors import LograbError
from lograb.experiments.runs import digest
from lograb.progress import Progress, ignore
from lograb.spec import checked
from lograb.tasks import evaluate
from lograb.tasks.privacy import ledger

VERSION = "6"
"""Of what is kept of a point: it changes whenever a point of the same inputs does."""
QUICK, THOROUGH = (OURS, MEMBERSHIP), (OURS, MEMBERSHIP, "afr")
ALONE: dict[str, tuple[Channel, ...]] = {"eigenvectors": ("eigenvectors",),
                                         "eigenvalues": ("eigenvectors", "eigenvalues")}  # fmt: skip
"""The channels that posterior gets, to see what each gives away; eigenvalues by themselves name no pair."""
SAME = 0.99
"""Part of what is read with the eigenvalues from which on the eigenvectors by themselves read as much."""
DRAWS = 5
"""Of the noise, for the setting that is recommended."""
GUARANTEES = {"none": "no guarantee", "formal": "formal", "public": "public", "-": "-"}


def audit(
    source: Any,
    *,
    scenario: str | None = None,
    patches: Any = None,
    patches_by: str | None = None,
    d: int | None = None,
    k: int | None = None,
    sigma: float | None = None,
    defences: Any = (),
    releases: int = 1,
    tolerate: float | None = None,
    policy: str | Path | Mapping[str, Any] | None = None,
    quick: bool = False,
    seed: int = 0,
    graph: int | None = None,
    header: bool | None = None,
    store: str | Path | None = None,
    command: str | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Say what would be learned from what is about to be shared, who is exposed, and what would be enough.

    Parameters
    ----------
    source : a graph in any form that `lograb.generate` takes; an instance or its file, with or without truth;
        `Observations`, or a file or folder with embeddings as ``lograb pack`` takes it
    scenario : for a graph: ego (every member shares its neighbourhood), silos (each group shares one embedding of
        its own) or global (one embedding of everything); by default ego, or silos where groups are given
    patches, patches_by : the groups of silos, as for `lograb.generate`; METIS finds some by default
    d : for ego: the radius, 1 by default; for silos found by METIS: that of the halo, 0 by default
    k, sigma, defences, releases : what is planned, as for `lograb.generate`: 32 eigenvectors without noise
    tolerate : the share of the edges that may be read with 90 % confidence; 0.1 by default
    policy : instead: a TOML file or a dict with tolerate, confidence, require_guarantee, max_epsilon, allow
    quick : try a handful of settings by two attacks, instead of some thirty by three
    seed : all randomness follows from it
    graph : which graph of a source that holds many
    header : for an edge list: whether its first line is a header
    store : a folder that keeps every finished point; what it has is not measured again
    command : how to repeat this, for the report
    progress : called with what is being done, how many settings are done and how many there are

    Examples
    --------
    >>> import lograb
    >>> found = lograb.audit("karate", scenario="silos", quick=True)
    >>> found.findings["answer"]["level"]
    'exposed'
    """
    start = time.perf_counter()
    rules = _policy(tolerate, policy)
    subject = find_subject(source, scenario, patches=patches, patches_by=patches_by, d=d, k=k, sigma=sigma,
                           defences=defences, releases=releases, seed=seed, graph=graph,
                           header=header)  # fmt: skip
    auditor = Auditor(subject, rules, Points(store), quick, progress or ignore)
    settings, details = auditor.run()
    told = None if policy is None else "given" if isinstance(policy, Mapping) else Path(policy).name
    run = {"command": command or "", "seed": seed, "seconds": round(time.perf_counter() - start, 2),
           "hash": auditor.hash, "versions": versions(), "attacks": list(auditor.attacks), "quick": quick,
           "store": None if store is None else str(store), "policy": told}  # fmt: skip
    return Audit(assemble(subject, rules, settings, details, run), [tuple(row) for row in details["pairs"]])


def _policy(tolerate: float | None, policy: str | Path | Mapping[str, Any] | None) -> Policy:
    if policy is None:
        return checked(Policy, {} if tolerate is None else {"tolerate": tolerate})
    if tolerate is not None:
        raise LograbError("a policy says what is tolerated: leave tolerate (--tolerate) out")
    return make_policy(policy) if isinstance(policy, Mapping) else read_policy(policy)


class Auditor:
    """Measures the points of one audit that the store lacks."""

    def __init__(self, subject: Subject, policy: Policy, points: Points, quick: bool, tell: Progress) -> None:
        self.subject, self.policy, self.points, self.quick, self.tell = subject, policy, points, quick, tell
        self.attacks = {name: ATTACKS[name]() for name in (QUICK if quick else THOROUGH)}
        self.hash = subject.hash
        self.scope: float | None = None

    def run(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Measure all points, the plan first; give the settings, and the details of the plan."""
        settings = grid(self.subject.plan.observations, of_graph=self.subject.graph is not None, quick=self.quick)
        found: list[dict[str, Any]] = []
        details: dict[str, Any] = {}
        for number, setting in enumerate(settings):
            self.tell(setting.label, number, len(settings))
            key = self._key(setting)
            point = self.points.get(key)
            if point is None:
                point = self._measure(setting, partial(self._stage, setting.label, number, len(settings)))
                self.points.put(key, point)
            if setting is PLAN:
                details = point["details"]
                self.scope = details["total"]
            found.append(point["setting"])
        lifted = _lift(settings, found, counted=self.subject.plan.has_truth)
        rows = self._confirm(settings, [self._doubted(row) for row in lifted])
        self.tell("done", len(settings), len(settings))
        return rows, details

    def _doubted(self, row: dict[str, Any]) -> dict[str, Any]:
        """Call the scale of an estimate unknown that reads more edges than the plan is expected to have."""
        if self.subject.plan.has_truth or row["status"] != "done":
            return row
        if row["readable"] <= max(round(self.scope or 0.0), 1):
            return row
        return row | {"scale_known": False, "share_interval": [0.0, 1.0]}

    def _confirm(self, settings: list[Setting], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Judge all settings; draw the one that would be recommended again, until one keeps to the limit.

        What is shared in the end has other noise than what was measured, and of many settings the luckiest draw
        looks best.
        """
        estimated = not self.subject.plan.has_truth
        while True:
            rows = [row | {"tolerated": tolerated(row, self.policy, estimated=estimated)} for row in rows]
            chosen = recommend(rows, self.policy)
            if chosen is None or len(chosen["draws"]) > 1:
                return rows
            place = rows.index(chosen)
            if not self.subject.draws_noise(chosen["group"]):
                return rows
            rows[place] = self._redrawn(settings[place], chosen, len(settings))

    def _redrawn(self, setting: Setting, row: dict[str, Any], of: int) -> dict[str, Any]:
        """Measure more draws of a setting: the worst one counts, in an interval that encloses all."""
        found = [{name: row[name] for name in EXPOSURE}]
        for draw in range(1, DRAWS):
            self.tell(f"{setting.label}: draw {draw + 1} of {DRAWS}", of, of)
            key = self._key(setting, draw)
            point = self.points.get(key)
            if point is None:
                instance = self.subject.make(setting, draw)
                evidence = gather(instance, self.attacks, self.policy.confidence, ignore)
                point = exposure_of(instance, evidence, self.policy.confidence, self.scope)
                self.points.put(key, point)
            found.append(point)
        worst = max(found, key=lambda one: one["share"])
        low, high = zip(*(one["share_interval"] for one in found))
        known = all(one["scale_known"] for one in found)
        return row | worst | _guessed(found) | {"scale_known": known, "draws": [one["share"] for one in found],
                                                "share_interval": [min(low), max(high)]}  # fmt: skip

    def _stage(self, label: str, done: int, of: int, stage: str, *_: Any) -> None:
        self.tell(f"{label}: {stage}", done, of)

    def _key(self, setting: Setting, draw: int = 0) -> str:
        return digest({"audit": VERSION, "lograb": __version__, "hash": self.hash, "setting": setting.id,
                       "change": [setting.parameters, list(setting.defences or ())], "seed": self.subject.seed,
                       "draw": draw, "releases": self.subject.releases, "confidence": self.policy.confidence,
                       "attacks": {name: one.version for name, one in self.attacks.items()}})  # fmt: skip

    def _measure(self, setting: Setting, tell: Progress) -> dict[str, Any]:
        """Measure one point; what cannot be done is told with its reason."""
        start = time.perf_counter()
        row: dict[str, Any] = {"id": setting.id, "group": setting.group, "label": setting.label, "x": setting.x,
                               "change": setting.change(self.subject.graph is not None), "status": "done",
                               "reason": ""}  # fmt: skip
        details = None
        try:
            instance = self.subject.make(setting)
            evidence = gather(instance, self.attacks, self.policy.confidence, tell)
            tell("measuring", 0, None)
            row |= measure(instance, evidence, confidence=self.policy.confidence, scope=self.scope,
                           exact=self.subject.exact)  # fmt: skip
            if setting is PLAN:
                details = self._details(evidence, tell)
        except (LograbError, np.linalg.LinAlgError) as error:
            if setting is PLAN:
                raise
            status = "not-applicable" if isinstance(error, LograbError) else "failed"
            row |= dict.fromkeys(NUMBERS) | {"status": status, "reason": str(error)}
        row["seconds"] = round(time.perf_counter() - start, 3)
        return {"setting": row, "details": details}

    def _details(self, evidence: Evidence, tell: Progress) -> dict[str, Any]:
        """Say who is exposed by the plan, through what, and what proves it."""
        tell("who is exposed", 0, None)
        subject = self.subject
        found = expose(subject, evidence)
        exposed = list_exposed(subject, evidence, found)
        names, true = subject.node_names, found.true
        pairs = [[names[u], names[w], chance, None if true is None else bool(true[i]), bool(found.read[i]),
                  "membership" if found.by_membership[i] else "embedding"]
                 for i, ((u, w), chance) in enumerate(zip(found.pairs.tolist(), found.chances.tolist()))]
        told = ledger(subject.plan)
        return {
            "total": evidence.total,
            "exposed": exposed,
            "drawing": sketch(subject, evidence, found, exposed["nodes"]),
            "certificates": certificates(subject, evidence),
            "channels": self._channels(evidence, tell),
            "ledger": {"sentence": told["sentence"], "channels": [
                {"name": line["channel"], "guarantee": GUARANTEES[line["guarantee"]],
                 "mechanism": line["mechanism"]} for line in told["channels"]]},
            "pairs": pairs,
        }  # fmt: skip

    def _channels(self, evidence: Evidence, tell: Progress) -> list[dict[str, Any]]:
        """See what each channel gives away."""
        subject = self.subject
        rows: list[dict[str, Any]] = []
        for name, (label, protect) in CHANNELS.items():
            tell(f"channel {name}", 0, None)
            if name in ALONE:
                if name == "eigenvalues" and subject.plan.observations.values is None:
                    continue
                alone = {OURS: Posterior(channels=ALONE[name]), MEMBERSHIP: self.attacks[MEMBERSHIP]}
                part = gather(subject.plan, alone, self.policy.confidence, tell)
                by = OURS
            else:
                part, by = evidence, MEMBERSHIP if name == MEMBERSHIP else evidence.best
            row = {"name": name, "label": label, "protect": protect} | _channel(subject, part, by, evidence)
            if name == "eigenvalues" and row["share"] and rows[-1]["share"] >= SAME * row["share"]:
                row["protect"] = IN_VECTORS
            rows.append(row)
        return rows


def _channel(subject: Subject, part: Evidence, by: str, whole: Evidence) -> dict[str, Any]:
    reading, total = part.readings[by], max(whole.total, 1.0)
    score = evaluate(subject.plan, part.answers[by]) if subject.plan.has_truth else None
    return {"readable": round(reading.right), "share": min(reading.right / total, 1.0),
            "precision": reading.precision, "f1": None if score is None else score.f1,
            "f1_interval": None if score is None else list(score.interval or ())}  # fmt: skip


def _guessed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Take what is known without being sure from where that is most."""
    most = max(rows, key=lambda one: one["guessed_share"])
    return {name: most[name] for name in GUESSED} | {"share_half": max(one["share_half"] for one in rows)}


def _lift(
    settings: list[Setting], found: list[dict[str, Any]], *, counted: bool
) -> list[dict[str, Any]]:
    """Give each setting the most that is read from anything its recipient could make of it.

    Who gets exact columns can add noise or round them: an attack that reads more from what was spoilt reads as
    much from what was not. Estimates whose scale is unknown say nothing about others, and either end of an
    interval is as high as the highest.
    """
    lifted = []
    for setting, row in zip(settings, found):
        if row["status"] != "done":
            lifted.append(row | {"lifted": None})
            continue
        weaker = [other for one, other in zip(settings, found)
                  if other["status"] == "done" and other is not row and setting.tells_more_than(one)
                  and (counted or other["scale_known"])]  # fmt: skip
        row = row | _guessed([row, *weaker])
        if not counted:
            low, high = zip(*(one["share_interval"] for one in [row, *weaker]))
            row |= {"share_interval": [max(low), max(high)]}
        best = max([row, *weaker], key=lambda one: one["share"])
        if best["share"] <= row["share"] + 1e-9:
            lifted.append(row | {"lifted": None})
            continue
        taken = {name: best[name] for name in ("readable", "claims", "share", "sure")}
        taken |= {"share_interval": best["share_interval"]} if counted else {}
        taken |= {"draws": [best["share"]], "attack": f"{best['attack']}, as on '{best['label']}'"}
        lifted.append(row | taken | {"lifted": best["id"]})
    return lifted
