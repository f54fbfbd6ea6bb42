"""How good and how well calibrated the posterior attack is, over seeds, beside floor and ceiling.

All but simulation and generated need the real data (LOGRAB_MIRROR or the cache). Results of table, grid,
calibration and reliability are appended to attack_quality.jsonl (or to the file in the variable RESULTS) and
skipped when they are there already; Markdown rows are printed as they are done.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from command import Part, one_of, parse

if __name__ == "__main__":
    some_rows = {"metavar": "ROW", "nargs": "*", "type": one_of(range(1, 15))}
    run = parse(__doc__, {
        "table": Part(lambda rows: table(rows or list(ROWS)), "real instances, rows 1 to 14, three seeds",
                      "~ half an hour", (some_rows,)),
        "grid": Part(lambda: grid(), "the 54 scenarios of Cora: never below the floor", "~ 15 minutes"),
        "calibration": Part(lambda: pooled_calibration(),
                            "noisy scenarios with d = 2 of Cora and CiteSeer, eight seeds pooled", "~ 2 hours"),
        "channels": Part(lambda rows: channels(rows or [1, 3, 7]), "which channel leaks what, rows 1, 3 and 7",
                         "~ 1 minute", (some_rows,)),
        "speed": Part(lambda: speed(), "seconds and memory, up to 170,000 nodes", "~ 5 minutes"),
        "reliability": Part(lambda file: draw(file), "promised against found shares of edges, as an SVG",
                            "1 s after table 11 and calibration", ({"metavar": "FILE", "type": Path},)),
        "simulation": Part(lambda: simulation(), "calibration on graphs drawn from the attack's own model",
                           "2 minutes"),
        "generated": Part(lambda: generated(), "graphs of other kinds, on which the attack was developed",
                          "~ 6 minutes"),
    }, default="table")  # fmt: skip

import networkx as nx
import numpy as np

import lograb
from lograb.metrics import calibration, calibration_error, reliability
from lograb.metrics.calibration import UNDECIDED
from lograb.pairs import edge_keys

SEEDS = (0, 1, 2)
POOLED = range(8)
"""Seeds of the noisy scenarios: few pairs stay undecided in each."""
STORE = Path(os.environ.get("RESULTS", "attack_quality.jsonl"))
# number: (source, parameters, AFR as printed, what was asked for: a share of the ceiling, or an F1)
ROWS: dict[int, tuple[str, dict[str, Any], str, str]] = {
    1: ("cora", {"d": 1, "k": 32, "sigma": 0.05}, "0.743", "0.993 of ceiling"),
    2: ("cora", {"d": 1, "k": 32, "sigma": 0.1}, "0.691", "0.984 of ceiling"),
    3: ("cora", {"d": 2, "k": 32, "sigma": 0.05}, "0.780", "0.965"),
    4: ("cora", {"d": 2, "k": 32, "sigma": 0.0}, "–", "0.995"),
    5: ("cora", {"d": 2, "k": 16, "sigma": 0.0}, "–", "0.990"),
    6: ("cora", {"d": 2, "k": 32, "sigma": 0.1}, "–", "0.85"),
    7: ("citeseer", {"d": 1, "k": 32, "sigma": 0.05}, "0.741", "0.996 of ceiling"),
    8: ("citeseer", {"strategy": "cluster", "k": 32, "sigma": 0.05}, "0.799", "0.97 of ceiling"),
    9: ("citeseer", {"strategy": "random", "k": 32, "sigma": 0.05}, "0.717", "0.97 of ceiling"),
    10: ("proteins", {"d": 1, "k": 32, "sigma": 0.05}, "0.621", "0.995 of ceiling"),
    11: ("blogcatalog", {"d": 1, "k": 32, "sigma": 0.05}, "0.645", "not below membership"),
    12: ("blogcatalog", {"d": 1, "k": 32, "sigma": 0.0}, "–", "clearly above membership"),
    13: ("pubmed", {"d": 1, "k": 32, "sigma": 0.05}, "0.728", "–"),
    14: ("superpixels", {"d": 2, "k": 32, "sigma": 0.05}, "–", "–"),
}


def remembered(source: str, parameters: dict[str, Any], seed: int) -> dict[str, Any]:
    """Look a result up, or measure it and keep it."""
    key = {"source": source, "seed": seed, "p": 0.6, **parameters}
    wanted = json.dumps(key, sort_keys=True)
    if STORE.exists():
        for line in STORE.read_text().splitlines():
            record = json.loads(line)
            if json.dumps(record["key"], sort_keys=True) == wanted:
                return dict(record["value"])
    value = measure(source, key, seed)
    with STORE.open("a") as file:
        file.write(json.dumps({"key": key, "value": value}) + "\n")
    return dict(value)


def measure(source: str, parameters: dict[str, Any], seed: int) -> dict[str, Any]:
    """Run the attack on one instance: F1, calibration, floor, ceiling; `parameters` include the seed."""
    instance = lograb.generate(source, **{k: v for k, v in parameters.items() if k != "source"})
    runs = [lograb.attack(graph, "posterior", seed=seed) for graph in instance]
    score = lograb.evaluate(instance, runs)
    told, scores, true = judge(zip(instance, runs))
    doubtful = (scores > UNDECIDED[0]) & (scores < UNDECIDED[1])
    return {"f1": score.f1, "recovered": score.recovered, "seconds": sum(answer.seconds for answer in runs),
            "floor": score.floor, "ceiling": score.ceiling, **told,
            "open": scores[doubtful].tolist(), "edges": true[doubtful].tolist()}  # fmt: skip


def attacked(sources: Iterable[Any], parameters: dict[str, Any]) -> Iterable[tuple[lograb.Instance, Any]]:
    """Attack an instance of each source, one for each seed."""
    for source, seed in zip(sources, SEEDS):
        for graph in lograb.generate(source, p=0.6, seed=seed, **parameters):
            yield graph, lograb.attack(graph, "posterior", seed=seed)


def judge(runs: Iterable[tuple[lograb.Instance, Any]]) -> tuple[dict[str, float], np.ndarray, np.ndarray]:
    """Pool answers to several graphs: calibration, the probabilities of all listed pairs, and which are edges."""
    probabilities, true, n_pairs, n_true, unlisted = [], [], 0, 0, 0.0
    for graph, answer in runs:
        keys = edge_keys(answer.judged, answer.n_nodes)
        probabilities.append(answer.judged_scores)
        true.append(np.isin(keys, edge_keys(graph.truth.edges, answer.n_nodes)))
        n_pairs += answer.diagnostics["judged"]
        unlisted += answer.diagnostics["unlisted"] * (answer.diagnostics["judged"] - len(keys))
        n_true += int(graph.co_observed.sum())
    scores, found = np.concatenate(probabilities), np.concatenate(true)
    told = calibration(scores, found, n_true, n_pairs, unlisted / max(n_pairs - len(scores), 1))
    return {**told, "true": n_true, "promised": float(scores.sum() + unlisted)}, scores, found


def table(rows: list[int]) -> None:
    print("| instance (p = 0.6) | AFR, paper | asked for | posterior | recovered | floor | ceiling | "
          "of ceiling | skill | ECE, seeds pooled | by chance alone | undecided | s |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for number in rows:
        source, parameters, paper, asked = ROWS[number]
        found = [remembered(source, parameters, seed) for seed in SEEDS]

        def mean(name: str, found: list[dict[str, Any]] = found) -> float:
            return float(np.mean([f[name] for f in found]))

        spread = np.std([f["f1"] for f in found], ddof=1)
        share = np.mean([f["f1"] / f["ceiling"] for f in found])
        error = pooled_error(found)
        print(f"| {number} {source} {parameters} | {paper} | {asked} | {mean('f1'):.4f} ± {spread:.4f} | "
              f"{mean('recovered'):.4f} | {mean('floor'):.4f} | {mean('ceiling'):.4f} | {share:.4f} | "
              f"{mean('skill'):.3f} | {error['error']:.3f} | {error['by_chance']:.3f} | "
              f"{error['undecided']:.0f} | {mean('seconds'):.1f} |", flush=True)  # fmt: skip


def grid() -> None:
    results = []
    print("| d | k | σ | p | posterior | floor | ceiling |\n|---|---|---|---|---|---|---|")
    for d, k, sigma, p in itertools.product((1, 2), (16, 32, 64), (0.0, 0.05, 0.1), (0.6, 0.8, 1.0)):
        found = remembered("cora", {"d": d, "k": k, "sigma": sigma, "p": p}, 0)
        results.append(found)
        print(f"| {d} | {k} | {sigma} | {p} | {found['f1']:.4f} | {found['floor']:.4f} | {found['ceiling']:.4f} |",
              flush=True)  # fmt: skip
    error = pooled_error(results)
    below = sum(found["f1"] < found["floor"] for found in results)
    print(f"\nBelow the floor: {below} of 54. All pooled, ECE {error['error']:.3f} over {error['undecided']:.0f} "
          f"undecided pairs, by chance {error['by_chance']:.3f}.")  # fmt: skip


def undecided(results: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Collect the undecided pairs of several results: their probabilities, and which are edges."""
    return (np.array([p for found in results for p in found["open"]]),
            np.array([e for found in results for e in found["edges"]], dtype=bool))  # fmt: skip


