"""Task 3: which edges run between fragments? (§4.4.3)

All true edges between fragments, and as many pairs that are none, are put in order by a method that has
seen no edge between them. The area under the ROC curve comes with an interval, because there
are often few such edges, and beside a floor: the best of the methods that learn nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from lograb.errors import unknown_name
from lograb.instance import Instance
from lograb.learning.links.catalog import LINKS, find_link_method
from lograb.metrics.intervals import auroc_interval
from lograb.metrics.ranking import Ranking
from lograb.progress import Progress, ignore
from lograb.score import Score
from lograb.tasks.fragments import Halo, Negatives, Questions, ask
from lograb.tasks.node_classification import check_counts
from lograb.types import Floats, Ints

BLIND = ("By construction {method} cannot tell here which nodes belong together: in what it reads no path runs "
         "between fragments. An AUROC other than 0.5 is chance, or shows how many neighbours each node has.")


@dataclass(frozen=True, eq=False)
class LinkRun:
    """One method's scores on one draw of negatives.

    Attributes
    ----------
    positives, negatives : int64 arrays, shape (m, 2) and (n, 2)
    scores : float array, shape (m + n,), the positives' first
    """

    positives: Ints
    negatives: Ints
    scores: Floats

    @property
    def ranking(self) -> Ranking:
        """The order of the pairs."""
        true = np.arange(len(self.scores)) < len(self.positives)
        return Ranking.of(self.scores, true, len(self.positives), len(self.scores))


def predict_links(
    instance: Instance,
    method: str,
    repeats: int = 1,
    seed: int = 0,
    settings: dict[str, Any] | None = None,
    *,
    halo: Halo = "drop",
    negatives: Negatives = "uniform",
    progress: Progress = ignore,
) -> Score:
    """Train and score one method on the edges between the fragments of an instance.

    Parameters
    ----------
    instance : Instance
        With its truth.
    method : str
        See `lograb.learning.links.catalog`.
    repeats : int
        Draws of negatives, each with a training of its own. The positives are the same every time, and the
        interval knows it.
    seed : int
    settings : dict, optional
        Overrides some of the method's settings.
    halo : {"drop", "keep"}
        For clusters: see `lograb.tasks.fragments`.
    negatives : {"uniform", "possible"}
        See `Questions.negatives`.

    Returns
    -------
    Score
        With ``status`` "ok", or "not applicable" and its ``reason``; then all numbers are None. ``notice`` says
        where the method cannot relate nodes of different fragments by construction, and is None elsewhere.
    """
    check_counts(repeats, seed)
    check_choices(method, settings, halo, negatives)
    questions = ask(instance, halo, seed)
    told: dict[str, Any] = {"method": method, "seed": seed, "repeats": repeats, "halo": halo,
                            "negatives_from": negatives, **describe(questions)}  # fmt: skip
    reason = questions.reason
    if reason is None and not len(questions.negatives(np.random.default_rng(seed), negatives)):
        reason = "every pair between fragments is an edge: there is nothing to tell them from"
    if reason is not None:
        nothing = summarise([]) | floors({}) | {"seconds": 0.0, "notice": None}
        return Score("links", told | {"status": "not applicable", "reason": reason} | nothing)
    blind = find_link_method(method).is_blind(questions.known, settings)
    told["notice"] = BLIND.format(method=method) if blind else None
    start = time.perf_counter()
    runs = run_method(questions, method, repeats, seed, settings, negatives, progress)
    seconds = time.perf_counter() - start
    trivial = {
        name: run_method(questions, name, repeats, seed, None, negatives) for name in trivial_methods(questions)
    }
    found = summarise(runs) | floors(trivial) | {"seconds": seconds}
    raw = {f"{i}/{what}": getattr(run, what) for i, run in enumerate(runs)
           for what in ("positives", "negatives", "scores")}  # fmt: skip
    return Score("links", told | {"status": "ok", "reason": None} | found, raw=raw)


def check_choices(method: str, settings: dict[str, Any] | None, halo: str, negatives: str) -> None:
    """Check names, settings and that torch is there where it is needed, before any work."""
    find_link_method(method).choose(settings)
    for kind, given, choices in (("halo", halo, Halo), ("kind of negatives", negatives, Negatives)):
        if given not in get_args(choices):
            raise unknown_name(kind, given, get_args(choices))


def trivial_methods(questions: Questions) -> list[str]:
    """Name the methods that learn nothing and have what they need."""
    features = questions.known.patches.n_features
    return [name for name, item in LINKS.items() if item.trivial and (features or name != "features")]


def describe(questions: Questions) -> dict[str, Any]:
    """Count fragments, questions and known edges."""
    known = questions.known
    sizes = np.bincount(known.fragment[known.fragment >= 0], minlength=1)
    return {
        "positives": len(questions.positives),
        "fragments": questions.n_fragments,
        "largest_fragment": int(sizes.max()),
        "known_edges": len(known.edges),
    }


def run_method(
    questions: Questions,
    method: str,
    repeats: int = 1,
    seed: int = 0,
    settings: dict[str, Any] | None = None,
    negatives: Negatives = "uniform",
    progress: Progress = ignore,
) -> list[LinkRun]:
    """Score the questions once for each draw of negatives; the draws depend on the seed alone."""
    runs = []
    for repeat in range(repeats):
        streams = np.random.SeedSequence(seed, spawn_key=(repeat,)).spawn(2)
        draws, learns = (np.random.default_rng(stream) for stream in streams)
        others = questions.negatives(draws, negatives)
        pairs = np.concatenate([questions.positives, others])
        scores = find_link_method(method).score(questions.known, pairs, learns, settings, progress)
        runs.append(LinkRun(questions.positives, others, scores))
    return runs


def summarise(runs: Sequence[LinkRun]) -> dict[str, Any]:
    """Pool runs, of one instance or of several of one graph.

    Scores of different trainings do not compare, so the areas of the runs are averaged, by their numbers of
    positives. The interval counts every pair once, however often it was asked.
    """
    counted = [run for run in runs if len(run.positives) and len(run.negatives)]
    if not counted:
        return {"auroc": None, "interval": None, "average_precision": None, "aurocs": [], "negatives": 0,
                "distinct_scores": None}  # fmt: skip
    weights = [len(run.positives) for run in counted]
    areas = [run.ranking.auroc() for run in counted]
    auroc = float(np.average(areas, weights=weights))
    precision = float(np.average([run.ranking.average_precision() for run in counted], weights=weights))
    m, n = (len(np.unique(np.concatenate([getattr(run, kind) for run in counted]), axis=0))
            for kind in ("positives", "negatives"))  # fmt: skip
    return {
        "auroc": auroc,
        "interval": list(auroc_interval(auroc, m, n)),
        "average_precision": precision,
        "aurocs": areas,
        "negatives": n,
        "distinct_scores": min(len(np.unique(run.scores)) for run in counted),
    }


def floors(trivial: dict[str, list[LinkRun]]) -> dict[str, Any]:
    """Give the area of each method that learns nothing, and the best of them."""
    areas = {name: summarise(runs)["auroc"] for name, runs in trivial.items()}
    return {"floor": max(areas.values(), default=None), "floors": areas}
