"""Task 1 on the rows of the paper's tables, over seeds, beside floor and ceiling.

Needs the real data (LOGRAB_MIRROR or the cache). Prints Markdown rows as they are done.
"""

from __future__ import annotations

import dataclasses
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from command import Part, one_of, parse

if __name__ == "__main__":
    row = {"metavar": "ROW", "type": one_of(range(1, 15))}
    attacks = {"metavar": "ATTACK", "nargs": "+", "type": one_of(lambda: import_module("lograb.attacks").ATTACKS)}
    some_rows = row | {"nargs": "*", "default": list(range(1, 9))}
    run = parse(__doc__, {
        "core": Part(lambda rows: core(rows), "the core table, rows 1 to 8", "~ 2 minutes", (some_rows,)),
        "ablation": Part(lambda: ablation(), "the ablation table, full and auto", "~ 10 minutes"),
        "choices": Part(lambda row: choices(row), "AFR with switches changed, row 1", "20 s",
                        (row | {"nargs": "?", "default": 1},)),
        "eigen-sync": Part(lambda rows: eigen_sync(rows), "Eigen-sync with switches changed, rows 1 to 8",
                           "~ 10 minutes", (some_rows,)),
        "centres": Part(lambda rows: centres(rows), "membership with and without published centres, rows 1 to 8",
                        "~ 15 s", (some_rows,)),
        "rules": Part(lambda: rules(), "AFR's thresholds on generated graphs; needs no data", "2 minutes"),
        "rivals": Part(lambda source, names: rivals(source, names),
                       "attacks on one instance of any source, seconds and memory", "seconds on Cora",
                       ({"metavar": "SOURCE"}, attacks)),
        "pairs": Part(lambda source: pairs(source), "counting co-observed pairs against a sparse product",
                      "1 minute on BlogCatalog", ({"metavar": "SOURCE", "nargs": "?", "default": "blogcatalog"},)),
        "speed": Part(lambda: speed(), "seconds and memory of AFR, up to BlogCatalog", "2 minutes"),
    }, default="core")  # fmt: skip

import networkx as nx
import numpy as np
import scipy.sparse as sp

import lograb
from lograb.attacks import Afr, EigenSync, find_attack
from lograb.attacks.baselines.eigen_sync import align
from lograb.attacks.baselines.membership import membership
from lograb.attacks.baselines.nearest import join_neighbours
from lograb.metrics import count_edges
from lograb.pairs import shared_pairs
from lograb.tasks.reconstruction import floor_and_ceiling
from lograb.types import Floats, Ints, Observations