def pooled_error(results: list[dict[str, Any]]) -> dict[str, float]:
    """Calibration error over the undecided pairs of several results together."""
    return calibration_error(*undecided(results))


NOISY = [{"d": 2, "k": k, "sigma": sigma, "p": p}
         for k, sigma, p in itertools.product((16, 32, 64), (0.05, 0.1), (0.6, 0.8, 1.0))]  # fmt: skip


def pooled_calibration() -> None:
    """Pool the scenarios of the grid that leave pairs undecided: in each alone there are too few of them."""
    print("| graph | instances | F1 | least skill | undecided | promised | edges | ECE | by chance |")
    print("|---|---|---|---|---|---|---|---|---|")
    for source in ("cora", "citeseer"):
        found = [remembered(source, scenario, seed) for scenario in NOISY for seed in POOLED]
        error = pooled_error(found)
        f1, skill = ([result[name] for result in found] for name in ("f1", "skill"))
        promised, edges = (sum(sum(result[name]) for result in found) for name in ("open", "edges"))
        print(f"| {source} | {len(found)} | {np.mean(f1):.4f} | {min(skill):.3f} | {error['undecided']:.0f} | "
              f"{promised:.0f} | {edges} | {error['error']:.3f} | {error['by_chance']:.3f} |",
              flush=True)  # fmt: skip


