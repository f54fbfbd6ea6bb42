"""The heat kernel of each patch by itself (Stage 1 of Algorithm 2, without alignment).

H = U exp(-t Λ) Uᵀ decays with the distance between nodes, so large off-diagonal entries mark
edges. How large depends on the degrees, so no fixed threshold fits all patches.

``otsu``
    One threshold per patch, between the two groups with the least variance inside them.
``certified``
    For complete spectra without noise: a time small enough, for the size of the patch, that edges
    and other pairs are provably apart, and the threshold between them (`lograb.theory`). Every edge
    is then found, and nothing else. Patches that are truncated or noisy fall back to ``otsu``.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from lograb.attacks.pairs import mean_by_key, members_of, pair_keys, patches_by_size, unpair
from lograb.errors import LograbError
from lograb.theory import certified_threshold
from lograb.types import Floats, Observations, Reconstruction

MAX_SIZE = 2000
# Embeddings that are orthonormal to this accuracy are taken as free of noise.
ORTHONORMAL = 1e-8


class HeatKernelSettings(BaseModel):
    """Settings of the heat-kernel attack: the time t, and how a threshold is found."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    t: float = Field(default=0.8, gt=0)
    threshold: Literal["otsu", "certified"] = "otsu"


DEFAULTS = HeatKernelSettings()


def heat_kernel(
    seen: Observations, rng: np.random.Generator, settings: HeatKernelSettings = DEFAULTS
) -> Reconstruction:
    """Claim the pairs that most of their patches place among the edges."""
    if seen.values is None:
        raise LograbError("the heat kernel needs the eigenvalues, and these observations withhold them")
    keys, votes = [np.empty(0, np.int64)], [np.empty(0)]
    certified = 0
    for which, q in patches_by_size(seen, MAX_SIZE):
        rank = int(seen.ranks[which[0]])
        vectors = seen.vectors[seen.vector_ptr[which][:, None] + np.arange(q * rank)].reshape(-1, q, rank)
        values = seen.values[seen.value_ptr[which][:, None] + np.arange(rank)]
        pairs, upper = pair_keys(members_of(seen, which, q), seen.n_nodes)
        claimed = _above(_kernel(vectors, values, settings.t)[:, upper[0], upper[1]])
        if settings.threshold == "certified" and rank == q:
            exact = np.abs(vectors.swapaxes(1, 2) @ vectors - np.eye(q)).max(axis=(1, 2)) < ORTHONORMAL
            proof = certified_threshold(q)
            kernel = _kernel(vectors[exact], values[exact], proof.t)
            claimed[exact] = kernel[:, upper[0], upper[1]] > proof.threshold
            certified += int(exact.sum())
        keys.append(pairs.ravel())
        votes.append(claimed.ravel().astype(float))
    unique, share = mean_by_key(np.concatenate(keys), np.concatenate(votes))
    kept = share >= 0.5
    pairs = unpair(unique, seen.n_nodes)
    return Reconstruction(seen.n_nodes, pairs[kept], share[kept], np.unique(seen.nodes), pairs, share,
                          diagnostics={"certified_patches": certified})  # fmt: skip


def _kernel(vectors: Floats, values: Floats, t: float) -> Floats:
    """Heat kernels of stacked patches, shape (b, q, q)."""
    return np.asarray((vectors * np.exp(-t * values)[:, None, :]) @ vectors.swapaxes(1, 2))


def _above(entries: Floats) -> np.ndarray:
    return np.asarray(entries > two_groups(entries)[:, None])


def two_groups(entries: Floats) -> Floats:
    """Split each row into two groups with the least variance inside them (Otsu).

    Parameters
    ----------
    entries : float array, shape (b, m)

    Returns
    -------
    float array, shape (b,)
        A threshold between the groups; below every entry where all are equal, as in a clique.
    """
    ordered = np.sort(entries, axis=1)
    m = ordered.shape[1]
    spread = ordered[:, -1] - ordered[:, 0]
    below = ordered[:, 0] - 1.0
    if m == 1:
        return below
    count = np.arange(1, m)
    total = np.cumsum(ordered, axis=1)
    left = total[:, :-1] / count
    right = (total[:, -1:] - total[:, :-1]) / (m - count)
    between = count * (m - count) * (right - left) ** 2
    cut = np.argmax(between, axis=1)
    rows = np.arange(len(ordered))
    return np.where(spread > 1e-9, (ordered[rows, cut] + ordered[rows, cut + 1]) / 2, below)
