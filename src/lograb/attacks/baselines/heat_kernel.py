"""The heat kernel of each patch by itself (Stage 1 of Algorithm 2, without alignment).

H = U exp(-t Λ) Uᵀ decays with the distance between nodes, so large off-diagonal entries mark
edges. A pair's score is its mean entry over the patches that contain it: noise averages out. How large the
entry of an edge is depends on the degrees, so no fixed threshold fits all patches; a pair is claimed if this
score exceeds the thresholds of its patches, in the mean of score / threshold.

``noise``, ``fixed``, ``half-edge``
    See `lograb.attacks.thresholds`.
``certified``
    For complete spectra without noise: a time small enough, for the size of the patch, that edges
    and other pairs are provably apart, and the threshold between them (`lograb.theory`). Every edge
    is then found, and nothing else. That a patch is complete, free of noise and in the order of its eigenvalues
    is checked by recomputing its Laplacian; the others fall back to ``noise``. A pair in a certified patch is
    decided by that patch alone: its score is 1 or -1.

Noise lifts many small entries above their thresholds. Of the pairs that pass, those are claimed that are among
the `top_k` largest of one of their nodes; certified edges are not counted. Rule and number were chosen on the
built-in ``citation`` graph.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from lograb.attacks.afr.kernel import damping, pair_margins
from lograb.attacks.attack import SPECTRAL, Attack
from lograb.attacks.thresholds import TAU, ThresholdName, among_best, margins
from lograb.errors import LograbError
from lograb.pairs import members_of, pair_keys, patches_by_size, spectra_of, too_large, unpair
from lograb.parallel import one_blas_thread
from lograb.progress import Progress, ignore
from lograb.ragged import owners
from lograb.theory import certified_edges
from lograb.theory.exactness import complete_adjacency
from lograb.types import Floats, Ints, Observations, Reconstruction


class HeatKernel(Attack):
    """Invert each patch by itself with a thresholded heat kernel.

    Attributes
    ----------
    t : time of the heat kernel.
    threshold, tau : how the entries of a patch become edges; see above.
    drop_last : whether complete patches enter without their last eigenpair; see `lograb.attacks.afr.kernel`.
    top_k : keep an edge if it is among the top_k best of one of its nodes; None keeps all that pass.
    max_size : larger patches are left out, because their pairs would fill the memory; the answer says how many.
    """

    name = "heat-kernel"
    uses = SPECTRAL
    scenario = "inverts each patch by itself with a thresholded heat kernel, without alignment"
    cost = "pairs in patches"

    t: float = Field(default=0.8, gt=0)
    threshold: Literal["noise", "fixed", "half-edge", "certified"] = "noise"
    tau: float = Field(default=TAU, gt=0)
    drop_last: bool = True
    top_k: int | None = Field(default=5, ge=1)
    max_size: int = Field(default=2000, ge=2)

    def reconstruct(
        self, seen: Observations, rng: np.random.Generator, progress: Progress = ignore
    ) -> Reconstruction:
        """Claim the pairs whose entries are large for an edge."""
        return heat_kernel(seen, self)


DEFAULTS = HeatKernel()


def heat_kernel(seen: Observations, settings: HeatKernel = DEFAULTS) -> Reconstruction:
    """Claim the pairs whose entries are large for an edge."""
    if seen.values is None:
        raise LograbError("the heat kernel needs the eigenvalues, and these observations withhold them")
    skipped = too_large(seen, settings.max_size)
    name: ThresholdName = "noise" if settings.threshold == "certified" else settings.threshold
    damped = damping(seen, settings.t, settings.drop_last)
    batches = list(patches_by_size(seen, settings.max_size))

    def kernels(which: Ints) -> Floats:
        vectors, values = spectra_of(seen, which)
        phi = vectors * damped[seen.value_ptr[which][:, None] + np.arange(values.shape[1])][:, None, :]
        with one_blas_thread():  # so that the last bits do not depend on the number of cores
            return np.asarray(phi @ phi.swapaxes(1, 2))

    def rule(kernel: Floats, vectors: Floats, values: Floats) -> Floats:
        return margins(kernel, vectors, values, settings.t, name, settings.tau)

    keys, entries, ratio = pair_margins(seen, batches, kernels, rule)
    proof, certified = np.zeros(len(keys)), 0  # 1 for a certified edge, -1 for a certified other pair
    if settings.threshold == "certified":
        proof, certified = _proofs(seen, batches, keys)
    scores = np.where(proof == 0, entries, proof)
    judged = unpair(keys, max(seen.n_nodes, 1))
    claimed = (proof == 0) & (ratio >= 1)
    if settings.top_k is not None:
        claimed[claimed] = among_best(judged[claimed], scores[claimed], settings.top_k, seen.n_nodes)
    claimed |= proof > 0
    nodes = np.unique(seen.nodes[seen.sizes[owners(seen.ptr)] <= settings.max_size])
    return Reconstruction(seen.n_nodes, judged[claimed], scores[claimed], nodes, judged, scores,
                          diagnostics={"certified_patches": certified, "skipped_patches": skipped})  # fmt: skip


def _proofs(seen: Observations, batches: list[Ints], keys: Ints) -> tuple[Floats, int]:
    """Decide the pairs of patches that pass the check: 1, -1, or 0 for the others; and count these patches."""
    total, certified = np.zeros(len(keys)), 0
    for which in batches:
        vectors, values = spectra_of(seen, which)
        if vectors.shape[2] == vectors.shape[1]:
            certain = complete_adjacency(vectors, values)[1]
            edges = certified_edges(vectors[certain], values[certain])
            pairs, (i, j) = pair_keys(members_of(seen, which)[certain], seen.n_nodes)
            np.add.at(total, np.searchsorted(keys, pairs), np.where(edges[:, i, j], 1.0, -1.0))
            certified += int(certain.sum())
    return np.sign(total), certified