def channels(rows: list[int]) -> None:
    print("| instance | membership | and eigenvectors | and eigenvalues |\n|---|---|---|---|")
    for number in rows:
        source, parameters, _, _ = ROWS[number]
        instance = lograb.generate(source, p=0.6, seed=0, **parameters)
        found = [lograb.evaluate(instance, lograb.attack(instance, lograb.attacks.Posterior(channels=names))).f1
                 for names in (("membership",), ("membership", "eigenvectors"),
                               ("membership", "eigenvectors", "eigenvalues"))]  # fmt: skip
        print(f"| {number} {source} {parameters} | " + " | ".join(f"{f:.4f}" for f in found) + " |", flush=True)


def speed() -> None:
    print("| instance | seconds | processor seconds | peak GiB so far |\n|---|---|---|---|")
    for source, d in (("cora", 1), ("cora", 2), ("citation-170k", 1)):
        instance = lograb.generate(source, d=d, p=0.6, k=32, sigma=0.05, seed=0)
        start, cpu = time.perf_counter(), time.process_time()
        lograb.attack(instance, "posterior")
        seconds, used = time.perf_counter() - start, time.process_time() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
        print(f"| {source} d={d} | {seconds:.1f} | {used:.1f} | {peak:.2f} |", flush=True)


def drawn_graph(seed: int, n: int = 1500, mean: float = 4.0, spread: float = 1.0) -> lograb.Graph:
    """Draw edges at random for log-normal degrees: the model behind the attack's prior."""
    rng = np.random.default_rng(seed)
    width = np.log1p(spread)
    degrees = mean * np.exp(np.sqrt(width) * rng.standard_normal(n) - width / 2)
    i, j = np.triu_indices(n, k=1)
    edges = rng.random(len(i)) < np.minimum(degrees[i] * degrees[j] / degrees.sum(), 1.0)
    return lograb.Graph.from_edges("drawn", n, np.stack([i[edges], j[edges]], axis=1))


def simulation() -> None:
    print("| instance (p = 0.6, 3 graphs pooled) | edges | promised | skill | ECE | by chance | undecided |")
    print("|---|---|---|---|---|---|---|")
    for parameters in ({"d": 1, "k": 32, "sigma": 0.1}, {"d": 2, "k": 32, "sigma": 0.1},
                       {"strategy": "cluster", "k": 32, "sigma": 0.05}):  # fmt: skip
        told, _, _ = judge(attacked(map(drawn_graph, SEEDS), parameters))
        print(f"| {parameters} | {told['true']} | {told['promised']:.0f} | {told['skill']:.3f} | "
              f"{told['error']:.3f} | {told['by_chance']:.3f} | {told['undecided']:.0f} |",
              flush=True)  # fmt: skip


def cliques(seed: int, n: int = 2000, groups: int = 900, largest: int = 13) -> lograb.Graph:
    """Draw groups of nodes near each other on a ring, of sizes with a heavy tail, and join all members of each."""
    rng = np.random.default_rng(seed)
    graph = nx.empty_graph(n)
    for _ in range(groups):
        size, centre = min(int(2 + rng.pareto(1.3)), largest), rng.integers(n)
        members = np.unique((centre + np.round(rng.normal(0, 25, size)).astype(int)) % n)
        graph.add_edges_from(itertools.combinations(members.tolist(), 2))
    return lograb.Graph.from_edges("cliques", n, np.array(graph.edges()))


def dense(seed: int) -> lograb.Graph:
    graph = nx.powerlaw_cluster_graph(1200, 12, 0.5, seed=seed)
    return lograb.Graph.from_edges("dense", 1200, np.array(graph.edges()))


