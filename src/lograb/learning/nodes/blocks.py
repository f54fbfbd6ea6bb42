"""Patches packed into sequences of like length, so that full attention is a few matrix products.

Attention inside a patch costs the square of its size. Most patches are small, a few are not: padding all to the
largest would let one hub cost as much as all others together times their number, and padding small ones to any
common size makes most of the rows padding. So small patches lie side by side in one sequence, whose members attend
to those of their own patch. Patches are sorted into few blocks, up to 64, 256 ... members, because each
costs a round of small operations.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from lograb.ragged import owners, pointer, ranges
from lograb.types import Ints

SHORTEST = 32  # places of a sequence, at least
SMALLEST, GROWTH = 64, 4
NO_PATH, PADDING = -1, -2


@dataclass(frozen=True, eq=False)
class Block:
    """Some patches of a batch, in b sequences of s places."""

    rows: Tensor  # int64 (b, s), rows of the batch; 0 where padded
    together: Tensor  # bool (b, s, s), whether two places belong to one patch; all padding counts as one
    distances: Tensor | None  # int64 (b, s, s), hops inside patches, NO_PATH or PADDING, where asked for


@dataclass(frozen=True, eq=False)
class Packing:
    """All patches of a batch."""

    blocks: list[Block]
    places: Tensor  # int64 (n,), where each row of the batch is in the blocks' places, one block after the other


def pack(sizes: Ints, hops: npt.NDArray[np.int8] | None, device: torch.device) -> Packing:
    """Pack the patches of a batch, of these sizes; `hops` runs over their pairs row by row."""
    limits = SMALLEST * GROWTH ** np.arange(1 + int(np.log2(max(sizes.max(initial=1), 1))))
    kind = np.searchsorted(limits, sizes)
    starts, pair_starts = pointer(sizes), pointer(sizes**2)
    blocks, shift = [], 0
    places = np.zeros(starts[-1], dtype=np.int64)
    for number in np.unique(kind[sizes > 0]):
        which = np.flatnonzero((kind == number) & (sizes > 0))
        inside, length = sizes[which], max(SHORTEST, int(sizes[which].max()))
        sequence, offset = _side_by_side(inside, length)
        shape = int(sequence[-1]) + 1, length
        members, taken = ranges(starts[which], inside), ranges(sequence * length + offset, inside)
        rows, patch = np.zeros(shape, dtype=np.int64), np.full(shape, -1)
        rows.flat[taken], patch.flat[taken], places[members] = members, np.repeat(which, inside), shift + taken
        together = patch[:, :, None] == patch[:, None, :]
        distances = None
        if hops is not None:
            pairs, first = ranges(pair_starts[which], inside**2), sequence * length**2 + offset * (length + 1)
            distances = torch.from_numpy(_tables(hops[pairs], inside, first, together.shape)).to(device)
        blocks.append(Block(torch.from_numpy(rows).to(device), torch.from_numpy(together).to(device), distances))
        shift += rows.size
    return Packing(blocks, torch.from_numpy(places).to(device))


def _tables(hops: npt.NDArray[np.int8], sizes: Ints, first: Ints, shape: tuple[int, ...]) -> Ints:
    """Lay flat (q, q) tables out in a stack of larger ones; `first` says where each has its first entry."""
    stack = np.full(shape, PADDING)
    ptr = pointer(sizes**2)
    table = owners(ptr)
    row, column = np.divmod(np.arange(len(table)) - ptr[table], sizes[table])
    stack.flat[first[table] + row * shape[-1] + column] = hops
    return stack


def _side_by_side(sizes: Ints, length: int) -> tuple[Ints, Ints]:
    """Fill sequences with patches in their order; returns the sequence of each, and where it starts there."""
    ends = pointer(sizes)
    flat, firsts = ends.tolist(), [0]
    while (following := bisect_right(flat, flat[firsts[-1]] + length) - 1) < len(sizes):
        firsts.append(following)
    sequence = np.searchsorted(firsts, np.arange(len(sizes)), side="right") - 1
    return sequence, ends[:-1] - ends[firsts][sequence]


def attend(values: Tensor, packing: Packing, attention: Callable[[Tensor, int], Tensor]) -> Tensor:
    """Apply an attention to all blocks of a batch, and put the rows (n, width) back in order.

    The attention goes from rows in their places (b, s, width) and the number of the block to as many mixed ones.
    """
    found = [attention(values[block.rows], number).flatten(0, 1) for number, block in enumerate(packing.blocks)]
    return torch.cat(found)[packing.places]


def self_attention(attention: nn.MultiheadAttention, values: Tensor, packing: Packing) -> Tensor:
    """Let the members of each patch attend to each other, rows (n, width) to as many."""

    def mix(padded: Tensor, number: int) -> Tensor:
        joint = functional.linear(padded, attention.in_proj_weight, attention.in_proj_bias)
        queries, keys, each = (by_head(part, attention.num_heads) for part in joint.chunk(3, dim=2))
        mixed = functional.scaled_dot_product_attention(
            queries, keys, each, packing.blocks[number].together[:, None],
            attention.dropout if attention.training else 0.0
        )  # fmt: skip
        out: Tensor = attention.out_proj(mixed.transpose(1, 2).flatten(2))
        return out

    return attend(values, packing, mix)


def by_head(values: Tensor, heads: int) -> Tensor:
    """Split (b, s, width) into (b, heads, s, width / heads)."""
    b, s, width = values.shape
    return values.reshape(b, s, heads, width // heads).transpose(1, 2)


def attention_weights(
    queries: Tensor, keys: Tensor, heads: int, allowed: Tensor, bias: Tensor | None = None
) -> Tensor:
    """Let members attend to those that they may: softmax of scaled inner products, head by head.

    From queries and keys (b, s, width) to weights (b, heads, s, s), whose rows add up to one: zero where not
    `allowed`, (b, s, s) or (b, 1, s), and all of a row where nobody is. The bias is added to the scores.
    """
    queries, keys, allowed = by_head(queries, heads), by_head(keys, heads), allowed[:, None]
    scores = queries @ keys.transpose(2, 3) / math.sqrt(queries.shape[3])
    if bias is not None:
        scores = scores + bias
    return scores.masked_fill(~allowed, -1e9).softmax(dim=3) * allowed
