"""The neural attacks on the first row of each dataset, beside the paper's figures; all rivals' rules of output.

Needs the real data (LOGRAB_MIRROR or the cache) and the extra gnn. Prints Markdown rows as they are done.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from command import Part, one_of, parse

if __name__ == "__main__":
    sources = {"metavar": "SOURCE", "nargs": "*", "type": one_of(["cora", "citeseer", "pubmed"]),
               "default": ["cora", "citeseer"]}  # fmt: skip
    more = one_of(["citation", "cora", "citeseer", "pubmed"])
    run = parse(__doc__, {
        "rows": Part(lambda sources: rows(sources), "GAE, VGAE and GCN-LE with and without features, on Cora and "
                     "CiteSeer", "~ 10 minutes", (sources,)),
        "rules": Part(lambda sources: rules(sources), "what the rule of output costs each of the six rivals; "
                      "'citation' is generated", "~ half an hour",
                      (sources | {"type": more, "default": ["citation", "cora"]},)),
        "speed": Part(lambda: speed(), "seconds and memory, up to BlogCatalog", "~ 6 minutes"),
    }, default="rows")  # fmt: skip

import numpy as np

import lograb
from lograb.attacks import Gae, find_attack
from lograb.attacks.baselines import eigen_sync, local2global, pointnetlk
from lograb.learning import autoencoders
from lograb.score import Score
from lograb.tasks.reconstruction import floor_and_ceiling

SEEDS = (0, 1, 2)
PARAMETERS: dict[str, Any] = {"d": 1, "p": 0.6, "k": 32, "sigma": 0.05}
NAMES = ("gae", "vgae", "gcn-le")
# As printed, F1 in percent.
PAPER = {"cora": (69.2, 71.8, 73.1), "citeseer": (68.9, 74.8, 72.6), "pubmed": (63.1, 72.0, 73.5)}
RIVALS = {"eigen-sync": 10, "local2global": 10, "pointnetlk": 10} | dict.fromkeys(NAMES, 15)
# What each does before it chooses neighbours.
BEFORE: dict[str, tuple[Any, str]] = {
    "eigen-sync": (eigen_sync, "align"), "local2global": (local2global, "align"),
    "pointnetlk": (pointnetlk, "align"), **dict.fromkeys(NAMES, (autoencoders, "train_autoencoder")),
}  # fmt: skip
# The neighbours per node as printed (for Local2Global and PointNetLK as for Eigen-sync), and other rules.
RULES: list[tuple[str, dict[str, Any]]] = [
    ("as printed", {}),
    ("five", {"top_k": 5}),
    ("as printed, sharing a patch", {"candidates": "shared"}),
    ("five, sharing a patch", {"top_k": 5, "candidates": "shared"}),
    ("three, sharing a patch", {"top_k": 3, "candidates": "shared"}),
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


def rules(sources: list[str]) -> None:
    """Change how claims are chosen; the first column is what always so many neighbours can reach at most.

    With m claims of each of N nodes there are at least m N / 2 pairs: F1 <= 2 E / (E + m N / 2) for E true edges.
    """
    for source in sources:
        instances = [lograb.generate(source, seed=seed, **PARAMETERS) for seed in SEEDS]
        print(f"\n{source}, F1 recovered\n\n| rival | most | {' | '.join(text for text, _ in RULES)} |")
        print("|---|---|" + "---|" * len(RULES))
        for name, m in RIVALS.items():
            limits, found = [], []
            for seed, instance in zip(SEEDS, instances):
                nodes = np.unique(instance.observations.nodes)
                edges = int(np.isin(instance.truth.edges, nodes).all(axis=1).sum())
                limits.append(2 * edges / (edges + max(edges, m * len(nodes) / 2)))
                found.append(by_rule(instance, name, seed))
            cells = [spread([row[text] for row in found]) for text, _ in RULES]
            print(f"| {name} | {np.mean(limits):.3f} | {' | '.join(cells)} |", flush=True)


def by_rule(instance: lograb.Instance, name: str, seed: int) -> dict[str, float]:
    """Score one rival under all rules. They come last, so what precedes them is done once."""
    module, function = BEFORE[name]
    out: dict[str, float] = {}
    with patch.object(module, function, once(getattr(module, function))):
        for text, settings in RULES:
            answer = lograb.attack(instance, find_attack(name)(**settings), seed=seed, features=name in NAMES)
            out[text] = lograb.evaluate(instance, answer)["f1"]["recovered"]
    return out


def once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Answer all calls as the first one."""
    kept: list[Any] = []

    def call(*given: Any, **named: Any) -> Any:
        kept.extend([] if kept else [function(*given, **named)])
        return kept[0]

    return call


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
