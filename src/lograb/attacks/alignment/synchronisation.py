"""Bring all patches into one frame by the eigenvectors of the block matrix of their relative maps.

What Eigen-sync and Local2Global share. Where this departs from the pseudo-code of App. A.2, and why:

- Each component of the patch graph is synchronised by itself; the eigenvectors of a disconnected graph mix
  its components.
- An overlap of s < k nodes does not determine an orthogonal k x k matrix: the SVD fills the rest
  with arbitrary singular vectors, and the answer then depends on the signs of the published
  eigenvectors. By default the undetermined part is left zero; ``completion="full"`` is as printed.
- The block matrix carries weights (the pseudo-code passes the overlaps to it without saying what for) and
  is normalized by the sums of weights, as in Cucuringu et al. (2012); otherwise its eigenvectors sit on a
  few crowded patches.
- The R of each QR decomposition has a positive diagonal. As LAPACK returns it, every patch would get
  column signs of its own, which undoes the synchronisation.
- Each patch uses its `max_partners` largest overlaps and a spanning forest.

Without noise, frames are exact where all pairs used share k independent rows; pairs that leave directions
open pull at the others, so small overlaps make the frames inexact even then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from lograb.attacks.alignment.lanczos import leading_eigenvectors
from lograb.attacks.alignment.overlaps import Overlaps, locate_overlaps
from lograb.attacks.alignment.partners import choose_pairs, number_components
from lograb.attacks.alignment.relative_maps import OVERLAP_RANK, CompletionName, relative_maps
from lograb.attacks.baselines.nearest import NeighbourRule
from lograb.parallel import ordered_map
from lograb.ragged import pointer
from lograb.types import Floats, Ints, Matrix, Observations

RoundingName = Literal["qr", "polar"]

# Relative size below which a direction of a block of eigenvectors is rounding; eigenvectors are known to
# about the square root of the accuracy of the overlaps.
FRAME_RANK = 1e-6
# Keeps the weight of a perfect fit finite: a pair that fits exactly counts 100 times one that does not at all.
RESIDUAL_FLOOR = 0.01


class SynchronisationSettings(NeighbourRule):
    """Choices of every attack that synchronises patches and joins nearest neighbours."""

    min_overlap: int = Field(default=2, ge=1)  # shared nodes that a pair of patches needs to be aligned
    max_partners: int | None = Field(default=20, ge=1)  # largest overlaps kept beside a spanning forest; None: all
    completion: CompletionName = "determined"
    """What to do where an overlap has fewer than k independent rows: leave the rest out, or complete it
    arbitrarily (``full``, as printed; the answer then changes with the published signs)."""
    weights: Literal["overlap", "residual", "equal"] = "overlap"
    """Weight of a pair: the size of its overlap, the inverse of its relative residual, or 1."""
    rounding: RoundingName = "qr"
    """How a block of eigenvectors becomes a rotation: the paper's QR, or the nearest rotation (polar)."""
    tolerance: float = Field(default=1e-8, gt=0, lt=1)  # relative accuracy of the Lanczos iteration
    dense_below: int = Field(default=600, ge=0)  # components of so few coordinates are solved by a dense method


@dataclass(frozen=True, eq=False)
class PatchGraph:
    """Patches and the relative maps between them."""

    first: Ints  # (n_pairs,)
    second: Ints  # (n_pairs,)
    maps: Floats  # (n_pairs, k, k), see `relative_maps`
    weights: Floats  # (n_pairs,), positive
    ranks: Ints  # (n_patches,), coordinates each patch really has; maps are zero beyond, and those are left out
    component: Ints  # (n_patches,)


