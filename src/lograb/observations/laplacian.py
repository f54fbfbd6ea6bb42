"""Normalized Laplacians of all patches at once.

With S = D^(-1/2) A D^(-1/2) the normalized Laplacian is L = I - S. An isolated node has a zero row
and column in L, so its diagonal entry of S is 1. The eigenvalues of L lie in [0, 2].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from lograb.patches.overlap import PatchEdges
from lograb.ragged import ranges
from lograb.types import Bools, Floats, Ints, Matrix, Patches


@dataclass(frozen=True, eq=False)
class Laplacians:
    """The normalized Laplacians of all patches, as one flat list of entries."""

    ptr: Ints  # (n_patches + 1,), where the members of each patch start
    edge_ptr: Ints  # (n_patches + 1,), where the edges of each patch start
    rows: Ints  # (n_patch_edges,), endpoints of each edge as positions inside its patch
    cols: Ints  # (n_patch_edges,), larger ones
    weights: Floats  # (n_patch_edges,), S_ij = 1 / sqrt(d_i d_j), with degrees counted inside the patch
    linked: Bools  # (n_entries,), False where a member has no neighbour in its patch

    @classmethod
    def of(cls, patches: Patches, edges: PatchEdges) -> Laplacians:
        """Weigh the induced edges of every patch."""
        degrees = np.bincount(edges.entries.ravel(), minlength=len(patches.nodes))
        first, second = edges.entries[:, 0], edges.entries[:, 1]
        start = np.repeat(patches.ptr[:-1], np.diff(edges.ptr))
        weights = 1.0 / np.sqrt(degrees[first] * degrees[second].astype(float))
        return cls(patches.ptr, edges.ptr, first - start, second - start, weights, degrees > 0)

    def stacks(self, limit: int, n_bytes: int) -> Iterator[tuple[Ints, Floats]]:
        """Yield patches of equal size together: their numbers (b,), increasing, and dense Laplacians (b, q, q).

        Sizes ascend up to `limit`; a stack takes at most `n_bytes` (but holds one patch at least).
        """
        sizes = np.diff(self.ptr)
        order = np.argsort(sizes, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1):
            q = int(sizes[group[0]]) if len(group) else 0
            if 0 < q <= limit:
                at_once = max(1, n_bytes // (8 * q * q))
                for i in range(0, len(group), at_once):
                    yield group[i : i + at_once], self._dense(group[i : i + at_once], q)

    def _dense(self, which: Ints, q: int) -> Floats:
        b = len(which)
        counts = self.edge_ptr[which + 1] - self.edge_ptr[which]
        edge = ranges(self.edge_ptr[which], counts)
        base = np.repeat(np.arange(b) * q * q, counts)
        rows, cols, weights = self.rows[edge], self.cols[edge], self.weights[edge]
        stack = np.zeros(b * q * q)
        stack[base + rows * q + cols] = -weights
        stack[base + cols * q + rows] = -weights
        members = self.ptr[which][:, None] + np.arange(q)
        stack.reshape(b, q * q)[:, :: q + 1] = self.linked[members]
        return stack.reshape(b, q, q)

    def sparse(self, i: int) -> Matrix:
        """Build S = I - L of one patch as a csr_array, shape (q, q)."""
        span = slice(self.edge_ptr[i], self.edge_ptr[i + 1])
        rows, cols, weights = self.rows[span], self.cols[span], self.weights[span]
        alone = np.flatnonzero(~self.linked[self.ptr[i] : self.ptr[i + 1]])
        q = int(self.ptr[i + 1] - self.ptr[i])
        data = np.concatenate([weights, weights, np.ones(len(alone))])
        where = np.concatenate([rows, cols, alone]), np.concatenate([cols, rows, alone])
        return sp.csr_array((data, where), shape=(q, q))
