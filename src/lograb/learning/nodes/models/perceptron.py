"""The floor: classify a node by its features, blind to its patch."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional

from lograb.learning.nodes.minibatches import Batch
from lograb.learning.nodes.models.classifier import Classifier


class Perceptron(Classifier):
    """Linear maps with ReLU and dropout between them, on the node features alone."""

    def __init__(self, n_inputs: int, n_outputs: int, *, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        widths = [n_inputs] + [hidden] * (layers - 1)
        self.width = widths[-1]
        self.hidden_layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.output_layer = nn.Linear(self.width, n_outputs)

    def embed(self, batch: Batch) -> Tensor:
        """Apply all layers but the last, shape (n, width)."""
        x = batch.features
        for number, layer in enumerate(self.hidden_layers):
            if number:
                x = functional.dropout(x, self.dropout, self.training)
            x = functional.relu(layer(x))
        return x

    def classify(self, embedded: Tensor, batch: Batch) -> Tensor:
        """Map onto the classes."""
        scores: Tensor = self.output_layer(functional.dropout(embedded, self.dropout, self.training))
        return scores
