"""Whether the posterior attack knows how good it is: what it expects of itself against the truth.

Instances are drawn: thirteen kinds of graphs, six ways to cut them, noise from none to more than the embedding,
eigenvalues withheld or columns rotated in some, and numbers rounded in some. A seed draws the same
each time.
F1, expected F1 and floor are over the edges that some patch contains. Results are appended to a file (the
variable RESULTS, or self_knowledge.jsonl) and skipped when they are there already.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest.mock import patch

from command import Part, at_least, parse

if __name__ == "__main__":
    a_number = {"metavar": "SEED", "type": at_least(0)}
    how_many = {"metavar": "COUNT", "type": at_least(1), "nargs": "?", "default": 78}
    run = parse(__doc__, {
        "generated": Part(lambda seed, count: generated(seed, count), "drawn instances, 78 of them by default",
                          "~ 5 minutes", (a_number, how_many)),
        "real": Part(lambda seed: real(seed), "instances of real graphs; needs the data", "~ 10 minutes", (a_number,)),  # noqa: E501
        "ablation": Part(lambda seed, parts: ablation(seed, parts), "what each part of the attack is worth",
                         "~ 1 minute per part", (a_number, {"metavar": "NAME", "nargs": "*"})),
        "show": Part(lambda: show(), "what has been measured so far, once more", "1 s"),
    })  # fmt: skip

import networkx as nx
import numpy as np

import lograb
from lograb.attacks.posterior import peeling, row_degrees, volumes
from lograb.metrics import calibration
from lograb.pairs import edge_keys

STORE = Path(os.environ.get("RESULTS", "self_knowledge.jsonl"))
CLOSE, FAR, BELOW = 0.05, 0.15, 0.02
"""How far the expected F1 may be off, at most; and by how much F1 may be under the floor."""


def sbm(inside: float, outside: float) -> Callable[[int, int], nx.Graph]:
    """Four groups with some mean number of neighbours inside and outside."""
    def draw(n: int, seed: int) -> nx.Graph:
        p, q = inside / (n / 4), outside / (3 * n / 4)
        return nx.Graph(nx.stochastic_block_model([n // 4] * 4, q + (p - q) * np.eye(4), seed=seed).edges)
    return draw  # fmt: skip


def cliques(n: int, seed: int) -> nx.Graph:
    """Groups of nodes near each other on a ring, of sizes with a heavy tail, all members of each joined."""
    rng, graph = np.random.default_rng(seed), nx.empty_graph(n)
    for _ in range(n // 2):
        size, centre = min(int(2 + rng.pareto(1.3)), 13), rng.integers(n)
        graph.add_edges_from(combinations(np.unique((centre + rng.normal(0, 15, size).astype(int)) % n).tolist(), 2))  # noqa: E501
    return graph


def mixture(n: int, seed: int) -> nx.Graph:
    """Pieces that hang together no further: random graphs, cycles, cliques, stars, single nodes."""
    pieces = [nx.gnm_random_graph(n // 4, n // 2, seed=seed), nx.barabasi_albert_graph(n // 4, 3, seed=seed)]
    pieces += [nx.cycle_graph(9)] * (n // 60) + [nx.complete_graph(6)] * (n // 60) + [nx.star_graph(8)] * (n // 60)
    pieces += [nx.empty_graph(max(n - sum(map(len, pieces)), 0))]
    return nx.disjoint_union_all(pieces)


KINDS: dict[str, tuple[tuple[int, int], Callable[[int, int], nx.Graph]]] = {
    "citation": ((300, 800), lambda n, seed: nx.powerlaw_cluster_graph(n, 2, 0.4, seed=seed)),
    "blocks, dense": ((120, 260), sbm(14, 3)),
    "blocks, sparse": ((240, 700), sbm(3.5, 0.7)),
    "hubs": ((300, 700), lambda n, seed: nx.barabasi_albert_graph(n, 2, seed=seed)),
    "hubs, dense": ((150, 400), lambda n, seed: nx.powerlaw_cluster_graph(n, 9, 0.5, seed=seed)),
    "small world": ((200, 600), lambda n, seed: nx.watts_strogatz_graph(n, 6, 0.1, seed=seed)),
    "lattice": ((144, 500), lambda n, seed: nx.grid_2d_graph(int(n**0.5), int(n**0.5), periodic=bool(seed % 2))),
    "cliques": ((300, 800), cliques),
    "geometric": ((150, 500), lambda n, seed: nx.random_geometric_graph(n, (8 / (np.pi * n)) ** 0.5, seed=seed)),
    "tree": ((150, 600), lambda n, seed: nx.random_labeled_tree(n, seed=seed)),
    "regular": ((100, 400), lambda n, seed: nx.random_regular_graph(3 + seed % 4, 2 * (n // 2), seed=seed)),
    "mixture": ((200, 600), mixture),
    "small": ((40, 110), lambda n, seed: nx.gnp_random_graph(n, 0.12, seed=seed)),
}
"""Range of sizes, and what draws a graph of n nodes."""
CUTS: dict[str, tuple[dict[str, Any], tuple[float, ...]]] = {
    "1 hop": ({"d": 1}, (0, 0.05, 0.1, 0.2, 0.5, 1, 3)),
    "2 hops": ({"d": 2}, (0, 0.05, 0.1, 0.2, 0.5, 1)),
    "clusters": ({"strategy": "cluster", "cluster_size": 40}, (0, 0.02, 0.05, 0.1, 0.3, 1)),
    "silos": ({"strategy": "cluster", "clusters": 3}, (0, 1e-3, 0.005, 0.02, 0.05, 0.2)),
    "global": ({"strategy": "global"}, (0, 1e-4, 2e-3, 0.01, 0.03)),
    "random": ({"strategy": "random", "d": 2}, (0, 0.02, 0.1, 0.3, 2)),
}
"""How a graph is cut, and what σ may be."""
# source, parameters, numbers as
REAL: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("cora", {"d": 1, "p": 0.6, "sigma": 0.1}, "float64"), ("cora", {"d": 1, "p": 0.6, "sigma": 0.5}, "float64"),
    ("cora", {"d": 1, "p": 0.6, "sigma": 1.0, "eigenvalues": False}, "float64"),
    ("cora", {"d": 2, "p": 0.6, "sigma": 0.1}, "float32"),
    ("cora", {"d": 2, "p": 0.6, "sigma": 0.05, "gauge": "rotation"}, "float64"),
    ("cora", {"d": 2, "p": 0.6, "sigma": 0.05, "eigenvalues": False}, "float64"),
    ("cora", {"strategy": "cluster", "clusters": 40, "sigma": 0.02}, "float64"),
    ("cora", {"strategy": "cluster", "clusters": 20, "sigma": 0.02}, "float64"),
    ("cora", {"strategy": "cluster", "clusters": 10, "sigma": 0.02}, "float64"),
    ("cora", {"strategy": "cluster", "clusters": 5, "sigma": 0.02}, "float64"),
    ("cora", {"strategy": "cluster", "clusters": 5}, "float32"),
    ("citeseer", {"d": 1, "p": 0.6, "sigma": 0.05}, "float16"),
    ("citeseer", {"strategy": "cluster", "p": 0.6, "sigma": 0.05}, "float64"),
    ("citeseer", {"strategy": "cluster", "p": 0.6, "sigma": 0.2}, "float64"),
    ("citeseer", {"strategy": "cluster", "p": 0.6, "sigma": 0.05, "eigenvalues": False}, "float64"),
    ("citeseer", {"strategy": "random", "p": 0.6, "sigma": 0.05}, "float64"),
)  # fmt: skip


def drawn(seed: int, number: int) -> tuple[dict[str, Any], lograb.Instance, lograb.Observations]:
    """Draw an instance: what it is, with the truth, and what is seen of it."""
    rng = np.random.default_rng((seed, number))
    kind = list(KINDS)[number % len(KINDS)]
    cut = list(CUTS)[(number + number // len(KINDS)) % len(CUTS)]
    (least, most), draw = KINDS[kind]
    parameters, levels = CUTS[cut]
    graph = nx.convert_node_labels_to_integers(draw(int(rng.integers(least, most)), int(rng.integers(2**31))))
    chosen = parameters | {
        "p": float(rng.choice([0.3, 0.6] if cut == "1 hop" else [0.6, 1.0])), "k": int(rng.choice([8, 16, 32, 64])), "sigma": float(rng.choice(levels)),  # noqa: E501
        "eigenvalues": bool(rng.random() > 0.25), "gauge": "rotation" if rng.random() < 0.15 else "sign"}  # fmt: skip  # noqa: E501
    precision = str(rng.choice(["float64", "float64", "float32", "float16"]))
    instance = lograb.generate(graph, seed=int(rng.integers(2**31)), **chosen)
    told = {"graph": kind, "nodes": len(graph), "cut": cut, "precision": precision,
            **{name: chosen[name] for name in ("p", "k", "sigma", "eigenvalues", "gauge")}}  # fmt: skip
    return told, instance, rounded(instance, precision)


def rounded(instance: lograb.Instance, precision: str) -> lograb.Observations:
    """What is seen of an instance whose embeddings were stored in some type."""
    seen = instance.observe()
    return replace(seen, vectors=seen.vectors.astype(precision).astype(np.float64))


def measure(instance: lograb.Instance, seen: lograb.Observations) -> dict[str, Any]:
    """Attack what is seen, and compare with the truth."""
    start = time.process_time()
    answer = lograb.attack(seen, "posterior")
    seconds = time.process_time() - start
    true = edge_keys(instance.truth.edges[instance.co_observed], seen.n_nodes)
    floor = lograb.attack(seen, "membership")
    return {"f1": f1(answer, true), "expected": answer.diagnostics["expected"]["f1"], "floor": f1(floor, true),
            "edges": len(true), "claimed": len(answer.edges), "right": share(answer, true),
            "expected_right": answer.diagnostics["expected"]["precision"], "seconds": seconds}  # fmt: skip


def share(answer: lograb.Reconstruction, true: np.ndarray) -> float:
    """Precision."""
    return float(np.isin(edge_keys(answer.edges, answer.n_nodes), true).mean()) if len(answer.edges) else 0.0


def f1(answer: lograb.Reconstruction, true: np.ndarray) -> float:
    """F1 over the edges that some patch contains."""
    right = share(answer, true) * len(answer.edges)
    return 2 * right / max(len(answer.edges) + len(true), 1)


def remembered() -> dict[str, dict[str, Any]]:
    """All results so far, by what they belong to."""
    lines = STORE.read_text().splitlines() if STORE.exists() else []
    return {line["key"]: line for line in map(json.loads, lines)}


def collect(keys: list[str], draw: Callable[[int], tuple[dict[str, Any], lograb.Instance, lograb.Observations]]) -> None:  # noqa: E501
    """Measure what has not been measured yet, and show all."""
    for number, key in enumerate(keys):
        if key not in remembered():
            told, instance, seen = draw(number)
            found = {"key": key, **told, **measure(instance, seen)}
            with STORE.open("a") as file:
                file.write(json.dumps(found) + "\n")
            print(row(found), flush=True)
    done = remembered()
    summarise([done[key] for key in keys])


def generated(seed: int, count: int) -> None:
    collect([f"generated {seed} {number}" for number in range(count)], lambda number: drawn(seed, number))


def real(seed: int) -> None:
    def draw(number: int) -> tuple[dict[str, Any], lograb.Instance, lograb.Observations]:
        source, parameters, precision = REAL[number]
        instance = lograb.generate(source, seed=seed, k=32, **parameters)
        cut = parameters.get("strategy", f"{parameters.get('d')} hops") + f" {parameters.get('clusters', '')}"
        told = {"graph": source, "nodes": instance.n_nodes, "cut": cut, "precision": precision, "k": 32, "sigma": 0.0,  # noqa: E501
                "p": 1.0, "eigenvalues": True, "gauge": "sign"}  # fmt: skip
        return told | parameters, instance, rounded(instance, precision)

    collect([f"real {seed} {number}" for number in range(len(REAL))], draw)


def row(found: dict[str, Any]) -> str:
    off = found["expected"] - found["f1"]
    marks = "!" * ((abs(off) > CLOSE) + (abs(off) > FAR)) + "v" * (found["f1"] < found["floor"] - BELOW)
    also = " ".join([*(["withheld"] if not found["eigenvalues"] else []), *(["rotated"] if found["gauge"] != "sign" else []),  # noqa: E501
                     *([found["precision"]] if found["precision"] != "float64" else [])])  # fmt: skip
    return (f"| {found['graph']} | {found['nodes']} | {found['cut']} | {found['k']} | {found['sigma']} | {also} | "
            f"{found['f1']:.3f} | {found['expected']:.3f} | {found['floor']:.3f} | {marks} | {found['seconds']:.1f} | "  # noqa: E501
            f"{found['key']}")  # fmt: skip


def groups(results: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for name in ("graph", "cut"):
        for value in dict.fromkeys(found[name] for found in results):
            yield f"{value}", [found for found in results if found[name] == value]
    yield "**all**", results


def summarise(results: list[dict[str, Any]]) -> None:
    print("\n| instances | number | F1 | expected | floor | within 0.05 | beyond 0.15 | below the floor | seconds |\n"  # noqa: E501
          "|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for name, some in groups(results):
        f1, expected, floor, seconds = (np.array([found[key] for found in some])
                                        for key in ("f1", "expected", "floor", "seconds"))  # fmt: skip
        off = np.abs(expected - f1)
        print(f"| {name} | {len(some)} | {f1.mean():.3f} | {expected.mean():.3f} | {floor.mean():.3f} | "
              f"{(off <= CLOSE).sum()} | {(off > FAR).sum()} | {(f1 < floor - BELOW).sum()} | {seconds.mean():.1f} |")  # noqa: E501


def show() -> None:
    done = [found for found in remembered().values() if "graph" in found]  # else of an ablation
    print("\n".join(map(row, done)))
    summarise(done)


def usual(**fixed: float) -> Callable[[list[Any], list[Any]], volumes.Usual]:
    """Learn what is usual, but for some of it."""
    learn = volumes.usual_degrees
    return lambda batches, firsts: replace(learn(batches, firsts), **fixed)


def without_doubt(kernel: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Degrees that may be others count as unknown."""
    component, degrees, doubt = row_degrees.whole_degrees(kernel, error)
    return component, np.where(doubt > 0, -1, degrees), doubt


