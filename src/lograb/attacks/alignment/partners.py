"""Which pairs of patches to align: those that share enough nodes."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from lograb.attacks.alignment.overlaps import count_overlaps
from lograb.ragged import pointer
from lograb.types import Ints, Observations


def choose_pairs(seen: Observations, at_least: int, max_partners: int | None) -> tuple[Ints, Ints, Ints]:
    """List pairs of patches that share `at_least` nodes, in lexicographic order, with their overlap sizes.

    Unless `max_partners` is None, only so many largest overlaps of each patch are kept (a pair stays if either
    patch keeps it), and a spanning forest of largest overlaps, so that the cap never tears a component apart.
    """
    first, second, overlap = count_overlaps(seen, at_least)
    if max_partners is not None:
        kept = _largest_overlaps(seen.n_patches, first, second, overlap, max_partners)
        first, second, overlap = first[kept], second[kept], overlap[kept]
    return first, second, overlap


def _largest_overlaps(n_patches: int, first: Ints, second: Ints, overlap: Ints, at_most: int) -> Ints:
    """Find the pairs that are among the largest of either patch, or in the spanning forest."""
    pair = np.arange(len(first))
    patch, ids = np.concatenate([first, second]), np.concatenate([pair, pair])
    order = np.lexsort((ids, -overlap[ids], patch))
    ptr = pointer(np.bincount(patch, minlength=n_patches))
    place = np.arange(len(order)) - np.repeat(ptr[:-1], np.diff(ptr))
    kept = np.zeros(len(first), dtype=bool)
    kept[ids[order[place < at_most]]] = True
    if not kept.all():
        # Distinct positive weights below 1, the largest overlap the lightest: the forest is unique.
        weight = np.empty(len(first))
        weight[np.lexsort((pair, -overlap))] = (pair + 1.0) / (len(pair) + 1)
        graph = sp.csr_array((weight, (first, second)), shape=(n_patches, n_patches))
        forest = sp.csgraph.minimum_spanning_tree(graph).tocoo()
        chosen = forest.row.astype(np.int64) * n_patches + forest.col
        kept[np.searchsorted(first * n_patches + second, chosen)] = True
    return np.flatnonzero(kept)


def number_components(n_patches: int, first: Ints, second: Ints) -> tuple[int, Ints]:
    """Number the components of the patch graph by their first patch."""
    if n_patches == 0:
        return 0, np.empty(0, np.int64)
    shape = (n_patches, n_patches)
    links = sp.csr_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=shape)
    count, label = sp.csgraph.connected_components(links, directed=False)
    return int(count), label.astype(np.int64)
