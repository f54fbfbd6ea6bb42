"""All patches of an instance as flat arrays: the input of Tasks 2 and 3, without torch.

One row is one *occurrence*: a node as seen in one patch. A node that lies in five patches has five
rows, with the same features and label but other spectral coordinates and other neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from lograb.errors import LograbError
from lograb.instance import Instance
from lograb.ragged import pointer
from lograb.types import Bools, Floats, Ints, Matrix, Ragged

Singles = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PatchSet(Ragged):
    """The patches of all graphs of an instance, one after the other.

    Encodings are what a model asked for beyond features, coordinates and edges: `lograb.learning.nodes.encodings`.
    """

    name: str
    ptr: Ints  # (n_patches + 1,), where the rows of each patch start
    nodes: Ints  # (n_rows,), the node behind each row; ids run through all graphs, 0 .. n_nodes - 1
    n_nodes: int
    spectral: Singles  # (n_rows, k), the shared coordinates, noise included; zero beyond the patch's rank
    edge_ptr: Ints  # (n_patches + 1,)
    edges: Ints  # (n_patch_edges, 2), each edge of a patch once, as positions inside the patch
    centres: Ints | None = None  # (n_patches,), row (not node) of the centre, where the strategy has centres
    features: Matrix | None = None  # (n_nodes, n_features)
    labels: npt.NDArray[Any] | None = None  # int64 (n_nodes,), negative for none; or bool (n_nodes, n_classes)
    row_encodings: dict[str, Singles] = field(default_factory=dict)  # (n_rows, ...) by name
    patch_encodings: dict[str, Singles] = field(default_factory=dict)  # (n_patches, ...) by name
    distances: npt.NDArray[np.int8] | None = None  # hops of all ordered pairs, row by row; -1 without a path

    def __repr__(self) -> str:
        return f"<PatchSet {self.name}: {self.n_patches} patches, {self.n_rows} rows, {self.n_nodes} nodes>"

    @property
    def n_rows(self) -> int:
        """Number of (patch, node) occurrences."""
        return len(self.nodes)

    @property
    def n_features(self) -> int:
        """Width of the node features; 0 where there are none."""
        return 0 if self.features is None else int(self.features.shape[1])

    @property
    def n_inputs(self) -> int:
        """Width of a model's input: features and spectral coordinates."""
        return self.n_features + int(self.spectral.shape[1])

    @property
    def multi_label(self) -> bool:
        """Whether a node may have several labels."""
        return self.labels is not None and self.labels.ndim == 2

    @property
    def n_classes(self) -> int:
        """Number of classes; an error where there are no labels."""
        labels = self.require_labels()
        n_classes: int = labels.shape[1] if labels.ndim == 2 else int(labels.max(initial=0)) + 1
        return n_classes

    @property
    def labelled(self) -> Bools:
        """Tell for each row whether its node has a label."""
        labels = self.require_labels()
        known = labels >= 0 if labels.ndim == 1 else np.ones(self.n_nodes, dtype=bool)
        return np.asarray(known[self.nodes])

    def require_labels(self) -> npt.NDArray[Any]:
        """Give the labels, or say that there are none."""
        if self.labels is None:
            raise LograbError(f"'{self.name}' has no node labels: node classification needs some")
        return self.labels

    def require_features(self, what: str) -> Matrix:
        """Give the node features, or say who needs some."""
        if self.features is None or not self.n_features:
            raise LograbError(f"'{self.name}' has no node features: {what} needs some")
        return self.features


def dense_rows(features: Matrix | None, nodes: Ints) -> Singles:
    """Take some nodes' features, dense; no columns where there are no features."""
    if features is None:
        return np.zeros((len(nodes), 0), dtype=np.float32)
    rows = features[nodes]
    return np.array(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float32)


def patch_set(instance: Instance) -> PatchSet:
    """Lay the patches of all graphs of an instance out flat; they must come with their edges (§4.4.2)."""
    parts = [_one_graph(graph) for graph in instance]
    shift = pointer([part.n_nodes for part in parts])
    rows = pointer([part.n_rows for part in parts])
    with_centres = all(part.centres is not None for part in parts)
    return PatchSet(
        name=instance.name,
        ptr=pointer(np.concatenate([part.sizes for part in parts])),
        nodes=np.concatenate([part.nodes + start for part, start in zip(parts, shift)]),
        n_nodes=int(shift[-1]),
        spectral=np.concatenate([part.spectral for part in parts]),
        edge_ptr=pointer(np.concatenate([np.diff(part.edge_ptr) for part in parts])),
        edges=np.concatenate([part.edges for part in parts]),
        centres=np.concatenate([part.centres + start for part, start in zip(parts, rows)
                                if part.centres is not None]) if with_centres else None,
        features=_stack([part.features for part in parts]),
        labels=_stack([part.labels for part in parts]),
    )  # fmt: skip


def _one_graph(instance: Instance) -> PatchSet:
    seen = instance.observations
    edge_ptr, ends = instance.patch_edges
    labels = instance.labels
    if labels is not None:
        labels = np.array(labels, dtype=np.int64 if labels.ndim == 1 else bool)
    return PatchSet(
        instance.name, np.asarray(seen.ptr), np.asarray(seen.nodes), seen.n_nodes,
        table_of(seen.vectors, np.repeat(seen.ranks, seen.sizes), instance.spec.k, 0.0), np.asarray(edge_ptr),
        np.asarray(ends), seen.centre_entries, instance.features, labels
    )  # fmt: skip


def table_of(flat: Floats, lengths: Ints, width: int, fill: float) -> Singles:
    """Lay ragged rows out as a table (n, width)."""
    table = np.full((len(lengths), width), fill, dtype=np.float32)
    table[np.arange(width) < lengths[:, None]] = flat  # both run row by row
    return table


def _stack(parts: list[Any]) -> Any:
    """Put the graphs' tables below each other; None unless every graph has one."""
    if any(part is None for part in parts):
        return None
    if len(parts) == 1:
        return parts[0]
    if any(sp.issparse(part) for part in parts):
        return sp.csr_array(sp.vstack(parts))
    return np.concatenate(parts)
