"""Stage 3b: links between islands, by how often two nodes share a patch."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from lograb.attacks.alignment.overlaps import membership_matrix
from lograb.theory.voting import vote_probability
from lograb.types import Floats, Ints, Observations


def cross_votes(
    seen: Observations, island: Ints, c0: int, kappa: float, max_size: int = 2000
) -> tuple[Ints, Floats]:
    """Vote for pairs of nodes that are assigned to different islands and share more than c0 patches.

    Parameters
    ----------
    island : int64 array, shape (n_nodes,)
        Island of each node, -1 for none.
    max_size : int
        Larger patches have no vote: their pairs would fill the memory, and they say next to nothing.

    Returns
    -------
    pairs : int64 array, shape (m, 2)
    probability : float array, shape (m,)
        1 / (1 + exp(-κ (C - C_0))), with C the number of shared patches.
    """
    inside = membership_matrix(seen, np.flatnonzero(seen.sizes <= max_size))
    together = sp.triu(inside.T @ inside, k=1, format="coo")
    u, w = together.row, together.col
    kept = (together.data > c0) & (island[u] != island[w]) & (island[u] >= 0) & (island[w] >= 0)
    pairs = np.stack([u[kept], w[kept]], axis=1).astype(np.int64)
    return pairs, vote_probability(together.data[kept], c0, kappa)
