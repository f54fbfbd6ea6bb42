"""Plain multi-head attention inside a patch, with LayerNorm.

The paper's efficiency table gives its SAN 161.4K parameters on Cora. That is exactly this:
1465·64 + 64 into the layers, 4·(4·64·64 + 4·64 + 2·64) for them, 64·7 + 7 out of them: 161,351.
SAN proper is `lograb.learning.nodes.models.san`.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from lograb.learning.nodes.blocks import self_attention
from lograb.learning.nodes.minibatches import Batch
from lograb.learning.nodes.models.classifier import Classifier
from lograb.learning.nodes.models.dropout import Dropout
from lograb.learning.nodes.settings import TransformerSettings


class Attention(Classifier):
    """Linear map, attention layers with residuals and LayerNorm, linear map onto the classes.

    All members of a patch attend to each other; edges are not used.
    """

    def __init__(self, n_inputs: int, n_outputs: int, settings: TransformerSettings) -> None:
        super().__init__()
        hidden = self.width = settings.hidden
        self.dropout = Dropout(settings.dropout)
        self.input_layer = nn.Linear(n_inputs, hidden)
        self.attentions: Any = nn.ModuleList(
            nn.MultiheadAttention(hidden, settings.heads, settings.dropout, batch_first=True)
            for _ in range(settings.layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(settings.layers))
        self.output_layer = nn.Linear(hidden, n_outputs)

    def embed(self, batch: Batch) -> Tensor:
        """Apply all layers but the last, shape (n, hidden)."""
        x: Tensor = self.input_layer(batch.inputs)
        for attention, norm in zip(self.attentions, self.norms):
            mixed = self_attention(attention, x, batch.packing)
            x = norm(x + self.dropout(mixed))
        return x
