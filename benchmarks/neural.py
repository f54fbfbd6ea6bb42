"""Seconds and memory of the neural attacks. Needs the real data (LOGRAB_MIRROR or the cache) and the extra gnn."""

from __future__ import annotations

import resource
import time
from typing import Any

from command import Part, parse

if __name__ == "__main__":
    run = parse(__doc__, {
        "speed": Part(lambda: speed(), "seconds and memory, up to BlogCatalog", "~ 6 minutes"),
        "graphs": Part(lambda: graphs(), "200 graphs of PROTEINS, one by one and side by side", "~ 90 s"),
    })  # fmt: skip

import numpy as np

import lograb
from lograb.attacks import Gae, find_attack
from lograb.parallel import one_blas_thread

PARAMETERS: dict[str, Any] = {"d": 1, "p": 0.6, "k": 32, "sigma": 0.05}


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


def graphs() -> None:
    """Compare the processor time of the same attacks on the same graphs, on one thread."""
    instance = lograb.generate("proteins", seed=0, **PARAMETERS)
    seen = [graph.observe(features=True) for graph, _ in zip(instance, range(200))]
    for name in ("gae", "vgae", "gcn-le"):
        attack = find_attack(name)()
        with one_blas_thread():
            attack.reconstruct(seen[0], np.random.default_rng(0))  # loads torch
            start = time.process_time()
            for i, one in enumerate(seen):
                attack.reconstruct(one, np.random.default_rng(i))
            middle = time.process_time()
            attack.reconstruct_each(seen, [np.random.default_rng(i) for i in range(len(seen))])
            end = time.process_time()
        print(f"{name}: one by one {middle - start:.1f} s, side by side {end - middle:.1f} s, "
              f"{(middle - start) / (end - middle):.1f} times as fast", flush=True)  # fmt: skip


if __name__ == "__main__":
    run()
