"""Encoders of positions and structure: from `encodings` to a few columns beside the input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lograb.errors import LograbError
from lograb.learning.nodes.blocks import pack, self_attention
from lograb.learning.nodes.encodings import N_EIGENVECTORS, N_STEPS
from lograb.learning.nodes.minibatches import Batch

ENCODING_WIDTH = 16
WIDTHS = {"laplacian": N_EIGENVECTORS, "walks": N_STEPS}


def flip_signs(batch: Batch) -> Batch:
    """Give every eigenvector of every patch a random sign: it and its negative say the same."""
    vectors = batch.row_encodings["laplacian"]
    signs = torch.randint(0, 2, (batch.n_patches, vectors.shape[1]), device=vectors.device) * 2 - 1
    return replace(batch, row_encodings=batch.row_encodings | {"laplacian": vectors * signs[batch.patch]})


class RowEncoder(nn.Module):
    """A linear map of one of the encodings of rows: LapPE (``laplacian``) or RWSE (``walks``)."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.width = name, ENCODING_WIDTH
        self.linear = nn.Linear(WIDTHS[name], self.width)

    def forward(self, batch: Batch) -> Tensor:
        """Encode every row, shape (n, width)."""
        encoded: Tensor = self.linear(batch.row_encodings[self.name].nan_to_num(0.0))
        return encoded


class LearnedPositions(nn.Module):
    """SAN's learned positional encoding: a Transformer over the spectrum, for every row by itself.

    A row's sequence has one token per eigenpair j, a linear map of (lambda_j, phi_j(row)). After the
    Transformer the tokens are summed. Eigenpairs beyond the patch's size have none.

    `width` is that of the tokens and of the encoding; the feed-forward part is four times as wide. No dropout.
    """

    def __init__(self, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.width = width
        self.token = nn.Linear(2, width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True)
        self.transformer: Any = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, batch: Batch) -> Tensor:
        """Encode every row, shape (n, width)."""
        vectors = batch.row_encodings["laplacian"]
        values = batch.patch_encodings["eigenvalues"][batch.patch]
        present = ~vectors.isnan()
        tokens: Tensor = self.token(torch.stack([values[present], vectors[present]], dim=1))
        packing = pack(present.sum(dim=1).cpu().numpy(), None, vectors.device)
        for layer in self.transformer.layers:
            tokens = layer.norm1(tokens + self_attention(layer.self_attn, tokens, packing))
            tokens = layer.norm2(tokens + layer.linear2(functional.relu(layer.linear1(tokens))))
        return tokens.new_zeros(len(vectors), self.width).index_add(0, present.nonzero()[:, 0], tokens)


class InputLayer(nn.Module):
    """A linear map of features and coordinates, with the columns of any encoders beside it.

    In training the signs of Laplacian eigenvectors are drawn anew every time, the same for all encoders. Their
    columns are part of the `hidden` ones, and must leave some.
    """

    def __init__(self, n_inputs: int, hidden: int, encoders: list[RowEncoder | LearnedPositions]) -> None:
        super().__init__()
        taken = sum(encoder.width for encoder in encoders)
        if taken >= hidden:
            raise LograbError(f"hidden must be larger than the {taken} columns of the encodings, got {hidden}")
        self.linear = nn.Linear(n_inputs, hidden - taken)
        self.encoders = nn.ModuleList(encoders)

    def forward(self, batch: Batch) -> Tensor:
        """Embed every row, shape (n, hidden)."""
        if self.training and "laplacian" in batch.row_encodings:
            batch = flip_signs(batch)
        return torch.cat([self.linear(batch.inputs), *(encoder(batch) for encoder in self.encoders)], dim=1)
