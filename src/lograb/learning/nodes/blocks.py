"""Patches padded to like sizes, so that full attention is a few matrix products.

Attention inside a patch costs the square of its size. Padding a whole batch to its largest patch
would let one hub cost as much as all others together times their number; so patches are sorted into
blocks, padded to 16, 64, 256 ... members: few blocks, because each costs a round of small operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lograb.ragged import owners, pointer, ranges
from lograb.types import Ints

SMALLEST, GROWTH = 16, 4
NO_PATH, PADDING = -1, -2


@dataclass(frozen=True, eq=False)
class Block:
    """Some patches of a batch, padded to s members each."""

    rows: Tensor  # int64 (b, s), rows of the batch; 0 where padded
    present: Tensor  # bool (b, s), False where padded
    distances: Tensor | None  # int64 (b, s, s), hops between members, NO_PATH or PADDING, where asked for


def make_blocks(sizes: Ints, hops: npt.NDArray[np.int8] | None, device: torch.device) -> list[Block]:
    """Sort the patches of a batch, of these sizes, into blocks; `hops` runs over their pairs row by row."""
    widths = SMALLEST * GROWTH ** np.arange(1 + int(np.log2(max(sizes.max(initial=1), 1))))
    padded = widths[np.searchsorted(widths, sizes)]
    starts, pair_starts = pointer(sizes), pointer(sizes**2)
    blocks = []
    for width in np.unique(padded[sizes > 0]):
        which = np.flatnonzero((padded == width) & (sizes > 0))
        present = np.arange(width) < sizes[which][:, None]
        rows = np.where(present, starts[which][:, None] + np.arange(width), 0)
        distances = None
        if hops is not None:
            stack = _pad(hops, sizes[which], pair_starts[which], int(width))
            distances = torch.from_numpy(stack).to(device)
        blocks.append(Block(torch.from_numpy(rows).to(device), torch.from_numpy(present).to(device), distances))
    return blocks


def _pad(hops: npt.NDArray[np.int8], sizes: Ints, starts: Ints, width: int) -> Ints:
    """Lay flat (q, q) tables out in a stack of (width, width) ones."""
    stack = np.full((len(sizes), width, width), PADDING, dtype=np.int64)
    flat = ranges(starts, sizes**2)
    table = owners(pointer(sizes**2))
    row, column = np.divmod(flat - starts[table], sizes[table])
    stack[table, row, column] = hops[flat]
    return stack


def attend(values: Tensor, blocks: list[Block], attention: Callable[[Tensor, int], Tensor]) -> Tensor:
    """Apply an attention to all blocks of a batch, and put the rows (n, width) back in order.

    The attention goes from padded rows (b, s, width) and the number of the block to as many mixed ones.
    """
    rows = torch.cat([block.rows[block.present] for block in blocks])
    found = torch.cat([attention(values[b.rows], number)[b.present] for number, b in enumerate(blocks)])
    return torch.zeros_like(found).index_copy(0, rows, found)


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
