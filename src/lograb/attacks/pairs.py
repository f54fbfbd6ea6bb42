"""Pairs of nodes that share a patch: the only pairs an eavesdropper can judge."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lograb.errors import LograbError
from lograb.types import Floats, Ints, Observations


def patches_by_size(seen: Observations, max_size: int, n_bytes: int = 1 << 24) -> Iterator[tuple[Ints, int]]:
    """Yield runs of b patches with equal size q (2 .. max_size) and rank, each with q * q * b * 8 <= n_bytes."""
    sizes = seen.sizes
    fitting = (sizes >= 2) & (sizes <= max_size)
    for q, rank in np.unique(np.stack([sizes, seen.ranks], axis=1)[fitting], axis=0).tolist():
        which = np.flatnonzero((sizes == q) & (seen.ranks == rank))
        at_once = max(1, n_bytes // (8 * q * q))
        for start in range(0, len(which), at_once):
            yield which[start : start + at_once], q


def spectra_of(seen: Observations, which: Ints, q: int) -> tuple[Floats, Floats]:
    """Stack the eigenvectors (b, q, rank) and eigenvalues (b, rank) of patches of one size and rank."""
    assert seen.values is not None
    rank = int(seen.ranks[which[0]])
    vectors = seen.vectors[seen.vector_ptr[which][:, None] + np.arange(q * rank)].reshape(len(which), q, rank)
    return vectors, seen.values[seen.value_ptr[which][:, None] + np.arange(rank)]


def too_large(seen: Observations, max_size: int) -> int:
    """Count the patches beyond `max_size`; an error where no pair is left to judge."""
    large = seen.sizes > max_size
    if large.any() and (large | (seen.sizes < 2)).all():
        raise LograbError(f"every patch with a pair has more than {max_size} members: raise max_size "
                          f"(the largest has {seen.sizes.max()}; memory grows with its square)")  # fmt: skip
    return int(large.sum())


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


def mean_by_key(keys: Ints, scores: Floats, weights: Floats | None = None) -> tuple[Ints, Floats]:
    """Average scores of the same pair, weighted by positive `weights` if given: unique keys and means."""
    unique, index, counts = np.unique(keys, return_inverse=True, return_counts=True)
    if weights is None:
        return unique, np.bincount(index, weights=scores, minlength=len(unique)) / counts
    total, share = (np.bincount(index, weights=w, minlength=len(unique)) for w in (weights * scores, weights))
    return unique, total / share
