"""Patches as PyTorch Geometric data: the input of Task 2."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lograb.learning.patchset import dense_rows, patch_set, table_of
from lograb.learning.randomness import require_torch

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
    ``y`` : node labels, where the graph has them: int (q,), or bool (q, n_classes) where a node may have several
    ``n_id`` : int (q,), node ids in the whole graph
    ``centre`` : int, position of the centre inside the patch, where the strategy has one
    ``graph`` : int, number of the graph in the instance
    """
    require_torch("to_pyg")
    return [data for number, graph in enumerate(instance) for data in _patches(number, graph)]


def _patches(number: int, instance: Instance) -> list[Data]:
    import torch
    from torch_geometric.data import Data

    seen, found = instance.observations, patch_set(instance)
    values = seen.values
    if values is not None:
        eigenvalues = torch.from_numpy(table_of(values, seen.ranks, found.spectral.shape[1], np.nan))
    listed = []
    for i, (start, end) in enumerate(pairwise(found.ptr)):
        nodes = found.nodes[start:end]
        pairs = found.edges[found.edge_ptr[i] : found.edge_ptr[i + 1]]
        data = Data(
            x=torch.from_numpy(dense_rows(found.features, nodes)),
            edge_index=torch.from_numpy(np.concatenate([pairs, pairs[:, ::-1]]).T.copy()),
            n_id=torch.from_numpy(nodes.copy()),
            spectral=torch.from_numpy(found.spectral[start:end].copy()),
            graph=number,
        )
        if values is not None:
            data.eigenvalues = eigenvalues[i : i + 1].clone()
        if found.labels is not None:
            data.y = torch.from_numpy(found.labels[nodes])
        if found.centres is not None:
            data.centre = int(found.centres[i] - start)
        listed.append(data)
    return listed