def synchronise_patches(
    seen: Observations,
    coordinates: Floats,
    ranks: Ints,
    settings: SynchronisationSettings,
    rng: np.random.Generator,
    centred: bool = False,
) -> tuple[Floats, PatchGraph, Overlaps, dict[str, Any]]:
    """Turn the coordinates of all patches of a component into one frame (Stages 1 and 2 of App. A.2).

    Coordinates have shape (n_entries, k), zero beyond the rank of a patch. Overlaps are aligned about their means
    if `centred`.

    Returns
    -------
    rows : float array, shape (n_entries, k), turned coordinates
    graph : PatchGraph
    overlaps : Overlaps, of the pairs that were aligned
    diagnostics : dict
    """
    dim = coordinates.shape[1]
    first, second, overlap = choose_pairs(seen, settings.min_overlap, settings.max_partners)
    count, component = number_components(seen.n_patches, first, second)
    overlaps = locate_overlaps(seen, first, second)
    maps, residuals = relative_maps(coordinates, overlaps, settings.completion, centred)
    weights = {"overlap": overlap.astype(float), "residual": 1 / (RESIDUAL_FLOOR + residuals),
               "equal": np.ones(len(overlap))}[settings.weights]  # fmt: skip
    if settings.completion == "full":
        ranks = np.full(seen.n_patches, dim)
    graph = PatchGraph(first, second, maps, weights, ranks, component)
    frames, report = synchronise(graph, settings.rounding, settings.tolerance, settings.dense_below, rng)
    diagnostics = {"pairs_aligned": len(first), "components": count, "dimension": dim,
                   "undetermined_pairs": int((overlap < dim).sum()),
                   "mean_relative_residual": float(residuals.mean()) if len(residuals) else 0.0,
                   **report}  # fmt: skip
    return _turn(seen, coordinates, frames), graph, overlaps, diagnostics


def _turn(seen: Observations, coordinates: Floats, frames: Floats) -> Floats:
    """Multiply the rows of each patch by the matrix of its patch, patches of one size at a time."""
    out = np.zeros((len(coordinates), frames.shape[2]))
    for q in np.unique(seen.sizes[seen.sizes > 0]):
        which = np.flatnonzero(seen.sizes == q)
        entries = seen.ptr[which][:, None] + np.arange(q)
        out[entries] = coordinates[entries] @ frames[which]
    return out


def synchronise(
    graph: PatchGraph, rounding: RoundingName, tolerance: float, dense_below: int, rng: np.random.Generator
) -> tuple[Floats, dict[str, Any]]:
    """Find one frame per patch, such that coordinates times frame agree on the overlaps.

    Returns
    -------
    frames : float array, shape (n_patches, k, k)
        Row-orthonormal on the directions that the overlaps determine, zero on the others. A patch
        without partners keeps its own coordinates.
    report : dict
        Of the largest component: its patches, leading and last eigenvalue used, gap to the next.
    """
    n_patches, k = len(graph.ranks), graph.maps.shape[2]
    frames = np.zeros((n_patches, k, k))
    alone = np.bincount(graph.component)[graph.component] == 1
    frames[alone] = np.eye(k) * (np.arange(k) < graph.ranks[alone, None])[:, None, :]
    report: dict[str, Any] = {"unconverged_components": 0, "largest_component": int(n_patches > 0)}

    def solve(job: tuple[Ints, Ints, Floats]) -> tuple[Ints, Floats, Floats, bool]:
        patches, pairs, start = job
        matrix, offsets = _block_matrix(graph, patches, pairs)
        values, vectors, converged = leading_eigenvectors(matrix, k + 1, start, tolerance, dense_below)
        padded = np.zeros((len(vectors) + 1, k))  # the last row serves coordinates that a patch lacks
        padded[:-1, : vectors.shape[1]] = vectors[:, :k]
        return patches, values, round_blocks(padded[offsets], rounding), converged

    for patches, values, rounded, converged in ordered_map(solve, _components(graph, rng)):
        frames[patches] = rounded
        report["unconverged_components"] += int(not converged)
        if len(patches) > report["largest_component"]:
            report |= {"largest_component": len(patches), **_eigenvalue_report(values, k)}
    report["unaligned_patches"] = int((~frames.any(axis=(1, 2)) & (graph.ranks > 0)).sum())
    return frames, report


def _eigenvalue_report(values: Floats, k: int) -> dict[str, float]:
    padded = np.zeros(max(len(values), k) + 1)
    padded[: len(values)] = values
    top, last, after = float(padded[0]), float(padded[min(k, len(values)) - 1]), float(padded[k])
    return {"top_eigenvalue": top, "last_eigenvalue": last, "eigenvalue_gap": last - after}


