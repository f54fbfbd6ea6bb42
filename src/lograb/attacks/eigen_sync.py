"""Eigen-sync: align all patches by eigenvector synchronisation, join nearest neighbours (App. A.2).

Where this departs from the pseudo-code, and why:

- Each component of the patch graph is synchronised by itself, and nodes are averaged and compared
  inside a component only; the eigenvectors of a disconnected graph mix its components.
- An overlap of s < k nodes does not determine an orthogonal k x k matrix: the SVD fills the rest
  with arbitrary singular vectors, and the answer then depends on the signs of the published
  eigenvectors. By default the undetermined part is left zero; ``completion="full"`` is as printed.
- M carries the overlap sizes as weights (the pseudo-code passes the overlaps to M without saying what
  for) and is normalized by the sums of weights, as in Cucuringu et al. (2012); otherwise its
  eigenvectors sit on a few crowded patches.
- The R of each QR decomposition has a positive diagonal. As LAPACK returns it, every patch would get
  column signs of its own, which undoes the synchronisation.
- Each patch uses its `max_partners` largest overlaps and a spanning forest.

Without noise, frames are exact where all pairs used share k independent rows; pairs that leave directions
open pull at the others, so ``min_overlap=2`` is not exact even then.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import BaseModel, ConfigDict, Field
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, splu

from lograb.attacks.alignment import Overlaps, locate_overlaps, padded_coordinates
from lograb.attacks.nearest import MetricName, apply_frames, choose_pairs, join_neighbours, number_components
from lograb.parallel import ordered_map
from lograb.ragged import pointer
from lograb.types import Floats, Ints, Matrix, Observations, Reconstruction

RoundingName = Literal["qr", "polar"]
CompletionName = Literal["determined", "full"]

# Relative size below which a singular value of an overlap is rounding, not data.
OVERLAP_RANK = 1e-9
# The same for the blocks of eigenvectors, which are known to about the square root of that.
FRAME_RANK = 1e-6
# Lanczos restarts before the matrix is inverted instead, the shift (no eigenvalue exceeds 1), and the
# largest number of entries that the inverse may need.
RESTARTS = 40
SHIFT = 1.0 + 1e-6
MAX_BAND = 100_000_000


class EigenSyncSettings(BaseModel):
    """Choices of Eigen-sync; the defaults are the paper's where it names one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_overlap: int = Field(default=2, ge=1)
    """Shared nodes that a pair of patches needs to be aligned."""
    neighbours: int = Field(default=10, ge=1)
    """Claims per node in the nearest-neighbour graph; an edge is a claim from either side."""
    metric: MetricName = "cosine"
    """How nodes are compared: by cosine (the paper), or by distance."""
    rounding: RoundingName = "qr"
    """How a block of eigenvectors becomes a rotation: the paper's QR, or the nearest rotation (polar)."""
    completion: CompletionName = "determined"
    """What to do where an overlap has fewer than k independent rows: leave the rest out, or complete it
    arbitrarily (``full``, as printed; the answer then changes with the published signs)."""
    weighted: bool = True
    """Weigh pairs by the size of their overlap."""
    max_partners: int | None = Field(default=20, ge=1)
    """Largest overlaps each patch keeps, beside a spanning forest; None for all, as printed."""
    tolerance: float = Field(default=1e-8, gt=0, lt=1)
    """Relative accuracy of the Lanczos iteration."""
    dense_below: int = Field(default=600, ge=0)
    """Components with at most this many coordinates are solved by a dense method."""


DEFAULT = EigenSyncSettings()


def eigen_sync(
    seen: Observations, rng: np.random.Generator, settings: EigenSyncSettings = DEFAULT
) -> Reconstruction:
    """Claim the nearest neighbours after eigenvector synchronisation of all patches.

    Uses members and eigenvectors. Unchanged under the signs of the eigenvectors of each patch, but for
    ties (equal eigenvalues of the block matrix).
    """
    rows, component, diagnostics = align(seen, rng, settings)
    return join_neighbours(seen, rows, component, settings.neighbours, settings.metric, diagnostics)


