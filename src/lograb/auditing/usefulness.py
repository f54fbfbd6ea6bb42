"""What the recipient could still use: accuracy where nodes have labels, else what is left of the subspace.

*Leading subspace*: the mean squared cosine of the principal angles between the first columns of each patch, exact
and as shared, at most `LEADING` of them, over patches. Columns that are not shared count as lost. *Clustering*:
adjusted Rand index of k-means on these columns. Without a graph nothing is more exact than the plan.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lograb.errors import LograbError
from lograb.instance import Instance
from lograb.tasks.utility import SMALLEST, same_clusters, utility
from lograb.types import Ints, Observations

REPEATS = 3
LEADING = 8
MOST_PATCHES = 500
"""Patches that are looked at; a random part of them beyond."""


def measure_use(instance: Instance, exact: Observations) -> dict[str, Any] | None:
    """Measure what an instance is good for beside the exact embeddings; None where nothing can be said."""
    told: dict[str, Any] = {}
    if instance.labels is not None:
        try:
            told = utility(instance, repeats=REPEATS)
        except LograbError:
            told = {}
    kept, alike, chance = leading_subspace(exact, instance.observations)
    dimension = int(_leading(exact).max(initial=0))
    if told.get("accuracy") is not None:
        return {"name": "accuracy", "value": told["accuracy"], "sd": told["accuracy_sd"],
                "without_embeddings": told["without_embeddings"], "majority": told["majority"],
                "subspace": kept, "clustering": alike, "dimension": dimension}  # fmt: skip
    if kept is None:
        return None
    return {"name": "subspace", "value": kept, "sd": None, "without_embeddings": chance, "majority": None,
            "subspace": kept, "clustering": alike, "dimension": dimension}  # fmt: skip


def leading_subspace(exact: Observations, shared: Observations) -> tuple[float | None, ...]:
    """Compare the leading columns of each patch, and their clusters; and say what columns of chance would keep.

    None where the patches are not the same.
    """
    if not (np.array_equal(exact.ptr, shared.ptr) and np.array_equal(exact.nodes, shared.nodes)):
        return None, None, None
    wanted = _leading(exact)
    which = np.flatnonzero(wanted > 0)
    some = np.sort(np.random.default_rng(0).permutation(which)[:MOST_PATCHES])
    kept, alike = [], []
    for i in some.tolist():
        ours, theirs = (np.linalg.qr(part.block(i)[:, : wanted[i]])[0] for part in (exact, shared))
        kept.append(float(np.square(ours.T @ theirs).sum() / wanted[i]))
        if len(ours) >= SMALLEST:
            alike.append(same_clusters(ours, theirs, i))
    return _mean(kept), _mean(alike), _mean((wanted[some] / exact.sizes[some]).tolist())


def _leading(exact: Observations) -> Ints:
    """Say how many columns of each patch are compared."""
    return np.asarray(np.minimum(np.minimum(LEADING, exact.ranks), np.maximum(exact.sizes // 2, 1)))


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None
