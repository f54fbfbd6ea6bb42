"""Positions and structure inside a patch that some models ask for, from the patch's own edges.

``laplacian``
    The lowest eigenpairs of the patch's normalized Laplacian, without noise: the patch and its edges
    are the input of Task 2. Random signs, and a random basis inside each repeated eigenvalue, so
    that nothing depends on what a LAPACK happened to return.
``walks``
    Probability that a random walk is back after 1, 2, ... steps (RWSE).
``distances``
    Hops between all pairs of a patch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lograb.learning.patchset import PatchSet, Singles, table_of
from lograb.observations import observe
from lograb.observations.laplacian import Laplacians
from lograb.patches.overlap import PatchEdges
from lograb.ragged import pointer
from lograb.spec import InstanceSpec
from lograb.types import Floats, Patches

N_EIGENVECTORS = 10
N_STEPS = 16
STACK_BYTES = 1 << 24


def encode(patches: PatchSet, names: Iterable[str], rng: np.random.Generator) -> PatchSet:
    """Add the named encodings to a patch set.

    ``laplacian``: ``row_encodings["laplacian"]`` (n_rows, 10) and ``patch_encodings["eigenvalues"]``
    (n_patches, 10), NaN beyond the size of a patch. ``walks``: ``row_encodings["walks"]``
    (n_rows, 16). ``distances``: see `PatchSet.distances`.
    """
    for name in names:
        if name == "laplacian":
            vectors, values = laplacian_eigenpairs(patches, N_EIGENVECTORS, rng)
            patches = replace(patches, row_encodings=patches.row_encodings | {"laplacian": vectors},
                              patch_encodings=patches.patch_encodings | {"eigenvalues": values})
        elif name == "walks":
            walks = return_probabilities(patches, N_STEPS)
            patches = replace(patches, row_encodings=patches.row_encodings | {"walks": walks})
        elif name == "distances":
            patches = replace(patches, distances=hop_distances(patches))
        else:
            raise ValueError(f"unknown encoding '{name}'")
    return patches  # fmt: skip


def _geometry(patches: PatchSet) -> tuple[Patches, PatchEdges]:
    """Give patches and their edges in the types that spectra are computed from."""
    start = np.repeat(patches.ptr[:-1], np.diff(patches.edge_ptr))
    edges = PatchEdges(patches.edge_ptr, patches.edges + start[:, None], np.zeros(0, dtype=bool))
    # Rows stand in for nodes: nodes of different graphs never meet, and rows increase as they must.
    return Patches(patches.n_rows, np.arange(patches.n_rows), patches.ptr), edges


def laplacian_eigenpairs(patches: PatchSet, k: int, rng: np.random.Generator) -> tuple[Singles, Singles]:
    """Find the k lowest eigenpairs of every patch's normalized Laplacian: (n_rows, k) and (n_patches, k).

    Values ascend. Both are NaN beyond the size of a patch.
    """
    cover, edges = _geometry(patches)
    gauge_rng, unused, order_rng = rng.spawn(3)
    spec = InstanceSpec.of(strategy="custom", k=k, gauge="sign")
    seen = observe(cover, edges, spec, gauge_rng, unused, order_rng)
    assert seen.values is not None
    vectors = table_of(seen.vectors, np.repeat(seen.ranks, seen.sizes), k, np.nan)
    return vectors, table_of(seen.values, seen.ranks, k, np.nan)


def return_probabilities(patches: PatchSet, steps: int) -> Singles:
    """Give the probability that a random walk from a row is back after 1 .. `steps` steps, (n_rows, steps).

    The walk's matrix D^(-1) A and the symmetric S = D^(-1/2) A D^(-1/2) have powers with the same
    diagonal, and that of S^(a + b) is the row sum of S^a * S^b: half of the powers suffice. A walk from
    an isolated node stays where it is.
    """
    out = np.zeros((patches.n_rows, steps), dtype=np.float32)
    cover, edges = _geometry(patches)
    limit = int(patches.sizes.max(initial=1))
    for which, stack in Laplacians.of(cover, edges).stacks(limit, STACK_BYTES):
        q = stack.shape[1]
        one = np.eye(q) - stack
        rows = patches.ptr[which][:, None] + np.arange(q)
        for step, diagonal in enumerate(_power_diagonals(one, steps)):
            out[rows, step] = diagonal
    return out


def _power_diagonals(matrix: Floats, steps: int) -> Iterator[Floats]:
    """Yield the diagonals of a stack of symmetric matrices' powers 1 .. steps, each (b, q)."""
    yield np.diagonal(matrix, axis1=1, axis2=2)
    power = matrix
    for step in range(2, steps + 1):
        lower = power
        if step % 2:
            power = power @ matrix
        yield (lower * power).sum(axis=2)


def hop_distances(patches: PatchSet) -> npt.NDArray[np.int8]:
    """Count the hops between all ordered pairs of every patch, row by row: at most 127, -1 without a path."""
    cover, edges = _geometry(patches)
    ptr = pointer(patches.sizes**2)
    flat = np.empty(ptr[-1], dtype=np.int8)
    limit = int(patches.sizes.max(initial=1))
    for which, stack in Laplacians.of(cover, edges).stacks(limit, STACK_BYTES):
        hops = _hops((stack < 0).astype(np.float32))
        flat[ptr[which][:, None] + np.arange(hops[0].size)] = hops.reshape(len(which), -1)
    return flat


def _hops(adjacency: Singles) -> npt.NDArray[np.int8]:
    """Count hops in a stack of graphs, (b, q, q), by letting all nodes' balls grow at once."""
    ball = np.broadcast_to(np.eye(adjacency.shape[1], dtype=np.float32), adjacency.shape)
    hops = np.where(ball > 0, 0, -1).astype(np.int8)
    for hop in range(1, adjacency.shape[1]):
        fresh = (ball @ adjacency > 0) & (hops < 0)
        if not fresh.any():
            break
        hops[fresh] = min(hop, 127)
        ball = fresh.astype(np.float32)
    return hops
