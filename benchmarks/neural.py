"""The neural attacks on the first row of each dataset, beside the paper's figures, floor and ceiling.

Needs the real data (LOGRAB_MIRROR or the cache) and the extra gnn. Prints Markdown rows as they are done.
"""

from __future__ import annotations

import resource
from typing import Any

from command import Part, one_of, parse

if __name__ == "__main__":
    sources = {"metavar": "SOURCE", "nargs": "*", "type": one_of(["cora", "citeseer", "pubmed"]),
               "default": ["cora", "citeseer"]}  # fmt: skip
    run = parse(__doc__, {
        "rows": Part(lambda sources: rows(sources), "GAE, VGAE and GCN-LE with and without features, on Cora and "
                     "CiteSeer", "~ 10 minutes", (sources,)),
        "choices": Part(lambda sources: choices(sources), "what the paper leaves open, one choice at a time",
                        "~ half an hour", (sources,)),
        "speed": Part(lambda: speed(), "seconds and memory, up to BlogCatalog", "~ 6 minutes"),
    }, default="rows")  # fmt: skip

import numpy as np

import lograb
from lograb.attacks import Gae, find_attack
from lograb.score import Score
from lograb.tasks.reconstruction import floor_and_ceiling

SEEDS = (0, 1, 2)
PARAMETERS: dict[str, Any] = {"d": 1, "p": 0.6, "k": 32, "sigma": 0.05}
NAMES = ("gae", "vgae", "gcn-le")
# As printed, F1 in percent.
PAPER = {"cora": (69.2, 71.8, 73.1), "citeseer": (68.9, 74.8, 72.6), "pubmed": (63.1, 72.0, 73.5)}
CHOICES: list[tuple[str, dict[str, Any]]] = [
    ("as default: local graph, always 15, among all nodes", {}),
    ("co-occurrence graph", {"graph": "co-occurrence"}),
    ("among nodes that share a patch", {"candidates": "shared"}),
    ("at most 15, probability above one half", {"output": "cap"}),
    ("5 instead of 15", {"top_k": 5}),
    ("5, among nodes that share a patch", {"top_k": 5, "candidates": "shared"}),
    ("3, among nodes that share a patch", {"top_k": 3, "candidates": "shared"}),
]


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}"


def scores_of(
    instances: list[lograb.Instance], name: str, settings: dict[str, Any], *, features: bool
) -> list[Score]:
    attack = find_attack(name)(**settings)
    return [lograb.evaluate(instance, lograb.attack(instance, attack, seed=seed, features=features))
            for seed, instance in zip(SEEDS, instances)]  # fmt: skip


def rows(sources: list[str]) -> None:
    print("| dataset | attack | paper | with features, recovered | global | without features, recovered | global "
          "| floor | ceiling |\n|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for source in sources:
        instances = [lograb.generate(source, seed=seed, **PARAMETERS) for seed in SEEDS]
        around = [floor_and_ceiling(instance) for instance in instances]
        edges = " | ".join(spread([b[which] for b in around]) for which in ("floor", "ceiling"))
        for name, printed in zip(NAMES, PAPER[source]):
            cells = []
            for features in (True, False):
                found = scores_of(instances, name, {}, features=features)
                cells += [spread([row["f1"][scope] for row in found]) for scope in ("recovered", "global")]
            print(f"| {source} | {name} | {printed / 100:.3f} | {' | '.join(cells)} | {edges} |", flush=True)


def choices(sources: list[str]) -> None:
    for source in sources:
        print(f"\n{source}, with features, F1 recovered / precision / recall (global)\n")
        print("| choice | " + " | ".join(NAMES) + " | claims |\n|---|---|---|---|---|")
        instances = [lograb.generate(source, seed=seed, **PARAMETERS) for seed in SEEDS]
        for text, settings in CHOICES:
            cells, claims = [], 0.0
            for name in NAMES:
                found = scores_of(instances, name, settings, features=True)
                f1 = spread([row["f1"]["recovered"] for row in found])
                precision, recall = (np.mean([row[what] for row in found]) for what in ("precision", "recall"))
                claims = float(np.mean([row["claimed"] for row in found]))
                cells.append(f"{f1} / {precision:.2f} / {recall:.2f}")
            print(f"| {text} | {' | '.join(cells)} | {claims:,.0f} |", flush=True)


def speed() -> None:
    cases: list[tuple[str, bool, dict[str, Any]]] = [
        ("cora", True, {}), ("cora", False, {}), ("cora", True, {"graph": "co-occurrence"}),
        ("blogcatalog", False, {}), ("blogcatalog", False, {"graph": "co-occurrence", "epochs": 2}),
    ]  # fmt: skip
    for source, features, settings in cases:
        instance = lograb.generate(source, seed=0, **PARAMETERS)
        answer = lograb.attack(instance, Gae(**settings), features=features)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"gae on {source}, features {features}, {settings}: {answer.seconds:.1f} s, "
              f"{answer.diagnostics['input_edges']:,} input edges, peak so far {peak:.1f} GiB",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    run()
