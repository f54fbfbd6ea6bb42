"""What the recipient could still use: accuracy where nodes have labels, else what is left of the planned subspace.

*Leading subspace*: the mean squared cosine of the principal angles between the first columns of each patch as
planned and as shared, at most `LEADING` of them, over patches. Columns that are not shared count as lost. It needs
no truth.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lograb.errors import LograbError
from lograb.instance import Instance
from lograb.tasks.utility import utility
from lograb.types import Observations

REPEATS = 3
LEADING = 8
MOST_PATCHES = 500
"""Patches that are looked at; a random part of them beyond."""


def measure_use(instance: Instance, plan: Instance) -> dict[str, Any] | None:
    """Measure what an instance is good for; None where nothing can be said."""
    told: dict[str, Any] = {}
    if instance.labels is not None:
        try:
            told = utility(instance, repeats=REPEATS)
        except LograbError:
            told = {}
    kept = leading_subspace(plan.observations, instance.observations)
    if told.get("accuracy") is not None:
        return {"name": "accuracy", "value": told["accuracy"], "sd": told["accuracy_sd"],
                "without_embeddings": told["without_embeddings"], "majority": told["majority"],
                "subspace": kept, "clustering": told["clustering"]}  # fmt: skip
    if kept is None:
        return None
    return {"name": "subspace", "value": kept, "sd": None, "without_embeddings": None, "majority": None,
            "subspace": kept, "clustering": None}  # fmt: skip


def leading_subspace(plan: Observations, shared: Observations) -> float | None:
    """Compare the leading columns of each patch; None where the patches are not the same ones."""
    if not (np.array_equal(plan.ptr, shared.ptr) and np.array_equal(plan.nodes, shared.nodes)):
        return None
    wanted = np.minimum(np.minimum(LEADING, plan.ranks), np.maximum(plan.sizes // 2, 1))
    which = np.flatnonzero(wanted > 0)
    some = np.sort(np.random.default_rng(0).permutation(which)[:MOST_PATCHES])
    kept = []
    for i in some.tolist():
        ours = np.linalg.qr(plan.block(i)[:, : wanted[i]])[0]
        theirs = np.linalg.qr(shared.block(i)[:, : wanted[i]])[0]
        kept.append(float(np.square(ours.T @ theirs).sum() / wanted[i]))
    return float(np.mean(kept)) if kept else None
