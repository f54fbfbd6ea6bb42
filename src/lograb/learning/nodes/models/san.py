"""Spectral attention network (SAN): positions learned from the spectrum, and attention over all pairs.

Real edges and virtual ones (all other pairs of a patch) have queries, keys and edge weights of
their own. With q, k, e per head of width d, the scores are sum_d q_i * k_j * e_ij / sqrt(d); the
softmax runs over real neighbours and over virtual ones apart, and the results are weighted
1 / (1 + gamma) and gamma / (1 + gamma). With gamma = 0 only real edges count.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import BatchNorm

from lograb.learning.nodes.blocks import PADDING, Block, Packing, attend
from lograb.learning.nodes.minibatches import Batch
from lograb.learning.nodes.models.classifier import Classifier
from lograb.learning.nodes.models.dropout import Dropout
from lograb.learning.nodes.models.positions import InputLayer, LearnedPositions, RowEncoder
from lograb.learning.nodes.settings import SanSettings


@dataclass(frozen=True, eq=False)
class Kinds:
    """Which pairs of a block are real edges and which virtual ones."""

    mask: Tensor  # (2 * b, 1, s, s), first real, then virtual: 0 or, where a pair is none, far below zero
    share: Tensor  # (2, b, 1, s, 1), what the kind counts for each place: nothing where it has no such edge


def edge_kinds(block: Block, gamma: float) -> Kinds:
    """Sort the pairs of a block; `gamma` weighs virtual edges against real ones."""
    assert block.distances is not None
    real = block.distances == 1
    virtual = ~real & (block.distances != 0) & (block.distances != PADDING)
    pairs = torch.stack([real, virtual])
    shares = torch.tensor([1.0, gamma], device=pairs.device) / (1.0 + gamma)
    share = pairs.any(dim=3) * shares[:, None, None]
    return Kinds(torch.where(pairs, 0.0, -1e9).flatten(0, 1)[:, None], share[:, :, None, :, None])


class RealVirtualAttention(nn.Module):
    """SAN's attention: real and virtual edges apart.

    The datasets have no edge features, so all real edges share one embedding and all virtual ones
    another; `edge` maps them to the weights e of each head.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(2))
        self.key = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(2))
        self.edge = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(2))
        self.value = nn.Linear(width, width, bias=False)

    def forward(self, padded: Tensor, kinds: Kinds, edges: Tensor) -> Tensor:
        """Mix the members of each patch, (b, s, width); `edges` embeds a real and a virtual edge, (2, width)."""
        # One edge embedding per kind: e_ij can be taken into the queries. All maps are one product.
        maps = [query.weight * edge(one)[:, None] for query, edge, one in zip(self.query, self.edge, edges)]
        maps += [key.weight for key in self.key] + [self.value.weight]
        b, s, width = padded.shape
        joint = functional.linear(padded, torch.cat(maps)).reshape(b, s, 5, self.heads, width // self.heads)
        joint = joint.permute(2, 0, 3, 1, 4)
        queries, keys, values = joint[:2], joint[2:4], joint[4:]  # (kinds, b, heads, s, width / heads)
        mixed = functional.scaled_dot_product_attention(
            queries.flatten(0, 1), keys.flatten(0, 1), values.expand_as(keys).flatten(0, 1), kinds.mask
        )
        return (mixed.reshape(keys.shape) * kinds.share).sum(0).transpose(1, 2).flatten(2)


class SanLayer(nn.Module):
    """Attention and a perceptron of twice the width, each with residual and batch norm."""

    def __init__(self, settings: SanSettings) -> None:
        super().__init__()
        width, self.dropout = settings.hidden, Dropout(settings.dropout)
        self.attention = RealVirtualAttention(width, settings.heads)
        self.output = nn.Linear(width, width)
        self.first_norm = BatchNorm(width, allow_single_element=True)
        self.perceptron = nn.Sequential(
            nn.Linear(width, 2 * width), nn.ReLU(), self.dropout, nn.Linear(2 * width, width)
        )
        self.second_norm = BatchNorm(width, allow_single_element=True)

    def forward(self, x: Tensor, packing: Packing, kinds: list[Kinds], edges: Tensor) -> Tensor:
        """Transform rows (n, width); `kinds` holds one for each block."""
        mixed = attend(x, packing, lambda padded, number: self.attention(padded, kinds[number], edges))
        mixed = self.output(self.dropout(mixed))
        x = self.first_norm(x + mixed)
        out: Tensor = self.second_norm(x + self.perceptron(x))
        return out


class San(Classifier):
    """SAN; subclasses add further encodings beside the learned positions."""

    encodings: tuple[str, ...] = ()

    def __init__(self, n_inputs: int, n_outputs: int, settings: SanSettings) -> None:
        super().__init__()
        self.width, self.gamma = settings.hidden, settings.gamma
        positions = LearnedPositions(settings.position_width, settings.position_layers, settings.position_heads)
        self.input_layer = InputLayer(n_inputs, self.width, [positions, *map(RowEncoder, self.encodings)])
        self.edges = nn.Parameter(torch.randn(2, self.width))
        self.layers = nn.ModuleList(SanLayer(settings) for _ in range(settings.layers))
        self.output_layer = nn.Linear(self.width, n_outputs)

    def embed(self, batch: Batch) -> Tensor:
        """Apply all layers but the last, shape (n, hidden)."""
        x: Tensor = self.input_layer(batch)
        kinds = [edge_kinds(block, self.gamma) for block in batch.packing.blocks]
        for layer in self.layers:
            x = layer(x, batch.packing, kinds, self.edges)
        return x


class SanLapPE(San):
    """SAN with Laplacian eigenvectors as positions besides."""

    encodings = ("laplacian",)


class SanRwse(San):
    """SAN with random-walk return probabilities besides."""

    encodings = ("walks",)