def certain_left(first: Any, degrees: Any, counted: np.ndarray, can: np.ndarray) -> np.ndarray:
    """What is left of degrees if they were certain: the known edges are subtracted."""
    left = degrees.mean - counted
    left[first.hubs] = 0.0
    return np.maximum(left, 0.1)


CHECKED, SOLVED = ("hop", "clusters", "silos", "global"), ("2 hops, exact", "silos, exact", "global")
PARTS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "nothing": ({}, ()),
    "descent": ({"mending.MAX_DESCENT": 0}, CHECKED),
    "exchanges": ({"exchanges.swaps": lambda patch, state: np.full(state.graph.shape, np.inf)}, CHECKED),
    "thinned degrees": ({"fusion.degrees_left": certain_left}, ("hop",)),
    "isolated members": ({"posterior.drop_isolated": lambda seen, variance, exact: seen}, CHECKED[1:]),
    "whole volumes": ({"volumes.whole_volumes": lambda first, about, *far: about,
                       "relaxing.whole_volumes": lambda first, about: about}, ("exact", "silos", "global")),
    "solving as a whole": ({"relaxing.WORK": 0.0}, ("clusters", "silos", "global")),
    "a share of the solution under noise": ({"relaxing.SHARE": 0.0}, ("clusters", "silos", "global")),
    "fourth moments": ({"volumes.FOURTH_ERROR": 1e9}, ("1 hop",)),
    "linear programs": ({"peeling.LEVELS": tuple(x for x in peeling.LEVELS if x[0] != peeling.PROGRAM)}, SOLVED),
    "decimal places": ({"precision._decimal_step": lambda flat: 0.0}, SOLVED),
    "doubtful degrees": ({"rows.whole_degrees": without_doubt}, SOLVED),
    "spread of degrees": ({"fusion.usual_degrees": usual(spread=0.5)}, ("",)),
    "rims of hubs": ({"fusion.hubs": lambda batch, centres: np.full(len(batch.which), -1)}, ("1 hop",)),
    "share of dense rims": ({"fusion.usual_degrees": usual(dense=0.25)}, ("1 hop",)),
    "typical volume": ({"fusion.usual_degrees": usual(ratio=4.0)}, ("withheld", "rotated")),
    "eigenvalues found in rows": ({"withheld.find_values": lambda vectors, error: None}, ("withheld",)),
    "volumes far away": ({"volumes.FAR": 1}, ("withheld", "rotated")),
    "companions": ({"beliefs.COMPANIONS": (0.0, 0.0)}, ("hop", "clusters", "silos")),
    "balls as a whole": ({"ball_graphs.LEAST_ASKED": 2.0}, ("2 hops",)),
    "nearly everybody inside": ({"ball_graphs.MOST_INSIDE": 2.0}, ("2 hops",)),
    "balls that are borne out": ({"ball_graphs.BORNE_OUT": 2.0}, ("rotated",)),
    "least volume told": ({"volumes.LEAST_TOLD": 0.0}, ("",)),
    "homes in clusters": ({"fusion.odds_with_halos": lambda scene, works, keys, by_chance, free: by_chance},
                          ("clusters", "silos")),
    "a second walk": ({"ball_graphs.agreed": lambda one, other: (one, 1.0)}, ("2 hops",)),
    "exchanges in walks": ({"ball_graphs.EXCHANGES": 0.0}, ("2 hops",)),
    "turns in walks": ({"ball_graphs.TURNS": 0.0}, ("2 hops",)),
    "tempering": ({"temper.TRUST": 0.0, "temper.TOLERANCE": 1e9}, ("",)),
    "withheld eigenvalues found": (
        {"gauge._from_signs": lambda batch, *known: 0.0 * batch.mu + np.linspace(1.0, -1.0, batch.rank)},
        ("withheld",)),
    "two flips": ({"mending._with_others": lambda *given: None}, CHECKED),
    "checks again": ({"checksum.TIMES": 0}, ("2 hops",)),
    "messages along paths": ({"paths.unsure": lambda beliefs: True}, ("2 hops",)),
    "classes of twins": ({"rows.CLASSES_TO": 0.0}, SOLVED),
    "measured dispersion": ({"fusion.LEAST_DISPERSION": 1.0}, ("noise", "withheld", "rotated")),
    "factor that patches share": ({"fusion.SHARED": 0.0}, ("hop", "clusters")),
    "factors of what is hidden": ({"evidence.FACTORS": 1}, ("",)),
    "error of guesses": ({"evidence.GUESS_ERROR": 0.0}, ("",)),
}  # fmt: skip
"""What takes the place of a part that is left out, and words for what is shared where it plays one."""
FAMILIES: dict[str, tuple[str, ...]] = {
    "sparse": ("citation", "mixture", "blocks, sparse", "tree"),
    "dense": ("blocks, dense", "hubs, dense"),
    "cliques": ("cliques", "small world"),
    "planar": ("lattice", "geometric", "regular"),
    "hubs": ("hubs", "power law"),
}
"""Five kinds of graphs, each drawn in several ways, which take turns."""
SHARED: dict[str, dict[str, Any]] = {
    "1 hop, noise": {"d": 1, "k": 16, "sigma": 0.15},
    "1 hop, strong noise": {"d": 1, "k": 8, "sigma": 0.3},
    "2 hops, exact": {"d": 2, "k": 16, "sigma": 0.0},
    "2 hops, weak noise": {"d": 2, "k": 32, "sigma": 0.05},
    "2 hops, noise": {"d": 2, "k": 64, "sigma": 0.1},
    "2 hops, strong noise": {"d": 2, "k": 32, "sigma": 0.2},
    "clusters, exact": {"strategy": "cluster", "cluster_size": 30, "k": 8, "sigma": 0.0},
    "clusters, noise": {"strategy": "cluster", "cluster_size": 30, "k": 16, "sigma": 0.05},
    "clusters, strong noise": {"strategy": "cluster", "cluster_size": 30, "k": 64, "sigma": 0.1},
    "silos, exact": {"strategy": "cluster", "clusters": 2, "k": 32, "sigma": 0.0},
    "silos, noise": {"strategy": "cluster", "clusters": 2, "k": 32, "sigma": 0.02},
    "global, exact": {"strategy": "global", "k": 16, "sigma": 0.0},
    "global, exact in float32": {"strategy": "global", "k": 32, "sigma": 0.0},
    "global, exact but for 5e-4": {"strategy": "global", "k": 64, "sigma": 5e-4},
    "withheld from 2 hops": {"d": 2, "k": 32, "sigma": 0.05, "eigenvalues": False},
    "withheld from clusters": {"strategy": "cluster", "cluster_size": 30, "k": 64, "sigma": 0.02,
                               "eigenvalues": False},
    "rotated 2 hops": {"d": 2, "k": 16, "sigma": 0.02, "gauge": "rotation"},
    "global, exact to 7 decimals": {"strategy": "global", "k": 32, "sigma": 0.0},
    "withheld from global, exact": {"strategy": "global", "k": 16, "sigma": 0.0, "eigenvalues": False},
}
"""What is shared of a graph: each part of the attack is meant for some of these."""


