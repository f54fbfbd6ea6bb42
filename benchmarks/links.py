"""Task 3 on real data: inter-fragment link prediction, beside the paper's rows and the floors.

Instances of several seeds are pooled. Needs the real data (LOGRAB_MIRROR or the cache) and the extra gnn.
Prints Markdown rows as they are done.
"""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

from command import Part, one_of, parse

if __name__ == "__main__":
    known = one_of(lambda: [*import_module("lograb.learning.links.catalog").LINKS, "neo-gnn-hidden"])
    methods = {"metavar": "METHOD", "nargs": "*", "type": known}
    run = parse(__doc__, {
        "rows": Part(lambda names: rows(names, list(ROWS)),
                     "all rows, or some methods only; floors are methods too", "~ an hour", (methods,)),
        "halo": Part(lambda names: rows(names, [title for title in ROWS if "cluster" in title], "keep"),
                     "clusters with their halos kept", "~ half an hour", (methods,)),
        "counts": Part(lambda: counts(), "how many edges run between fragments, per seed", "5 s"),
    }, default="rows")  # fmt: skip

import numpy as np

import lograb
from lograb.learning.links.catalog import LINKS
from lograb.tasks.fragments import Halo, Negatives, Questions, ask
from lograb.tasks.link_prediction import LinkRun, summarise

SEEDS = (0, 1, 2)
# Neo-GNN as published, and with half of the known edges hidden so that they can be learned from as questions are.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in LINKS} | {
    "neo-gnn-hidden": ("neo-gnn", {"message_share": 0.5})
}
COMMON: dict[str, Any] = {"d": 1, "p": 0.6, "k": 32, "sigma": 0.05}
# Title: (source, strategy, AUROC as printed for cosine, SEAL, Neo-GNN, LightGCN)
ROWS: dict[str, tuple[str, str, dict[str, float]]] = {
    "1 Cora d-hop": ("cora", "d-hop", {"cosine": 90.3, "seal": 94.9, "neo-gnn": 95.2, "lightgcn": 93.5}),
    "- Cora cluster": ("cora", "cluster", {}),
    "- Cora random": ("cora", "random", {}),
    "9 CiteSeer d-hop": ("citeseer", "d-hop", {"cosine": 81.0, "seal": 85.2, "neo-gnn": 84.6, "lightgcn": 83.8}),
    "10 CiteSeer cluster": ("citeseer", "cluster", {"seal": 89.6}),
    "11 CiteSeer random": (
        "citeseer", "random", {"cosine": 84.4, "seal": 91.0, "neo-gnn": 88.9, "lightgcn": 89.3}
    ),
}


def questions_of(title: str, halo: Halo = "drop") -> list[Questions]:
    source, strategy, _ = ROWS[title]
    return [ask(lograb.generate(source, strategy=strategy, seed=seed, **COMMON), halo) for seed in SEEDS]


def pooled(asked: list[Questions], method: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Pool one training per seed, on both kinds of negatives, with the streams of ``lograb link --seed``."""
    kinds: tuple[Negatives, Negatives] = ("uniform", "possible")
    runs: dict[str, list[LinkRun]] = {kind: [] for kind in kinds}
    for seed, questions in zip(SEEDS, asked):
        if questions.reason is not None:
            continue
        draws, learns = np.random.SeedSequence(seed, spawn_key=(0,)).spawn(2)
        others = [questions.negatives(np.random.default_rng(draws), kind) for kind in kinds]
        pairs = np.concatenate([questions.positives, *others])
        name, settings = METHODS[method]
        scores = LINKS[name].score(questions.known, pairs, np.random.default_rng(learns), settings)
        parts = np.split(scores, np.cumsum([len(questions.positives), len(others[0])]))
        for kind, drawn, part in zip(kinds, others, parts[1:]):
            runs[kind].append(LinkRun(questions.positives, drawn, np.concatenate([parts[0], part])))
    return summarise(runs["uniform"]), summarise(runs["possible"])


def cell(found: dict[str, Any]) -> str:
    if found["auroc"] is None:
        return "not applicable"
    low, high = found["interval"]
    return f"{found['auroc']:.3f} ({low:.2f} to {high:.2f})"


def rows(methods: list[str], titles: list[str], halo: Halo = "drop") -> None:
    print("| row | edges asked | method | paper | AUROC | average precision | AUROC, possible pairs | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for title in titles:
        asked = questions_of(title, halo)
        count = sum(len(questions.positives) for questions in asked)
        for method in methods or METHODS:
            start = time.perf_counter()
            found, hard = pooled(asked, method)
            took = (time.perf_counter() - start) / len(SEEDS)
            printed = ROWS[title][2].get(method)
            precision = found["average_precision"]
            paper = "" if printed is None else f"{printed / 100:.3f}"
            average = "" if precision is None else f"{precision:.3f}"
            possible = "" if "cluster" in title else cell(hard)
            print(f"| {title} | {count} | {method} | {paper} | {cell(found)} | {average} | {possible} | "
                  f"{took:.0f} |", flush=True)  # fmt: skip


def counts() -> None:
    print("| row | seed | fragments | largest | known edges | edges between fragments |")
    print("|---|---|---|---|---|---|")
    for title in ROWS:
        for seed, questions in zip(SEEDS, questions_of(title)):
            fragment = questions.known.fragment
            largest = max((fragment == label).sum() for label in range(questions.n_fragments))
            print(f"| {title} | {seed} | {questions.n_fragments} | {largest} | {len(questions.known.edges)} | "
                  f"{len(questions.positives)} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    run()