def align(
    seen: Observations, rng: np.random.Generator, settings: EigenSyncSettings = DEFAULT
) -> tuple[Floats, Ints, dict[str, Any]]:
    """Bring all patches of a component into one frame (Stages 1 and 2).

    Returns
    -------
    rows : float array, shape (n_entries, dim)
        Aligned coordinates of each entry of ``Observations.nodes``.
    component : int64 array, shape (n_patches,)
    diagnostics : dict
    """
    dim = int(seen.ranks.max(initial=0))
    coordinates = padded_coordinates(seen, seen.vectors, dim)
    first, second, overlap = choose_pairs(seen, settings.min_overlap, settings.max_partners)
    count, component = number_components(seen.n_patches, first, second)
    maps = relative_maps(coordinates, locate_overlaps(seen, first, second), settings.completion)
    weights = overlap.astype(float) if settings.weighted else np.ones(len(overlap))
    ranks = np.full(seen.n_patches, dim) if settings.completion == "full" else seen.ranks
    graph = PatchGraph(first, second, maps, weights, ranks, component)
    frames, report = synchronise(graph, settings.rounding, settings.tolerance, settings.dense_below, rng)
    diagnostics = {"pairs_aligned": len(first), "components": count, "dimension": dim,
                   "undetermined_pairs": int((overlap < dim).sum()), **report}  # fmt: skip
    return apply_frames(seen, coordinates, frames), component, diagnostics


def relative_maps(
    coordinates: Floats, overlaps: Overlaps, completion: CompletionName = "determined", centred: bool = False
) -> Floats:
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
    float array, shape (n_pairs, k, k)
    """
    k = coordinates.shape[1]
    out = np.zeros((len(overlaps), k, k))

    def work(part: Ints) -> None:
        rows = overlaps.ptr[part][:, None] + np.arange(overlaps.sizes[part[0]])
        a, b = coordinates[overlaps.in_first[rows]], coordinates[overlaps.in_second[rows]]
        if centred:
            a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
        out[part] = _full_map(a, b) if completion == "full" else _determined_map(a, b)

    for _ in ordered_map(work, _equal_overlaps(overlaps.sizes, k)):
        pass
    return out


def _equal_overlaps(sizes: Ints, k: int, n_bytes: int = 1 << 23) -> Iterator[Ints]:
    """Yield runs of pairs with equally many shared nodes."""
    for size in np.unique(sizes[sizes > 0]):
        which = np.flatnonzero(sizes == size)
        at_once = max(1, int(n_bytes // (8 * max(k, 1) * max(size, k))))
        for start in range(0, len(which), at_once):
            yield which[start : start + at_once]


def _full_map(a: Floats, b: Floats) -> Floats:
    left, _, right = np.linalg.svd(b.swapaxes(1, 2) @ a)
    return np.asarray(left @ right)


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


@dataclass(frozen=True, eq=False)
class PatchGraph:
    """Patches and the relative maps between them.

    Attributes
    ----------
    first, second : int64 arrays, shape (n_pairs,)
    maps : float array, shape (n_pairs, k, k)
        See `relative_maps`.
    weights : float array, shape (n_pairs,), positive
    ranks : int64 array, shape (n_patches,)
        Coordinates each patch really has; the maps are zero beyond them, and they are left out.
    component : int64 array, shape (n_patches,)
    """

    first: Ints
    second: Ints
    maps: Floats
    weights: Floats
    ranks: Ints
    component: Ints


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
        values, vectors, converged = _leading(matrix, k + 1, start, tolerance, dense_below)
        blocks = _unstack(vectors[:, :k], offsets, k)
        return patches, values, round_blocks(blocks, rounding), converged

    for patches, values, rounded, converged in ordered_map(solve, _components(graph, rng)):
        frames[patches] = rounded
        report["unconverged_components"] += int(not converged)
        if len(patches) > report["largest_component"]:
            report |= {"largest_component": len(patches), **_eigenvalue_report(values, k)}
    report["unaligned_patches"] = int((~frames.any(axis=(1, 2)) & (graph.ranks > 0)).sum())
    return frames, report


def _eigenvalue_report(values: Floats, k: int) -> dict[str, float]:
    last = float(values[min(k, len(values)) - 1]) if len(values) else 0.0
    after = float(values[k]) if len(values) > k else 0.0
    return {"top_eigenvalue": float(values[0]) if len(values) else 0.0, "last_eigenvalue": last,
            "eigenvalue_gap": last - after}  # fmt: skip


def _components(graph: PatchGraph, rng: np.random.Generator) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Yield the patches and the pairs of each component with more than one patch, and a start vector."""
    order, pair_order = (np.argsort(c, kind="stable") for c in (graph.component, graph.component[graph.first]))
    n = int(graph.component.max(initial=-1)) + 1
    ptr = pointer(np.bincount(graph.component, minlength=n))
    pair_ptr = pointer(np.bincount(graph.component[graph.first], minlength=n))
    for c in np.flatnonzero(np.diff(ptr) > 1):
        patches = order[ptr[c] : ptr[c + 1]]
        start = rng.standard_normal(len(patches) * graph.maps.shape[2])
        yield patches, pair_order[pair_ptr[c] : pair_ptr[c + 1]], start