def power_law(n: int, seed: int) -> nx.Graph:
    """Edges at random for degrees with a heavy tail: hubs with a quarter of all nodes."""
    weights = np.minimum(2.0 * (1.0 + np.random.default_rng(seed).pareto(1.3, n)), n / 4)
    return nx.expected_degree_graph(weights.tolist(), seed=seed, selfloops=False)


def shared_instance(seed: int, family: str, shared: str) -> tuple[lograb.Instance, lograb.Observations]:
    """Draw an instance of a kind of graphs, and what is seen of it."""
    number = list(SHARED).index(shared)
    rng = np.random.default_rng((seed, list(FAMILIES).index(family), number))
    name = FAMILIES[family][number % len(FAMILIES[family])]
    draw = power_law if name == "power law" else KINDS[name][1]
    graph = draw(int(rng.integers(150, 190)), int(rng.integers(2**31)))
    edges = np.array(nx.convert_node_labels_to_integers(graph).edges())
    p = 1.0 if SHARED[shared].get("strategy") else 0.6
    plain = lograb.Graph.from_edges(name, len(graph), edges)
    instance = lograb.generate(plain, p=p, seed=int(rng.integers(2**31)), **SHARED[shared])
    seen = rounded(instance, "float32" if "float32" in shared else "float64")
    return instance, replace(seen, vectors=seen.vectors.round(7)) if "decimals" in shared else seen


