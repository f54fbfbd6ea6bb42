"""Which rows to train, stop and test on (§4.4.2).

``patch``
    The paper's: patches are divided 60/20/20. A node that lies in patches of both sides is, with
    features and label, in training and in test; most nodes are.
``node-disjoint``
    The nodes are divided first, 60/20/20. Every patch keeps all its members as context, but only
    training nodes' labels are learned from, and only test nodes are scored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from lograb.errors import LograbError, unknown_name
from lograb.learning.patchset import PatchSet
from lograb.ragged import owners
from lograb.types import Bools, Ints

SplitName = Literal["patch", "node-disjoint"]
SPLITS: tuple[SplitName, ...] = ("patch", "node-disjoint")
SHARES = (0.6, 0.2, 0.2)


@dataclass(frozen=True, eq=False)
class Split:
    """Disjoint sets of labelled rows, each a flag per row."""

    name: str
    train: Bools
    valid: Bools
    test: Bools


def make_split(patches: PatchSet, name: str, rng: np.random.Generator) -> Split:
    """Divide the labelled rows by patches or by nodes."""
    if name not in SPLITS:
        raise unknown_name("split", name, SPLITS)
    unit = owners(patches.ptr) if name == "patch" else patches.nodes
    labelled = patches.labelled
    units = np.unique(unit[labelled])
    if len(units) < len(SHARES):
        what = "patches" if name == "patch" else "nodes"
        raise LograbError(f"a split needs at least 3 labelled {what}, '{patches.name}' has {len(units)}")
    side = np.full(max(patches.n_patches, patches.n_nodes), -1)
    for number, part in enumerate(divide(units, rng)):
        side[part] = number
    train, valid, test = (labelled & (side[unit] == number) for number in range(3))
    return Split(name, train, valid, test)


def divide(units: Ints, rng: np.random.Generator) -> list[Ints]:
    """Shuffle and cut 60/20/20, every part with at least one unit."""
    n = len(units)
    n_valid, n_test = (max(1, round(share * n)) for share in SHARES[1:])
    return np.split(rng.permutation(units), [n - n_valid - n_test, n - n_test])


def seen_share(patches: PatchSet, split: Split) -> float:
    """Give the share of test nodes that also are training nodes: known by features and label."""
    tested = np.unique(patches.nodes[split.test])
    return float(np.isin(tested, patches.nodes[split.train]).mean())


def unseen_rows(patches: PatchSet, split: Split) -> Bools:
    """Mark the test rows whose node no training row shows."""
    return np.asarray(split.test & ~np.isin(patches.nodes, patches.nodes[split.train]))
