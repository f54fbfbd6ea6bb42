"""Stage 1a: the heat kernel of each patch, and the local graph it suggests.

φ = U exp(-tΛ/2) is the kernel's feature map: H = φ φᵀ. How H becomes a graph: `lograb.attacks.thresholds`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from lograb.attacks.afr.settings import AfrSettings
from lograb.pairs import members_of, pair_keys, patches_by_size, spectra_of
from lograb.ragged import owners, pointer, ranges
from lograb.theory.fidelity import structural_entropy
from lograb.types import Floats, Ints, Observations

# Eigenvalues that differ by less are taken for one.
REPEATED = 1e-6


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


def damping(seen: Observations, t: float, drop_last: bool) -> Floats:
    """Weigh every eigenpair by exp(-tλ/2), flat like ``Observations.values``.

    With `drop_last` a complete patch of q members is left with k_Q = q - 1 pairs, as Algorithm 1 needs it: it
    stores the eigenvalue after them. Where this one is repeated, which pair is the last is arbitrary; it is kept.
    """
    assert seen.values is not None
    weights = np.exp(-0.5 * t * seen.values)
    last = seen.value_ptr[1:][seen.complete & (seen.ranks > 1)] - 1
    weights[last[seen.values[last] - seen.values[last - 1] > REPEATED]] *= not drop_last
    return weights


def feature_map(seen: Observations, weights: Floats) -> Floats:
    """Scale every column of every embedding by its weight, flat like ``Observations.vectors``."""
    rows = owners(seen.ptr)
    return np.asarray(seen.vectors * weights[ranges(seen.value_ptr[rows], seen.ranks[rows])])


def local_graphs(seen: Observations, settings: AfrSettings) -> LocalGraphs:
    """Threshold the heat kernel of every patch and measure the entropy of the result."""
    weights = damping(seen, settings.t, settings.drop_last != "no")
    features = feature_map(seen, weights)
    entropy = np.zeros(seen.n_patches)
    counts = np.zeros(seen.n_patches, dtype=np.int64)
    found: list[tuple[Ints, Ints, Ints]] = []
    for which in patches_by_size(seen, settings.max_size):
        vectors, values = spectra_of(seen, which)
        phi = vectors * weights[seen.value_ptr[which][:, None] + np.arange(values.shape[1])][:, None, :]
        claimed = settings.margins(phi @ phi.swapaxes(1, 2), vectors, values) >= 1
        claimed[:, np.arange(claimed.shape[1]), np.arange(claimed.shape[1])] = False
        entropy[which] = structural_entropy(claimed.sum(axis=2))
        patch, i, j = np.nonzero(np.triu(claimed, 1))
        counts[which] = np.bincount(patch, minlength=len(which))
        base = seen.ptr[which[patch]]
        found.append((which[patch], base + i, base + j))
    if not found:
        return LocalGraphs(features, pointer(counts), np.empty((0, 2), np.int64), entropy)
    patch, first, second = (np.concatenate(parts) for parts in zip(*found))
    order = np.argsort(patch, kind="stable")
    return LocalGraphs(features, pointer(counts), np.stack([first, second], axis=1)[order], entropy)


def pair_margins(
    seen: Observations,
    batches: list[Ints],
    kernels: Callable[[Ints], Floats],
    rule: Callable[[Floats, Floats, Floats], Floats],
    weights: Floats | None = None,
) -> tuple[Ints, Floats, Floats]:
    """Judge all pairs inside some patches: by their mean entry, and by what it is of its threshold.

    Every patch finds its thresholds among the mean entries of its pairs, in which noise has averaged out. So
    wherever a patch can claim a pair, some pair is claimed: what passes the highest threshold passes all its own.

    Parameters
    ----------
    batches : list of int arrays
        Patches of one size and rank each, as `lograb.pairs.patches_by_size` gives them.
    kernels : function (which) -> float array, shape (b, q, q)
    rule : function (kernels, vectors, values) -> margins, shape (b, q, q)
    weights : float array, shape (n_patches,), optional
        How much each patch counts in the mean entry; all alike by default.

    Returns
    -------
    keys : int64 array
        Pair numbers u * n_nodes + w, increasing.
    entries, margins : float arrays
        Means over the patches that contain a pair.
    """
    keys, found, heavy = [np.empty(0, np.int64)], [np.empty(0)], [np.empty(0)]
    for which in batches:
        pairs, (i, j) = pair_keys(members_of(seen, which), seen.n_nodes)
        keys.append(pairs.ravel())
        found.append(kernels(which)[:, i, j].ravel())
        heavy.append(np.repeat(np.ones(len(which)) if weights is None else weights[which], pairs.shape[1]))
    unique, index, counts = np.unique(np.concatenate(keys), return_inverse=True, return_counts=True)
    heavier = np.concatenate(heavy)
    total, share = (np.bincount(index, w, len(unique)) for w in (heavier * np.concatenate(found), heavier))
    entries = total / share
    means, ratios, start = entries[index], [np.empty(0)], 0
    for which in batches:
        q = int(seen.sizes[which[0]])
        i, j = np.triu_indices(q, k=1)
        kernel = np.zeros((len(which), q, q))
        kernel[:, i, j] = kernel[:, j, i] = means[start : start + len(which) * len(i)].reshape(len(which), -1)
        ratios.append(rule(kernel, *spectra_of(seen, which))[:, i, j].ravel())
        start += len(ratios[-1])
    return unique, entries, np.bincount(index, np.concatenate(ratios), len(unique)) / counts


def group_means(seen: Observations, positions: Floats, group: Ints) -> Floats:
    """Replace every entry's position by the mean of its node over the patches that share a frame with its own.

    Dimension by dimension: patches that were aligned in r dimensions know nothing of each other's signs in the
    others. There every patch keeps its own values, so that inner products inside it survive.

    Parameters
    ----------
    positions : float array, shape (n_entries, dims)
    group : int64 array, shape (n_patches, dims)
        Patches with the same number in a column share a frame in this dimension and those before it.
    """
    out, owner = positions.copy(), owners(seen.ptr)
    used = int((group != np.arange(len(group))[:, None]).any(axis=0).sum())
    changes = np.flatnonzero((group[:, 1:used] != group[:, : max(used - 1, 0)]).any(axis=0)) + 1
    starts = [0, *changes.tolist()] if used else []
    for start, stop in zip(starts, [*starts[1:], used]):
        copy = seen.nodes * seen.n_patches + group[owner, start]
        unique, index, counts = np.unique(copy, return_inverse=True, return_counts=True)
        ones = np.ones(len(index))
        gather = sp.csr_array((ones, (index, np.arange(len(index)))), shape=(len(unique), len(index)))
        out[:, start:stop] = ((gather @ positions[:, start:stop]) / counts[:, None])[index]
    return out
