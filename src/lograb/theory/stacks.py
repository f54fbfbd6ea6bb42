"""Patches of one size and rank together, as dense arrays: what the certificates work on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lograb.errors import LograbError
from lograb.types import Bools, Floats, Ints, Observations


@dataclass(frozen=True, eq=False)
class Stack:
    """Some patches with q members and k eigenvectors each.

    Attributes
    ----------
    which : int64 array, shape (b,)
        Patch numbers.
    vectors : float64 array, shape (b, q, k)
    values : float64 array, shape (b, k)
    next_values : float64 array, shape (b,)
        NaN where the spectrum is complete or the value was not shown.
    hubs : int64 array, shape (b,)
        Position of the member that the protocol says is joined to all others, or -1.
    """

    which: Ints
    vectors: Floats
    values: Floats
    next_values: Floats
    hubs: Ints

    @property
    def complete(self) -> bool:
        """Whether the whole spectra are there."""
        return bool(self.vectors.shape[1] == self.vectors.shape[2])


def stacks_of(seen: Observations, max_size: int, n_bytes: int = 1 << 24) -> Iterator[Stack]:
    """Yield all patches with 2 .. max_size members, in stacks of at most n_bytes (one patch at least)."""
    if seen.values is None:
        raise LograbError("certificates need the eigenvalues, and these observations withhold them")
    sizes, hubs = seen.sizes, _hubs(seen)
    shapes = np.stack([sizes, seen.ranks], axis=1)[(sizes >= 2) & (sizes <= max_size)]
    for q, k in np.unique(shapes, axis=0):
        group = np.flatnonzero((sizes == q) & (seen.ranks == k))
        at_once = max(1, int(n_bytes // (8 * q * q)))
        for start in range(0, len(group), at_once):
            which = group[start : start + at_once]
            vectors = seen.vectors[seen.vector_ptr[which][:, None] + np.arange(q * k)].reshape(-1, q, k)
            values = seen.values[seen.value_ptr[which][:, None] + np.arange(k)]
            after = np.full(len(which), np.nan) if seen.next_values is None else seen.next_values[which]
            yield Stack(which, vectors, values, after, hubs[which])


def adjacency_of(patch_edges: tuple[Ints, Ints], which: Ints, q: int) -> Bools:
    """Build the true adjacency matrices of patches of size q, shape (b, q, q), from their edge lists."""
    ptr, ends = patch_edges
    adjacency = np.zeros((len(which), q, q), dtype=bool)
    for matrix, i in zip(adjacency, which):
        rows, cols = ends[ptr[i] : ptr[i + 1]].T
        matrix[rows, cols] = matrix[cols, rows] = True
    return adjacency


def _hubs(seen: Observations) -> Ints:
    """Find the centres of 1-hop patches: by the protocol they are joined to all other members."""
    hubs = np.full(seen.n_patches, -1, dtype=np.int64)
    if seen.centres is None or seen.protocol.strategy != "d-hop" or seen.protocol.d != 1:
        return hubs
    owner = np.repeat(np.arange(seen.n_patches), seen.sizes)
    at = np.flatnonzero(seen.nodes == seen.centres[owner])
    hubs[owner[at]] = at - seen.ptr[owner[at]]
    return hubs