SEEDS = (0, 1, 2)
# number: (source, parameters, Eigen-sync and AFR as printed)
ROWS: dict[int, tuple[str, dict[str, Any], float, float]] = {
    1: ("cora", {"d": 1, "p": 0.6, "k": 32, "sigma": 0.05}, 66.3, 74.3),
    2: ("cora", {"d": 2, "p": 0.6, "k": 32, "sigma": 0.05}, 71.5, 78.0),
    3: ("cora", {"d": 1, "p": 1.0, "k": 32, "sigma": 0.05}, 68.2, 76.6),
    4: ("cora", {"d": 2, "p": 0.8, "k": 32, "sigma": 0.05}, 75.8, 81.1),
    5: ("cora", {"d": 1, "p": 0.6, "k": 16, "sigma": 0.05}, 62.9, 72.3),
    6: ("cora", {"d": 1, "p": 0.6, "k": 64, "sigma": 0.05}, 67.8, 74.6),
    7: ("cora", {"d": 1, "p": 0.6, "k": 32, "sigma": 0.0}, 67.5, 74.3),
    8: ("cora", {"d": 1, "p": 0.6, "k": 32, "sigma": 0.1}, 58.3, 69.1),
    9: ("citeseer", {"d": 1, "p": 0.6, "k": 32, "sigma": 0.05}, 65.5, 74.1),
    10: ("citeseer", {"strategy": "cluster", "p": 0.6, "k": 32, "sigma": 0.05}, 69.4, 79.9),
    11: ("citeseer", {"strategy": "random", "p": 0.6, "k": 32, "sigma": 0.05}, 61.0, 71.7),
    12: ("pubmed", {"strategy": "cluster", "p": 0.6, "k": 32, "sigma": 0.05}, 61.2, 72.0),
    13: ("pubmed", {"d": 1, "p": 0.6, "k": 32, "sigma": 0.05}, 64.0, 72.8),
    14: ("ogbn-arxiv", {"d": 1, "p": 0.6, "k": 32, "sigma": 0.05}, 56.1, 66.4),
}
ABLATION: list[tuple[str, dict[str, Any], str]] = [
    ("1 full model", {}, "74.3"),
    ("4 plain Procrustes", {"ransac": False}, "60.7"),
    ("5 random order", {"order": "random"}, "65.2"),
    ("6 no bundle adjustment", {"bundle": "off"}, "72.4"),
    ("7 ratio only", {"alpha": 1.0}, "71.0"),
    ("8 entropy only", {"alpha": 0.0}, "66.8"),
    ("9 fixed threshold", {"adaptive": False}, "70.6"),
]
CHOICES: list[tuple[str, dict[str, Any]]] = [
    ("as default", {}),
    ("the last eigenpair kept", {"drop_last": "no"}),
    ("the last eigenpair dropped from gap and residual too", {"drop_last": "everywhere"}),
    ("fixed threshold, 0.1", {"threshold": "fixed"}),
    ("half-edge threshold", {"threshold": "half-edge"}),
    ("votes merged", {"cross_voting": "merged"}),
    ("always five edges per node", {"output": "fill"}),
    ("no cap of five edges", {"top_k": None}),
    ("cap of three", {"top_k": 3}),
    ("align_dim auto", {"align_dim": "auto"}),
    ("truncated patches too", {"s_min": 0.0, "delta_min": 0.0}),
]
# Graphs and instances on which the rules of AFR were chosen, before any real graph was looked at.
GENERATED: dict[str, Callable[[], nx.Graph]] = {
    "power law, 2": lambda: nx.powerlaw_cluster_graph(1500, 2, 0.4, seed=1),
    "power law, 3": lambda: nx.powerlaw_cluster_graph(1200, 3, 0.3, seed=2),
    "blocks": lambda: nx.planted_partition_graph(20, 60, 0.06, 0.001, seed=3),
    "square lattice": lambda: nx.grid_2d_graph(35, 35),
    "triangles": lambda: nx.triangular_lattice_graph(30, 50),
    "small world": lambda: nx.watts_strogatz_graph(1200, 6, 0.2, seed=4),
    "tree": lambda: nx.barabasi_albert_graph(1500, 1, seed=5),
    "uniform": lambda: nx.gnm_random_graph(1500, 2500, seed=6),
    "dense, 100": lambda: nx.gnp_random_graph(100, 0.2, seed=1),
    "dense, 30": lambda: nx.gnp_random_graph(30, 0.5, seed=2),
    "cliques": lambda: nx.connected_caveman_graph(30, 10),
    "regular, 10": lambda: nx.random_regular_graph(10, 300, seed=3),
    "geometric": lambda: nx.random_geometric_graph(500, 0.1, seed=3),
    "hubs": lambda: nx.barabasi_albert_graph(300, 8, seed=3),
}
BASE, CLUSTER = {"p": 0.6, "k": 32, "sigma": 0.05}, {"strategy": "cluster", "cluster_size": 20}
PLACES: dict[str, dict[str, Any]] = {
    "d = 1": BASE,
    "σ = 0": BASE | {"sigma": 0.0},
    "σ = 0.1": BASE | {"sigma": 0.1},
    "k = 64": BASE | {"k": 64},
    "d = 2": BASE | {"d": 2},
    "d = 2, k = 64": BASE | {"d": 2, "k": 64},
    "20 per cluster": BASE | CLUSTER,
    "20, σ = 0": BASE | CLUSTER | {"sigma": 0.0},
    "50, k = 64": BASE | CLUSTER | {"cluster_size": 50, "k": 64},
    "random": BASE | {"strategy": "random"},
}
RULES = [choice for choice in CHOICES if choice[1].keys() <= {"drop_last", "threshold"}]
HEAT = {"features": "heat-kernel"}
SYNC_CHOICES: list[tuple[str, dict[str, Any]]] = [
    ("as printed", {}),
    ("overlaps completed arbitrarily, as printed", {"completion": "full"}),
    ("without the first eigenvector", {"skip": 1}),
    ("the eight after the first", {"skip": 1, "dim": 8}),
    ("centred", {"features": "centred"}),
    ("among nodes that share a patch", {"candidates": "shared"}),
    ("heat-kernel features", HEAT),
    ("heat-kernel features, t = 4", HEAT | {"t": 4.0}),
    ("heat-kernel features, nearest rotation", HEAT | {"rounding": "polar"}),
    ("heat-kernel features, sharing a patch", HEAT | {"candidates": "shared"}),
    ("heat-kernel features, sharing a patch, three", HEAT | {"candidates": "shared", "top_k": 3}),
]


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}"


