"""Seconds and memory of Task 1, and the generated graphs on which AFR's rules were chosen.

All but ``rules`` and ``rivals`` on a generated source need the real data (LOGRAB_MIRROR or the cache).
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from command import Part, one_of, parse

if __name__ == "__main__":
    attacks = {"metavar": "ATTACK", "nargs": "+", "type": one_of(lambda: import_module("lograb.attacks").ATTACKS)}
    run = parse(__doc__, {
        "rules": Part(lambda: rules(), "AFR's thresholds on generated graphs; needs no data", "2 minutes"),
        "rivals": Part(lambda source, names: rivals(source, names),
                       "attacks on one instance of any source, seconds and memory", "seconds on Cora",
                       ({"metavar": "SOURCE"}, attacks)),
        "pairs": Part(lambda source: pairs(source), "counting co-observed pairs against a sparse product",
                      "1 minute on BlogCatalog", ({"metavar": "SOURCE", "nargs": "?", "default": "blogcatalog"},)),
        "speed": Part(lambda: speed(), "seconds and memory of AFR, up to BlogCatalog", "2 minutes"),
        "many": Part(lambda: many(), "processor time per graph of datasets of many; needs no data", "2 minutes"),
    }, default="speed")  # fmt: skip

import networkx as nx
import numpy as np
import scipy.sparse as sp

import lograb
from lograb.attacks import Afr
from lograb.pairs import shared_pairs
from lograb.tasks.reconstruction import floor_and_ceiling

BASE: dict[str, Any] = {"p": 0.6, "k": 32, "sigma": 0.05}
RULES: list[tuple[str, dict[str, Any]]] = [
    ("as default", {}),
    ("the last eigenpair kept", {"drop_last": "no"}),
    ("the last eigenpair dropped from gap and residual too", {"drop_last": "everywhere"}),
    ("fixed threshold, 0.1", {"threshold": "fixed"}),
    ("half-edge threshold", {"threshold": "half-edge"}),
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
CLUSTER = {"strategy": "cluster", "cluster_size": 20}
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
    """Run attacks on one instance with the parameters of row 1 of the core table, one after the other."""
    instance = lograb.generate(source, **BASE)
    print("| attack | global | recovered | AUROC | seconds | peak so far, GiB |\n|---|---|---|---|---|---|")
    for name in names:
        (method,) = lograb.compare(instance, [name]).methods
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"| {name} | {method.f1:.3f} | {method.mean('f1', 'recovered'):.3f} | {method.mean('auroc'):.3f} | "
              f"{method.seconds[0]:.1f} | {peak:.1f} |", flush=True)  # fmt: skip


def speed() -> None:
    cases = [("cora", BASE | {"d": d}, dim) for d in (1, 2) for dim in ("full", "auto")]
    cases.append(("blogcatalog", BASE, "full"))
    for source, parameters, dim in cases:
        instance = lograb.generate(source, **parameters)
        floor_and_ceiling(instance)  # once per instance: not on the attack's clock
        start = time.perf_counter()
        lograb.evaluate(instance, lograb.attack(instance, Afr(align_dim=dim)))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"afr ({dim}) with its scores on {source} {parameters}: {time.perf_counter() - start:.1f} s, "
              f"peak so far {peak:.1f} GiB", flush=True)  # fmt: skip


def many() -> None:
    print("| dataset | attack | processor ms per graph, attack | and scores | F1 |\n|---|---|---|---|---|")
    for source, n in (("molecules", 1000), ("superpixels", 100)):
        instance = lograb.generate(source, **BASE)
        lograb.attack(instance[0], "posterior")  # what is paid once is on no graph's clock
        floor_and_ceiling(instance)
        for name in ("afr", "posterior"):
            start = time.process_time()
            found = lograb.attack(instance, name)
            middle = time.process_time()
            score = lograb.evaluate(instance, found)
            alone, both = ((at - start) / n * 1000 for at in (middle, time.process_time()))
            print(f"| {source} | {name} | {alone:.1f} | {both:.1f} | {score.f1:.4f} |", flush=True)


if __name__ == "__main__":
    run()
