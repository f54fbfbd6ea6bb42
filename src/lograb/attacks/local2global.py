"""Local2Global: synchronise rotations, then shifts, then take centroids (Jeub et al. 2022).

The method as published aligns embeddings of large, well-overlapping patches: orthogonal Procrustes on
centred overlaps, eigenvector synchronisation of the absolute orthogonal transforms over a weighted
patch graph, least squares for the shifts, and the mean over patches as the embedding of a node.

What is adapted to an eavesdropper on small patches:

- The published code asks for overlaps of dimension + 1 nodes and a connected patch graph, and stops
  otherwise. Here pairs need `min_overlap` nodes, the directions that an overlap leaves open stay open
  (zero), and every component of the patch graph is aligned by itself.
- Patches of rank below k are padded with zeros. Scales are not synchronised: eigenvectors have length 1.
- The global shift is free; the shifts of a component sum to zero, which is the least-norm solution.
- Edges are nearest neighbours in the result, as for Eigen-sync; the method itself ends at the embedding.
- Each patch uses its `max_partners` largest overlaps and a spanning forest.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import BaseModel, ConfigDict, Field
from scipy.sparse.linalg import lsqr

from lograb.attacks.alignment import Overlaps, locate_overlaps, padded_coordinates
from lograb.attacks.eigen_sync import PatchGraph, RoundingName, relative_maps, synchronise
from lograb.attacks.nearest import MetricName, apply_frames, choose_pairs, join_neighbours, number_components
from lograb.parallel import ordered_map
from lograb.types import Floats, Ints, Matrix, Observations, Reconstruction

# Keeps the weight of a perfect fit finite: a pair that fits exactly counts 100 times one that does not at all.
RESIDUAL_FLOOR = 0.01


class Local2GlobalSettings(BaseModel):
    """Choices of Local2Global."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_overlap: int = Field(default=3, ge=2)
    """Shared nodes that a pair needs: after centring, n nodes leave n - 1 directions."""
    weights: Literal["overlap", "residual", "equal"] = "overlap"
    """Weight of a pair: the size of its overlap, the inverse of its relative residual, or 1."""
    rounding: RoundingName = "polar"
    """How a block of eigenvectors becomes a rotation; the published method takes the nearest one."""
    translate: bool = True
    """Synchronise shifts as well."""
    neighbours: int = Field(default=10, ge=1)
    """Claims per node in the nearest-neighbour graph."""
    metric: MetricName = "cosine"
    """How nodes are compared."""
    max_partners: int | None = Field(default=20, ge=1)
    """Largest overlaps each patch keeps, beside a spanning forest; None for all."""
    tolerance: float = Field(default=1e-8, gt=0, lt=1)
    """Relative accuracy of the Lanczos iteration and of the least squares."""
    dense_below: int = Field(default=600, ge=0)
    """Components with at most this many coordinates are solved by a dense method."""


DEFAULT = Local2GlobalSettings()


def local2global(
    seen: Observations, rng: np.random.Generator, settings: Local2GlobalSettings = DEFAULT
) -> Reconstruction:
    """Claim the nearest neighbours in the centroid embedding of synchronised patches.

    Uses members and eigenvectors. Unchanged under the signs of the eigenvectors of each patch, but for
    ties (equal eigenvalues of the block matrix).
    """
    rows, component, diagnostics = align(seen, rng, settings)
    return join_neighbours(seen, rows, component, settings.neighbours, settings.metric, diagnostics)


def align(
    seen: Observations, rng: np.random.Generator, settings: Local2GlobalSettings = DEFAULT
) -> tuple[Floats, Ints, dict[str, Any]]:
    """Rotate and shift all patches of a component into one frame.

    Returns
    -------
    rows : float array, shape (n_entries, dim)
        Aligned coordinates of each entry of ``Observations.nodes``.
    component : int64 array, shape (n_patches,)
    diagnostics : dict
    """
    dim = int(seen.ranks.max(initial=0))
    coordinates = padded_coordinates(seen, seen.vectors, dim)
    first, second, size = choose_pairs(seen, settings.min_overlap, settings.max_partners)
    count, component = number_components(seen.n_patches, first, second)
    overlaps = locate_overlaps(seen, first, second)
    maps = relative_maps(coordinates, overlaps, centred=True)
    residuals = relative_residuals(coordinates, overlaps, maps)
    weights = {"overlap": size.astype(float), "residual": 1 / (RESIDUAL_FLOOR + residuals),
               "equal": np.ones(len(size))}[settings.weights]  # fmt: skip
    graph = PatchGraph(first, second, maps, weights, seen.ranks, component)
    frames, report = synchronise(graph, settings.rounding, settings.tolerance, settings.dense_below, rng)
    rows = apply_frames(seen, coordinates, frames)
    diagnostics: dict[str, Any] = {
        "pairs_aligned": len(first), "components": count, "dimension": dim,
        "mean_relative_residual": float(residuals.mean()) if len(residuals) else 0.0, **report,
    }  # fmt: skip
    if settings.translate:
        before, after, shifts = synchronise_shifts(seen.n_patches, rows, overlaps, weights, settings.tolerance)
        rows = rows + np.repeat(shifts, seen.sizes, axis=0)
        diagnostics |= {"shift_residual_before": before, "shift_residual_after": after}
    return rows, component, diagnostics


