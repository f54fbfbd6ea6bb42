"""Lemma 1 as printed: a separation gap of the heat kernel at t = log(C q) / q, or at t = 1 / q².

Two things are wrong with it. First, its proof uses L_uw = -1 on edges, the combinatorial
Laplacian; the normalized one has -1 / √(d_u d_w), so both promised gaps fail on stars and paths.
Second, it wants t d_max <= 1/4 for a *constant* C. In a 1-hop patch d_max = q - 1 and
t d_max = log(C q) (q - 1) / q grows without bound: any constant fails from `largest_size` on.
`lograb.theory.certified_heat` holds what can be proved instead.
"""

from __future__ import annotations

import numpy as np

from lograb.errors import LograbError
from lograb.theory.heat import heat_kernel_matrix, normalized_laplacian, separation
from lograb.types import Bools


def printed_time(size: int, constant: float) -> float:
    """Give the time of Lemma 1, log(C q) / q; it is positive only if C q > 1."""
    if size < 2 or constant <= 0:
        raise LograbError(f"Lemma 1 needs at least two nodes and C > 0, got {size} and {constant}")
    return float(np.log(constant * size) / size)


def condition_holds(size: int, max_degree: int, constant: float) -> bool:
    """Tell whether 0 < t d_max <= 1/4 at the time of Lemma 1."""
    return 0 < printed_time(size, constant) * max_degree <= 0.25


def largest_size(constant: float) -> int:
    """Find the largest 1-hop patch (d_max = q - 1) that satisfies `condition_holds`; 0 for none.

    The condition reads 1 < C q <= exp(q / (4 (q - 1))), whose right side is at most √e, so q < 2 / C.
    """
    last = int(np.ceil(2.0 / constant))
    sizes = [q for q in range(2, last + 1) if condition_holds(q, q - 1, constant)]
    return max(sizes, default=0)


def printed_gap(t: float) -> float:
    """Evaluate the gap that Lemma 1 promises at time t: 5 t / 8."""
    return 5.0 * t / 8.0


def measured_gap(adjacency: Bools, t: float, normalized: bool = True) -> float:
    """Measure the separation gap of exp(-tL), for the normalized or the combinatorial Laplacian."""
    edges = np.asarray(adjacency, dtype=float)
    laplacian = normalized_laplacian(edges) if normalized else np.diag(edges.sum(axis=0)) - edges
    values, vectors = np.linalg.eigh(laplacian)
    low, high = separation(heat_kernel_matrix(vectors, values, t), edges > 0)
    return float(low - high)
