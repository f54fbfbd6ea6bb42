"""From patches to what is shared of them: the main loop of Algorithm 1.

The last bits of a computed spectrum depend on the order in which the nodes stand in the matrix, and whoever tries
all labelled graphs of a few nodes could read edges off them. So every patch is solved in a random order of its
nodes: then what is published of two graphs that differ in their numbering only has the same distribution, to the
last bit. Eigenvalues, which belong to the unnumbered graph, are rounded besides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from lograb.eigen import eigh
from lograb.observations.gauges import choose_basis, fixed_reference, orthonormalise, rotate
from lograb.observations.laplacian import Laplacians
from lograb.observations.spectra import DENSE_LIMIT, largest, zero_space
from lograb.parallel import ordered_map
from lograb.patches.overlap import PatchEdges
from lograb.progress import Progress, ignore
from lograb.ragged import pointer
from lograb.spec import InstanceSpec
from lograb.types import Floats, Ints, Matrix, Observations, Patches

STACK_BYTES = 1 << 22
# Below this sum of cubed sizes the eigenproblems are over sooner than threads have started.
THREADS_PAY = 1e8
VALUE_DIGITS = 10
"""Decimal places of published eigenvalues."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Patches of one size q that are solved together: work for one thread."""

    which: Ints  # (b,), patch numbers
    order: Ints  # (b, q), the members of each patch in random order; all that follows is in this order
    matrices: Matrix  # (b, q, q), Laplacians L; or, for one large patch, S = I - L sparse
    reference: Floats  # (b, q, r), r = min(k, q), what the gauge is made from
    mixer: Floats | None  # (b, q, r), the same where all columns are to be rotated


def observe(
    patches: Patches,
    edges: PatchEdges,
    spec: InstanceSpec,
    gauge_rng: np.random.Generator,
    noise_rng: np.random.Generator,
    order_rng: np.random.Generator,
    progress: Progress = ignore,
) -> Observations:
    """Share each patch as the bottom of its Laplacian's spectrum, in some gauge, with noise.

    Progress is told of spectra as squares of patch sizes, which time follows closest, and of noise.
    """
    sizes = patches.sizes
    ranks = np.minimum(sizes, spec.k)
    value_ptr, vector_ptr = pointer(ranks), pointer(ranks * sizes)
    values, vectors = np.empty(value_ptr[-1]), np.empty(vector_ptr[-1])
    next_values = np.full(len(patches), np.nan)
    stacks = _stacks(patches, Laplacians.of(patches, edges), spec, gauge_rng, order_rng)
    workers = 1 if (sizes**3).sum() < THREADS_PAY else None
    done, total = 0, int((sizes**2).sum())
    for which, spectrum, embedding in ordered_map(partial(_share, k=spec.k), stacks, workers):
        _, q, rank = embedding.shape
        values[value_ptr[which][:, None] + np.arange(rank)] = spectrum[:, :rank]
        vectors[vector_ptr[which][:, None] + np.arange(q * rank)] = embedding.reshape(len(which), -1)
        if rank < q:
            next_values[which] = spectrum[:, rank]
        done += len(which) * q * q
        progress("spectra", done, total)
    if spec.sigma:
        _add_noise(vectors, spec.sigma / np.sqrt(spec.releases), noise_rng, progress)
    return Observations(
        spec.protocol, patches.n_nodes, patches.nodes, patches.ptr, ranks, vectors,
        values=values.round(VALUE_DIGITS) if spec.eigenvalues else None,
        next_values=next_values.round(VALUE_DIGITS) if spec.eigenvalues else None,
        centres=patches.centres,
    )  # fmt: skip


def _stacks(
    patches: Patches,
    laplacians: Laplacians,
    spec: InstanceSpec,
    rng: np.random.Generator,
    order_rng: np.random.Generator,
) -> Iterator[Stack]:
    """Sort all patches into stacks, by ascending size, and draw the gauge and the order of each."""
    limit = max(DENSE_LIMIT, 4 * (spec.k + 1))
    rank = min(spec.k, int(patches.sizes.max(initial=1)))
    table = fixed_reference(patches.n_nodes, rank) if spec.gauge == "none" else None

    def stack(which: Ints, q: int, matrices: Matrix) -> Stack:
        shape = (len(which), q, min(q, spec.k))
        if table is None:
            reference = rng.standard_normal(shape)
        else:
            members = patches.nodes[patches.ptr[which][:, None] + np.arange(q)]
            reference = table[members][:, :, : shape[2]]
        mixer = rng.standard_normal(shape) if spec.gauge == "rotation" else None
        order = order_rng.permuted(np.tile(np.arange(q), (len(which), 1)), axis=1)
        if isinstance(matrices, np.ndarray):
            matrices = matrices[np.arange(len(which))[:, None, None], order[:, :, None], order[:, None, :]]
        else:
            matrices = matrices[order[0]][:, order[0]]
        return Stack(which, order, matrices, _in_order(reference, order),
                     None if mixer is None else _in_order(mixer, order))  # fmt: skip

    for which, dense in laplacians.stacks(limit, STACK_BYTES):
        yield stack(which, dense.shape[1], dense)
    sizes = patches.sizes
    large = np.flatnonzero(sizes > limit)
    for i in large[np.argsort(sizes[large], kind="stable")]:
        yield stack(np.array([i]), int(sizes[i]), laplacians.sparse(int(i)))


def _share(stack: Stack, k: int) -> tuple[Ints, Floats, Floats]:
    """Solve a stack: patch numbers (b,), eigenvalues (b, >= r), embeddings (b, q, r)."""
    if isinstance(stack.matrices, np.ndarray):
        values, vectors = eigh(stack.matrices)
        embedding = choose_basis(values, vectors, stack.reference)
    else:
        values, embedding = _share_large(stack.matrices, stack.reference, k)
    if stack.mixer is not None:
        embedding = rotate(embedding, stack.mixer)
    back = np.empty_like(embedding)
    back[np.arange(len(embedding))[:, None], stack.order] = embedding
    return stack.which, values.clip(0.0, 2.0), back


def _in_order(rows: Floats, order: Ints) -> Floats:
    """Put the rows of each matrix of a stack into an order."""
    return np.asarray(rows[np.arange(len(rows))[:, None], order])


def _share_large(matrix: Matrix, reference: Floats, k: int) -> tuple[Floats, Floats]:
    """Solve one large patch, S = I - L, sparsely: eigenvalues (1, k + 1), embedding (1, q, k)."""
    kernel = zero_space(matrix)
    if kernel.shape[1] > k:
        # The cut runs through the eigenvalue 0: a random part of all its space is kept, as everywhere.
        return np.zeros((1, k + 1)), (kernel @ orthonormalise((kernel.T @ reference[0])[None])[0])[None]
    top, directions = largest(matrix, k + 1)
    values = (1.0 - top)[None]
    # The solver's basis beyond the cut is one arbitrary direction: it must not enter the gauge.
    return values, choose_basis(values[:, :k], directions[None, :, :k], reference)


def _add_noise(vectors: Floats, sigma: float, rng: np.random.Generator, progress: Progress) -> None:
    """Add i.i.d. normal noise in place, piece by piece to bound the memory."""
    for start in range(0, len(vectors), 1 << 20):
        progress("noise", start, len(vectors))
        piece = vectors[start : start + (1 << 20)]
        piece += sigma * rng.standard_normal(len(piece))
