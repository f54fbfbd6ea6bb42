"""Patches as torch tensors, a few at a time.

Every patch is a world of its own: a batch is their disjoint union, and nothing runs between them
(§4.4.2). Features are kept once per node and looked up per batch, so memory grows with nodes, not
with occurrences. Collating is a handful of index operations, no loop over patches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from lograb.learning.nodes.blocks import SHORTEST, Packing, pack
from lograb.learning.patchset import PatchSet
from lograb.ragged import owners, pointer, ranges
from lograb.types import Ints, Matrix

# A sparse feature table larger than this as a dense one is made dense batch by batch.
DENSE_BYTES = 1 << 29
# While nothing is learned, batches are bounded by the pairs inside them, padding included: full attention
# stores those.
PAIRS_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class Batch:
    """Some patches, as one graph of several components. For encodings see `lograb.learning.nodes.encodings`."""

    rows: Tensor  # int64 (n,), the rows of the `PatchSet` in this batch, patch after patch
    nodes: Tensor  # int64 (n,), the nodes behind them
    features: Tensor  # (n, n_features)
    spectral: Tensor  # (n, k)
    edge_index: Tensor  # int64 (2, 2 * n_edges), both directions
    patch: Tensor  # int64 (n,), which of the batch's patches each row belongs to, ascending
    n_patches: int
    sizes: Ints  # (n_patches,), their members
    hops: npt.NDArray[np.int8] | None = None  # where asked for; see `PatchSet.distances`
    row_encodings: dict[str, Tensor] = field(default_factory=dict)  # (n, ...) by name
    patch_encodings: dict[str, Tensor] = field(default_factory=dict)  # (n_patches, ...) by name

    @property
    def inputs(self) -> Tensor:
        """Features beside spectral coordinates, shape (n, n_features + k): the input of all models."""
        return torch.cat([self.features, self.spectral], dim=1)

    @property
    def degrees(self) -> Tensor:
        """Neighbours of each row inside its patch, int64 (n,)."""
        return torch.bincount(self.edge_index[1], minlength=len(self.rows))

    @cached_property
    def packing(self) -> Packing:
        """The patches packed into sequences: for full attention."""
        return pack(self.sizes, self.hops, self.rows.device)


class Batches:
    """Makes batches of a patch set on one device."""

    def __init__(self, patches: PatchSet, device: torch.device) -> None:
        self.patches, self.device = patches, device
        self._edge_sizes = np.diff(patches.edge_ptr)
        self._pair_ptr = pointer(patches.sizes**2)
        self._table, self._sparse = _feature_table(patches, device)
        self._spectral = torch.from_numpy(patches.spectral).to(device)

    def take(self, which: Ints) -> Batch:
        """Collate the patches numbered `which`, in this order."""
        patches = self.patches
        sizes = patches.sizes[which]
        start = pointer(sizes)
        rows = ranges(patches.ptr[which], sizes)
        edge = ranges(patches.edge_ptr[which], self._edge_sizes[which])
        ends = patches.edges[edge] + np.repeat(start[:-1], self._edge_sizes[which])[:, None]
        edge_index = np.concatenate([ends, ends[:, ::-1]]).T
        nodes = patches.nodes[rows]
        return Batch(
            rows=self._put(rows),
            nodes=self._put(nodes),
            features=self._features(nodes),
            spectral=self._spectral.index_select(0, self._put(rows)),
            edge_index=self._put(edge_index),
            patch=self._put(owners(start)),
            n_patches=len(which),
            sizes=sizes,
            hops=None if patches.distances is None else patches.distances[ranges(self._pair_ptr[which], sizes**2)],
            row_encodings={name: self._put(table[rows]) for name, table in patches.row_encodings.items()},
            patch_encodings={name: self._put(table[which]) for name, table in patches.patch_encodings.items()},
        )

    def shuffled(self, which: Ints, size: int, rng: np.random.Generator) -> Iterator[Batch]:
        """Yield batches of `size` patches in random order: one epoch."""
        order = rng.permutation(which)
        for i in range(0, len(order), size):
            yield self.take(order[i : i + size])

    def in_size_order(self, which: Ints) -> Iterator[Batch]:
        """Yield batches of patches of like size, as many at once as memory allows: for inference."""
        order = which[np.argsort(self.patches.sizes[which], kind="stable")]
        first = 0
        for i, size in enumerate(self.patches.sizes[order]):
            # If all were of this size, the batch would hold so many pairs with this patch in it.
            if first < i and (i + 1 - first) * int(size) * max(int(size), SHORTEST) > PAIRS_AT_ONCE:
                yield self.take(order[first:i])
                first = i
        if first < len(order):
            yield self.take(order[first:])

    def _put(self, array: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def _features(self, nodes: Ints) -> Tensor:
        if self._sparse is not None:
            return torch.from_numpy(self._sparse[nodes].toarray().astype(np.float32, copy=False)).to(self.device)
        return self._table.index_select(0, self._put(nodes))


def _feature_table(patches: PatchSet, device: torch.device) -> tuple[Tensor, Matrix | None]:
    """Keep all features as one dense table where that fits, else sparse."""
    features = patches.features
    if features is None:
        return torch.zeros((patches.n_nodes, 0), device=device), None
    if sp.issparse(features):
        if 4 * features.shape[0] * features.shape[1] > DENSE_BYTES:
            return torch.zeros((0, 0), device=device), sp.csr_array(features)
        features = features.toarray()
    return torch.from_numpy(np.array(features, dtype=np.float32)).to(device), None
