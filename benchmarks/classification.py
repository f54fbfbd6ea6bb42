"""Task 2 on the paper's rows: all models, both splits, beside the paper's figures and the floors.

Rows 1 and 13, Cora and PubMed d-hop (1, 0.6, 32, 0.05), two seeds; a seed draws the instance, the split and the
weights. Needs the real data (LOGRAB_MIRROR or the cache) and the extra gnn. Every run is one JSON file in FOLDER:
a run that is there is not repeated, so measuring can stop and go on.
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from command import Part, one_of, parse

if __name__ == "__main__":
    folder = {"metavar": "FOLDER", "type": Path}
    source = {"metavar": "SOURCE", "type": one_of(["cora", "pubmed"])}
    models = one_of(lambda: import_module("lograb.learning.nodes.catalog").MODELS)
    start = parse(__doc__, {
        "run": Part(lambda folder, source, names: run(folder, source, names), "measure what FOLDER does not hold "
                    "yet", "~ hours", (folder, source, {"metavar": "MODEL", "nargs": "*", "type": models})),
        "table": Part(lambda folder, source: table(folder, source), "print Markdown from FOLDER", "1 s",
                      (folder, source)),
        "choices": Part(lambda folder: choices(folder), "Cora, one setting changed at a time, split patch",
                        "~ an hour", (folder,)),
        "parameters": Part(lambda folder: parameters(folder), "count parameters beside the efficiency table, with "
                           "milliseconds from FOLDER", "5 s", (folder | {"nargs": "?"},)),
    }, default="parameters")  # fmt: skip

import numpy as np

import lograb
from lograb.learning.nodes.catalog import MODELS
from lograb.learning.nodes.splits import SPLITS, make_split
from lograb.learning.patchset import patch_set
from lograb.tasks.node_classification import (
    check_choices,
    describe_split,
    run_streams,
    score_floors,
    score_model,
)

SEEDS = (0, 1)
PARAMETERS: dict[str, Any] = {"d": 1, "p": 0.6, "k": 32, "sigma": 0.05}
# F1-micro in percent as printed, rows 1 and 13 of the node classification table
PRINTED = {
    "cora": {"sage": 93.7, "gcn": 88.2, "gat": 86.0, "gin": 85.6, "gps": 90.8, "san": 94.0, "gin-vn": 95.5,
             "gps-lappe": 90.0, "graphormer": 93.2, "san-lappe": 94.3, "san-rwse": 94.4},
    "pubmed": {"sage": 88.0, "gcn": 86.3, "gat": 85.6, "gin": 86.3, "gps": 88.4, "san": 89.7, "gin-vn": 88.7,
               "gps-lappe": 88.6, "graphormer": 89.3, "san-lappe": 89.5, "san-rwse": 89.7},
}  # fmt: skip
# Thousands of parameters as printed, and inference milliseconds (on an A100), row 1 of the efficiency table
EFFICIENCY = {"sage": (188.5, 36.7), "gcn": (94.3, 22.4), "gat": (188.8, 24.6), "gin": (98.4, 35.5),
              "gps": (441.7, 102.8), "san": (161.4, 44.7), "attention": (161.4, 44.7)}  # fmt: skip
CHOICES: list[tuple[str, dict[str, Any]]] = [
    ("gin", {"perceptron": "last"}),
    ("sage", {"pool": True}),
    ("gcn", {"patience": 10}),
    ("sage", {"patience": 10}),
    ("gin", {"patience": 10}),
    ("gin-vn", {"patience": 10}),
    ("san-rwse", {"patience": 10}),
    # The paper's 0.01 is too much for SAN: see docs/methods/learning.md.
    ("san", {"learning_rate": 0.001}),
    ("san-lappe", {"learning_rate": 0.001}),
    ("san-rwse", {"learning_rate": 0.001}),
]
N_INPUTS, N_CLASSES = 1433 + 32, 7


def run(folder: Path, source: str, names: list[str]) -> None:
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    folder.mkdir(parents=True, exist_ok=True)
    # Model by model, not seed by seed: whoever stops early has whole rows.
    for name in ["floors", *(names or [name for name, model in MODELS.items() if not model.trivial])]:
        for seed in SEEDS:
            for split in SPLITS:
                path = folder / f"{source}-{name}-{split}-{seed}.json"
                if not path.exists():
                    result = measure(source, name, split, seed)
                    path.write_text(json.dumps(result, indent=1))
                    print(path.name, {k: result[k] for k in ("f1_micro", "seconds") if k in result}, flush=True)


def measure(
    source: str, name: str, split: str, seed: int, settings: dict[str, Any] | None = None
) -> dict[str, Any]:
    patches = patch_set(lograb.generate(source, seed=seed, **PARAMETERS))
    streams = run_streams(seed, 0)
    division = make_split(patches, split, streams["split"])
    if name == "floors":
        return score_floors(patches, division, streams["floor"]) | describe_split(patches, division)
    model, training, special = check_choices(name, split, settings)
    found = score_model(patches, division, model, streams, training, special)
    return {key: value for key, value in found.items() if key != "answer"}


def choices(folder: Path) -> None:
    print("| model | changed | F1-micro, split patch | as default |\n|---|---|---|---|")
    for name, settings in CHOICES:
        changed = ", ".join(f"{key}={value}" for key, value in settings.items())
        found = []
        for seed in SEEDS:
            path = folder / f"cora-{name}-{changed}-{seed}.json"
            if not path.exists():
                path.write_text(json.dumps(measure("cora", name, "patch", seed, settings), indent=1))
            found.append(json.loads(path.read_text())["f1_micro"])
        default = [run["f1_micro"] for run in read(folder, "cora", name, "patch")]
        print(f"| {name} | {changed} | {cell(found)} | {cell(default)} |", flush=True)


def read(folder: Path, source: str, name: str, split: str) -> list[dict[str, Any]]:
    paths = [folder / f"{source}-{name}-{split}-{seed}.json" for seed in SEEDS]
    return [json.loads(path.read_text()) for path in paths if path.exists()]


def cell(values: list[float]) -> str:
    if not values:
        return "–"
    spread = f" ± {100 * np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
    return f"{100 * np.mean(values):.1f}{spread}"


def table(folder: Path, source: str) -> None:
    print("| model | paper | patch | centres | unseen nodes | node-disjoint | centres | macro | gap | seconds |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in ["majority", "memory", *MODELS]:
        trivial = name in ("majority", "memory", "mlp")
        by_patch, by_node = (
            [found[name] for found in read(folder, source, "floors", split)]
            if trivial
            else read(folder, source, name, split)
            for split in SPLITS
        )
        if not by_patch:
            continue
        micro = [[found["f1_micro"] for found in runs] for runs in (by_patch, by_node)]
        gap = f"{100 * (np.mean(micro[0]) - np.mean(micro[1])):.1f}" if by_node else "–"
        seconds = [found["seconds"] for found in by_patch + by_node if "seconds" in found]
        print(f"| {name} | {PRINTED[source].get(name, '')} | {cell(micro[0])} "
              f"| {cell([found['centres']['f1_micro'] for found in by_patch])} "
              f"| {cell([found['unseen']['f1_micro'] for found in by_patch])} | {cell(micro[1])} "
              f"| {cell([found['centres']['f1_micro'] for found in by_node])} "
              f"| {cell([found['f1_macro'] for found in by_node])} | {gap} "
              f"| {f'{np.mean(seconds):.0f}' if seconds else ''} |")  # fmt: skip
    for split in SPLITS:
        for found in read(folder, source, "floors", split):
            print(f"{split}: seen are {found['seen_share']:.1%} of {found['test_nodes']:,} test nodes and "
                  f"{found['seen_occurrences']:.1%} of {found['test_occurrences']:,} test occurrences")


def parameters(folder: Path | None) -> None:
    from lograb.learning.nodes.models.classifier import count_parameters

    print("| model | paper, K | ours | paper, ms (A100) | ours, ms (one core) |\n|---|---|---|---|---|")
    for name, model in MODELS.items():
        width = N_INPUTS - 32 if model.trivial else N_INPUTS
        count = count_parameters(model.build(width, N_CLASSES))
        printed, slow = EFFICIENCY.get(name, ("", ""))
        runs = [] if folder is None else read(folder, "cora", name, "patch")
        ours = f"{np.mean([found['inference_ms'] for found in runs]):.0f}" if runs else ""
        print(f"| {name} | {printed} | {count:,} | {slow} | {ours} |")


if __name__ == "__main__":
    start()