Run = tuple[str, dict[str, Any]]


def measure(source: str, parameters: dict[str, Any], runs: dict[str, Run]) -> dict[str, Any]:
    """Run named attacks over all seeds; lists of F1, coverage, stitches, cohesion, floor, ceiling."""
    out: dict[str, Any] = {"floor": [], "ceiling": []} | {name: defaultdict(list) for name in runs}
    for seed in SEEDS:
        instance = lograb.generate(source, seed=seed, **parameters)
        for name, (attack, settings) in runs.items():
            answer = lograb.attack(instance, find_attack(attack)(**settings), seed=seed)
            score = lograb.evaluate(instance, answer)
            for what in ("node_coverage", "island_cohesion", "component_cohesion"):
                out[name][what].append(score[what])
            for what, value in (score["f1"] | (score["cross"] or {})).items():
                out[name][what].append(value)
            out[name]["stitches"].append(answer.diagnostics.get("stitches_accepted"))
        for name in ("floor", "ceiling"):
            out[name].append(floor_and_ceiling(instance)[name])
    return out


def core(numbers: list[int]) -> None:
    """AFR with its defaults; clusters of 50 observed nodes, and of 20, so that some are complete at k = 32."""
    print("| row | paper | recovered | coverage | global | floor | ceiling | list | with cross edges |")
    print("|---|---|---|---|---|---|---|---|---|")
    for number in numbers:
        source, parameters, _, printed = ROWS[number]
        clusters = parameters.get("strategy") == "cluster"
        for size in (50, 20) if clusters else (None,):
            more = {"cluster_size": size} if clusters else {}
            found = measure(source, parameters | more, {"afr": ("afr", {})})
            afr = found["afr"]
            cells = [afr["recovered"], afr["node_coverage"], afr["global"], found["floor"], found["ceiling"],
                     afr["list"], afr["f1_together"]]  # fmt: skip
            name = f"{number} {source} {tuple(parameters.values())}"
            name += f", {size} per cluster" if clusters else ""
            print(f"| {name} | {printed / 100:.3f} | " + " | ".join(map(spread, cells)) + " |", flush=True)


def ablation() -> None:
    source, parameters, _, _ = ROWS[1]
    print("| variant | paper | full | auto | stitches | auto, d = 2 | stitches |\n|---|---|---|---|---|---|---|")
    for name, settings, printed in ABLATION:
        runs = {dim: ("afr", settings | {"align_dim": dim}) for dim in ("full", "auto")}
        near = measure(source, parameters, runs)
        far = measure(source, parameters | {"d": 2}, {"auto": runs["auto"]})["auto"]
        full, auto = near["full"]["global"], near["auto"]
        print(f"| {name} | {printed} | {spread(full)} | {spread(auto['global'])} | {auto['stitches']} | "
              f"{spread(far['global'])} | {far['stitches']} |", flush=True)  # fmt: skip