def _overlap_sums(overlaps: Overlaps) -> Matrix:
    """Build the matrix that sums over the shared nodes of each pair, shape (n_pairs, n_shared)."""
    n_shared = len(overlaps.in_first)
    return sp.csr_array((np.ones(n_shared), np.arange(n_shared), overlaps.ptr), shape=(len(overlaps), n_shared))


def relative_residuals(coordinates: Floats, overlaps: Overlaps, maps: Floats) -> Floats:
    """Measure per pair what the best map leaves over: ‖A - B Q‖² / (‖A‖² + ‖B‖²) on centred rows, 0 to 1.

    With Q the polar factor of BᵀA, ‖A - B Q‖² = ‖A‖² + ‖B‖² - 2 tr(QᵀBᵀA) as long as Q is orthogonal on
    the span of the overlap; only sums over pairs are needed.
    """
    n = len(overlaps)
    fit, energy = np.zeros(n), np.zeros(n)

    def work(part: Ints) -> None:
        rows = overlaps.ptr[part][:, None] + np.arange(overlaps.sizes[part[0]])
        a, b = coordinates[overlaps.in_first[rows]], coordinates[overlaps.in_second[rows]]
        a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
        fit[part] = ((b @ maps[part]) * a).sum(axis=(1, 2))
        energy[part] = (a**2).sum(axis=(1, 2)) + (b**2).sum(axis=(1, 2))

    groups = (np.flatnonzero(overlaps.sizes == size) for size in np.unique(overlaps.sizes[overlaps.sizes > 0]))
    chunks = (group[start : start + 1024] for group in groups for start in range(0, len(group), 1024))
    for _ in ordered_map(work, chunks):
        pass
    return np.clip(1 - 2 * fit / np.where(energy > 0, energy, 1), 0, 1)


def synchronise_shifts(
    n_patches: int, rows: Floats, overlaps: Overlaps, weights: Floats, tolerance: float
) -> tuple[float, float, Floats]:
    """Find the shift of each patch that makes the centres of all overlaps agree, by weighted least squares.

    Parameters
    ----------
    rows : float array, shape (n_entries, dim)
        Rotated coordinates.

    Returns
    -------
    before, after : float
        Root mean square distance between the two centres of an overlap.
    shifts : float array, shape (n_patches, dim)
    """
    n, dim = len(overlaps), rows.shape[1]
    if n == 0 or dim == 0:
        return 0.0, 0.0, np.zeros((n_patches, dim))
    differences = rows[overlaps.in_second] - rows[overlaps.in_first]
    gaps = (_overlap_sums(overlaps) @ differences) / overlaps.sizes[:, None]
    root = np.sqrt(weights)
    pair = np.arange(n)
    ends = np.concatenate([overlaps.first, overlaps.second])
    incidence = sp.csr_array((np.concatenate([root, -root]), (np.concatenate([pair, pair]), ends)),
                             shape=(n, n_patches))  # fmt: skip
    accuracy = tolerance * 1e-2

    def solve(target: Floats) -> Floats:
        return np.asarray(lsqr(incidence, target, atol=accuracy, btol=accuracy, iter_lim=2000)[0])

    shifts = np.stack(list(ordered_map(solve, (root[:, None] * gaps).T)), axis=1)
    left = gaps - (shifts[overlaps.first] - shifts[overlaps.second])
    before, after = (float(np.sqrt((g**2).sum(axis=1).mean())) for g in (gaps, left))
    return before, after, shifts
