"""The attacker who ignores the embeddings: who sits in whose patch?

In a ball of radius 1 every member is a neighbour of the centre. No spectral noise, differential
privacy included, touches this channel.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from lograb.attacks.alignment import membership_matrix
from lograb.types import Observations, Reconstruction

# Larger patches say next to nothing about a single pair, and their pairs would fill the memory.
MAX_SIZE = 2000


def membership(seen: Observations, rng: np.random.Generator, settings: object = None) -> Reconstruction:
    """Claim the edges that patch membership alone reveals.

    Where patches are balls of radius 1 with known centres, each centre-member pair is an edge,
    with certainty. Otherwise the pairs that co-occur most for how often their nodes occur at all.
    """
    nodes = np.unique(seen.nodes)
    if seen.centres is not None and seen.protocol.d == 1:
        centres = np.repeat(seen.centres, seen.sizes)
        pairs = np.stack([np.minimum(centres, seen.nodes), np.maximum(centres, seen.nodes)], axis=1)
        pairs = np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)
        return Reconstruction(seen.n_nodes, pairs, np.ones(len(pairs)), nodes,
                              diagnostics={"rule": "centre-member"})
    pairs, scores = _closest_companions(seen)
    return Reconstruction(seen.n_nodes, pairs, scores, nodes, diagnostics={"rule": "co-occurrence"})


def _closest_companions(seen: Observations) -> tuple[np.ndarray, np.ndarray]:
    """Claim for each node the companions with which it shares the largest part of its patches.

    The similarity of u and w is c_uw / sqrt(c_u c_w), with c the number of patches. A pair is
    claimed if it is the best one of either node; ties count.
    """
    inside = membership_matrix(seen, np.flatnonzero(seen.sizes <= MAX_SIZE))
    counts = inside.sum(axis=0)
    together = sp.triu(inside.T @ inside, k=1, format="coo")
    similarity = together.data / np.sqrt(counts[together.row] * counts[together.col])
    best = np.zeros(seen.n_nodes)
    np.maximum.at(best, together.row, similarity)
    np.maximum.at(best, together.col, similarity)
    kept = similarity >= np.minimum(best[together.row], best[together.col]) * (1 - 1e-12)
    pairs = np.stack([together.row, together.col], axis=1).astype(np.int64)[kept]
    return pairs, similarity[kept]
