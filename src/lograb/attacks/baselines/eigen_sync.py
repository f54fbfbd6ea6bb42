"""Eigen-sync: align all patches by eigenvector synchronisation, join nearest neighbours (App. A.2).

See `synchronisation` for what is done about disconnected patch graphs, small overlaps and signs. Nodes are
averaged and compared inside a component of the patch graph only: components have frames of their own.

The settings from `features` on are not the paper's. They are there to see what holds the method back: rows
of a complete eigenvector matrix are orthonormal, so that their cosines say nothing about edges, while inner
products of rows of U exp(-tΛ/2) are heat-kernel entries; and ten neighbours per node are more than most
nodes have.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field

from lograb.attacks.alignment.overlaps import padded_coordinates
from lograb.attacks.alignment.synchronisation import SynchronisationSettings, synchronise_patches
from lograb.attacks.attack import Attack
from lograb.attacks.baselines.nearest import join_neighbours
from lograb.errors import LograbError
from lograb.progress import Progress, ignore
from lograb.ragged import owners, ranges
from lograb.types import Floats, Ints, Observations, Reconstruction


class EigenSync(SynchronisationSettings, Attack):
    """Eigenvector synchronisation of all patches; the defaults are the paper's where it names one."""

    name = "eigen-sync"
    uses = ("members", "eigenvectors")
    scenario = "turns all patches into one frame by eigenvectors, joins nearest neighbours"
    cost = "pairs of patches"

    features: Literal["embedding", "heat-kernel", "centred"] = "embedding"
    """What is aligned and compared: the embedding as published, U exp(-tΛ/2) (needs the eigenvalues), or
    the embedding minus its mean over the patch."""
    t: float = Field(default=0.8, gt=0)
    """Time of the heat kernel, with ``features="heat-kernel"``."""
    skip: int = Field(default=0, ge=0)
    """Leading eigenvectors to leave out; the first one only says how many neighbours a node has."""
    dim: int | None = Field(default=None, ge=1)
    """Eigenvectors to use after those skipped; None for all."""

    def reconstruct(
        self, seen: Observations, rng: np.random.Generator, progress: Progress = ignore
    ) -> Reconstruction:
        """Claim the nearest neighbours after synchronisation.

        Unchanged under the signs of the eigenvectors of each patch, but for ties (equal eigenvalues of the block
        matrix).
        """
        return join_neighbours(seen, *align(seen, rng, self), self)


def align(
    seen: Observations, rng: np.random.Generator, settings: EigenSync
) -> tuple[Floats, Ints, dict[str, Any]]:
    """Bring all patches of a component into one frame (Stages 1 and 2): rows, components and diagnostics.

    The rows are those of `join_neighbours`.
    """
    coordinates, ranks = _coordinates(seen, settings)
    rows, graph, _, diagnostics = synchronise_patches(seen, coordinates, ranks, settings, rng)
    return rows, graph.component, diagnostics


def _coordinates(seen: Observations, settings: EigenSync) -> tuple[Floats, Ints]:
    """Lay out the chosen features, shape (n_entries, dim), and count the columns each patch has."""
    vectors = seen.vectors
    if settings.features == "heat-kernel":
        if seen.values is None:
            raise LograbError("heat-kernel features need the eigenvalues, and these observations withhold them")
        of_row = ranges(np.repeat(seen.value_ptr[:-1], seen.sizes), np.repeat(seen.ranks, seen.sizes))
        vectors = vectors * np.exp(-settings.t / 2 * seen.values[of_row])
    last = int(seen.ranks.max(initial=0))
    if settings.dim is not None:
        last = min(last, settings.skip + settings.dim)
    coordinates = padded_coordinates(seen, vectors, last)[:, settings.skip :]
    if settings.features == "centred":
        owner, sizes = owners(seen.ptr), seen.sizes[seen.sizes > 0]
        sums = np.add.reduceat(coordinates, seen.ptr[:-1][seen.sizes > 0]) if len(owner) else coordinates
        coordinates = coordinates - np.repeat(sums / sizes[:, None], sizes, axis=0)
    return coordinates, np.clip(seen.ranks - settings.skip, 0, max(last - settings.skip, 0))
