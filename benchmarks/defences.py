"""How much noise a mechanism saves: chosen for one bound, so no setting of an experiment can name it."""

from __future__ import annotations

from typing import Any

from command import Part, parse

if __name__ == "__main__":
    run = parse(__doc__, {
        "subspace": Part(lambda: subspace(), "noise on rotated columns against noise on eigenvectors at equal μ",
                         "~ 5 minutes"),
    })  # fmt: skip

import numpy as np

import lograb


def f1(instance: Any, **settings: Any) -> float:
    """The F1 of the strongest attack."""
    return lograb.evaluate(instance, lograb.attack(instance, lograb.attacks.Posterior(**settings))).f1


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
