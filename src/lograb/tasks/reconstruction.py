"""Task 1: rebuild the graph (§4.4.1).

Here, and only here, truth and estimate meet. Every score stands between its *floor*, the best that
an attacker without spectral skill achieves on the same instance, and its *ceiling*: the F1 of
claiming exactly the true edges that some patch contains, since nobody can see the others.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from lograb.attacks import ATTACKS, find_attack
from lograb.instance import Instance
from lograb.metrics import count_edges, f1
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
    return f1(int(flags.sum()), len(flags), int(flags.sum()))


def floor(instance: Instance, seed: int = 0) -> float:
    """Global F1 of the best trivial attacker."""
    trivial = [name for name, attack in ATTACKS.items() if attack.trivial]
    answers = (run_attack(instance, name, seed)[0] for name in trivial)
    return max(float(evaluate(instance, answer)["f1"]["global"]) for answer in answers)


def compare(instance: Instance, names: list[str] | None = None, seed: int = 0) -> list[dict[str, Any]]:
    """Run several attacks (all by default) and score them side by side, macro-averaged over graphs."""
    rows = []
    top = float(np.mean([ceiling(graph) for graph in instance]))
    bottom = float(np.mean([floor(graph, seed) for graph in instance]))
    for name in names or list(ATTACKS):
        runs = [(graph, *run_attack(graph, name, seed)) for graph in instance]
        scores = [evaluate(graph, answer) for graph, answer, _ in runs]
        rows.append({
            "method": name,
            "f1": {scope: float(np.mean([s["f1"][scope] for s in scores])) for scope in ("global", "recovered")},
            **{key: float(np.mean([s[key] for s in scores])) for key in ("precision", "recall", "node_coverage")},
            "floor": bottom,
            "ceiling": top,
            "seconds": float(sum(seconds for *_, seconds in runs)),
        })  # fmt: skip
    return rows
