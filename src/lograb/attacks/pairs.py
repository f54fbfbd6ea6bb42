"""Pairs of nodes that share a patch: the only pairs an eavesdropper can judge."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lograb.types import Floats, Ints, Observations


def patches_by_size(seen: Observations, max_size: int, n_bytes: int = 1 << 24) -> Iterator[tuple[Ints, int]]:
    """Yield runs of patches with equal size q (2 .. max_size), each run with q * q * b * 8 <= n_bytes."""
    sizes = seen.sizes
    for q in np.unique(sizes[(sizes >= 2) & (sizes <= max_size)]):
        which = np.flatnonzero(sizes == q)
        at_once = max(1, int(n_bytes // (8 * q * q)))
        for start in range(0, len(which), at_once):
            yield which[start : start + at_once], int(q)


def members_of(seen: Observations, which: Ints, q: int) -> Ints:
    """Stack the members of patches of one size, shape (b, q)."""
    return np.asarray(seen.nodes[seen.ptr[which][:, None] + np.arange(q)])


def pair_keys(members: Ints, n_nodes: int) -> tuple[Ints, tuple[Ints, Ints]]:
    """Number all pairs inside each patch as u * n_nodes + w.

    Returns
    -------
    keys : int64 array, shape (b, q (q - 1) / 2)
    upper : the positions (i, j), i < j, of the pairs inside a patch
    """
    upper = np.triu_indices(members.shape[1], k=1)
    return members[:, upper[0]] * n_nodes + members[:, upper[1]], upper


def unpair(keys: Ints, n_nodes: int) -> Ints:
    """Turn pair numbers back into pairs, shape (m, 2)."""
    return np.stack([keys // n_nodes, keys % n_nodes], axis=1)


def mean_by_key(keys: Ints, scores: Floats) -> tuple[Ints, Floats]:
    """Average scores that belong to the same pair: unique keys and means."""
    unique, index, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return unique, np.bincount(index, weights=scores, minlength=len(unique)) / counts