def without(part: str, seed: int, family: str, shared: str, done: dict[str, Any]) -> dict[str, Any]:
    """What the attack without a part reaches on an instance: F1, and log loss over that of the base rate."""
    patches, words = PARTS[part]
    if not any(word in shared for word in words):  # where it plays no part
        part, patches = "nothing", {}
    key = f"{seed} | {part} | {family} | {shared}"
    if key not in done:
        instance, seen = shared_instance(seed, family, shared)
        with ExitStack() as stack:
            for target, value in {"rows.BUDGET": 1e7, **patches}.items():
                stack.enter_context(patch(f"lograb.attacks.posterior.{target}", value))
            start = time.process_time()
            answer = lograb.attack(seen, "posterior")
            seconds = time.process_time() - start
        true = edge_keys(instance.truth.edges[instance.co_observed], seen.n_nodes)
        edges = np.isin(edge_keys(answer.judged, seen.n_nodes), true)
        told = calibration(answer.judged_scores, edges, len(true), answer.diagnostics["judged"],
                           answer.diagnostics["unlisted"])  # fmt: skip
        done[key] = {"key": key, "f1": f1(answer, true), "loss": 1.0 - told["skill"], "seconds": seconds}
        with STORE.open("a") as file:
            file.write(json.dumps(done[key]) + "\n")
    return done[key]


