"""GraphGPS: message passing along edges beside attention over the whole patch, layer by layer."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch_geometric.nn import GINConv, GPSConv

from lograb.learning.nodes.minibatches import Batch
from lograb.learning.nodes.models.classifier import Classifier
from lograb.learning.nodes.models.positions import ENCODING_WIDTH, InputLayer, LaplacianEncoder


class Gps(Classifier):
    """A linear map, GPS layers (GIN and multi-head attention, batch norms, a perceptron each), a linear map."""

    encoders: tuple[type[nn.Module], ...] = ()

    def __init__(
        self, n_inputs: int, n_outputs: int, *, hidden: int, layers: int, heads: int, dropout: float
    ) -> None:
        super().__init__()
        self.width = hidden
        encoders = [(encoder(ENCODING_WIDTH), ENCODING_WIDTH) for encoder in self.encoders]
        self.input_layer = InputLayer(n_inputs, hidden, encoders)
        self.layers = nn.ModuleList(_layer(hidden, heads, dropout) for _ in range(layers))
        self.output_layer = nn.Linear(hidden, n_outputs)

    def embed(self, batch: Batch) -> Tensor:
        """Apply all layers but the last, shape (n, hidden)."""
        x: Tensor = self.input_layer(batch)
        for layer in self.layers:
            x = layer(x, batch.edge_index, batch.patch)
        return x


class GpsLapPE(Gps):
    """GraphGPS with Laplacian eigenvectors as positions."""

    encoders = (LaplacianEncoder,)


def _layer(hidden: int, heads: int, dropout: float) -> Any:
    local = GINConv(nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden)))
    return GPSConv(hidden, local, heads=heads, dropout=dropout, norm="batch_norm",
                   norm_kwargs={"allow_single_element": True})  # fmt: skip
