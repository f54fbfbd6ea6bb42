"""Members without an edge in their patch: seen at once, and best left out.

An isolated member is a component of its own: the columns with eigenvalue 0 contain its unit vector, so its row
there has length 1, while the row of any other member has squared length d_i / vol <= 1/2. Without such members,
and with what is left of the columns, a patch is smaller, less noisy, and often connected.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lograb.ragged import owners, pointer
from lograb.types import Bools, Floats, Observations

ZERO = 1e-6
"""Eigenvalues below this count as 0."""
LENGTH = 0.75
"""Squared length of a row that marks an isolated member."""


def drop_isolated(seen: Observations, variance: Floats, exact: Bools) -> Observations:
    """Leave isolated members out of their patches; the same object if there are none.

    Parameters
    ----------
    variance : float array, shape (n_patches,)
        σ² of each patch.
    exact : bool array, shape (n_patches,)
        Whose eigenvalues can be taken at their word.
    """
    if seen.values is None or seen.protocol.gauge == "rotation":
        return seen
    zeros = np.bincount(owners(seen.value_ptr)[seen.values < ZERO], minlength=seen.n_patches) * exact
    keep = np.ones(len(seen.nodes), dtype=bool)
    blocks, values, ranks = {}, {}, seen.ranks.copy()
    for i in np.flatnonzero(zeros > 1).tolist():  # few: balls are connected
        block = seen.block(i)
        lengths = (block[:, : zeros[i]] ** 2).sum(axis=1) - variance[i] * zeros[i]
        alone = lengths > LENGTH
        left = int(zeros[i] - alone.sum())
        if not alone.any() or left < 0 or (left == 0 and not alone.all()):
            continue
        keep[seen.ptr[i] : seen.ptr[i + 1]] = ~alone
        blocks[i], values[i] = _reduced(block, zeros[i], alone, left), seen.spectrum(i)[zeros[i] - left :]
        ranks[i] = len(values[i])
    if not blocks:
        return seen
    sizes = np.bincount(owners(seen.ptr)[keep], minlength=seen.n_patches)
    ranks = np.minimum(ranks, sizes)
    vectors = [blocks.get(i, seen.block(i))[:, : ranks[i]].ravel() for i in range(seen.n_patches)]
    spectra = [values.get(i, seen.spectrum(i))[: ranks[i]] for i in range(seen.n_patches)]
    return replace(seen, nodes=seen.nodes[keep], ptr=pointer(sizes), ranks=ranks, centres=None,
                   vectors=np.concatenate(vectors), values=np.concatenate(spectra))  # fmt: skip


def edgeless(seen: Observations, exact: Bools) -> Bools:
    """Find the patches without an edge, shape (n_patches,): all eigenvalues are there, and all are 0."""
    if seen.values is None:
        return np.zeros(seen.n_patches, dtype=bool)
    nonzero = np.bincount(owners(seen.value_ptr)[seen.values >= ZERO], minlength=seen.n_patches)
    return np.asarray(exact & seen.complete & (seen.sizes > 1) & (nonzero == 0))


def members_only(seen: Observations, kept: Bools) -> Observations:
    """Give the membership of some patches, and nothing else."""
    sizes, none = seen.sizes[kept], np.empty(0)
    centres = None if seen.centres is None else seen.centres[kept]
    return replace(seen, nodes=seen.nodes[kept[owners(seen.ptr)]], ptr=pointer(sizes), ranks=np.zeros_like(sizes),
                   vectors=none, values=None, next_values=None, centres=centres, patch_names=None)  # fmt: skip


def _reduced(block: Floats, zeros: int, alone: Bools, left: int) -> Floats:
    """Drop rows, and turn the columns with eigenvalue 0 so that all but `left` of them vanish."""
    rows = block[~alone]
    basis, _, _ = np.linalg.svd(rows[:, :zeros], full_matrices=False)
    return np.concatenate([basis[:, :left], rows[:, zeros:]], axis=1)
