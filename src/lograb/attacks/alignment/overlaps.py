"""Which nodes patches share, and what their coordinates say there.

Everything here works on many pairs of patches at once: flat arrays with pointers, grouped by size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from lograb.ragged import owners, pointer, ranges
from lograb.types import Floats, Ints, Observations


@dataclass(frozen=True, eq=False)
class Overlaps:
    """Pairs of patches that share nodes, as positions in ``Observations.nodes``."""

    first: Ints  # (n_pairs,), patch numbers
    second: Ints  # (n_pairs,), larger ones
    ptr: Ints  # (n_pairs + 1,), where the shared nodes of each pair start
    in_first: Ints  # (n_shared,), their positions in the first patch
    in_second: Ints  # (n_shared,), and in the second

    def __len__(self) -> int:
        return len(self.first)

    @property
    def sizes(self) -> Ints:
        """Number of nodes each pair shares."""
        return np.diff(self.ptr)


def membership_matrix(seen: Observations, which: Ints | None = None) -> sp.csr_array:
    """Mark members, shape (n_patches, n_nodes); rows of patches outside `which` are empty."""
    owner = owners(seen.ptr)
    kept = np.ones(len(owner), dtype=bool) if which is None else np.isin(owner, which)
    shape = (seen.n_patches, seen.n_nodes)
    return sp.csr_array((np.ones(kept.sum(), dtype=np.int32), (owner[kept], seen.nodes[kept])), shape=shape)


def count_overlaps(seen: Observations, at_least: int, which: Ints | None = None) -> tuple[Ints, Ints, Ints]:
    """List all pairs of patches (among `which`) that share `at_least` nodes: first, second, how many."""
    inside = membership_matrix(seen, which)
    shared = sp.triu(inside @ inside.T, k=1, format="coo")
    kept = shared.data >= at_least
    first, second = shared.row[kept].astype(np.int64), shared.col[kept].astype(np.int64)
    order = np.lexsort((second, first))
    return first[order], second[order], shared.data[kept][order].astype(np.int64)


def locate_overlaps(seen: Observations, first: Ints, second: Ints) -> Overlaps:
    """Find the shared nodes of given pairs of patches."""
    return locate_shared(seen.ptr, seen.nodes, seen.n_nodes, first, second)


def locate_shared(ptr: Ints, nodes: Ints, n_nodes: int, first: Ints, second: Ints) -> Overlaps:
    """Find the shared nodes of given pairs of ragged node sets, each set increasing."""
    keys = owners(ptr) * n_nodes + nodes  # increasing
    sizes = np.diff(ptr)
    smaller = np.where(sizes[first] <= sizes[second], first, second)
    larger = first + second - smaller
    lengths = sizes[smaller]
    here = ranges(ptr[smaller], lengths)
    wanted = np.repeat(larger, lengths) * n_nodes + nodes[here]
    there = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    hit = keys[there] == wanted if len(keys) else np.zeros(0, dtype=bool)
    pair = np.repeat(np.arange(len(first)), lengths)[hit]
    here, there = here[hit], there[hit]
    swapped = (smaller != first)[pair]
    in_first, in_second = np.where(swapped, there, here), np.where(swapped, here, there)
    return Overlaps(first, second, pointer(np.bincount(pair, minlength=len(first))), in_first, in_second)


def padded_coordinates(seen: Observations, vectors: Floats, dim: int) -> Floats:
    """Lay vectors, flat like ``Observations.vectors``, out as rows (n_entries, dim), zero beyond their rank."""
    ranks = np.repeat(seen.ranks, seen.sizes)
    row, column = owners(pointer(ranks)), ranges(np.zeros_like(ranks), ranks)
    out = np.zeros((len(ranks), dim))
    kept = column < dim
    out[row[kept], column[kept]] = vectors[kept]
    return out
