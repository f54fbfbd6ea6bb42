"""GraphGPS: message passing along edges beside attention over the whole patch, layer by layer."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.nn import GINConv, GPSConv

from lograb.learning.nodes.blocks import self_attention
from lograb.learning.nodes.minibatches import Batch
from lograb.learning.nodes.models.classifier import Classifier
from lograb.learning.nodes.models.dropout import Dropout
from lograb.learning.nodes.models.positions import InputLayer, RowEncoder
from lograb.learning.nodes.settings import TransformerSettings


class GpsLayer(GPSConv):  # type: ignore[misc]
    """PyG's layer with its parameters; its attention would pad all patches to the largest."""

    def __init__(self, settings: TransformerSettings) -> None:
        hidden = settings.hidden
        local = GINConv(nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden)))
        super().__init__(hidden, local, heads=settings.heads, norm="batch_norm",
                         norm_kwargs={"allow_single_element": True})  # fmt: skip
        self.drop = Dropout(settings.dropout)
        self.mlp[2] = self.mlp[4] = self.drop

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Transform rows (n, width)."""
        near = self.norm1(self.drop(self.conv(x, batch.edge_index)) + x)
        far = self.norm2(self.drop(self_attention(self.attn, x, batch.packing)) + x)
        both = near + far
        out: Tensor = self.norm3(both + self.mlp(both))
        return out


class Gps(Classifier):
    """A linear map, GPS layers (GIN and multi-head attention, batch norms, a perceptron each), a linear map."""

    encodings: tuple[str, ...] = ()

    def __init__(self, n_inputs: int, n_outputs: int, settings: TransformerSettings) -> None:
        super().__init__()
        self.width = settings.hidden
        self.input_layer = InputLayer(n_inputs, self.width, [RowEncoder(name) for name in self.encodings])
        self.layers = nn.ModuleList(GpsLayer(settings) for _ in range(settings.layers))
        self.output_layer = nn.Linear(self.width, n_outputs)

    def embed(self, batch: Batch) -> Tensor:
        """Apply all layers but the last, shape (n, hidden)."""
        x: Tensor = self.input_layer(batch)
        for layer in self.layers:
            x = layer(x, batch)
        return x


class GpsLapPE(Gps):
    """GraphGPS with Laplacian eigenvectors as positions."""

    encodings = ("laplacian",)