def _components(graph: PatchGraph, rng: np.random.Generator) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Yield the patches and the pairs of each component with more than one patch, and a start vector."""
    n = int(graph.component.max(initial=-1)) + 1
    of_pair = graph.component[graph.first]
    order, pair_order = (np.argsort(c, kind="stable") for c in (graph.component, of_pair))
    ptr, pair_ptr = (pointer(np.bincount(c, minlength=n)) for c in (graph.component, of_pair))
    for c in np.flatnonzero(np.diff(ptr) > 1):
        patches = order[ptr[c] : ptr[c + 1]]
        start = rng.standard_normal(len(patches) * graph.maps.shape[2])
        yield patches, pair_order[pair_ptr[c] : pair_ptr[c + 1]], start


def _block_matrix(graph: PatchGraph, patches: Ints, pairs: Ints) -> tuple[Matrix, Ints]:
    """Build D^(-1/2) M D^(-1/2) of one component, M with blocks weight * Q, D the sums of weights.

    It is without the coordinates that patches lack, unless most have all of them. Offsets (n, k) give the row of
    each patch's coordinate, -1 where there is none.
    """
    k, m = graph.maps.shape[2], len(patches)
    # patches increase, so positions can be searched
    i, j = np.searchsorted(patches, graph.first[pairs]), np.searchsorted(patches, graph.second[pairs])
    weights = graph.weights[pairs]
    degree = np.bincount(i, weights, minlength=m) + np.bincount(j, weights, minlength=m)
    scale = weights / np.sqrt(degree[i] * degree[j])
    ranks = graph.ranks[patches]
    if (ranks[i] * ranks[j]).sum() > 0.5 * len(pairs) * k * k:
        return _dense_blocks(graph.maps, pairs, scale, j, i, m), np.arange(m * k).reshape(m, k)
    maps = graph.maps[pairs] * scale[:, None, None]
    column = np.arange(k)
    starts = pointer(ranks)
    offsets = np.where(column < ranks[:, None], starts[:-1, None] + column, -1)
    kept = (column < ranks[j, None])[:, :, None] & (column < ranks[i, None])[:, None, :]
    rows = np.broadcast_to(offsets[j][:, :, None], maps.shape)[kept]
    cols = np.broadcast_to(offsets[i][:, None, :], maps.shape)[kept]
    lower = sp.csr_array((maps[kept], (rows, cols)), shape=(starts[-1], starts[-1]))
    return lower + lower.T, offsets


def _dense_blocks(maps: Floats, pairs: Ints, scale: Floats, rows: Ints, cols: Ints, m: int) -> Matrix:
    """Build the symmetric block matrix with blocks ``scale * maps[pairs]`` at (rows, cols), transposed opposite.

    Blocks are written in place, a few at a time: they fill most of the memory that the attack needs.
    """
    k, n = maps.shape[2], len(pairs)
    both_rows, both_cols = np.concatenate([rows, cols]), np.concatenate([cols, rows])
    order = np.lexsort((both_cols, both_rows))
    place = np.empty(2 * n, dtype=np.int64)
    place[order] = np.arange(2 * n)
    blocks = np.empty((2 * n, k, k))
    for start in range(0, n, 4096):
        part = slice(start, start + 4096)
        scaled = maps[pairs[part]] * scale[part, None, None]
        blocks[place[:n][part]], blocks[place[n:][part]] = scaled, scaled.swapaxes(1, 2)
    ptr = pointer(np.bincount(both_rows, minlength=m))
    return sp.bsr_array((blocks, both_cols[order], ptr), shape=(m * k, m * k))


def round_blocks(blocks: Floats, rounding: RoundingName) -> Floats:
    """Turn blocks of eigenvectors into orthonormal frames, shape (n, k, k).

    ``qr`` is the Q of the QR decomposition with a positive diagonal in R (signs that differ from patch
    to patch would undo the synchronisation); ``polar`` the nearest orthogonal matrix. Directions that
    a block does not determine stay zero, and so do blocks that vanish beside the others.
    """
    size = np.abs(blocks).max(axis=(1, 2), initial=0)
    alive = size > OVERLAP_RANK * size.max(initial=0)
    scaled = np.where(alive, 1 / np.where(size > 0, size, 1), 0)[:, None, None] * blocks
    if rounding == "qr":
        return _orthonormal_columns(scaled)
    left, values, right = np.linalg.svd(scaled)
    return np.asarray((left * (values > FRAME_RANK * np.maximum(values[:, :1], 1e-300))[:, None, :]) @ right)


def _orthonormal_columns(blocks: Floats) -> Floats:
    """Run Gram-Schmidt (twice, for accuracy) on many blocks at once; dependent columns become zero."""
    out = np.zeros_like(blocks)
    for j in range(blocks.shape[2]):
        column = blocks[:, :, j]
        for _ in range(2):
            done = out[:, :, :j]
            column = column - (done @ (done.swapaxes(1, 2) @ column[:, :, None]))[:, :, 0]
        length = np.linalg.norm(column, axis=1)
        out[:, :, j] = np.where(length > FRAME_RANK, 1 / np.where(length > 0, length, 1), 0)[:, None] * column
    return out
