"""Who is the centre of a patch, told from the patches as sets.

Let patches be closed neighbourhoods P_i = N[c_i] of distinct, unknown nodes c_i. Then c_i lies in P_i, and
since neighbourhood is symmetric, c_i lies in P_j exactly when c_j lies in P_i. So every patch says something
about the centre of every other, and a candidate c for c_i is refuted if

- c lies in more patches than P_i has members: each of those patches has its centre in P_i;
- c lies in P_j, but no other candidate for c_j lies in P_i;
- c lies outside P_j, but all candidates for c_j lie in P_i.

Applied until nothing changes, these rules never drop a true centre. A patch that loses all candidates
proves that the patches are not such neighbourhoods. The converse fails: balls of radius d are the closed
neighbourhoods of the d-th power of the graph, and a few large sets leave most candidates open. Sets alone
therefore cannot tell the radius.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from lograb.ragged import owners, pointer, ranges, runs
from lograb.types import Bools, Ints, Observations

# Lookups that are held at a time.
AT_ONCE = 1 << 22


def possible_centres(seen: Observations) -> Bools | None:
    """Find the members of each patch that can be its centre if all patches are closed neighbourhoods.

    A flag for each entry of ``Observations.nodes``; None if the patches contradict each other. A pass costs the
    sum over candidates of the number of patches they lie in: at most the sum of squared patch sizes in the first
    pass, and about the number of members when few candidates are left.
    """
    owner = owners(seen.ptr)
    lies_in = np.bincount(seen.nodes, minlength=seen.n_nodes)
    possible = lies_in[seen.nodes] <= seen.sizes[owner]
    while True:
        kept = _unrefuted(seen, owner, possible)
        if (np.bincount(owner[kept], minlength=seen.n_patches)[seen.sizes > 0] == 0).any():
            return None
        if (kept == possible).all():
            return kept
        possible = kept


def _unrefuted(seen: Observations, owner: Ints, possible: Bools) -> Bools:
    """Tell which candidates agree with every other patch (the second and third rule)."""
    m, shape = seen.n_patches, (seen.n_patches, seen.n_nodes)
    inside = sp.csr_array((np.ones(len(owner), dtype=np.int32), seen.nodes, seen.ptr), shape=shape)
    candidates = inside.copy()
    candidates.data = possible.astype(np.int32)
    candidates.eliminate_zeros()
    n_candidates, columns = np.diff(candidates.indptr), candidates.T.tocsr()
    by_node = np.argsort(seen.nodes, kind="stable")
    node_ptr = pointer(np.bincount(seen.nodes, minlength=seen.n_nodes))
    kept = possible.copy()
    for first, last, part in _blocks(seen, possible, np.diff(node_ptr)):
        common = inside[first:last] @ columns  # how many candidates for c_j lie in P_i
        common.sort_indices()
        row = owners(common.indptr.astype(np.int64))
        all_in = common.data == n_candidates[common.indices]
        demands = np.bincount(row[all_in], minlength=last - first)
        patch, node = owner[part], seen.nodes[part]
        count = np.diff(node_ptr)[node]
        there = by_node[ranges(node_ptr[node], count)]  # the entries of the same node in all patches P_j
        keys, wanted = row * m + common.indices, np.repeat(patch - first, count) * m + owner[there]
        at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        found = keys[at] == wanted
        met = found & ((common.data[at] > possible[there]) | (owner[there] == np.repeat(patch, count)))
        starts = pointer(count)[:-1]
        kept[part] = np.logical_and.reduceat(met, starts)
        kept[part] &= np.add.reduceat((found & all_in[at]).astype(np.int64), starts) == demands[patch - first]
    return kept


def _blocks(seen: Observations, possible: Bools, lies_in: Ints) -> Iterator[tuple[int, int, Ints]]:
    """Cut the work into runs of patches with about AT_ONCE lookups: first, last + 1, entries of candidates."""
    cost = pointer(np.where(possible, lies_in[seen.nodes], 0))[seen.ptr]
    for start, stop in runs(cost, AT_ONCE):
        part = seen.ptr[start] + np.flatnonzero(possible[seen.ptr[start] : seen.ptr[stop]])
        if len(part):
            yield start, stop, part