def _block_matrix(graph: PatchGraph, patches: Ints, pairs: Ints) -> tuple[Matrix, Ints]:
    """Build D^(-1/2) M D^(-1/2) of one component, M with blocks weight * Q, D the sums of weights.

    Returns
    -------
    matrix : sparse array, symmetric
        Without the coordinates that patches lack, unless most have all of them.
    offsets : int64 array, shape (n, k)
        The row of each patch's coordinate, -1 where there is none.
    """
    k, m = graph.maps.shape[2], len(patches)
    # patches increase, so positions can be searched
    i, j = np.searchsorted(patches, graph.first[pairs]), np.searchsorted(patches, graph.second[pairs])
    weights = graph.weights[pairs]
    degree = np.bincount(i, weights, minlength=m) + np.bincount(j, weights, minlength=m)
    scale = weights / np.sqrt(degree[i] * degree[j])
    ranks = graph.ranks[patches]
    if (ranks[i] * ranks[j]).sum() > 0.5 * len(pairs) * k * k:
        return _bsr(graph.maps, pairs, scale, j, i, m), np.arange(m * k).reshape(m, k)
    maps = graph.maps[pairs] * scale[:, None, None]
    column = np.arange(k)
    starts = pointer(ranks)
    offsets = np.where(column < ranks[:, None], starts[:-1, None] + column, -1)
    kept = (column < ranks[j, None])[:, :, None] & (column < ranks[i, None])[:, None, :]
    rows = np.broadcast_to(offsets[j][:, :, None], maps.shape)[kept]
    cols = np.broadcast_to(offsets[i][:, None, :], maps.shape)[kept]
    lower = sp.csr_array((maps[kept], (rows, cols)), shape=(starts[-1], starts[-1]))
    return lower + lower.T, offsets


def _bsr(maps: Floats, pairs: Ints, scale: Floats, rows: Ints, cols: Ints, m: int) -> Matrix:
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


def _leading(
    matrix: Matrix, count: int, start: Floats, tolerance: float, dense_below: int
) -> tuple[Floats, Floats, bool]:
    """Find the `count` largest eigenvalues (descending) and their vectors, and whether the accuracy was met.

    Long thin patch graphs have hardly any eigenvalue gap, and Lanczos iterations stall; but their matrix
    has a narrow band, and can be inverted. Where neither works, the eigenvectors found so far must do.
    """
    n = matrix.shape[0]
    count = min(count, n)
    if n == 0:
        return np.empty(0), np.empty((0, 0)), True
    if n <= max(dense_below, 2 * count + 2):
        values, vectors = eigh(matrix.toarray(), subset_by_index=(n - count, n - 1))
        return values[::-1], vectors[:, ::-1], True
    options = {"v0": start[:n], "ncv": min(n, 2 * count + 20), "maxiter": RESTARTS}
    converged = True
    try:
        values, vectors = eigsh(matrix, count, which="LA", tol=tolerance, **options)
    except ArpackNoConvergence as stopped:
        values, vectors, converged = stopped.eigenvalues, stopped.eigenvectors, False
    inverse = None if converged else _banded_inverse(matrix)
    if inverse is not None:
        with suppress(ArpackNoConvergence):
            values, vectors = eigsh(matrix, count, sigma=SHIFT, OPinv=inverse, tol=tolerance, **options)
            converged = True
    order = np.argsort(-values)
    return values[order], vectors[:, order], converged


def _banded_inverse(matrix: Matrix) -> LinearOperator | None:
    """Factorize matrix - SHIFT in an order with a narrow band; None if the band is too wide for the memory."""
    rows = matrix.tocsr()
    order = sp.csgraph.reverse_cuthill_mckee(rows, symmetric_mode=True)
    ordered = rows[order][:, order].tocoo()
    n, band = rows.shape[0], int(np.abs(ordered.row - ordered.col).max(initial=0))
    if n * (band + 1) > MAX_BAND:
        return None
    shifted = (ordered - SHIFT * sp.eye_array(n)).tocsc()
    # The matrix is negative definite: without pivoting the factors stay inside the band.
    factors = splu(shifted, permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True})

    def solve(x: Floats) -> Floats:
        out = np.empty(n)
        out[order] = factors.solve(np.asarray(x).ravel()[order])
        return out

    return LinearOperator((n, n), matvec=solve, dtype=float)


def _unstack(vectors: Floats, offsets: Ints, k: int) -> Floats:
    """Cut eigenvectors into one (k, k) block per patch, zero where a patch or the solver has fewer."""
    padded = np.zeros((vectors.shape[0] + 1, k))
    padded[:-1, : vectors.shape[1]] = vectors
    return np.asarray(padded[offsets])


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
