"""Edges in patches beyond the budget: how many there must be, by those that are read.

Nothing is asked of a patch beyond the budget. But its members have about as many edges in it as those of patches
that are read, and whoever claims none of them must not expect to have found all.
"""

from __future__ import annotations

import numpy as np

from lograb.attacks.alignment.overlaps import membership_matrix
from lograb.attacks.posterior.beliefs import Beliefs, Scene, Status
from lograb.types import Bools, Ints

ASKED = 4000
"""Pairs of these patches of which it is asked how many of the patches share them."""


def unread_edges(scene: Scene, beliefs: Beliefs) -> float:
    """Estimate the edges between nodes that share patches beyond the budget, and none that is read."""
    seen, told = scene.seen, beliefs.beyond
    unread = (seen.sizes >= 2) & (seen.ranks >= 1)
    for batch in scene.batches:
        unread[batch.which] = False
    unread[told.patches] = False
    if not unread.any():
        return 0.0
    edges, members = float(told.probability.sum()) + told.missing, float(seen.sizes[told.patches].sum())
    open_to_evidence = np.where(beliefs.status == Status.CERTAIN, 0.0, beliefs.probability)
    for batch in scene.batches:
        edges += float(open_to_evidence[scene.places(batch)].sum())
        members += batch.members.size
    share = _new(scene, np.flatnonzero(unread), np.union1d(beliefs.keys, told.keys))
    return edges / max(members, 1.0) * float(seen.sizes[unread].sum()) * share


def _new(scene: Scene, unread: Ints, keys: Ints) -> float:
    """Share of the pairs in some patches that are not known and counted once, by drawing some of them."""
    seen, rng = scene.seen, scene.rng
    sizes = seen.sizes[unread]
    patch = rng.choice(len(unread), ASKED, p=sizes * (sizes - 1.0) / float((sizes * (sizes - 1.0)).sum()))
    one = rng.integers(sizes[patch])
    other = (one + rng.integers(1, sizes[patch])) % sizes[patch]
    ends = np.sort(seen.nodes[seen.ptr[unread[patch]] + np.stack([one, other])], axis=0)
    known: Bools = np.isin(ends[0] * seen.n_nodes + ends[1], keys)
    inside = membership_matrix(seen, unread).T.tocsr()
    together = inside[ends[0]].multiply(inside[ends[1]]).sum(axis=1)
    return float(np.where(known, 0.0, 1.0 / np.maximum(np.asarray(together).ravel(), 1)).mean())
