"""Spectral attention network (SAN): positions learned from the spectrum, and attention over all pairs.

Real edges and virtual ones (all other pairs of a patch) have queries, keys and edge weights of
their own. With q, k, e per head of width d, the scores are sum_d q_i * k_j * e_ij / sqrt(d); the
softmax runs over real neighbours and over virtual ones apart, and the results are weighted
1 / (1 + gamma) and gamma / (1 + gamma). With gamma = 0 only real edges count.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import BatchNorm

from lograb.learning.nodes.blocks import PADDING, Block, attend, attention_weights, by_head
from lograb.learning.nodes.minibatches import Batch
from lograb.learning.nodes.models.classifier import Classifier
from lograb.learning.nodes.models.positions import InputLayer, LearnedPositions, RowEncoder
from lograb.learning.nodes.settings import SanSettings


class RealVirtualAttention(nn.Module):
    """SAN's attention: real and virtual edges apart.

    The datasets have no edge features, so all real edges share one embedding and all virtual ones
    another; `edge` maps them to the weights e of each head. `gamma` weighs virtual edges against real ones.
    """

    def __init__(self, width: int, heads: int, gamma: float) -> None:
        super().__init__()
        self.heads, self.gamma = heads, gamma
        self.query = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(2))
        self.key = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(2))
        self.edge = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(2))
        self.value = nn.Linear(width, width, bias=False)

    def forward(self, padded: Tensor, block: Block, edges: Tensor) -> Tensor:
        """Mix the members of each patch, (b, s, width); `edges` embeds a real and a virtual edge, (2, width)."""
        assert block.distances is not None
        real = block.distances == 1
        virtual = ~real & (block.distances != 0) & (block.distances != PADDING)
        shares = (1.0 / (1.0 + self.gamma), self.gamma / (1.0 + self.gamma))
        weights = torch.zeros(())
        for kind, (mask, share) in enumerate(zip((real, virtual), shares)):
            # One edge embedding per kind: e_ij can be taken into the queries.
            queries = self.query[kind](padded) * self.edge[kind](edges[kind])
            weights = share * attention_weights(queries, self.key[kind](padded), self.heads, mask) + weights
        mixed = weights @ by_head(self.value(padded), self.heads)
        return mixed.transpose(1, 2).flatten(2)


class SanLayer(nn.Module):
    """Attention and a perceptron of twice the width, each with residual and batch norm."""

    def __init__(self, settings: SanSettings) -> None:
        super().__init__()
        width, self.dropout = settings.hidden, settings.dropout
        self.attention = RealVirtualAttention(width, settings.heads, settings.gamma)
        self.output = nn.Linear(width, width)
        self.first_norm = BatchNorm(width, allow_single_element=True)
        self.perceptron = nn.Sequential(
            nn.Linear(width, 2 * width), nn.ReLU(), nn.Dropout(self.dropout), nn.Linear(2 * width, width)
        )
        self.second_norm = BatchNorm(width, allow_single_element=True)

    def forward(self, x: Tensor, blocks: list[Block], edges: Tensor) -> Tensor:
        """Transform rows (n, width)."""
        mixed = attend(x, blocks, lambda padded, number: self.attention(padded, blocks[number], edges))
        mixed = self.output(functional.dropout(mixed, self.dropout, self.training))
        x = self.first_norm(x + mixed)
        out: Tensor = self.second_norm(x + self.perceptron(x))
        return out


class San(Classifier):
    """SAN; subclasses add further encodings beside the learned positions."""

    encodings: tuple[str, ...] = ()

    def __init__(self, n_inputs: int, n_outputs: int, settings: SanSettings) -> None:
        super().__init__()
        self.width = settings.hidden
        positions = LearnedPositions(settings.position_width, settings.position_layers, settings.position_heads)
        self.input_layer = InputLayer(n_inputs, self.width, [positions, *map(RowEncoder, self.encodings)])
        self.edges = nn.Parameter(torch.randn(2, self.width))
        self.layers = nn.ModuleList(SanLayer(settings) for _ in range(settings.layers))
        self.output_layer = nn.Linear(self.width, n_outputs)

    def embed(self, batch: Batch) -> Tensor:
        """Apply all layers but the last, shape (n, hidden)."""
        x: Tensor = self.input_layer(batch)
        for layer in self.layers:
            x = layer(x, batch.blocks, self.edges)
        return x


class SanLapPE(San):
    """SAN with Laplacian eigenvectors as positions besides."""

    encodings = ("laplacian",)


class SanRwse(San):
    """SAN with random-walk return probabilities besides."""

    encodings = ("walks",)
