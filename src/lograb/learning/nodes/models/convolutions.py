"""GraphSAGE, GCN, GAT and GIN: message passing along the edges of a patch (Appendix C); and the floor.

The paper's parameter counts show that the last layer is itself a convolution, onto the classes, and
that there is no batch normalisation. `embed` is all layers but the last; on Cora, 1433 features
and 32 coordinates make 1465 inputs, and

    GCN    1465·64 + 64                            + 64·7 + 7          =  94,279
    SAGE   2·1465·64 + 64                          + 2·64·7 + 7        = 188,487
    GAT    1465·4·32 + 2·4·32 + 4·32               + 128·7 + 2·7 + 7   = 188,821
    GIN    1465·64 + 64 + 64·64 + 64  (+ epsilon)  + 64·7 + 7 (+ eps)  =  98,441
"""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise
from typing import Any

from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

from lograb.learning.nodes.minibatches import Batch
from lograb.learning.nodes.models.classifier import Classifier
from lograb.learning.nodes.settings import LayerSettings


class Convolutions(Classifier):
    """A stack of convolutions with dropout after each hidden one: subclasses say which, and what follows.

    `layers` counts the last one, onto the classes, too; `hidden` is the width of each head, where there are heads.
    """

    def __init__(self, n_inputs: int, n_outputs: int, settings: LayerSettings) -> None:
        super().__init__()
        self.dropout = settings.dropout
        widths = [n_inputs] + [settings.hidden * getattr(settings, "heads", 1)] * (settings.layers - 1)
        self.width = widths[-1]
        self.hidden_layers = nn.ModuleList(self.make_layer(a, b, settings) for a, b in pairwise(widths))
        self.output_layer = self.make_layer(self.width, n_outputs, settings, last=True)

    @staticmethod
    @abstractmethod
    def make_layer(n_in: int, n_out: int, settings: Any, *, last: bool = False) -> Any:
        """Make one convolution."""

    @staticmethod
    def activate(hidden: Tensor) -> Tensor:
        """Apply what follows a hidden layer."""
        return functional.relu(hidden)

    def inputs(self, batch: Batch) -> Tensor:
        """Choose what the first layer reads."""
        return batch.inputs

    def apply_layer(self, layer: Any, x: Tensor, batch: Batch) -> Tensor:
        """Apply one layer, along the edges of the patches."""
        out: Tensor = layer(x, batch.edge_index)
        return out

    def embed(self, batch: Batch) -> Tensor:
        """Apply all layers but the last, shape (n, width)."""
        x = self.inputs(batch)
        for number, layer in enumerate(self.hidden_layers):
            if number:
                x = functional.dropout(x, self.dropout, self.training)
            x = self.activate(self.apply_layer(layer, x, batch))
        return x

    def classify(self, embedded: Tensor, batch: Batch) -> Tensor:
        """Convolve onto the classes."""
        x = functional.dropout(embedded, self.dropout, self.training)
        return self.apply_layer(self.output_layer, x, batch)


class Perceptron(Convolutions):
    """The floor: linear maps on the node features alone, blind to the patch."""

    @staticmethod
    def make_layer(n_in: int, n_out: int, settings: Any, *, last: bool = False) -> Any:
        """Make one linear map."""
        return nn.Linear(n_in, n_out)

    def inputs(self, batch: Batch) -> Tensor:
        """Read no coordinates."""
        return batch.features

    def apply_layer(self, layer: Any, x: Tensor, batch: Batch) -> Tensor:
        """Apply one layer, row by row."""
        out: Tensor = layer(x)
        return out


class Gcn(Convolutions):
    """Graph convolutional network: symmetric normalisation, loops added."""

    @staticmethod
    def make_layer(n_in: int, n_out: int, settings: Any, *, last: bool = False) -> Any:
        """Make one convolution."""
        return GCNConv(n_in, n_out)


class Sage(Convolutions):
    """GraphSAGE: own row beside the elementwise maximum over neighbours; ReLU, then l2-normalised.

    The printed pooling maps neighbours through a further ReLU(V h) first; the paper's count leaves no
    room for V, so by default there is none. ``pool=True`` adds it (V square, as in PyG).
    """

    @staticmethod
    def make_layer(n_in: int, n_out: int, settings: Any, *, last: bool = False) -> Any:
        """Make one convolution."""
        return SAGEConv(n_in, n_out, aggr="max", project=settings.pool)

    @staticmethod
    def activate(hidden: Tensor) -> Tensor:
        """Cut off below zero and scale every row to length one."""
        return functional.normalize(functional.relu(hidden), dim=1)


class Gat(Convolutions):
    """Graph attention network: heads side by side in between, one head onto the classes."""

    @staticmethod
    def make_layer(n_in: int, n_out: int, settings: Any, *, last: bool = False) -> Any:
        """Make one convolution; in between `n_out` is the width of all heads together."""
        return GATConv(n_in, n_out) if last else GATConv(n_in, n_out // settings.heads, heads=settings.heads)

    @staticmethod
    def activate(hidden: Tensor) -> Tensor:
        """Apply the exponential linear unit."""
        return functional.elu(hidden)


class Gin(Convolutions):
    """Graph isomorphism network: (1 + epsilon) own row plus the sum of the neighbours', then a perceptron.

    The paper's count has room for one perceptron of two linear maps only; the other layer has a single one. Both
    places give the same count: ``perceptron="first"`` puts it into the hidden layers, ``"last"`` into the
    layer onto the classes.
    """

    @staticmethod
    def make_layer(n_in: int, n_out: int, settings: Any, *, last: bool = False) -> Any:
        """Make one convolution."""
        if last == (settings.perceptron == "first"):
            return GINConv(nn.Linear(n_in, n_out), train_eps=True)
        width = n_in if last else n_out
        return GINConv(nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, n_out)), train_eps=True)
