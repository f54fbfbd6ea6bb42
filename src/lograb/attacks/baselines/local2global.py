"""Local2Global: synchronise rotations, then shifts, then take centroids (Jeub et al. 2022).

The method as published aligns embeddings of large, well-overlapping patches: orthogonal Procrustes on
centred overlaps, eigenvector synchronisation of the absolute orthogonal transforms over a weighted
patch graph, least squares for the shifts, and the mean over patches as the embedding of a node.

What is adapted to an eavesdropper on small patches:

- The published code asks for overlaps of dimension + 1 nodes and a connected patch graph, and stops
  otherwise. Here pairs need `min_overlap` nodes, the directions that an overlap leaves open stay open
  (zero), and every component of the patch graph is aligned by itself (see `synchronisation`).
- Patches of rank below k are padded with zeros. Scales are not synchronised: eigenvectors have length 1.
- The global shift is free; the shifts of a component sum to zero, which is the least-norm solution.
- Edges are nearest neighbours in the result, as for Eigen-sync; the method itself ends at the embedding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from pydantic import Field
from scipy.sparse.linalg import lsqr

from lograb.attacks.alignment.overlaps import Overlaps, padded_coordinates
from lograb.attacks.alignment.synchronisation import RoundingName, SynchronisationSettings, synchronise_patches
from lograb.attacks.attack import Attack
from lograb.attacks.baselines.nearest import join_neighbours
from lograb.parallel import ordered_map
from lograb.progress import Progress, ignore
from lograb.types import Floats, Ints, Observations, Reconstruction


class Local2Global(SynchronisationSettings, Attack):
    """Weighted synchronisation of rotations and shifts."""

    name = "local2global"
    uses = ("members", "eigenvectors")
    scenario = "weighted synchronisation of rotations and shifts, joins nearest neighbours"
    cost = "pairs of patches"

    min_overlap: int = Field(default=3, ge=2)
    """Shared nodes that a pair needs: after centring, n nodes leave n - 1 directions."""
    rounding: RoundingName = "polar"
    """How a block of eigenvectors becomes a rotation; the published method takes the nearest one."""
    translate: bool = True
    """Synchronise shifts as well."""

    def reconstruct(
        self, seen: Observations, rng: np.random.Generator, progress: Progress = ignore
    ) -> Reconstruction:
        """Claim the nearest neighbours in the centroid embedding."""
        return join_neighbours(seen, *align(seen, rng, self), self)


def align(
    seen: Observations, rng: np.random.Generator, settings: Local2Global
) -> tuple[Floats, Ints, dict[str, Any]]:
    """Rotate and shift all patches of a component into one frame: as in `eigen_sync`."""
    coordinates = padded_coordinates(seen, seen.vectors, int(seen.ranks.max(initial=0)))
    rows, graph, overlaps, told = synchronise_patches(seen, coordinates, seen.ranks, settings, rng, centred=True)
    if settings.translate:
        before, after, shifts = synchronise_shifts(
            seen.n_patches, rows, overlaps, graph.weights, settings.tolerance
        )
        rows = rows + np.repeat(shifts, seen.sizes, axis=0)
        told |= {"shift_residual_before": before, "shift_residual_after": after}
    return rows, graph.component, told


def synchronise_shifts(
    n_patches: int, rows: Floats, overlaps: Overlaps, weights: Floats, tolerance: float
) -> tuple[float, float, Floats]:
    """Find the shift of each patch that makes the centres of all overlaps agree, by weighted least squares.

    From rotated coordinates (n_entries, dim) to the root mean square distance between the two centres of an
    overlap, before and after, and the shifts (n_patches, dim).
    """
    n, dim = len(overlaps), rows.shape[1]
    if n == 0 or dim == 0:
        return 0.0, 0.0, np.zeros((n_patches, dim))
    differences = rows[overlaps.in_second] - rows[overlaps.in_first]
    gaps = np.add.reduceat(differences, overlaps.ptr[:-1]) / overlaps.sizes[:, None]
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
