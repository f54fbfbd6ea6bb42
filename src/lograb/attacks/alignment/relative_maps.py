"""Orthogonal maps between overlapping patches, as far as the overlaps determine them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from lograb.attacks.alignment.overlaps import Overlaps
from lograb.attacks.alignment.procrustes import procrustes
from lograb.parallel import ordered_map
from lograb.types import Floats, Ints

CompletionName = Literal["determined", "full"]

# Relative size below which a singular value of an overlap is rounding, not data.
OVERLAP_RANK = 1e-9


def relative_maps(
    coordinates: Floats, overlaps: Overlaps, completion: CompletionName = "determined", centred: bool = False
) -> tuple[Floats, Floats]:
    """Find for every pair the orthogonal Q with A ≈ B Q, A the shared rows in the first patch, B in the second.

    Parameters
    ----------
    coordinates : float array, shape (n_entries, k)
    completion : {"determined", "full"}
        An overlap of s < k nodes determines Q on s directions at most. ``determined`` leaves Q zero
        on the others (a partial isometry, the same in every gauge); ``full`` completes it to an
        orthogonal matrix with whatever singular vectors the SVD returns for the singular value 0.
    centred : bool
        Subtract the mean of the shared rows first, for patches that may be shifted.

    Returns
    -------
    maps : float array, shape (n_pairs, k, k)
    residuals : float array, shape (n_pairs,)
        What the map leaves over, ‖A - B Q‖² / (‖A‖² + ‖B‖²), from 0 to 1.
    """
    k = coordinates.shape[1]
    maps, residuals = np.zeros((len(overlaps), k, k)), np.zeros(len(overlaps))

    def work(part: Ints) -> None:
        rows = overlaps.ptr[part][:, None] + np.arange(overlaps.sizes[part[0]])
        a, b = coordinates[overlaps.in_first[rows]], coordinates[overlaps.in_second[rows]]
        if centred:
            a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
        maps[part] = procrustes(b.swapaxes(1, 2) @ a) if completion == "full" else _determined_map(a, b)
        energy = (a**2).sum(axis=(1, 2)) + (b**2).sum(axis=(1, 2))
        left = ((a - b @ maps[part]) ** 2).sum(axis=(1, 2))
        residuals[part] = left / np.where(energy > 0, energy, 1)

    for _ in ordered_map(work, _equal_overlaps(overlaps.sizes, k)):
        pass
    return maps, residuals


def _equal_overlaps(sizes: Ints, k: int, n_bytes: int = 1 << 23) -> Iterator[Ints]:
    """Yield runs of pairs with equally many shared nodes."""
    for size in np.unique(sizes[sizes > 0]):
        which = np.flatnonzero(sizes == size)
        at_once = max(1, int(n_bytes // (8 * max(k, 1) * max(size, k))))
        for start in range(0, len(which), at_once):
            yield which[start : start + at_once]


def _determined_map(a: Floats, b: Floats) -> Floats:
    """Keep the singular directions of BᵀA that the data determine; small overlaps need small SVDs only."""
    thin = a.shape[1] < a.shape[2]
    if thin:
        a_basis, a = np.linalg.qr(a.swapaxes(1, 2))
        b_basis, b = np.linalg.qr(b.swapaxes(1, 2))
        cross = b @ a.swapaxes(1, 2)
    else:
        cross = b.swapaxes(1, 2) @ a
    left, values, right = np.linalg.svd(cross)
    left = left * (values > OVERLAP_RANK * np.maximum(values[:, :1], 1e-300))[:, None, :]
    core = left @ right
    return np.asarray(b_basis @ core @ a_basis.swapaxes(1, 2) if thin else core)
