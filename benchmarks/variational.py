"""Proposition 1 tried: the variational procedure on small generated graphs in the global scenario.

Needs networkx. Times are processor times: run it with OMP_NUM_THREADS=1. Prints Markdown rows as they are done:
means over three graphs (Erdős–Rényi, preferential attachment, small world; about two edges per node, connected).
"""

from __future__ import annotations

import time
from itertools import permutations, product
from typing import Any

from command import Part, at_least, parse

if __name__ == "__main__":
    sizes = {"metavar": "N", "nargs": "*", "type": at_least(5), "default": [20, 50, 100]}
    run = parse(__doc__, {
        "exact": Part(lambda: exact(), "the posterior itself, all graphs on 6 nodes enumerated", "30 s"),
        "recovery": Part(lambda sizes: recovery(sizes), "F1 and AUROC of the attack, 20, 50 and 100 nodes",
                         "~ half an hour", (sizes,)),
        "rivals": Part(lambda sizes: rivals(sizes), "F1 of other attacks on the same instances",
                       "~ 1 minute", (sizes,)),
        "truth": Part(lambda sizes: truth(sizes), "where an ascent ends that starts at the true graph",
                      "~ an hour", (sizes,)),
        "budget": Part(lambda: budget(), "what more steps and samples buy at 20 nodes", "~ 6 minutes"),
        "growth": Part(lambda: growth(), "time of a step against the number of nodes", "20 s"),
    }, default="exact")  # fmt: skip

import networkx as nx
import numpy as np
from scipy.special import expit, softmax

import lograb
from lograb.attacks import Variational, find_attack
from lograb.attacks.variational.ascent import Problem, ascend, distances, estimate, open_uniform
from lograb.attacks.variational.variational import gauge_blocks, state_problem
from lograb.instance import Instance
from lograb.tasks.reconstruction import floor_and_ceiling
from lograb.types import Graph, Reconstruction

VARIANTS: dict[str, dict[str, Any]] = {
    "as printed": {},
    "relaxed": {"estimator": "relaxed"},
    "labelled": {"correspondence": "known"},
    "labelled, relaxed": {"correspondence": "known", "estimator": "relaxed"},
}
RIVALS: dict[str, dict[str, Any]] = {
    "posterior": {}, "heat-kernel": {"threshold": "certified"}, "afr": {}, "eigen-sync": {}
}  # fmt: skip
SIGMAS = (0.0, 0.05)


def small_graphs(n: int) -> list[Graph]:
    """Three connected graphs of n nodes with about 2 n edges."""
    random = next(g for s in range(10_000) if nx.is_connected(g := nx.gnm_random_graph(n, 2 * n, seed=s)))
    others = nx.barabasi_albert_graph(n, 2, seed=0), nx.connected_watts_strogatz_graph(n, 4, 0.2, seed=0)
    return [Graph.from_edges("small", n, list(g.edges)) for g in (random, *others)]


def posed(graph: Graph, k: int, sigma: float, **settings: Any) -> tuple[Problem, np.ndarray]:
    """State the problem for a whole graph; returns the truth as one flag per pair beside it."""
    seen = lograb.generate(graph, strategy="global", k=k, sigma=sigma).observations
    problem = state_problem(seen.block(0)[None], gauge_blocks(seen, 0), sigma, Variational(**settings))
    upper = np.triu_indices(graph.n_nodes, k=1)
    return problem, graph.adjacency.toarray()[upper]


def attacked(instance: Instance, settings: dict[str, Any]) -> tuple[Reconstruction, float]:
    """Run the attack; returns the processor time it took, which other work on the machine does not change."""
    start = time.process_time()
    answer = lograb.attack(instance, Variational(**settings))
    return answer, time.process_time() - start


def exact() -> None:
    """Enumerate all graphs on 6 nodes: the posterior itself, without any variational step."""
    # Asymmetric, so that its 720 renumberings are 720 different graphs; its spectrum is simple.
    graph = Graph.from_edges("asymmetric", 6, [(0, 1), (1, 2), (0, 2), (1, 3), (2, 4), (4, 5)])
    every = np.array(list(product((0.0, 1.0), repeat=15)))
    upper = np.triu_indices(6, k=1)
    edges = {tuple(e) for e in graph.edges.tolist()}
    orbit = {tuple(sorted(tuple(sorted((p[u], p[w]))) for u, w in edges)) for p in permutations(range(6))}
    print("| rows | k | σ | P(truth) | P(truth or a renumbering) | probability of true edges | of other pairs |")
    print("|" + "---|" * 7)
    for name, k, sigma in product(("none", "known"), (6, 3), (0.0, 0.05)):
        problem, true = posed(graph, k, sigma, correspondence=name, sinkhorn_iterations=200)
        distance = np.concatenate(
            [distances(problem, part[:, None], slopes=False)[0][:, 0] for part in np.array_split(every, 32)]
        )
        prior = every.sum(axis=1) * np.log(problem.prior) + (15 - every.sum(axis=1)) * np.log1p(-problem.prior)
        chance = softmax(prior - problem.gamma[0] * distance)
        listed = [tuple(sorted(zip(upper[0][row > 0].tolist(), upper[1][row > 0].tolist()))) for row in every]
        in_orbit = np.array([item in orbit for item in listed])
        marginal = chance @ every
        itself = chance[(every == true).all(axis=1)].sum()
        known = "labelled" if name == "known" else "a cloud (as printed)"
        print(
            f"| {known} | {k} | {sigma} | {itself:.4f} | {chance[in_orbit].sum():.4f} ({in_orbit.sum()} graphs) "
            f"| {spread(marginal[true])} | {spread(marginal[~true])} |",
            flush=True,
        )


