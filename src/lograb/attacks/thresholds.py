"""From heat kernels to local graphs: the least value that an entry of H = U exp(-tΛ) Uᵀ needs to be an edge.

The paper thresholds H but names no rule.

``half-edge``
    An edge contributes at least t e^(-t) / sqrt(d_i d_j) to its entry of H (the first-order term of
    the exponential). Half of that, with the degrees read off the leading eigenvector, which on a
    connected patch is proportional to sqrt(degree), is the threshold of each pair. The unknown scale
    of the degrees is the one whose sum agrees with the number of entries above their threshold.
``otsu``
    One threshold per patch, between the two groups with the least variance inside them, but no less than
    half of what an edge contributes at least, t e^(-t) / (q - 1).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from lograb.types import Bools, Floats, Ints

ThresholdName = Literal["half-edge", "otsu"]

ZERO = 1e-9


def margins(kernel: Floats, vectors: Floats, values: Floats, t: float, threshold: ThresholdName) -> Floats:
    """Divide each entry of stacked kernels by its threshold, shape (b, q, q): an edge has at least 1.

    Parameters
    ----------
    kernel : float array, shape (b, q, q)
    vectors, values : float arrays, shapes (b, q, rank) and (b, rank)
        The spectra, from which degrees are read.
    """
    if threshold == "half-edge":
        return half_edge(kernel, degree_shares(vectors, values), t)
    q = kernel.shape[1]
    upper = np.triu_indices(q, k=1)
    floor = 0.5 * t * np.exp(-t) / max(q - 1, 1)
    return np.asarray(kernel / two_groups(kernel[:, upper[0], upper[1]], floor)[:, None, None])


def degree_shares(vectors: Floats, values: Floats) -> Floats:
    """Read each member's share of its component's degrees off the eigenvalue 0, shape (b, q).

    The projector onto that eigenspace has the diagonal d_i / (sum of the degrees in i's component),
    whatever basis was published; on a connected patch that is the square of the first eigenvector.
    """
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


def two_groups(entries: Floats, floor: float) -> Floats:
    """Split each row into two groups with the least variance inside them (Otsu).

    Parameters
    ----------
    entries : float array, shape (b, m)
    floor : float, positive
        The least threshold. It alone decides where all entries are equal: all in a clique, none in a
        patch without edges.

    Returns
    -------
    float array, shape (b,)
        A threshold between the groups.
    """
    ordered = np.sort(entries, axis=1)
    m = ordered.shape[1]
    if m == 1:
        return np.full(len(ordered), floor)
    spread = ordered[:, -1] - ordered[:, 0]
    count = np.arange(1, m)
    total = np.cumsum(ordered, axis=1)
    left = total[:, :-1] / count
    right = (total[:, -1:] - total[:, :-1]) / (m - count)
    between = count * (m - count) * (right - left) ** 2
    cut = np.argmax(between, axis=1)
    rows = np.arange(len(ordered))
    middle = (ordered[rows, cut] + ordered[rows, cut + 1]) / 2
    return np.where(spread > ZERO, np.maximum(middle, floor), floor)


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
