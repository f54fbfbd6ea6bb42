"""Task 1: rebuild the graph (§4.4.1).

Here, and only here, truth and estimate meet. Every score stands between its *floor*, the best that
an attacker without spectral skill achieves on the same instance, and its *ceiling*: the F1 of
claiming exactly the true edges that some patch contains, since nobody can see the others.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lograb.attacks import ATTACKS, find_attack
from lograb.errors import LograbError
from lograb.instance import Instance
from lograb.metrics import EdgeCounts, Ranking, bootstrap_interval, count_edges, edge_keys, shared_pairs
from lograb.theory.cohesion import boundary_ratio, cohesion_recall_interval, island_cohesion
from lograb.theory.recoverability import relative_error
from lograb.types import Ints, Reconstruction

FALSE_RATE, RECALL = 1e-3, 0.5


def run_attack(
    instance: Instance, name: str, seed: int = 0, settings: dict[str, Any] | None = None, features: bool = False
) -> tuple[Reconstruction, float]:
    """Let one attack loose on the observations of a single graph; returns the seconds it took.

    With ``features=True`` the eavesdropper also has the features of the observed nodes.
    """
    attack = find_attack(name)
    if features and "features" not in attack.channels + attack.optional:
        raise LograbError(f"the attack '{name}' does not use features")
    observations = instance.observe(features=features or "features" in attack.channels)
    start = time.perf_counter()
    answer = attack.reconstruct(observations, np.random.default_rng(seed), settings)
    return answer, time.perf_counter() - start


def evaluate(instance: Instance, answer: Reconstruction) -> dict[str, Any]:
    """Score an answer about a single graph against the truth, JSON-ready.

    F1 comes in two scopes: ``global`` counts all true edges, ``recovered`` those among the nodes that
    the answer claims to have recovered. Precision and recall are global. A metric that the answer
    does not allow (cohesion without islands, a ranking without true pairs) is None.
    """
    if answer.n_nodes != instance.n_nodes:
        raise LograbError(f"the answer is about {answer.n_nodes} nodes, the instance has {instance.n_nodes}")
    truth = instance.truth.edges
    everywhere = count_edges(truth, answer.edges, instance.n_nodes)
    recovered = count_edges(truth, answer.edges, instance.n_nodes, answer.nodes)
    return {
        "f1": {"global": everywhere.f1, "recovered": recovered.f1},
        "f1_interval": everywhere.f1_interval(),
        "precision": everywhere.precision,
        "recall": everywhere.recall,
        "node_coverage": len(answer.nodes) / instance.n_nodes,
        "claimed": everywhere.claimed,
        "frobenius_error": relative_error(truth, answer.edges, instance.n_nodes),
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


def bounds(instance: Instance, seed: int = 0, known: dict[str, dict[str, Any]] | None = None) -> dict[str, float]:
    """Give floor and ceiling of an instance (macro-averaged over its graphs).

    The floor is the score of the best trivial attack; `known` holds rows that were computed before.
    """
    known = known or {}
    trivial = [name for name, attack in ATTACKS.items() if attack.trivial]
    rows = [known[name] if name in known else score(instance, name, seed) for name in trivial]
    return {
        "floor": max(row["f1"]["global"] for row in rows),
        "ceiling": float(np.mean([ceiling(graph) for graph in instance])),
    }


def score(
    instance: Instance, name: str, seed: int = 0, settings: dict[str, Any] | None = None, features: bool = False
) -> dict[str, Any]:
    """Run one attack on every graph of an instance and average its scores."""
    runs = [run_attack(graph, name, seed, settings, features) for graph in instance]
    answers = [answer for answer, _ in runs]
    told = answers[0].diagnostics if len(answers) == 1 else {"graphs": len(answers)}
    return average(instance, answers) | {"seconds": float(sum(s for _, s in runs)), "diagnostics": told}


def average(instance: Instance, answers: Sequence[Reconstruction]) -> dict[str, Any]:
    """Score one answer for each graph and average over the graphs where a metric is defined."""
    if len(answers) != len(instance):
        raise LograbError(f"the instance has {len(instance)} graphs, the answer {len(answers)}")
    scores = [evaluate(graph, answer) for graph, answer in zip(instance, answers)]
    means: dict[str, Any] = _mean(scores)
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