def spread(values: np.ndarray) -> str:
    return f"{values.min():.3f} .. {values.max():.3f}"


def recovery(sizes: list[int]) -> None:
    """Run the attack as a user would."""
    print("| n | k | σ | floor | " + " | ".join(f"{v}: F1, AUROC, seconds" for v in VARIANTS) + " |")
    print("|" + "---|" * (4 + len(VARIANTS)))
    for n, share, sigma in product(sizes, (1.0, 0.5), SIGMAS):
        instances = [lograb.generate(g, strategy="global", k=int(share * n), sigma=sigma) for g in small_graphs(n)]
        cells = [f"{np.mean([floor_and_ceiling(i)['floor'] for i in instances]):.3f}"]
        for settings in VARIANTS.values():
            runs = [attacked(i, settings) for i in instances]
            scores = [lograb.evaluate(i, answer) for i, (answer, _) in zip(instances, runs)]
            f1, auroc = np.mean([(score.f1, score["auroc"]) for score in scores], axis=0)
            cells.append(f"{f1:.3f}, {auroc:.3f}, {np.mean([s for _, s in runs]):.1f}")
        print(f"| {n} | {int(share * n)} | {sigma} | " + " | ".join(cells) + " |", flush=True)


def rivals(sizes: list[int]) -> None:
    """Run other attacks on the same instances."""
    print("| n | k | σ | floor | " + " | ".join(RIVALS) + " |")
    print("|" + "---|" * (4 + len(RIVALS)))
    for n, share, sigma in product(sizes, (1.0, 0.5), SIGMAS):
        instances = [lograb.generate(g, strategy="global", k=int(share * n), sigma=sigma) for g in small_graphs(n)]
        cells = [f"{np.mean([floor_and_ceiling(i)['floor'] for i in instances]):.3f}"]
        for name, settings in RIVALS.items():
            attack = find_attack(name)(**settings)
            f1 = [lograb.evaluate(i, lograb.attack(i, attack)).f1 for i in instances]
            cells.append(f"{np.mean(f1):.3f}")
        print(f"| {n} | {int(share * n)} | {sigma} | " + " | ".join(cells) + " |", flush=True)


def truth(sizes: list[int]) -> None:
    """Start at the truth with 0.98 against 0.02: is it a place where the ascent stays, and how high is it?"""
    print("| n | k | σ | variant | ELBO at the prior | after ascent | at the truth | ascent from there | its F1 |")
    print("|" + "---|" * 9)
    for n, share, sigma in product(sizes, (1.0, 0.5), SIGMAS):
        for name, settings in VARIANTS.items():
            rows = []
            for graph in small_graphs(n):
                problem, true = posed(graph, int(share * n), sigma, **settings)
                start = np.full((1, len(true)), np.log(problem.prior / (1 - problem.prior)))
                sure = np.where(true, 4.0, -4.0)[None]
                from_prior, from_truth = (
                    ascend(problem, odds, np.random.default_rng(0), 300, 16, 0.05) for odds in (start, sure)
                )
                certain = estimate(problem, 5 * sure, open_uniform(np.random.default_rng(0), (2, 1, len(true))))[0]
                claimed = expit(from_truth.log_odds[0]) >= 0.5
                f1 = 2 * (claimed & true).sum() / (claimed.sum() + true.sum())
                rows.append((*from_prior.elbo[:, 0], certain[0], from_truth.elbo[1, 0], f1))
            cells = np.mean(rows, axis=0)
            text = " | ".join(f"{c:,.0f}" for c in cells[:4])
            print(f"| {n} | {int(share * n)} | {sigma} | {name} | {text} | {cells[4]:.3f} |", flush=True)


def budget() -> None:
    """Spend more at 20 nodes."""
    print("| variant | samples | steps | rate | F1 | AUROC | relative Frobenius error | seconds |")
    print("|" + "---|" * 8)
    instances = [lograb.generate(g, strategy="global", k=20) for g in small_graphs(20)]
    for name, (samples, steps, rate) in product(VARIANTS, [(16, 300, 0.05), (16, 3000, 0.05), (64, 3000, 0.05)]):
        # Without labels a step takes ten times as long, and the first rows already say what more would buy.
        if VARIANTS[name].get("correspondence") != "known" and samples * steps > 50_000:
            continue
        settings = VARIANTS[name] | {"samples": samples, "steps": steps, "learning_rate": rate}
        runs = [attacked(i, settings) for i in instances]
        scores = [lograb.evaluate(i, answer) for i, (answer, _) in zip(instances, runs)]
        f1, auroc, error = np.mean([(s.f1, s["auroc"], s["frobenius_error"]) for s in scores], axis=0)
        cells = f"{f1:.3f} | {auroc:.3f} | {error:.2f} | {np.mean([s for _, s in runs]):.1f}"
        print(f"| {name} | {samples} | {steps} | {rate} | {cells} |", flush=True)


def growth() -> None:
    """Time single steps."""
    print("| n | " + " | ".join(f"{v}, ms per step" for v in VARIANTS) + " |")
    print("|" + "---|" * (1 + len(VARIANTS)))
    for n in (20, 40, 80, 160, 320):
        cells = []
        for settings in VARIANTS.values():
            problem, true = posed(small_graphs(n)[0], n // 2, 0.05, **settings)
            odds = np.full((1, len(true)), np.log(problem.prior / (1 - problem.prior)))
            draws = open_uniform(np.random.default_rng(0), (16, 1, len(true)))
            took = []
            for _ in range(5):
                start = time.process_time()
                estimate(problem, odds, draws)
                took.append(time.process_time() - start)
            cells.append(f"{1e3 * min(took):.1f}")
        print(f"| {n} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    run()
