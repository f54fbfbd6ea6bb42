"""Task 1: rebuild the graph (§4.4.1).

Here, and only here, truth and estimate meet. Every score stands between its *floor*, the best that
an attacker without spectral skill achieves on the same instance, and its *ceiling*: the F1 of
claiming exactly the true edges that some patch contains, since nobody can see the others.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from lograb.attacks import ATTACKS, find_attack
from lograb.errors import LograbError
from lograb.instance import Instance
from lograb.metrics import EdgeCounts, count_edges
from lograb.types import Reconstruction


def run_attack(instance: Instance, name: str, seed: int = 0) -> tuple[Reconstruction, float]:
    """Let one attack loose on the observations of a single graph; returns the seconds it took."""
    attack = find_attack(name)
    observations = instance.observe(features="features" in attack.channels)
    start = time.perf_counter()
    answer = attack.reconstruct(observations, np.random.default_rng(seed))
    return answer, time.perf_counter() - start


def evaluate(instance: Instance, answer: Reconstruction) -> dict[str, Any]:
    """Score an answer against the truth in both scopes, JSON-ready."""
    if answer.n_nodes != instance.n_nodes:
        raise LograbError(f"the answer is about {answer.n_nodes} nodes, the instance has {instance.n_nodes}")
    truth = instance.truth.edges
    everywhere = count_edges(truth, answer.edges, instance.n_nodes)
    recovered = count_edges(truth, answer.edges, instance.n_nodes, answer.nodes)
    return {
        "f1": {"global": everywhere.f1, "recovered": recovered.f1},
        "precision": everywhere.precision,
        "recall": everywhere.recall,
        "node_coverage": len(answer.nodes) / instance.n_nodes,
        "claimed": everywhere.claimed,
    }


def ceiling(instance: Instance) -> float:
    """Global F1 of claiming exactly the co-observed true edges."""
    flags = instance.co_observed
    hits = int(flags.sum())
    return EdgeCounts(hits, len(flags), hits).f1


def compare(instance: Instance, names: Iterable[str] | None = None, seed: int = 0) -> list[dict[str, Any]]:
    """Run attacks (all by default) and score them side by side, macro-averaged over graphs.

    The floor is the score of the best trivial attack; those always run, whatever is asked for.
    """
    wanted = list(ATTACKS) if names is None else list(names)
    trivial = [name for name, attack in ATTACKS.items() if attack.trivial]
    rows = {name: _score(instance, name, seed) for name in dict.fromkeys(wanted + trivial)}
    bounds = {
        "floor": max(rows[name]["f1"]["global"] for name in trivial),
        "ceiling": float(np.mean([ceiling(graph) for graph in instance])),
    }
    return [{"method": n, "trivial": ATTACKS[n].trivial, **rows[n], **bounds} for n in wanted]


def _score(instance: Instance, name: str, seed: int) -> dict[str, Any]:
    """Run one attack on every graph and average its scores; the seconds add up."""
    runs = [(graph, *run_attack(graph, name, seed)) for graph in instance]
    scores = [evaluate(graph, answer) for graph, answer, _ in runs]
    means = {key: float(np.mean([s[key] for s in scores])) for key in ("precision", "recall", "node_coverage")}
    f1 = {scope: float(np.mean([s["f1"][scope] for s in scores])) for scope in ("global", "recovered")}
    return {"f1": f1, **means, "seconds": float(sum(seconds for *_, seconds in runs))}
