"""Graphormer: a Transformer that learns the graph through three encodings.

*Centrality*: a learned vector per degree is added to the input. *Spatial*: a learned number per
head and shortest-path length is added to every attention score. *Edges*: so is the mean, over the
edges e_1 ... e_N of a shortest path, of the product of the edge's feature with a learned weight
per position. The datasets have no edge features; every edge has the constant feature 1, and this
encoding is then a function of the path's length too. The virtual node that reads out whole graphs
has no use where nodes are classified, and is left out. Both biases are shared by all layers.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from lograb.learning.nodes.blocks import NO_PATH, Packing, attend, attention_weights, by_head
from lograb.learning.nodes.minibatches import Batch
from lograb.learning.nodes.models.classifier import Classifier
from lograb.learning.nodes.models.dropout import Dropout
from lograb.learning.nodes.settings import GraphormerSettings


class PathBias(nn.Module):
    """Spatial and edge encoding: what a shortest path adds to an attention score.

    Paths beyond `max_distance` share the last entry; pairs without a path have one of their own.
    """

    def __init__(self, heads: int, max_distance: int) -> None:
        super().__init__()
        self.max_distance = max_distance
        self.spatial = nn.Embedding(max_distance + 2, heads)
        self.edge = nn.Parameter(torch.empty(max_distance, heads))
        nn.init.normal_(self.spatial.weight, std=0.02)
        nn.init.normal_(self.edge, std=0.02)

    def forward(self, distances: Tensor) -> Tensor:
        """Give the bias of every pair, (b, s, s) hops to (b, heads, s, s)."""
        lengths = torch.arange(1, self.max_distance + 1, device=distances.device)
        along = self.edge.cumsum(0) / lengths[:, None]
        along = torch.cat([torch.zeros_like(along[:1]), along, torch.zeros_like(along[:1])])
        table = self.spatial.weight + along
        entry = torch.where(distances == NO_PATH, self.max_distance + 1, distances.clamp(0, self.max_distance))
        return functional.embedding(entry, table).permute(0, 3, 1, 2)


class GraphormerLayer(nn.Module):
    """Biased attention and a perceptron, LayerNorm before each and residuals around them."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, Dropout(dropout)
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.perceptron = nn.Sequential(
            nn.Linear(width, width), nn.GELU(), self.dropout, nn.Linear(width, width)
        )

    def attention(self, padded: Tensor, together: Tensor, bias: Tensor) -> Tensor:
        """Mix the members of each patch, (b, s, width); `bias` is (b, heads, s, s)."""
        weights = attention_weights(self.query(padded), self.key(padded), self.heads, together, bias)
        values = by_head(self.value(padded), self.heads)
        mixed: Tensor = self.output((self.dropout(weights) @ values).transpose(1, 2).flatten(2))
        return mixed

    def forward(self, x: Tensor, packing: Packing, biases: list[Tensor]) -> Tensor:
        """Transform rows (n, width); `biases` holds one for each block."""

        def mix(padded: Tensor, number: int) -> Tensor:
            return self.attention(padded, packing.blocks[number].together, biases[number])

        x = x + self.dropout(attend(self.first_norm(x), packing, mix))
        out: Tensor = x + self.dropout(self.perceptron(self.second_norm(x)))
        return out


class Graphormer(Classifier):
    """Graphormer for nodes."""

    def __init__(self, n_inputs: int, n_outputs: int, settings: GraphormerSettings) -> None:
        super().__init__()
        hidden, heads, dropout = settings.hidden, settings.heads, settings.dropout
        self.width, self.max_degree = hidden, settings.max_degree
        self.input_layer = nn.Linear(n_inputs, hidden)
        self.centrality = nn.Embedding(self.max_degree + 1, hidden)
        nn.init.normal_(self.centrality.weight, std=0.02)
        self.bias = PathBias(heads, settings.max_distance)
        self.layers = nn.ModuleList(GraphormerLayer(hidden, heads, dropout) for _ in range(settings.layers))
        self.last_norm = nn.LayerNorm(hidden)
        self.output_layer = nn.Linear(hidden, n_outputs)

    def embed(self, batch: Batch) -> Tensor:
        """Apply all layers but the last, shape (n, hidden)."""
        x: Tensor = self.input_layer(batch.inputs) + self.centrality(batch.degrees.clamp(max=self.max_degree))
        biases = [self.bias(block.distances) for block in batch.packing.blocks]
        for layer in self.layers:
            x = layer(x, batch.packing, biases)
        embedded: Tensor = self.last_norm(x)
        return embedded
