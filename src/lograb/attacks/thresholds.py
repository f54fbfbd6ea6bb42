"""From heat kernels to local graphs: the least value that an entry of H = U exp(-tΛ) Uᵀ needs to be an edge.

The paper thresholds the entries of H but names no value.

``noise``
    One threshold per patch, from the entries off its diagonal. A whole heat kernel has no negative entry, so the
    root mean square of the negative ones measures noise and truncation: their standard deviation. The threshold
    is as many of these as leave noise alone one entry above it for every four members. It is no less than h / 2
    and no more than h, the (q - c)-th largest entry: a patch of q members in c components has at least q - c
    edges, and c is the multiplicity of the eigenvalue 0. A patch whose eigenvalues are all 0 has no edge to tell.
``fixed``
    tau for every entry.
``half-edge``
    An edge contributes at least t e^(-t) / sqrt(d_i d_j) to its entry of H (the first-order term of
    the exponential). Half of that, with the degrees read off the eigenvalue 0, is the threshold of each pair.
    There the degrees of each component are known up to a scale: the one whose sum agrees with the number of
    entries above their threshold. A member without neighbours has degree 0; pairs of two components are no edges.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import ndtri

from lograb.types import Bools, Floats, Ints

ThresholdName = Literal["noise", "fixed", "half-edge"]

TAU = 0.1
# Entries of noise alone that a patch may claim, for each member.
FALSE = 0.25
ZERO = 1e-9


def margins(
    kernel: Floats, vectors: Floats, values: Floats, t: float, rule: ThresholdName, tau: float = TAU
) -> Floats:
    """Divide each entry of stacked kernels by its threshold, shape (b, q, q): an edge has at least 1.

    Parameters
    ----------
    kernel : float array, shape (b, q, q)
    vectors, values : float arrays, shapes (b, q, rank) and (b, rank)
        The spectra, from which ``half-edge`` reads degrees.
    """
    if rule == "half-edge":
        return half_edge(kernel, vectors, values, t)
    return np.asarray(kernel / (tau if rule == "fixed" else noise_level(kernel, values)[:, None, None]))


def noise_level(kernel: Floats, values: Floats) -> Floats:
    """Find the threshold ``noise`` of stacked kernels with their eigenvalues, shape (b,)."""
    b, q = kernel.shape[:2]
    zeros = np.maximum((values <= ZERO).sum(axis=1), 1)  # there is one, also where noise hides it
    off = kernel[:, *np.triu_indices(q, k=1)]
    below = np.minimum(off, 0.0)
    noise = np.sqrt((below**2).sum(axis=1) / np.maximum(np.count_nonzero(below, axis=1), 1))
    high = np.sort(off, axis=1)[np.arange(b), -np.maximum(q - zeros, 1)]
    level = np.maximum(high / 2, -ndtri(2 * FALSE / (q - 1)) * noise)
    level = np.maximum(np.where(high > 0, np.minimum(level, high), level), ZERO)
    return np.where(zeros < values.shape[1], level, np.inf)


def half_edge(kernel: Floats, vectors: Floats, values: Floats, t: float) -> Floats:
    """Divide every entry by half of what an edge would contribute at least.

    The sum of a component's degrees must equal the number of its ordered pairs above their threshold; the largest
    such number is taken.
    """
    b, q = kernel.shape[:2]
    still = (values <= ZERO).astype(float)
    # The projector onto the eigenvalue 0 has the diagonal d_i / (sum of the degrees in i's component).
    shares = np.maximum(np.einsum("bqr,br->bq", vectors**2, still), 1e-3 / q)
    part = components(vectors * still[:, None, :], int(still.sum(axis=1).max(initial=0)))
    # Pair (i, j) is above its threshold at scale c iff kernel_ij sqrt(s_i s_j) c >= t e^(-t) / 2.
    own = (part[:, :, None] == part[:, None, :]) & ~np.eye(q, dtype=bool)
    strength = kernel * np.sqrt(shares[:, :, None] * shares[:, None, :]) * own
    group, strong = (np.arange(b)[:, None] * q + part)[np.nonzero(own)[:2]], strength[own]
    order = np.lexsort((-strong, group))
    group, strong = group[order], strong[order]
    rank = np.arange(len(group)) - np.searchsorted(group, group) + 1
    # With the m strongest ordered pairs claimed the scale is c = m: consistent while the m-th strongest still
    # passes at that scale. A component of several members has an edge, which is two ordered pairs.
    passes = strong * rank >= 0.5 * t * np.exp(-t)
    scale = np.zeros(b * q)
    scale[group] = 2.0
    np.maximum.at(scale, group[passes], rank[passes])
    scale = scale.reshape(b, q)[np.arange(b)[:, None], part]
    return np.asarray(strength * scale[:, :, None] / (0.5 * t * np.exp(-t)))


def components(still: Floats, most: int) -> Ints:
    """Number the component of each member, shape (b, q).

    Parameters
    ----------
    still : float array, shape (b, q, rank)
        Eigenvectors of the eigenvalue 0, other columns 0. The rows of a component are parallel, those of two
        components orthogonal: the longest row, then the longest of what is orthogonal to it, and so on, lead.
    most : int
        The largest number of components.
    """
    rest, patch = still.copy(), np.arange(len(still))
    out, best = np.zeros(still.shape[:2], dtype=np.int64), np.full(still.shape[:2], -1.0)
    for number in range(most):
        length = np.linalg.norm(rest, axis=2)
        lead = length.argmax(axis=1)
        direction = rest[patch, lead] / np.maximum(length[patch, lead], ZERO)[:, None]
        along = np.einsum("bqr,br->bq", rest, direction)
        rest -= along[:, :, None] * direction[:, None, :]
        out[np.abs(along) > best] = number
        best = np.maximum(best, np.abs(along))
    return out


def among_best(edges: Ints, scores: Floats, top: int, n_nodes: int) -> Bools:
    """Keep an edge if it is among the `top` strongest of one of its endpoints; ties by pair."""
    ends = np.concatenate([edges[:, 0], edges[:, 1]])
    index = np.tile(np.arange(len(edges)), 2)
    order = np.lexsort((index, -scores[index], ends))
    counts = np.bincount(ends, minlength=n_nodes)
    rank = np.arange(len(ends)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = np.zeros(len(edges), dtype=bool)
    kept[index[order[rank < top]]] = True
    return kept
