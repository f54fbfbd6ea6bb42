"""Pairs of nodes as numbers, and which pairs share a patch: the only ones that an eavesdropper can judge."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from lograb.errors import LograbError
from lograb.ragged import owners
from lograb.types import Bools, Floats, Ints, Matrix, Observations

Bits = npt.NDArray[np.uint64]

# Words of 64 nodes that are worked on at a time.
WORDS = 8
# Members up to which the positions of a patch's pairs are kept: to list them takes longer than to use them.
FEW = 64


def edge_keys(edges: Ints, n_nodes: int) -> Ints:
    """Number the pair (u, w), u < w, as u * n_nodes + w."""
    return edges[:, 0] * n_nodes + edges[:, 1]


def patches_by_size(seen: Observations, max_size: int) -> Iterator[Ints]:
    """Give runs of patches with equal size (2 .. max_size) and rank."""
    return runs_of_equal_shape(seen, np.flatnonzero((seen.sizes >= 2) & (seen.sizes <= max_size)))


def runs_of_equal_shape(seen: Observations, which: Ints, n_bytes: int = 1 << 24) -> Iterator[Ints]:
    """Split patches into runs of b with equal size q and rank, q * q * b * 8 <= n_bytes, smallest first."""
    sizes, ranks = seen.sizes[which], seen.ranks[which]
    order = np.lexsort((which, ranks, sizes))
    changes = np.flatnonzero(np.diff(sizes[order]) | np.diff(ranks[order])) + 1
    for run in np.split(which[order], changes):
        if len(run):
            at_once = max(1, n_bytes // (8 * int(seen.sizes[run[0]]) ** 2))
            for start in range(0, len(run), at_once):
                yield run[start : start + at_once]


def vectors_of(seen: Observations, which: Ints) -> Floats:
    """Stack the embeddings of patches of one size and rank, shape (b, q, rank)."""
    q, rank = int(seen.sizes[which[0]]), int(seen.ranks[which[0]])
    flat = seen.vectors[seen.vector_ptr[which][:, None] + np.arange(q * rank)]
    return np.asarray(flat.reshape(len(which), q, rank))


def spectra_of(seen: Observations, which: Ints) -> tuple[Floats, Floats]:
    """Stack the eigenvectors (b, q, rank) and eigenvalues (b, rank) of patches of one size and rank."""
    assert seen.values is not None
    vectors = vectors_of(seen, which)
    return vectors, seen.values[seen.value_ptr[which][:, None] + np.arange(vectors.shape[2])]


def too_large(seen: Observations, max_size: int) -> int:
    """Count the patches beyond `max_size`; an error where no pair is left to judge."""
    large = seen.sizes > max_size
    if large.any() and (large | (seen.sizes < 2)).all():
        raise LograbError(f"every patch with a pair has more than {max_size} members: raise max_size "
                          f"(the largest has {seen.sizes.max()}; memory grows with its square)")  # fmt: skip
    return int(large.sum())


def members_of(seen: Observations, which: Ints) -> Ints:
    """Stack the members of patches of one size, shape (b, q)."""
    return np.asarray(seen.nodes[seen.ptr[which][:, None] + np.arange(seen.sizes[which[0]])])


def pair_keys(members: Ints, n_nodes: int) -> tuple[Ints, tuple[Ints, Ints]]:
    """Number all pairs inside each patch as u * n_nodes + w, and list their positions i < j in it."""
    upper = upper_pairs(members.shape[1])
    return members[:, upper[0]] * n_nodes + members[:, upper[1]], upper


def upper_pairs(q: int) -> tuple[Ints, Ints]:
    """List the positions i < j of all pairs of q members, row by row. Those of small patches are kept."""
    return _few_pairs(q) if q <= FEW else np.triu_indices(q, k=1)


@lru_cache(maxsize=FEW + 1)
def _few_pairs(q: int) -> tuple[Ints, Ints]:
    one, other = np.triu_indices(q, k=1)
    one.setflags(write=False)
    other.setflags(write=False)
    return one, other


def unpair(keys: Ints, n_nodes: int) -> Ints:
    """Turn pair numbers back into pairs, shape (m, 2)."""
    return np.stack([keys // n_nodes, keys % n_nodes], axis=1)


def distinct(keys: Ints) -> Ints:
    """Sort keys (all at least 0) and drop repetitions; several times faster than numpy.unique on long arrays."""
    keys = np.sort(keys)
    return keys[np.diff(keys, prepend=-1) > 0]


def mean_by_key(keys: Ints, scores: Floats) -> tuple[Ints, Floats]:
    """Average scores of the same pair: unique keys and means."""
    unique, index, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return unique, np.bincount(index, weights=scores, minlength=len(unique)) / counts


def sharing(inside: Matrix) -> Matrix:
    """Tell which columns of a matrix of members, (n_patches, n_nodes), share a row: symmetric, no diagonal."""
    together = sp.csr_array(inside.T @ inside)
    together.setdiag(0)
    together.eliminate_zeros()
    return together.astype(bool)


def shared_pairs(n_nodes: int, nodes: Ints, ptr: Ints, pairs: Ints) -> tuple[int, Bools]:
    """Count the distinct pairs of nodes that share a patch, and tell which of some pairs do.

    A node shares a patch with the union of all patches it lies in. The unions are formed as bit sets,
    512 nodes at a time; the largest patch of each node enters the count by its size.

    Memory is O(n_nodes + members + m). Time is not linear: a member of a patch that is not the
    member's largest one costs a step for each block of 512 nodes which that patch touches, at most
    min(size, n_nodes / 512), and each block passes once over all members. That never exceeds the sum
    of squared sizes by more than those passes; a lone hub costs nothing, dense overlapping hubs do.
    """
    owner, sizes = owners(ptr), np.diff(ptr)
    largest = np.full(n_nodes, len(sizes))  # an empty patch, for nodes that lie in none
    by_size = np.argsort(sizes[owner], kind="stable")
    largest[nodes[by_size]] = owner[by_size]
    by_node = np.argsort(nodes, kind="stable")
    node, patch = nodes[by_node], owner[by_node]
    other = patch != largest[node]
    other_node, other_patch = node[other], patch[other]
    asked = np.argsort(pairs[:, 1], kind="stable")
    asked_ptr = np.searchsorted(pairs[asked, 1], 64 * np.arange(n_nodes // 64 + 2))
    reach = np.zeros(n_nodes, dtype=np.uint64)
    count = int((sizes[largest[np.unique(node)]] - 1).sum())
    shared = np.zeros(len(pairs), dtype=bool)
    for first_word, bits in _bit_sets(node, patch, n_nodes, len(sizes)):
        near = np.flatnonzero(np.asarray(bits.any(axis=0))[other_patch])
        starts = np.flatnonzero(np.diff(other_node[near], prepend=-1))
        centre, near = other_node[near[starts]], other_patch[near]
        for word, row in enumerate(bits, first_word):
            union = np.bitwise_or.reduceat(row[near], starts) if len(starts) else row[:0]
            count += int(np.bitwise_count(union & ~row[largest[centre]]).sum())
            mine = asked[slice(*asked_ptr[word : word + 2])]
            source, bit = pairs[mine, 0], (pairs[mine, 1] % 64).astype(np.uint64)
            reach[centre] = union
            shared[mine] = (reach[source] | row[largest[source]]) >> bit & np.uint64(1)
            reach[centre] = 0
    return count // 2, shared


def _bit_sets(node: Ints, patch: Ints, n_nodes: int, n_patches: int) -> Iterator[tuple[int, Bits]]:
    """Yield runs of words: the first word's number and the patches' bits, shape (words, n_patches + 1).

    Bit b of word w stands for node 64 w + b; `node` increases.
    """
    n_words = -(-n_nodes // 64)
    for first in range(0, n_words, WORDS):
        bits = np.zeros((min(WORDS, n_words - first), n_patches + 1), dtype=np.uint64)
        low, high = np.searchsorted(node, (64 * first, 64 * (first + WORDS)))
        word, bit = np.divmod(node[low:high] - 64 * first, 64)
        # A node is in a patch once, so that adding its bit is setting it.
        np.add.at(bits, (word, patch[low:high]), np.uint64(1) << bit.astype(np.uint64))
        yield first, bits
