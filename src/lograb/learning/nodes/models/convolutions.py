"""GraphSAGE, GCN, GAT and GIN: message passing along the edges of a patch (Appendix C).

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


class Convolutions(Classifier):
    """A stack of convolutions with dropout after each hidden one: subclasses say which, and what follows.

    Parameters
    ----------
    n_inputs, n_outputs : int
    hidden : int
        Width of the layers in between (of each head, where there are heads).
    layers : int
        Number of convolutions, the last one onto the classes included.
    dropout : float
    """

    def __init__(
        self, n_inputs: int, n_outputs: int, *, hidden: int, layers: int, dropout: float, **special: Any
    ) -> None:
        super().__init__()
        self.dropout = dropout
        widths = [n_inputs] + [hidden * special.get("heads", 1)] * (layers - 1)
        self.width = widths[-1]
        self.hidden_layers = nn.ModuleList(
            self.make_layer(a, b, last=False, **special) for a, b in pairwise(widths)
        )
        self.output_layer = self.make_layer(widths[-1], n_outputs, last=True, **special)

    @staticmethod
    @abstractmethod
    def make_layer(n_in: int, n_out: int, *, last: bool, **special: Any) -> Any:
        """Make one convolution."""

    @staticmethod
    def activate(hidden: Tensor) -> Tensor:
        """Apply what follows a hidden layer."""
        return functional.relu(hidden)

    def embed(self, batch: Batch) -> Tensor:
        """Apply all layers but the last, shape (n, width)."""
        x = batch.inputs
        for number, layer in enumerate(self.hidden_layers):
            if number:
                x = functional.dropout(x, self.dropout, self.training)
            x = self.activate(layer(x, batch.edge_index))
        return x

    def classify(self, embedded: Tensor, batch: Batch) -> Tensor:
        """Convolve onto the classes."""
        x = functional.dropout(embedded, self.dropout, self.training)
        scores: Tensor = self.output_layer(x, batch.edge_index)
        return scores


class Gcn(Convolutions):
    """Graph convolutional network: symmetric normalisation, loops added."""

    @staticmethod
    def make_layer(n_in: int, n_out: int, *, last: bool, **special: Any) -> Any:
        """Make one convolution."""
        return GCNConv(n_in, n_out)


class Sage(Convolutions):
    """GraphSAGE: own row beside the elementwise maximum over neighbours; ReLU, then l2-normalised.

    The printed pooling maps neighbours through a further ReLU(V h) first; the paper's count leaves no
    room for V, so by default there is none. ``pool=True`` adds it (V square, as in PyG).
    """

    @staticmethod
    def make_layer(n_in: int, n_out: int, *, last: bool, pool: bool = False, **special: Any) -> Any:
        """Make one convolution."""
        return SAGEConv(n_in, n_out, aggr="max", project=pool)

    @staticmethod
    def activate(hidden: Tensor) -> Tensor:
        """Cut off below zero and scale every row to length one."""
        return functional.normalize(functional.relu(hidden), dim=1)


class Gat(Convolutions):
    """Graph attention network: heads side by side in between, one head onto the classes."""

    @staticmethod
    def make_layer(n_in: int, n_out: int, *, last: bool, heads: int = 4, **special: Any) -> Any:
        """Make one convolution; in between `n_out` is the width of all heads together."""
        return GATConv(n_in, n_out, heads=1) if last else GATConv(n_in, n_out // heads, heads=heads)

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
    def make_layer(n_in: int, n_out: int, *, last: bool, perceptron: str = "first", **special: Any) -> Any:
        """Make one convolution."""
        if last == (perceptron == "first"):
            return GINConv(nn.Linear(n_in, n_out), train_eps=True)
        width = n_in if last else n_out
        return GINConv(nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, n_out)), train_eps=True)