GENERATED: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("citation", lambda seed: "citation", {"d": 1, "k": 32, "sigma": 0.1}),
    ("citation", lambda seed: "citation", {"d": 2, "k": 32, "sigma": 0.1}),
    ("citation", lambda seed: "citation", {"strategy": "cluster", "k": 32, "sigma": 0.05}),
    ("dense", dense, {"d": 1, "k": 32, "sigma": 0.05}),
    ("dense", dense, {"d": 1, "k": 32, "sigma": 0.1}),
    ("cliques", cliques, {"d": 1, "k": 32, "sigma": 0.1}),
    ("cliques", cliques, {"d": 2, "k": 32, "sigma": 0.05}),
    ("cliques", cliques, {"strategy": "cluster", "k": 32, "sigma": 0.05}),
    ("cliques", cliques, {"d": 2, "k": 32, "sigma": 0.1}),
)


def generated() -> None:
    print("| graph (p = 0.6) | F1 | floor | ceiling | of ceiling | skill | ECE | by chance | undecided |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, draw_graph, parameters in GENERATED:
        runs = list(attacked(map(draw_graph, SEEDS), parameters))
        told, _, _ = judge(runs)
        scores = [lograb.evaluate(graph, answer) for graph, answer in runs]
        f1, floor, ceiling = np.array([(score.f1, score.floor, score.ceiling) for score in scores]).T
        print(f"| {name} {parameters} | {f1.mean():.4f} ± {f1.std(ddof=1):.4f} | {floor.mean():.4f} | "
              f"{ceiling.mean():.4f} | {(f1 / ceiling).mean():.4f} | {told['skill']:.3f} | {told['error']:.3f} | "
              f"{told['by_chance']:.3f} | {told['undecided']:.0f} |", flush=True)  # fmt: skip


RELIABILITY: tuple[tuple[str, str, list[dict[str, Any]]], ...] = (
    ("cora", "Cora, d = 2, 144 noisy instances", NOISY, POOLED),
    ("blogcatalog", "BlogCatalog, d = 1, σ = 0.05, 3 instances", [{"d": 1, "k": 32, "sigma": 0.05}], SEEDS),
)
COLOURS = ("#1f5fa8", "#c2571a")


def draw(path: Path) -> None:
    """Draw the diagram; the area of a dot grows with the number of pairs in its bin."""
    side, margin = 360, 46

    def at(x: float, y: float) -> tuple[float, float]:
        return margin + x * side, margin + (1 - y) * side

    left, bottom = at(0, 0)
    right, top = at(1, 1)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{side + 350}" height="{side + 96}" '
             'font-family="sans-serif" font-size="12" fill="#333">',
             f'<rect width="{side + 350}" height="{side + 96}" fill="white"/>',
             f'<rect x="{left}" y="{top}" width="{side}" height="{side}" fill="none" stroke="#999"/>',
             f'<line x1="{left}" y1="{bottom}" x2="{right}" y2="{top}" stroke="#bbb" stroke-dasharray="4 3"/>']
    for tick in (0, 0.25, 0.5, 0.75, 1):
        x, y = at(tick, tick)
        parts.append(f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{tick:g}</text>')
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{tick:g}</text>')
    parts.append(f'<text x="{left + side / 2}" y="{bottom + 38}" text-anchor="middle">probability given</text>')
    parts.append(f'<text x="14" y="{top + side / 2}" text-anchor="middle" '
                 f'transform="rotate(-90 14 {top + side / 2})">share that are edges</text>')  # fmt: skip
    for row, ((source, title, scenarios, seeds), colour) in enumerate(zip(RELIABILITY, COLOURS)):
        found = [remembered(source, scenario, seed) for scenario in scenarios for seed in seeds]
        promised, share, counts = reliability(*undecided(found))
        print(f"{source}: {pooled_error(found)}", flush=True)
        points = [(*at(x, y), n) for x, y, n in zip(promised, share, counts) if n]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        largest = counts.max()
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{2 + 6 * np.sqrt(n / largest):.1f}" fill="{colour}" '
                  'fill-opacity="0.75"/>' for x, y, n in points]  # fmt: skip
        parts.append(f'<circle cx="{right + 22}" cy="{top + 14 + 40 * row}" r="5" fill="{colour}"/>')
        parts.append(f'<text x="{right + 34}" y="{top + 18 + 40 * row}">{title}</text>'
                     f'<text x="{right + 34}" y="{top + 33 + 40 * row}" fill="#777">{int(counts.sum()):,} '
                     'undecided pairs</text>')
    path.write_text("\n".join([*parts, "</svg>"]) + "\n")


if __name__ == "__main__":
    run()
