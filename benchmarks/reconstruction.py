"""Task 1 on the rows of the paper's tables, over seeds, beside floor and ceiling.

    python benchmarks/reconstruction.py core [ROWS]       the core table (rows 1-8 by default)
    python benchmarks/reconstruction.py ablation          the ablation table, full and auto
    python benchmarks/reconstruction.py choices [ROW]     AFR with one switch changed at a time (row 1)
    python benchmarks/reconstruction.py speed             seconds and memory

Needs the real data (LOGRAB_MIRROR or the cache). Prints Markdown rows as they are done.
"""

from __future__ import annotations

import resource
import sys
import time
from typing import Any

import numpy as np

import lograb
from lograb.tasks import bounds, score

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
    ("always five edges per node", {"output": "fill"}),
    ("no cap of five edges", {"top_k": None}),
    ("cap of three", {"top_k": 3}),
    ("no cross-voting", {"cross_voting": False}),
    ("Otsu's threshold", {"threshold": "otsu"}),
    ("align_dim auto", {"align_dim": "auto"}),
]


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}"


Run = tuple[str, dict[str, Any]]


def measure(source: str, parameters: dict[str, Any], runs: dict[str, Run]) -> dict[str, Any]:
    """Run named attacks over all seeds; lists of global and recovered F1, stitches, floor, ceiling."""
    out: dict[str, Any] = {"floor": [], "ceiling": []} | {name: {"global": [], "recovered": []} for name in runs}
    for seed in SEEDS:
        instance = lograb.generate(source, seed=seed, **parameters)
        for name, (attack, settings) in runs.items():
            row = score(instance, attack, seed, settings)
            for scope in ("global", "recovered"):
                out[name][scope].append(row["f1"][scope])
            out[name].setdefault("stitches", []).append(row["diagnostics"].get("stitches_accepted"))
        for name, value in bounds(instance, seed).items():
            out[name].append(value)
    return out


def core(numbers: list[int]) -> None:
    runs = {"afr": ("afr", {}), "eigen-sync": ("eigen-sync", {})}
    print("| row | paper Eigen-sync | ours | paper AFR | ours, global | recovered | stitches | floor | ceiling |")
    print("|---|---|---|---|---|---|---|---|---|")
    for number in numbers:
        source, parameters, printed_sync, printed_afr = ROWS[number]
        found = measure(source, parameters, runs)
        afr = found["afr"]
        print(f"| {number} {source} {tuple(parameters.values())} | {printed_sync / 100:.3f} | "
              f"{spread(found['eigen-sync']['global'])} | {printed_afr / 100:.3f} | {spread(afr['global'])} | "
              f"{spread(afr['recovered'])} | {afr['stitches']} | "
              f"{spread(found['floor'])} | {spread(found['ceiling'])} |", flush=True)  # fmt: skip


def ablation() -> None:
    source, parameters, _, _ = ROWS[1]
    print("| variant | paper | full, global | auto, global | auto, stitches |\n|---|---|---|---|---|")
    for name, settings, printed in ABLATION:
        runs = {dim: ("afr", settings | {"align_dim": dim}) for dim in ("full", "auto")}
        found = measure(source, parameters, runs)
        stitches = found["auto"]["stitches"]
        print(f"| {name} | {printed} | {spread(found['full']['global'])} | {spread(found['auto']['global'])} | "
              f"{stitches} |", flush=True)  # fmt: skip


def choices(number: int = 1) -> None:
    source, parameters, _, _ = ROWS[number]
    found = measure(source, parameters, {name: ("afr", settings) for name, settings in CHOICES})
    print("| choice | global | recovered |\n|---|---|---|")
    for name, _ in CHOICES:
        print(f"| {name} | {spread(found[name]['global'])} | {spread(found[name]['recovered'])} |")


def speed() -> None:
    cases = [(*ROWS[n][:2], dim) for n in (1, 2) for dim in ("full", "auto")]
    cases.append(("blogcatalog", ROWS[1][1], "full"))
    for source, parameters, dim in cases:
        instance = lograb.generate(source, **parameters)
        start = time.perf_counter()
        score(instance, "afr", settings={"align_dim": dim})
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"afr ({dim}) with its scores on {source} {parameters}: {time.perf_counter() - start:.1f} s, "
              f"peak so far {peak:.1f} GiB", flush=True)  # fmt: skip


if __name__ == "__main__":
    part = sys.argv[1] if len(sys.argv) > 1 else "core"
    if part == "core":
        core([int(n) for n in sys.argv[2:]] or list(range(1, 9)))
    elif part == "choices":
        choices(*(int(n) for n in sys.argv[2:]))
    else:
        {"ablation": ablation, "speed": speed}[part]()
