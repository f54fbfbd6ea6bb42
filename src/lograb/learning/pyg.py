"""Patches as PyTorch Geometric data: the input of Task 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from lograb.errors import MissingExtraError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from lograb.instance import Instance


def to_pyg(instance: Instance) -> list[Data]:
    """List the patches of an instance, graph by graph, as `Data`.

    Each has

    ``x`` : float (q, n_features), node features; zero columns where the graph has none
    ``spectral`` : float (q, k), the noisy embedding, zero columns beyond the patch's rank
    ``eigenvalues`` : float (1, k), NaN beyond the rank; absent when withheld
    ``edge_index`` : int (2, n_edges), the patch's own edges in both directions
    ``y`` : node labels, where the graph has them
    ``n_id`` : int (q,), node ids in the whole graph
    ``centre`` : int, position of the centre inside the patch, where the strategy has one
    ``graph`` : int, number of the graph in the instance
    """
    try:
        import torch  # noqa: F401
        import torch_geometric  # noqa: F401
    except ImportError:
        raise MissingExtraError("Instance.to_pyg()", "gnn") from None
    return [data for number, graph in enumerate(instance) for data in _patches(number, graph)]


def _patches(number: int, instance: Instance) -> list[Data]:
    import torch
    from torch_geometric.data import Data

    seen, labels, features = instance.observations, instance.labels, instance.features
    edge_ptr, ends = instance.patch_edges
    k = instance.spec.k
    listed = []
    for i in range(seen.n_patches):
        nodes, rank = seen.members(i), seen.ranks[i]
        spectral = np.zeros((len(nodes), k), dtype=np.float32)
        spectral[:, :rank] = seen.block(i)
        pairs = ends[edge_ptr[i] : edge_ptr[i + 1]]
        data = Data(
            x=torch.from_numpy(_rows(features, nodes)),
            edge_index=torch.from_numpy(np.concatenate([pairs, pairs[:, ::-1]]).T.copy()),
            n_id=torch.from_numpy(nodes.copy()),
            spectral=torch.from_numpy(spectral),
            graph=number,
        )
        if seen.values is not None:
            values = np.full((1, k), np.nan, dtype=np.float32)
            values[0, :rank] = seen.spectrum(i)
            data.eigenvalues = torch.from_numpy(values)
        if labels is not None:
            data.y = torch.from_numpy(np.array(labels[nodes]))
        if seen.centres is not None:
            data.centre = int(np.searchsorted(nodes, seen.centres[i]))
        listed.append(data)
    return listed


def _rows(features: Any, nodes: Any) -> Any:
    """Take some nodes' features as a dense float32 array."""
    if features is None:
        return np.zeros((len(nodes), 0), dtype=np.float32)
    rows = features[nodes]
    return np.array(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float32)
