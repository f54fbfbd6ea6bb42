"""Task 1: rebuild the graph (§4.4.1).

Here, and only here, truth and estimate meet. Every score stands between its *floor*, the best that
an attacker without spectral skill achieves on the same instance (claiming every pair that shares a patch
included), and its *ceiling*: the F1 of claiming exactly the true edges that some patch contains, since nobody
can see the others.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lograb.attacks import ATTACKS, find_attack
from lograb.errors import LograbError
from lograb.instance import Instance
from lograb.metrics import EdgeCounts, Ranking, bootstrap_interval, count_edges
from lograb.pairs import edge_keys, shared_pairs
from lograb.theory.cohesion import boundary_ratio, cohesion_recall_interval, island_cohesion
from lograb.theory.recoverability import relative_error
from lograb.types import Ints, Reconstruction

FALSE_RATE, RECALL = 1e-3, 0.5


def run_attack(
    instance: Instance,
    name: str,
    seed: int = 0,
    settings: dict[str, Any] | None = None,
    features: bool = False,
    stream: tuple[int, ...] = (),
) -> tuple[Reconstruction, float]:
    """Let one attack loose on the observations of a single graph; returns its answer, and the seconds it took.

    With ``features=True`` the eavesdropper also has the features of the observed nodes. Different streams of one
    seed are independent.
    """
    if seed < 0:
        raise LograbError(f"a seed must be a number from 0 on, got {seed}")
    attack = find_attack(name)
    if features and "features" not in attack.channels + attack.optional:
        raise LograbError(f"the attack '{name}' does not use features")
    observations = instance.observe(features=features or "features" in attack.channels)
    start = time.perf_counter()
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=stream))
    answer = attack.reconstruct(observations, rng, settings)
    return answer, time.perf_counter() - start


def attack_graphs(
    instance: Instance, name: str, seed: int = 0, settings: dict[str, Any] | None = None, features: bool = False
) -> tuple[list[Reconstruction], dict[str, Any]]:
    """Run one attack on every graph of an instance; returns the answers, and seconds and diagnostics.

    The graphs of an instance of several have a random stream each. Of their diagnostics the counts are added up.
    """
    many = len(instance) > 1
    runs = [run_attack(graph, name, seed, settings, features, (number,) if many else ())
            for number, graph in enumerate(instance)]  # fmt: skip
    answers = [answer for answer, _ in runs]
    told = [answer.diagnostics for answer in answers]
    return answers, {"seconds": float(sum(seconds for _, seconds in runs)),
                     "diagnostics": {"graphs": len(told), **_add_up(told)} if many else told[0]}  # fmt: skip


def _add_up(told: list[dict[str, Any]]) -> dict[str, Any]:
    """Add the counts of several diagnostics and count their words; other values are left out."""
    total: dict[str, Any] = {}
    for key in dict.fromkeys(key for item in told for key in item):
        values = [item[key] for item in told if item.get(key) is not None]
        if values and all(isinstance(value, int) and not isinstance(value, bool) for value in values):
            total[key] = sum(values)
        elif values and all(isinstance(value, str) for value in values):
            total[key] = dict(Counter(values))
        elif values and all(isinstance(value, dict) for value in values) and (inner := _add_up(values)):
            total[key] = inner
    return total


def evaluate(instance: Instance, answer: Reconstruction) -> dict[str, Any]:
    """Score an answer about a single graph against the truth, JSON-ready.

    F1 comes in two scopes: ``global`` counts all true edges, ``recovered`` those among the nodes that
    the answer claims to have recovered. ``precision`` and ``recall`` are global, ``recovered_precision`` and
    ``recovered_recall`` of the other scope. ``recall_interval`` follows from Island Cohesion and bounds the recall
    over true edges between nodes of islands: ``recovered_recall``, where the recovered nodes are those. A metric
    that the answer does not allow (cohesion without islands, a ranking or a Frobenius error without true pairs)
    is None.
    """
    if answer.n_nodes != instance.n_nodes:
        raise LograbError(f"the answer is about {answer.n_nodes} nodes, the instance has {instance.n_nodes}")
    truth = instance.truth.edges
    error = relative_error(truth, answer.edges, instance.n_nodes)
    everywhere = count_edges(truth, answer.edges, instance.n_nodes)
    recovered = count_edges(truth, answer.edges, instance.n_nodes, answer.nodes)
    return {
        "f1": {"global": everywhere.f1, "recovered": recovered.f1},
        "f1_interval": everywhere.f1_interval(),
        "precision": everywhere.precision,
        "recall": everywhere.recall,
        "recovered_precision": recovered.precision,
        "recovered_recall": recovered.recall,
        "node_coverage": len(answer.nodes) / instance.n_nodes,
        "claimed": everywhere.claimed,
        "frobenius_error": error if np.isfinite(error) else None,
        **_cohesion(truth, answer),
        **_ranking(instance, answer),
    }


def _cohesion(truth: Ints, answer: Reconstruction) -> dict[str, Any]:
    cohesion = boundary = None
    if answer.islands is not None:
        cohesion = island_cohesion(truth, answer.edges, answer.islands)
        boundary = boundary_ratio(truth, answer.islands)
    interval = None if cohesion is None or boundary is None else cohesion_recall_interval(cohesion, boundary)
    return {"island_cohesion": cohesion, "recall_interval": interval}


def _ranking(instance: Instance, answer: Reconstruction) -> dict[str, Any]:
    seen, n = instance.observations, instance.n_nodes
    pairs, scores = answer.edges, answer.scores
    if answer.judged is not None and answer.judged_scores is not None:
        pairs, scores = answer.judged, answer.judged_scores
    n_pairs, shared = shared_pairs(n, seen.nodes, seen.ptr, pairs)
    pairs, scores = pairs[shared], scores[shared]
    true = np.isin(edge_keys(pairs, n), edge_keys(instance.truth.edges[instance.co_observed], n))
    ranking = Ranking.of(scores, true, int(instance.co_observed.sum()), n_pairs)
    values = {
        "average_precision": ranking.average_precision(),
        "auroc": ranking.auroc(),
        "tpr_at_fpr_0.001": ranking.recall_at_false_rate(FALSE_RATE),
        "precision_at_recall_0.5": ranking.precision_at_recall(RECALL),
    }
    return {name: None if np.isnan(value) else value for name, value in values.items()}


def ceiling(instance: Instance) -> float:
    """Global F1 of claiming exactly the co-observed true edges."""
    flags = instance.co_observed
    hits = int(flags.sum())
    return EdgeCounts(hits, len(flags), hits).f1


def _all_pairs(instance: Instance) -> float:
    """Global F1 of claiming every pair that shares a patch."""
    seen, flags = instance.observations, instance.co_observed
    n_pairs, _ = shared_pairs(instance.n_nodes, seen.nodes, seen.ptr, np.empty((0, 2), np.int64))
    return EdgeCounts(n_pairs, len(flags), int(flags.sum())).f1


def bounds(instance: Instance, seed: int = 0, known: dict[str, dict[str, Any]] | None = None) -> dict[str, float]:
    """Give floor and ceiling of an instance (macro-averaged over its graphs).

    The floor is the score of the best trivial attack, or that of claiming every pair that shares a patch where
    this is more; `known` holds rows that were computed before.
    """
    known = known or {}
    trivial = [name for name, attack in ATTACKS.items() if attack.trivial]
    rows = [known[name] if name in known else score(instance, name, seed) for name in trivial]
    everything = float(np.mean([_all_pairs(graph) for graph in instance]))
    return {
        "floor": max(everything, *(row["f1"]["global"] for row in rows)),
        "ceiling": float(np.mean([ceiling(graph) for graph in instance])),
    }


def score(
    instance: Instance, name: str, seed: int = 0, settings: dict[str, Any] | None = None, features: bool = False
) -> dict[str, Any]:
    """Run one attack on every graph of an instance and average its scores."""
    answers, told = attack_graphs(instance, name, seed, settings, features)
    return average(instance, answers) | told


def average(instance: Instance, answers: Sequence[Reconstruction]) -> dict[str, Any]:
    """Score one answer for each graph and average over the graphs where a metric is defined.

    ``claimed`` is a sum; ``frobenius_undefined`` counts the graphs without true edges that the error leaves out.
    """
    if len(answers) != len(instance):
        raise LograbError(f"the instance has {len(instance)} graphs, the answer {len(answers)}")
    scores = [evaluate(graph, answer) for graph, answer in zip(instance, answers)]
    means: dict[str, Any] = _mean(scores) | {"claimed": sum(s["claimed"] for s in scores)}
    means["frobenius_undefined"] = sum(s["frobenius_error"] is None for s in scores)
    if len(scores) > 1:  # graphs differ more than the pairs inside one: draw graphs
        f1 = np.array([s["f1"]["global"] for s in scores])
        drawn = np.random.default_rng(0).integers(len(f1), size=(2000, len(f1)))
        means["f1_interval"] = list(bootstrap_interval(f1[drawn].mean(axis=1)))
    return means


def _mean(scores: list[Any]) -> Any:
    """Average nested scores position by position; None where nothing is defined."""
    if isinstance(scores[0], dict):
        return {key: _mean([s[key] for s in scores]) for key in scores[0]}
    present = [s for s in scores if s is not None]
    if not present:
        return None
    return np.mean(present, axis=0).tolist()


def compare(instance: Instance, names: Iterable[str] | None = None, seed: int = 0) -> list[dict[str, Any]]:
    """Run attacks and score them side by side, between one floor and one ceiling.

    By default all that need no optional dependency and take graphs of any size.
    """
    usual = [name for name, attack in ATTACKS.items() if attack.extra is None and not attack.small_only]
    wanted = usual if names is None else list(names)
    rows = {name: score(instance, name, seed) for name in wanted}
    between = bounds(instance, seed, rows)
    return [{"method": n, "trivial": ATTACKS[n].trivial, **rows[n], **between} for n in wanted]
