"""The heat kernel of each patch by itself (Stage 1 of Algorithm 2, without alignment).

H = U exp(-t Λ) Uᵀ decays with the distance between nodes, so large off-diagonal entries mark
edges. A pair's score is its mean entry over the patches that contain it: noise averages out. How large the
entry of an edge is depends on the degrees, so no fixed threshold fits all patches; a pair is claimed if its
entries exceed their thresholds, in the mean over its patches of entry / threshold.

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

from lograb.attacks.afr.kernel import damping
from lograb.attacks.attack import SPECTRAL, Attack
from lograb.attacks.thresholds import TAU, ThresholdName, among_best, margins
from lograb.errors import LograbError
from lograb.pairs import members_of, pair_keys, patches_by_size, spectra_of, too_large, unpair
from lograb.parallel import one_blas_thread
from lograb.progress import Progress, ignore
from lograb.ragged import owners
from lograb.theory import certified_edges
from lograb.theory.exactness import complete_adjacency
from lograb.types import Bools, Floats, Observations, Reconstruction


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
        return heat_kernel(seen, rng, self)


DEFAULTS = HeatKernel()


def heat_kernel(
    seen: Observations, rng: np.random.Generator, settings: HeatKernel = DEFAULTS
) -> Reconstruction:
    """Claim the pairs whose entries are large for an edge."""
    if seen.values is None:
        raise LograbError("the heat kernel needs the eigenvalues, and these observations withhold them")
    skipped = too_large(seen, settings.max_size)
    rule: ThresholdName = "noise" if settings.threshold == "certified" else settings.threshold
    keys, entries, ratios = [np.empty(0, np.int64)], [np.empty(0)], [np.empty(0)]
    proofs = [np.empty(0, np.int8)]  # 1 for a certified edge, -1 for a certified other pair, 0 without certificate
    certified = 0
    weights = damping(seen, settings.t, settings.drop_last)
    for which, q in patches_by_size(seen, settings.max_size):
        vectors, values = spectra_of(seen, which, q)
        with one_blas_thread():  # so that the last bits do not depend on the number of cores
            phi = vectors * weights[seen.value_ptr[which][:, None] + np.arange(values.shape[1])][:, None, :]
            kernel = phi @ phi.swapaxes(1, 2)
        ratio = margins(kernel, vectors, values, settings.t, rule, settings.tau)
        pairs, (i, j) = pair_keys(members_of(seen, which, q), seen.n_nodes)
        verdict = np.zeros(pairs.shape, dtype=np.int8)
        if settings.threshold == "certified" and vectors.shape[2] == q:
            certain, edges = _certified(vectors, values)
            verdict[certain] = np.where(edges[:, i, j], 1, -1)
            certified += int(certain.sum())
        keys.append(pairs.ravel())
        entries.append(kernel[:, i, j].ravel())
        ratios.append(ratio[:, i, j].ravel())
        proofs.append(verdict.ravel())
    unique, index, counts = np.unique(np.concatenate(keys), return_inverse=True, return_counts=True)
    sums = (np.bincount(index, np.concatenate(parts), len(unique)) for parts in (entries, ratios, proofs))
    entry, ratio, proof = (total / counts for total in sums)
    scores = np.where(proof == 0, entry, np.sign(proof))
    judged = unpair(unique, max(seen.n_nodes, 1))
    claimed = (proof == 0) & (ratio >= 1)
    if settings.top_k is not None:
        claimed[claimed] = among_best(judged[claimed], scores[claimed], settings.top_k, seen.n_nodes)
    claimed |= proof > 0
    nodes = np.unique(seen.nodes[seen.sizes[owners(seen.ptr)] <= settings.max_size])
    return Reconstruction(seen.n_nodes, judged[claimed], scores[claimed], nodes, judged, scores,
                          diagnostics={"certified_patches": certified, "skipped_patches": skipped})  # fmt: skip


def _certified(vectors: Floats, values: Floats) -> tuple[Bools, Bools]:
    """Tell which complete patches are certain, shape (b,), and find their edges, shape (certain, q, q)."""
    certain = complete_adjacency(vectors, values)[1]
    return certain, certified_edges(vectors[certain], values[certain])