def ablation(seed: int, parts: list[str]) -> None:
    """Leave out one part of the attack after the other, on the same instances."""
    done = remembered()
    print(f"| part | {' | '.join(FAMILIES)} | withheld, rotated | least F1 | seconds |\n"
          f"|{'---|' * (len(FAMILIES) + 4)}")  # fmt: skip
    for part in parts or list(PARTS):
        runs = {(family, shared): [without(name, seed, family, shared, done) for name in ("nothing", part)]
                for family in FAMILIES for shared in SHARED}  # fmt: skip
        groups: dict[str, list[Any]] = {name: [] for name in (*FAMILIES, "gauges")}
        for (family, shared), run in runs.items():
            groups["gauges" if shared.startswith(("withheld", "rotated")) else family].append(run)
        lost = {key: run[1]["f1"] - run[0]["f1"] for key, run in runs.items()}
        worst = min(lost, key=lost.__getitem__)
        before, after = (sum(run[n]["seconds"] for run in runs.values()) for n in range(2))
        cells = [part, *map(compared, groups.values()), f"{lost[worst]:+.3f} ({': '.join(worst)})"]
        print(f"| {' | '.join(cells)} | {after / before:.2f} |", flush=True)


def compared(runs: list[list[dict[str, Any]]]) -> str:
    """Change of the mean log loss in percent, and of the mean F1 in units of 0.0001."""
    loss, f1 = (np.array([[found[name] for found in run] for run in runs]).mean(axis=0) for name in ("loss", "f1"))
    return f"{100 * (loss[1] / loss[0] - 1):+.0f} %, {1e4 * (f1[1] - f1[0]):+.0f}"


if __name__ == "__main__":
    run()
