"""Stage 3a: adjust all frames of an island together (Appendix "Bundle Adjustment").

The printed objective has a rotation of its own for each pair and so falls apart into independent
Procrustes problems (`bundle="literal"`). What drifts when patches are stitched one after the other
are the absolute frames; they are turned further here, by R_v, over all pairs of an island:

    minimise over R_v in O(r):   Σ over pairs (v, w) of ‖A_vw R_v - B_vw R_w‖²

with A and B the consensus rows of both patches, in the r leading dimensions in which all patches of the
island share a frame. With orthogonal frames only the cross terms vary:
the objective is a constant minus 2 Σ tr(R_vᵀ C_vw R_w), C_vw = A_vwᵀ B_vw. Riemannian gradient
descent with Armijo's rule lowers it in every step. On a tree of pairs there is nothing to gain:
each pair can be met exactly in turn; cycles are what there is to adjust.

Frames are adjusted in parts, each in as many dimensions as it uses; the length of a step is common to all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from lograb.attacks.afr.islands import Assembly
from lograb.attacks.afr.kernel import LocalGraphs
from lograb.attacks.afr.settings import AfrSettings
from lograb.attacks.afr.trials import dimension, well_posed
from lograb.attacks.alignment.overlaps import count_overlaps, locate_overlaps
from lograb.attacks.alignment.procrustes import nearest_orthogonal
from lograb.ragged import owners
from lograb.types import Bools, Floats, Ints, Observations

# Dimensions are rounded up to multiples of this: few parts with a little to spare beat many parts.
ROUND = 4


@dataclass(frozen=True, eq=False)
class Adjustment:
    """Adjusted frames (n, k, k), and the objective before, after each step, and the steps taken."""

    frames: Floats
    objective: list[float]


def eligible_pairs(
    seen: Observations, local: LocalGraphs, assembly: Assembly, scores: Floats, settings: AfrSettings
) -> tuple[Ints, Ints, Floats, float]:
    """List the eligible pairs of patches inside islands, with their cross products on consensus rows.

    The rules are those of stitching: enough shared nodes, well connected in the local graphs of both patches.

    Parameters
    ----------
    scores : float array, shape (n_patches,)
        Fidelity of the patches.

    Returns
    -------
    first, second : int64 arrays, shape (m,)
        Patch numbers.
    cross : float array, shape (m, r, r)
        C = AᵀB, with A and B the rows that agree within the tolerance; r is the largest number of
        dimensions that an island is aligned in.
    constant : float
        Σ ‖A‖² + ‖B‖².
    """
    k, n, island_of = seen.protocol.k, seen.n_nodes, assembly.island_of
    sizes = np.bincount(island_of[island_of >= 0], minlength=seen.n_patches)
    first, second, size = count_overlaps(seen, 2, np.flatnonzero((island_of >= 0) & (sizes[island_of] > 1)))
    r = dimension(size, k, np.minimum(seen.ranks[first], seen.ranks[second]), settings)
    enough = size >= settings.needed_overlap(r, k, np.minimum(scores[first], scores[second]))
    kept = enough & (island_of[first] == island_of[second])
    overlaps = locate_overlaps(seen, first[kept], second[kept])
    r = np.minimum(r, assembly.aligned[first])[kept]
    ends = seen.nodes[local.ends]
    edges = (owners(local.ptr) * n + ends[:, 0]) * n + ends[:, 1]
    connected = well_posed(edges, seen.nodes[overlaps.in_first], overlaps, n, settings)
    dims = int(r[connected].max(initial=0))
    cross, constant = np.zeros((len(overlaps), dims, dims)), 0.0
    for size in np.unique(overlaps.sizes[connected]):
        which = np.flatnonzero(connected & (overlaps.sizes == size))
        rows = overlaps.ptr[which][:, None] + np.arange(size)
        leading = np.arange(dims) < r[which][:, None, None]
        sides = overlaps.in_first[rows], overlaps.in_second[rows]
        a, b = (assembly.positions[side, :dims] * leading for side in sides)
        agree = _agree(a, b, settings)
        a, b = a * agree, b * agree
        cross[which] = a.swapaxes(1, 2) @ b
        constant += float((a**2).sum() + (b**2).sum())
    return overlaps.first[connected], overlaps.second[connected], cross[connected], constant


def _agree(first: Floats, second: Floats, settings: AfrSettings) -> Bools:
    """Mark the rows of stacked overlaps, shape (n, m, k), that agree; shape (n, m, 1)."""
    norms = 0.5 * (np.linalg.norm(first, axis=2).mean(axis=1) + np.linalg.norm(second, axis=2).mean(axis=1))
    gaps = np.linalg.norm(first - second, axis=2)
    return np.asarray(gaps <= settings.inlier_tolerance * norms[:, None])[:, :, None]


@dataclass(frozen=True, eq=False)
class Part:
    """Frames that are adjusted in the same leading dimensions, and the pairs among them.

    Attributes
    ----------
    members : int64 array, shape (n,)
        Which frames.
    first, second : int64 arrays, shape (m,)
        The pairs, as positions in `members`.
    cross : float array, shape (m, dim, dim)
    gather : two sparse matrices, shape (n, m)
        They add up what belongs to the same frame, over the first and over the second of the pairs.
    """

    members: Ints
    first: Ints
    second: Ints
    cross: Floats
    gather: tuple[sp.csr_array, sp.csr_array]

    def met(self, frames: Floats) -> float:
        """Sum up tr(R_vᵀ C R_w) over the pairs."""
        return float(np.einsum("mij,mij->", frames[self.first], self.cross @ frames[self.second]))

    def gradient(self, frames: Floats) -> Floats:
        """Differentiate the objective along O(dim), shape (n, dim, dim)."""
        towards_second = _sum(self.gather[0], self.cross @ frames[self.second])
        towards_first = _sum(self.gather[1], self.cross.swapaxes(1, 2) @ frames[self.first])
        inner = frames.swapaxes(1, 2) @ (towards_second + towards_first)
        return np.asarray(frames @ (inner.swapaxes(1, 2) - inner))  # R skew(Rᵀ G), with G = -2 (...)


def adjust(
    frames: Floats, first: Ints, second: Ints, cross: Floats, constant: float, steps: int, tolerance: float = 1e-9
) -> Adjustment:
    """Lower the objective by Riemannian descent until the gradient vanishes or steps run out.

    Parameters
    ----------
    frames : float array, shape (n, k, k), orthogonal
    first, second : int arrays, shape (m,)
        The pairs, as positions in `frames`.
    cross : float array, shape (m, k, k)
        C = AᵀB of each pair.
    constant : float
        Σ ‖A‖² + ‖B‖².
    steps : int
    tolerance : float
        Stop when the squared gradient falls below this multiple of the constant.
    """
    parts = split(frames, first, second, cross)
    now = [frames[part.members, : part.cross.shape[1], : part.cross.shape[1]] for part in parts]
    objective = [constant - 2 * sum(part.met(here) for part, here in zip(parts, now))]
    length = 1.0
    for _ in range(steps):
        gradients = [part.gradient(here) for part, here in zip(parts, now)]
        norm = sum(float((gradient**2).sum()) for gradient in gradients)
        if norm <= tolerance * constant:
            break
        length *= 4.0
        while length > 1e-12:
            trial = [nearest_orthogonal(here - length * gradient) for here, gradient in zip(now, gradients)]
            value = constant - 2 * sum(part.met(there) for part, there in zip(parts, trial))
            if value <= objective[-1] - 1e-4 * length * norm:
                break
            length *= 0.5
        else:
            break
        now, objective = trial, [*objective, value]
    out = frames.copy()
    for part, here in zip(parts, now):
        out[part.members, : here.shape[1], : here.shape[1]] = here
    return Adjustment(out, objective)


def split(frames: Floats, first: Ints, second: Ints, cross: Floats) -> list[Part]:
    """Sort the frames that have pairs by the dimensions in which they or their pairs do anything.

    Frames that pairs connect, directly or through others, stay together.
    """
    n, k, _ = frames.shape
    ones = np.ones(len(first))
    island = connected_components(sp.csr_array((ones, (first, second)), shape=(n, n)), directed=False)[1]
    used = np.ones(n, dtype=np.int64)
    np.maximum.at(used, island, _extent(frames - np.eye(k)))
    np.maximum.at(used, island[first], _extent(cross))
    dimension = np.minimum(-(-used // ROUND) * ROUND, k)[island]
    paired = np.isin(np.arange(n), np.concatenate([first, second]))
    parts = []
    for dim in np.unique(dimension[paired]):
        members, pairs = np.flatnonzero(paired & (dimension == dim)), np.flatnonzero(dimension[first] == dim)
        ends = [np.searchsorted(members, end[pairs]) for end in (first, second)]
        gather = tuple(_gather(end, len(members)) for end in ends)
        parts.append(Part(members, ends[0], ends[1], cross[pairs, :dim, :dim], (gather[0], gather[1])))
    return parts


def _extent(matrices: Floats) -> Ints:
    """Number of leading rows and columns beyond which a matrix is zero, shape (n,)."""
    nonzero = matrices != 0
    lines = nonzero.any(axis=1) | nonzero.any(axis=2)
    return np.asarray(np.where(lines, np.arange(1, lines.shape[1] + 1), 0).max(axis=1, initial=0))


def _gather(part: Ints, n: int) -> sp.csr_array:
    ones = np.ones(len(part))
    return sp.csr_array((ones, (part, np.arange(len(part)))), shape=(n, len(part)))


def _sum(gather: sp.csr_array, blocks: Floats) -> Floats:
    """Add up the blocks that belong to the same frame."""
    k = blocks.shape[1]
    return np.asarray(gather @ blocks.reshape(len(blocks), k * k)).reshape(-1, k, k)