def rules() -> None:
    """Mean F1, recovered, over generated graphs: what the threshold and the last eigenpair were chosen by."""
    bare = (nx.Graph(make().edges()) for make in GENERATED.values())  # without their attributes
    graphs = [lograb.load_graph("citation"), *map(nx.convert_node_labels_to_integers, bare)]
    print("| rule | " + " | ".join(PLACES) + " | mean |\n" + "|---" * (len(PLACES) + 2) + "|")
    table: dict[str, list[float]] = {name: [] for name, _ in RULES}
    for parameters in PLACES.values():
        found: dict[str, list[float]] = {name: [] for name in table}
        for graph in graphs:
            instance = lograb.generate(graph, seed=7, **parameters)
            for name, settings in RULES:
                answer = lograb.attack(instance, Afr(**settings))
                found[name].append(lograb.evaluate(instance, answer).recovered)
        for name, values in found.items():
            table[name].append(float(np.mean(values)))
    for name, values in table.items():
        print(f"| {name} | " + " | ".join(f"{value:.3f}" for value in [*values, np.mean(values)]) + " |")


def choices(number: int) -> None:
    source, parameters, _, _ = ROWS[number]
    found = measure(source, parameters, {name: ("afr", settings) for name, settings in CHOICES})
    print("| choice | global | recovered |\n|---|---|---|")
    for name, _ in CHOICES:
        print(f"| {name} | {spread(found[name]['global'])} | {spread(found[name]['recovered'])} |")


def sync_claims(seen: Observations, seed: int) -> Iterator[tuple[str, Ints]]:
    """Run Eigen-sync with each of the switches; those that only choose neighbours share an alignment."""
    aligned: dict[str, tuple[Floats, Ints, dict[str, Any]]] = {}
    for name, settings in SYNC_CHOICES:
        chosen = EigenSync(**settings)
        key = chosen.model_dump_json(exclude={"top_k", "candidates"})
        if key not in aligned:
            aligned[key] = align(seen, np.random.default_rng(seed), chosen)
        yield name, join_neighbours(seen, *aligned[key], chosen).edges


def eigen_sync(numbers: list[int]) -> None:
    """Change switches of Eigen-sync; beside F1, what ten neighbours per node can reach at most.

    Ten claims per node are at least five times as many edges as nodes: F1 <= 2 E / (E + 5 N). The last
    line judges the printed method on all true edges and as many random other pairs, in expectation.
    """
    table: dict[str, list[str]] = {name: [] for name, _ in SYNC_CHOICES}
    limit, balanced = [], []
    for number in numbers:
        source, parameters, _, _ = ROWS[number]
        f1: dict[str, list[float]] = {name: [] for name in table}
        reach, even = [], []
        for seed in SEEDS:
            instance = lograb.generate(source, seed=seed, **parameters)
            n, nodes = instance.n_nodes, np.unique(instance.observations.nodes)
            for name, edges in sync_claims(instance.observe(features=False), seed):
                counts = count_edges(instance.truth.edges, edges, n)
                f1[name].append(counts.f1)
                if name == "as printed":
                    reach.append(2 * counts.true / (counts.true + 5 * len(nodes)))
                    others = (counts.claimed - counts.hits) * counts.true / (n * (n - 1) / 2 - counts.true)
                    even.append(2 * counts.hits / (counts.hits + counts.true + others))
        for name, values in f1.items():
            table[name].append(spread(values))
        limit.append(spread(reach))
        balanced.append(spread(even))
        print(f"row {number} done", file=sys.stderr, flush=True)
    printed = [f"{ROWS[number][2] / 100:.3f}" for number in numbers]
    lines = table | {"ten neighbours, at most": limit, "as printed, balanced pairs": balanced, "paper": printed}
    print("| choice |" + "".join(f" {number} |" for number in numbers) + "\n" + "|---" * (len(numbers) + 1) + "|")
    for name, cells in lines.items():
        print(f"| {name} | " + " | ".join(cells) + " |")


