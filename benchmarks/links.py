"""Task 3 on real data: inter-fragment link prediction, both readings, beside the paper's rows and the floors.

Instances of several seeds are pooled. Needs the real data (LOGRAB_MIRROR or the cache) and the extra gnn. Every
run is one JSON file in FOLDER: a run that is there is not repeated, so measuring can stop and go on.
"""

from __future__ import annotations

import json
import os
import time
from functools import lru_cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

from command import Part, one_of, parse

if __name__ == "__main__":
    folder = {"metavar": "FOLDER", "type": Path}
    known = one_of(lambda: [*import_module("lograb.learning.links.catalog").LINKS, "seal-inside", "neo-gnn-inside",
                            "lightgcn-inside", "neo-gnn-hidden"])
    source = {"metavar": "SOURCE", "type": one_of(["cora", "citeseer", "pubmed"])}
    run = parse(__doc__, {
        "run": Part(lambda folder, source, names: measure_all(folder, source, names), "measure what FOLDER does "
                    "not hold yet: all methods and floors, or some", "~ 10 minutes for cora, hours for pubmed",
                    (folder, source, {"metavar": "METHOD", "nargs": "*", "type": known})),
        "table": Part(lambda folder: table(folder), "print Markdown from FOLDER", "1 s", (folder,)),
        "counts": Part(lambda source: counts(source), "how many edges run between fragments, per seed", "5 s",
                       (source,)),
    })  # fmt: skip

import numpy as np

import lograb
from lograb.learning.links.catalog import LINKS
from lograb.tasks.fragments import Halo, Negatives, Questions, ask
from lograb.tasks.link_prediction import LinkRun, describe, summarise

SEEDS = (0, 1, 2)
# Methods otherwise than by default: training negatives from inside fragments; Neo-GNN with half of the known edges
# hidden, so that they can be learned from as questions are.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    f"{name}-inside": (name, {"train_negatives": "inside"}) for name in ("seal", "neo-gnn", "lightgcn")
} | {"neo-gnn-hidden": ("neo-gnn", {"message_share": 0.5})}
COMMON: dict[str, Any] = {"d": 1, "p": 0.6, "k": 32, "sigma": 0.05}
ROWS: dict[str, tuple[str, Halo]] = {
    "d-hop": ("d-hop", "drop"), "random": ("random", "drop"), "cluster": ("cluster", "drop"),
    "cluster, haloed": ("cluster", "keep"),
}  # fmt: skip
# AUROC in percent as printed for cosine, SEAL, Neo-GNN, LightGCN
ORDER = ("cosine", "seal", "neo-gnn", "lightgcn")
PRINTED: dict[tuple[str, str], tuple[float | None, ...]] = {
    ("cora", "d-hop"): (90.3, 94.9, 95.2, 93.5), ("citeseer", "d-hop"): (81.0, 85.2, 84.6, 83.8),
    ("citeseer", "cluster"): (None, 89.6, None, None), ("citeseer", "random"): (84.4, 91.0, 88.9, 89.3),
    ("pubmed", "cluster"): (79.4, 86.0, 85.8, 85.1), ("pubmed", "d-hop"): (82.1, 86.5, 84.1, 83.7),
}  # fmt: skip
KINDS: tuple[Negatives, Negatives] = ("uniform", "possible")


@lru_cache(maxsize=1)
def questions_of(source: str, title: str, seed: int) -> Questions:
    strategy, halo = ROWS[title]
    return ask(lograb.generate(source, strategy=strategy, seed=seed, **COMMON), halo)


def measure_all(folder: Path, source: str, names: list[str]) -> None:
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    folder.mkdir(parents=True, exist_ok=True)
    for seed, title in product(SEEDS, ROWS):
        for name in names or LINKS:
            path = folder / f"{source}-{title.replace(', ', '-')}-{name}-{seed}.json"
            if not path.exists():
                found = measure(source, title, name, seed)
                path.write_text(json.dumps(found))
                areas = [pool([found], kind)["auroc"] for kind in KINDS]
                print(path.name, *(f"{area:.3f}" for area in areas), f"{found['seconds']:.0f} s", flush=True)


def measure(source: str, title: str, method: str, seed: int) -> dict[str, Any]:
    """Train once and score on both kinds of negatives, with the streams of ``lograb link --seed``."""
    questions = questions_of(source, title, seed)
    draws, learns = np.random.SeedSequence(seed, spawn_key=(0,)).spawn(2)
    others = {kind: questions.negatives(np.random.default_rng(draws), kind) for kind in KINDS}
    pairs = np.concatenate([questions.positives, *others.values()])
    name, settings = VARIANTS.get(method, (method, {}))
    start = time.perf_counter()
    scores = LINKS[name].score(questions.known, pairs, np.random.default_rng(learns), settings)
    return {"seconds": time.perf_counter() - start, "blind": LINKS[name].is_blind(questions.known, settings),
            "positives": questions.positives.tolist(), "scores": scores.tolist(),
            **{kind: drawn.tolist() for kind, drawn in others.items()}}  # fmt: skip


def pool(runs: list[dict[str, Any]], kind: Negatives) -> dict[str, Any]:
    """Pool seeds: areas averaged by their numbers of edges, an interval that counts every pair once."""
    made = []
    for found in runs:
        positives, others = np.array(found["positives"]), np.array(found[kind])
        first = len(positives) + (len(found["uniform"]) if kind == "possible" else 0)
        scores = np.array(found["scores"])
        parts = [scores[: len(positives)], scores[first : first + len(others)]]
        made.append(LinkRun(positives, others, np.concatenate(parts)))
    return summarise(made)


def cell(runs: list[dict[str, Any]], kind: Negatives) -> str:
    found = pool(runs, kind)
    low, high = found["interval"]
    return f"{found['auroc']:.3f} ({low:.2f} to {high:.2f}){' *' if runs[0]['blind'] else ''}"


def table(folder: Path) -> None:
    print("AUROC, seeds pooled, with its 95 % interval; * nothing relates nodes of different fragments.\n")
    print("| dataset | fragments | method | paper | seeds | edges | AUROC | possible pairs | seconds |")
    print("|---|---|---|---|---|---|---|---|---|")
    for source, title in product(dict.fromkeys(source for source, _ in PRINTED), ROWS):
        printed = dict(zip(ORDER, PRINTED.get((source, title.removesuffix(", haloed")), ())))
        for name in [*LINKS, *VARIANTS]:
            paths = [folder / f"{source}-{title.replace(', ', '-')}-{name}-{seed}.json" for seed in SEEDS]
            runs = [json.loads(path.read_text()) for path in paths if path.exists()]
            if runs:
                paper, edges = printed.get(name), sum(len(found["positives"]) for found in runs)
                print(f"| {source} | {title} | {name} | {'' if paper is None else f'{paper / 100:.3f}'} "
                      f"| {len(runs)} | {edges} | {cell(runs, 'uniform')} "
                      f"| {cell(runs, 'possible') if 'cluster' not in title else ''} "
                      f"| {np.mean([found['seconds'] for found in runs]):.0f} |")  # fmt: skip


def counts(source: str) -> None:
    print("| row | seed | fragments | largest | known edges | edges between fragments |")
    print("|---|---|---|---|---|---|")
    for title in ROWS:
        for seed in SEEDS:
            questions = questions_of(source, title, seed)
            told = describe(questions)
            names = ("fragments", "largest_fragment", "known_edges", "positives")
            print(f"| {source} {title} | {seed} | {' | '.join(str(told[name]) for name in names)} |", flush=True)


if __name__ == "__main__":
    run()
