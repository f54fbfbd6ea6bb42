"""SEAL on the co-occurrence graph (Zhang and Chen; Appendix A.4): is this the neighbourhood of a linked pair?

Two nodes are joined in the co-occurrence graph H where they share a patch. A pair becomes its enclosing
subgraph of H, its nodes their double-radius labels, and a DGCNN (graph convolutions, sort pooling, one-
dimensional convolutions) learns to tell linked pairs from others. Where H has no path between fragments, both
nodes of a question bring separate neighbourhoods and every label but the pair's own is 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn.aggr import SortAggregation

from lograb.learning.links.drnl import Enclosing, enclosing_subgraph
from lograb.learning.links.fragmented import FragmentedGraph, draw_edges, training_pairs
from lograb.learning.links.settings import SealSettings
from lograb.learning.patchset import dense_rows
from lograb.learning.randomness import pick_device, seeded
from lograb.learning.sparse import compressed_rows, sparse_product
from lograb.parallel import threads_for
from lograb.progress import Progress
from lograb.ragged import pointer
from lograb.types import Bools, Floats, Ints, Matrix

# Sort pooling keeps at least so many nodes: two convolutions must find something to slide over.
LEAST_KEPT = 10


def seal(
    graph: FragmentedGraph, pairs: Ints, rng: np.random.Generator, settings: SealSettings, progress: Progress
) -> Floats:
    """Train on the edges inside fragments and score the given pairs."""
    most = len(graph.edges) if settings.max_edges is None else settings.max_edges
    known, true = training_pairs(graph, rng, settings.train_negatives, draw_edges(graph, most, rng))
    features = graph.patches.require_features("SEAL with features=true") if settings.features else None

    def cut(which: Ints) -> list[Enclosing]:
        whole, hops, most = graph.co_occurrence, settings.hops, settings.max_nodes_per_hop
        return [enclosing_subgraph(whole, int(u), int(w), hops, most, rng) for u, w in which]

    progress("SEAL: cutting subgraphs", 0, None)
    train = cut(known)
    top = max(int(item.labels.max()) for item in train)
    sizes = np.sort([len(item.nodes) for item in train])
    kept = max(LEAST_KEPT, int(sizes[min(int(np.ceil(settings.keep * len(sizes))), len(sizes)) - 1]))
    device = pick_device()
    with threads_for(settings.batch_size * sizes.mean()), seeded(rng):
        network = Dgcnn(top + 1 + (0 if features is None else features.shape[1]), kept, settings).to(device)
        optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
        for epoch in range(settings.epochs):
            progress("SEAL: training", epoch, settings.epochs)
            order = rng.permutation(len(train))
            network.train()
            for batch, which in _batches(train, order, settings.batch_size, top, features, device):
                optimizer.zero_grad()
                loss = _loss(network(batch), true[which], device)
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
        network.eval()
        scores, asked = np.zeros(len(pairs)), cut(pairs)
        with torch.no_grad():
            for batch, which in _batches(asked, np.arange(len(pairs)), settings.batch_size, top, features, device):
                scores[which] = network(batch).cpu().numpy()
    return scores


def _loss(scores: Tensor, true: Bools, device: torch.device) -> Tensor:
    return functional.binary_cross_entropy_with_logits(scores, torch.from_numpy(true).float().to(device))


class Batch:
    """Some subgraphs side by side.

    Attributes
    ----------
    inputs : Tensor (n, width)
        Labels one-hot, features beside them.
    adjacency : Tensor (n, n), sparse
    scale : Tensor (n, 1)
        1 / sqrt(degree + 1).
    owner : int Tensor (n,)
        The subgraph of each node.
    """

    def __init__(
        self, items: Sequence[Enclosing], top: int, features: Matrix | None, device: torch.device
    ) -> None:
        sizes = np.array([len(item.nodes) for item in items])
        shift = pointer(sizes)
        ptr = pointer(np.concatenate([np.diff(item.ptr) for item in items]))
        columns = np.concatenate([item.columns + start for item, start in zip(items, shift)])
        n = int(shift[-1])
        labels = torch.from_numpy(np.concatenate([item.labels for item in items])).clamp(max=top)
        inputs = functional.one_hot(labels, top + 1).float()
        if features is not None:
            rows = dense_rows(features, np.concatenate([item.nodes for item in items]))
            inputs = torch.cat([inputs, torch.from_numpy(rows)], dim=1)
        self.size = len(items)
        self.inputs = inputs.to(device)
        self.adjacency = compressed_rows(ptr, columns, np.ones(len(columns)), (n, n), device)
        self.scale = torch.from_numpy(1 / np.sqrt(np.diff(ptr) + 1.0)).float()[:, None].to(device)
        self.owner = torch.from_numpy(np.repeat(np.arange(len(items)), sizes)).to(device)

    def propagate(self, values: Tensor) -> Tensor:
        """Multiply by D^(-1/2) (A + I) D^(-1/2)."""
        scaled = self.scale * values
        return self.scale * (sparse_product(self.adjacency, self.adjacency, scaled) + scaled)


def _batches(
    items: list[Enclosing], order: Ints, size: int, top: int, features: Matrix | None, device: torch.device
) -> Iterator[tuple[Batch, Ints]]:
    for start in range(0, len(order), size):
        which = order[start : start + size]
        yield Batch([items[i] for i in which], top, features, device), which


class Dgcnn(nn.Module):
    """Graph convolutions with tanh, sort pooling, two one-dimensional convolutions, one dense layer."""

    def __init__(self, n_inputs: int, kept: int, settings: SealSettings) -> None:
        super().__init__()
        widths = [n_inputs] + [settings.hidden] * settings.layers + [1]
        self.layers = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in pairwise(widths))
        self.shifts = nn.ParameterList(torch.zeros(b) for b in widths[1:])
        total = sum(widths[1:])
        self.kept, self.pool = kept, SortAggregation(kept)
        # A convolution over whole rows: width and stride are the length of a row.
        self.rows = nn.Linear(total, 16)
        self.shrink = nn.MaxPool1d(2, 2)
        self.slide = nn.Conv1d(16, 32, 5, 1)
        self.dense = nn.Linear((kept // 2 - 4) * 32, 128)
        self.drop = nn.Dropout(settings.dropout)
        self.last = nn.Linear(128, 1)

    def forward(self, batch: Batch) -> Tensor:
        """Score the subgraphs of a batch, shape (b,)."""
        values, found = batch.inputs, []
        for layer, shift in zip(self.layers, self.shifts):
            values = torch.tanh(batch.propagate(layer(values)) + shift)
            found.append(values)
        pooled = self.pool(torch.cat(found, dim=1), batch.owner, dim_size=batch.size)
        rows = pooled.view(batch.size, self.kept, -1)
        x = self.shrink(functional.relu(self.rows(rows)).transpose(1, 2))
        x = functional.relu(self.slide(x)).flatten(1)
        scores: Tensor = self.last(self.drop(functional.relu(self.dense(x)))).squeeze(1)
        return scores
