"""GIN with a virtual node: one more member of every patch that is everybody's neighbour."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import BatchNorm, GINConv, global_add_pool

from lograb.learning.nodes.minibatches import Batch
from lograb.learning.nodes.models.classifier import Classifier
from lograb.learning.nodes.settings import VirtualNodeSettings


class GinVirtualNode(Classifier):
    """GIN layers; between them a virtual node gathers all members' sum and hands it back to each.

    As usual with virtual nodes the perceptrons are normalised by batch: sums over patches of very
    unequal size would otherwise differ by orders of magnitude. The virtual node starts from a
    learned vector that is zero at first.
    """

    def __init__(self, n_inputs: int, n_outputs: int, settings: VirtualNodeSettings) -> None:
        super().__init__()
        hidden, layers = settings.hidden, settings.layers
        self.width, self.dropout = hidden, settings.dropout
        self.input_layer = nn.Linear(n_inputs, hidden)
        self.start = nn.Parameter(torch.zeros(1, hidden))
        self.convolutions = nn.ModuleList(GINConv(_perceptron(hidden), train_eps=True) for _ in range(layers))
        self.norms = nn.ModuleList(BatchNorm(hidden, allow_single_element=True) for _ in range(layers))
        self.gather = nn.ModuleList(_perceptron(hidden, last=True) for _ in range(layers - 1))
        self.output_layer = nn.Linear(hidden, n_outputs)

    def embed(self, batch: Batch) -> Tensor:
        """Apply all layers but the last, shape (n, hidden)."""
        x: Tensor = self.input_layer(batch.inputs)
        shared = self.start.expand(batch.n_patches, -1)
        for number, (convolution, norm) in enumerate(zip(self.convolutions, self.norms)):
            x = x + shared[batch.patch]
            if number < len(self.gather):
                pooled = global_add_pool(x, batch.patch, batch.n_patches) + shared
                shared = functional.dropout(self.gather[number](pooled), self.dropout, self.training)
            x = functional.relu(norm(convolution(x, batch.edge_index)))
            x = functional.dropout(x, self.dropout, self.training)
        return x


def _perceptron(hidden: int, *, last: bool = False) -> nn.Module:
    """Make two linear maps with batch norm between them; where it is the `last` word, ReLU follows."""
    parts = [nn.Linear(hidden, hidden), BatchNorm(hidden, allow_single_element=True), nn.ReLU(),
             nn.Linear(hidden, hidden)]  # fmt: skip
    if last:
        parts += [BatchNorm(hidden, allow_single_element=True), nn.ReLU()]
    return nn.Sequential(*parts)
