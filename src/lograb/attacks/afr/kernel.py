"""Stage 1a: the heat kernel of each patch, and the local graph it suggests.

φ = U exp(-tΛ/2) is the kernel's feature map: H = φ φᵀ. The paper thresholds H but names no rule.
``half-edge``
    An edge contributes at least t e^(-t) / sqrt(d_i d_j) to its entry of H (the first-order term of
    the exponential). Half of that, with the degrees read off the leading eigenvector, which on a
    connected patch is proportional to sqrt(degree), is the threshold of each pair. The unknown scale
    of the degrees is the one whose sum agrees with the number of entries above their threshold.
``otsu``
    One threshold per patch, between the two groups with the least variance inside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from lograb.attacks.afr.settings import AfrSettings
from lograb.attacks.heat_kernel import two_groups
from lograb.attacks.pairs import members_of, pair_keys, patches_by_size
from lograb.ragged import owners, pointer, ranges
from lograb.types import Floats, Ints, Observations

MAX_SIZE = 4000
ZERO = 1e-9


@dataclass(frozen=True, eq=False)
class LocalGraphs:
    """What each patch claims about its own pairs.

    Attributes
    ----------
    features : float array, flat like ``Observations.vectors``
        The rows of φ.
    ptr : int64 array, shape (n_patches + 1,)
        Where the pairs of each patch start.
    ends : int64 array, shape (n_pairs, 2)
        Pairs as positions in ``Observations.nodes``; only those the local graph joins.
    entropy : float array, shape (n_patches,)
        Normalized entropy of the local graph's degrees.
    """

    features: Floats
    ptr: Ints
    ends: Ints
    entropy: Floats


def feature_map(seen: Observations, t: float) -> Floats:
    """Scale every column of every embedding by exp(-tλ/2), flat like ``Observations.vectors``."""
    assert seen.values is not None
    scale = np.exp(-0.5 * t * seen.values)
    rows = owners(seen.ptr)
    return np.asarray(seen.vectors * scale[ranges(seen.value_ptr[rows], seen.ranks[rows])])


def local_graphs(seen: Observations, settings: AfrSettings) -> LocalGraphs:
    """Threshold the heat kernel of every patch and measure the entropy of the result."""
    features = feature_map(seen, settings.t)
    entropy = np.zeros(seen.n_patches)
    counts = np.zeros(seen.n_patches, dtype=np.int64)
    found: list[tuple[Ints, Ints, Ints]] = []
    for which, phi in stacks(seen, features):
        kernel = phi @ phi.swapaxes(1, 2)
        claimed = margins(seen, which, kernel, settings) >= 1
        claimed[:, np.arange(claimed.shape[1]), np.arange(claimed.shape[1])] = False
        entropy[which] = degree_entropy(claimed.sum(axis=2))
        patch, i, j = np.nonzero(np.triu(claimed, 1))
        counts[which] = np.bincount(patch, minlength=len(which))
        base = seen.ptr[which[patch]]
        found.append((which[patch], base + i, base + j))
    if not found:
        return LocalGraphs(features, pointer(counts), np.empty((0, 2), np.int64), entropy)
    patch, first, second = (np.concatenate(parts) for parts in zip(*found))
    order = np.argsort(patch, kind="stable")
    return LocalGraphs(features, pointer(counts), np.stack([first, second], axis=1)[order], entropy)


def stacks(seen: Observations, features: Floats) -> Iterator[tuple[Ints, Floats]]:
    """Yield patches of equal size together: numbers (b,), feature maps (b, q, rank)."""
    for which, q in patches_by_size(seen, MAX_SIZE):
        rank = int(seen.ranks[which[0]])
        index = seen.vector_ptr[which][:, None] + np.arange(q * rank)
        yield which, features[index].reshape(-1, q, rank)


def margins(seen: Observations, which: Ints, kernel: Floats, settings: AfrSettings) -> Floats:
    """Divide each entry of stacked kernels by its threshold, shape (b, q, q): an edge has at least 1."""
    q = kernel.shape[1]
    if settings.threshold == "otsu":
        upper = np.triu_indices(q, k=1)
        limit = two_groups(kernel[:, upper[0], upper[1]])[:, None, None]
        # A limit at or below 0 joins whatever lies above it: shift both by the same amount.
        shift = np.maximum(0.0, 1e-6 - limit)
        return np.asarray((kernel + shift) / (limit + shift))
    return half_edge(kernel, degree_shares(seen, which, q), settings.t)


def degree_shares(seen: Observations, which: Ints, q: int) -> Floats:
    """Read each member's share of its component's degrees off the eigenvalue 0, shape (b, q).

    The projector onto that eigenspace has the diagonal d_i / (sum of the degrees in i's component),
    whatever basis was published; on a connected patch that is the square of the first eigenvector.
    """
    assert seen.values is not None
    rank = int(seen.ranks[which[0]])
    vectors = seen.vectors[seen.vector_ptr[which][:, None] + np.arange(q * rank)].reshape(-1, q, rank)
    values = seen.values[seen.value_ptr[which][:, None] + np.arange(rank)]
    return np.asarray(np.einsum("bqr,br->bq", vectors**2, (values <= ZERO).astype(float)))


def half_edge(kernel: Floats, squares: Floats, t: float) -> Floats:
    """Divide every entry by half of what an edge would contribute at least.

    Parameters
    ----------
    kernel : float array, shape (b, q, q)
    squares : float array, shape (b, q)
        Shares of the degrees: degree_i = squares_i * c, with c the sum of degrees.
    t : float

    The scale c must equal the number of ordered pairs above their threshold; the largest such number
    is taken.
    """
    b, q = squares.shape
    squares = np.maximum(squares, 1e-3 / q)
    # Pair (i, j) is above its threshold at scale c iff kernel_ij sqrt(s_i s_j) c >= t e^(-t) / 2.
    strength = kernel * np.sqrt(squares[:, :, None] * squares[:, None, :])
    strength[:, np.arange(q), np.arange(q)] = 0.0
    ordered = np.sort(strength.reshape(b, -1), axis=1)[:, ::-1][:, : max(q * (q - 1), 1)]
    # With the m strongest ordered pairs claimed the scale is c = m: consistent while the m-th
    # strongest still passes at that scale.
    passes = ordered >= 0.5 * t * np.exp(-t) / np.arange(1, ordered.shape[1] + 1)
    count = np.where(passes.any(axis=1), passes.shape[1] - np.argmax(passes[:, ::-1], axis=1), 1)
    return np.asarray(strength * count[:, None, None] / (0.5 * t * np.exp(-t)))


def pair_margins(
    seen: Observations, positions: Floats, island_of: Ints, settings: AfrSettings
) -> tuple[Ints, Floats]:
    """Score all pairs inside core patches by their island's mean positions, over their threshold.

    Parameters
    ----------
    positions : float array, shape (n_entries, k)
        φ of every entry, in the frame of its patch's island.
    island_of : int64 array, shape (n_patches,), -1 outside the core

    Returns
    -------
    keys : int64 array
        Pair numbers u * n_nodes + w, one for each patch that contains the pair.
    margins : float array
    """
    means = _island_means(seen, positions, island_of)
    keys, found = [np.empty(0, np.int64)], [np.empty(0)]
    for which, q in patches_by_size(seen, MAX_SIZE):
        core = which[island_of[which] >= 0]
        if not len(core):
            continue
        rows = means[seen.ptr[core][:, None] + np.arange(q)]
        ratio = margins(seen, core, rows @ rows.swapaxes(1, 2), settings)
        pairs, upper = pair_keys(members_of(seen, core, q), seen.n_nodes)
        keys.append(pairs.ravel())
        found.append(ratio[:, upper[0], upper[1]].ravel())
    return np.concatenate(keys), np.concatenate(found)


def _island_means(seen: Observations, positions: Floats, island_of: Ints) -> Floats:
    """Replace every entry's position by the mean of its node over the patches of the same island."""
    island = island_of[owners(seen.ptr)]
    group = np.where(island >= 0, seen.nodes * seen.n_patches + island, -1 - np.arange(len(island)))
    unique, index, counts = np.unique(group, return_inverse=True, return_counts=True)
    if len(unique) == len(group):
        return positions
    gather = sp.csr_array((np.ones(len(index)), (index, np.arange(len(index)))), shape=(len(unique), len(index)))
    return np.asarray((gather @ positions) / counts[:, None])[index]


def degree_entropy(degrees: Ints) -> Floats:
    """Entropy of the degree distribution of each patch, divided by log q; 0 for a single node.

    Parameters
    ----------
    degrees : int array, shape (b, q)
    """
    b, q = degrees.shape
    if q == 1:
        return np.zeros(b)
    histogram = np.zeros((b, q))
    np.add.at(histogram, (np.repeat(np.arange(b), q), degrees.ravel()), 1.0 / q)
    terms = histogram * np.log(histogram, out=np.zeros_like(histogram), where=histogram > 0)
    return np.asarray(-terms.sum(axis=1) / np.log(q))