def centres(numbers: list[int]) -> None:
    """Compare membership with published centres and without."""
    print("| row | centres published | withheld | patches left undecided |\n|---|---|---|---|")
    for number in numbers:
        source, parameters, _, _ = ROWS[number]
        known, hidden, undecided = [], [], []
        for seed in SEEDS:
            instance = lograb.generate(source, seed=seed, **parameters)
            seen, truth = instance.observations, instance.truth.edges
            rng = np.random.default_rng(seed)
            published, inferred = (membership(s, rng) for s in (seen, dataclasses.replace(seen, centres=None)))
            known.append(count_edges(truth, published.edges, seen.n_nodes).f1)
            hidden.append(count_edges(truth, inferred.edges, seen.n_nodes).f1)
            undecided.append(inferred.diagnostics.get("undecided_patches", seen.n_patches) / seen.n_patches)
        print(f"| {number} {source} {tuple(parameters.values())} | {spread(known)} | {spread(hidden)} | "
              f"{np.mean(undecided):.1%} |", flush=True)  # fmt: skip


def pairs(source: str) -> None:
    """Count co-observed pairs and look all true edges up, by bit sets and by sparse products (CPU seconds)."""
    instance = lograb.generate(source, d=1, p=0.6, k=1)
    seen, edges = instance.observations, instance.truth.edges
    start = time.process_time()
    count, shared = shared_pairs(seen.n_nodes, seen.nodes, seen.ptr, edges)
    ours = time.process_time() - start
    start = time.process_time()
    inside = sp.csr_array((np.ones(len(seen.nodes), dtype=np.int32), seen.nodes, seen.ptr),
                          shape=(seen.n_patches, seen.n_nodes)).T.tocsr()  # fmt: skip
    blocks = (inside[i : i + 512] @ inside.T for i in range(0, seen.n_nodes, 512))
    by_product = (sum(block.nnz for block in blocks) - len(np.unique(seen.nodes))) // 2
    found = [inside[part[:, 0]].multiply(inside[part[:, 1]]).sum(axis=1) > 0
             for part in np.array_split(edges, 1 + len(edges) // 16384)]  # fmt: skip
    plain = time.process_time() - start
    assert count == by_product
    assert np.array_equal(shared, np.concatenate(found))
    print(f"{source}: {len(seen.nodes):,} members, sum of squared sizes {(seen.sizes**2).sum():,}, {count:,} "
          f"distinct pairs: bit sets {ours:.2f} s, sparse products {plain:.2f} s")  # fmt: skip


def rivals(source: str, names: list[str]) -> None:
    """Run attacks on one instance with the parameters of row 1, one after the other."""
    instance = lograb.generate(source, **ROWS[1][1])
    print("| attack | global | recovered | AUROC | seconds | peak so far, GiB |\n|---|---|---|---|---|---|")
    for name in names:
        (method,) = lograb.compare(instance, [name]).methods
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"| {name} | {method.f1:.3f} | {method.mean('f1', 'recovered'):.3f} | {method.mean('auroc'):.3f} | "
              f"{method.seconds[0]:.1f} | {peak:.1f} |", flush=True)  # fmt: skip


def speed() -> None:
    cases = [(*ROWS[n][:2], dim) for n in (1, 2) for dim in ("full", "auto")]
    cases.append(("blogcatalog", ROWS[1][1], "full"))
    for source, parameters, dim in cases:
        instance = lograb.generate(source, **parameters)
        floor_and_ceiling(instance)  # once per instance: not on the attack's clock
        start = time.perf_counter()
        lograb.evaluate(instance, lograb.attack(instance, Afr(align_dim=dim)))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"afr ({dim}) with its scores on {source} {parameters}: {time.perf_counter() - start:.1f} s, "
              f"peak so far {peak:.1f} GiB", flush=True)  # fmt: skip


if __name__ == "__main__":
    run()
