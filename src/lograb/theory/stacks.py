"""Patches of one size and rank together, as dense arrays: what the certificates work on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lograb.errors import LograbError
from lograb.pairs import patches_by_size, spectra_of
from lograb.ragged import owners
from lograb.types import Bools, Floats, Ints, Observations


@dataclass(frozen=True, eq=False)
class Stack:
    """Some patches with q members and k eigenvectors each."""

    which: Ints  # (b,), patch numbers
    vectors: Floats  # (b, q, k)
    values: Floats  # (b, k)
    next_values: Floats  # (b,), NaN where the spectrum is complete or the value was not shown
    hubs: Ints  # (b,), position of the member that the protocol says is joined to all others, or -1

    @property
    def complete(self) -> bool:
        """Whether the whole spectra are there."""
        return bool(self.vectors.shape[1] == self.vectors.shape[2])


def stacks_of(seen: Observations, max_size: int) -> Iterator[Stack]:
    """Yield all patches with 2 .. max_size members."""
    if seen.values is None:
        raise LograbError("certificates need the eigenvalues, and these observations withhold them")
    hubs = _hubs(seen)
    for which in patches_by_size(seen, max_size):
        after = np.full(len(which), np.nan) if seen.next_values is None else seen.next_values[which]
        yield Stack(which, *spectra_of(seen, which), after, hubs[which])


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
    owner = owners(seen.ptr)
    at = np.flatnonzero(seen.nodes == seen.centres[owner])
    hubs[owner[at]] = at - seen.ptr[owner[at]]
    return hubs
