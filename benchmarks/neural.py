"""Seconds and memory of the neural attacks. Needs the real data (LOGRAB_MIRROR or the cache) and the extra gnn."""

from __future__ import annotations

import resource
from typing import Any

from command import Part, parse

if __name__ == "__main__":
    run = parse(__doc__, {
        "speed": Part(lambda: speed(), "seconds and memory, up to BlogCatalog", "~ 6 minutes"),
    })  # fmt: skip

import lograb
from lograb.attacks import Gae

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


if __name__ == "__main__":
    run()
