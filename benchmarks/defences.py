"""What each defence protects, what it guarantees, and what it costs: one row per defence."""

from __future__ import annotations

from typing import Any

from command import Part, parse

if __name__ == "__main__":
    run = parse(__doc__, {
        "generated": Part(lambda: table("citation", SETTINGS), "all defences on the built-in citation graph",
                          "~ 30 minutes"),
        "cora": Part(lambda: table("cora", SETTINGS),
                     "the same on Cora, which must be at hand (LOGRAB_MIRROR or the cache)", "~ 1 hour"),
        "subspace": Part(lambda: subspace(), "noise on rotated columns against noise on eigenvectors at equal μ",
                         "~ 5 minutes"),
    })  # fmt: skip

import numpy as np

import lograb

SETTINGS = (("d=1", {"d": 1, "k": 32}), ("silos", {"strategy": "cluster", "clusters": 60, "k": 16}))
DEFENCES = ("none", "withhold", "withhold:what=eigenvalues+centres", "truncate:k=4", "round:bits=6", "rotate",
            "pseudonyms", "eigenvalue-noise:epsilon=10", "gaussian:epsilon=10", "gaussian:epsilon=1",
            "subspace:epsilon=10", "subspace:epsilon=1", "edge-rand:epsilon=8", "edge-rand:epsilon=4",
            "lap-graph:epsilon=8", "lap-graph:epsilon=4")  # fmt: skip


def f1(instance: Any, **settings: Any) -> float:
    """The F1 of the strongest attack."""
    return lograb.evaluate(instance, lograb.attack(instance, lograb.attacks.Posterior(**settings))).f1


def table(source: str, settings: tuple[tuple[str, dict[str, Any]], ...]) -> None:
    print("| setting | defence | F1, membership alone | F1, all channels | floor | ceiling | ε of an edge "
          "| accuracy | subspace |\n|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for name, parameters in settings:
        for defence in DEFENCES:
            instance = lograb.generate(source, defences=[defence], **parameters)
            ledger, use = lograb.ledger(instance), lograb.utility(instance)
            floor = lograb.evaluate(instance, lograb.attack(instance, "membership"))
            edge = ledger["units"]["edge"]
            epsilon = "none" if edge is None else f"{edge['epsilon']:.3g}"
            if ledger["whole"] == "conditional":
                epsilon = f"{epsilon} if membership is public"
            kept = "-" if use["subspace"] is None else f"{use['subspace']:.2f}"
            print(f"| {name} | `{defence}` | {f1(instance, channels=('membership',)):.3f} | {f1(instance):.3f} "
                  f"| {floor.floor:.3f} | {floor.ceiling:.3f} | {epsilon} | {use['accuracy']:.3f} | {kept} |",
                  flush=True)  # fmt: skip


def subspace(source: str = "citation", target: float = 1.0) -> None:
    """Choose the noise of either mechanism so that the median edge has the same μ, and compare what is left."""
    print("| mechanism | σ | median μ | 95 % | F1 | accuracy | subspace |\n|---|---|---|---|---|---|---|")
    for gauge, name in (("sign", "gaussian"), ("rotation", "subspace")):
        shape = {"strategy": "cluster", "clusters": 60, "k": 16, "eigenvalues": False}
        trial = lograb.generate(source, sigma=1.0, gauge=gauge, **shape)
        found = lograb.bound(trial, effort=2e9)[1][0]
        sigma = float(np.median(found.mu)) / target
        instance = lograb.generate(source, defences=[f"{name}:sigma={sigma:.4g}"], **shape)
        use, mu = lograb.utility(instance), found.mu / sigma
        print(f"| `{name}` | {sigma:.2f} | {np.median(mu):.2f} | {np.quantile(mu, 0.95):.2f} | {f1(instance):.3f} "
              f"| {use['accuracy']:.3f} | {use['subspace']:.3f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    run()
