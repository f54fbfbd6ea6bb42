"""Mend graphs with many wrong pairs: downhill, by what each flip gains, for all pairs at once.

What was published of a patch fits a graph with S = I - L = V diag(ν) Vᵀ the better, the more of each column y_a of
the embedding lies where S has eigenvalues near μ_a,

    F = ½ Σ_a Σ_b w² / ((ν_b - μ_a)² + w²) · ((v_bᵀ y_a)² / σ² - 1);

the 1 is what noise alone would contribute. A width w blurs the eigenvalues: it is large far from the goal, where
none of them is right yet, and small near it. F is the imaginary part of resolvents at z = μ_a + i w,

    F = ½ w Σ_a Im (y_aᵀ (S - z)⁻¹ y_a / σ² - tr (S - z)⁻¹),

and with K = (A - z D)⁻¹ these are y_aᵀ D^½ K D^½ y_a and tr (D K). A flip of (i, j) changes A - z D by
Δ = ±[[-z, 1], [1, -z]] in the rows and columns i and j only, so K, its determinant and the trace (which is -d/dz
of the determinant's logarithm) change by terms of order two. Patches that hold the same pairs add up.
"""

from __future__ import annotations

import numpy as np

from lograb.attacks.posterior.graphs import EXACT, Patch, State, scaled, state_of
from lograb.parallel import ordered_map
from lograb.types import Bools, Floats, Ints

WIDTHS = (3.0, 1.0, 0.3)
"""Widths, as multiples of the root mean square error of the eigenvalues: the next when there is no way down."""
TRIED = 8
"""Flips that gain most, of which the first that brings the eigenvalues closer is taken."""
CLOSER = 1.0 - 1e-6
"""Factor by which the error must fall: more than rounding does."""
LEAST = 5.0
"""Log-likelihood that a flip must gain."""
AT_ONCE = 1 << 18
"""Pairs times eigenvalues that are looked at together, all pairs of a patch at least."""


def gains(patch: Patch, state: State, i: Ints, j: Ints, width: float) -> Floats:
    """How much F rises if a pair is flipped, shape (c,); -infinite where a node has, or would have, no edge."""
    variance, degrees = max(patch.variance, 1e-10), state.graph.sum(axis=1)
    root = np.sqrt(np.maximum(degrees, 1.0))
    sign = 1.0 - 2.0 * state.graph[i, j]
    allowed = np.minimum(degrees[i], degrees[j]) + np.minimum(sign, 0.0) > 0
    i, j, sign = i[allowed], j[allowed], sign[allowed]
    vectors = state.basis / root[:, None]
    moved = [np.sqrt(degrees[end] + sign) - root[end] for end in (i, j)]
    total = np.zeros(len(i))
    step = max(1, AT_ONCE // max(len(i), len(root) ** 2))
    for start in range(0, len(patch.mu), step):
        seen = patch.observed[:, start : start + step].T
        z = patch.mu[start : start + step, None] + 1j * width
        poles = 1.0 / (state.values - z)
        kernel = (vectors * poles[:, None, :]) @ vectors.T
        slope = (vectors * poles[:, None, :] ** 2) @ vectors.T  # dK/dz
        image = np.einsum("aij,aj->ai", kernel, root * seen)
        own, own_slope = np.einsum("aii->ai", kernel), np.einsum("aii->ai", slope)
        k_i, k_j, k_ij = own[:, i], own[:, j], kernel[:, i, j]
        s_i, s_j, s_ij = own_slope[:, i], own_slope[:, j], slope[:, i, j]
        minor, det = k_i * k_j - k_ij**2, z**2 - 1.0
        factor = 1.0 + sign * (2.0 * k_ij - z * (k_i + k_j)) + det * minor
        factor_slope = sign * (2.0 * s_ij - (k_i + k_j) - z * (s_i + s_j)) + 2.0 * z * minor
        factor_slope += det * (s_i * k_j + k_i * s_j - 2.0 * k_ij * s_ij)
        # D^½ y moves by (p, q) in i and j; the image by K of the moved one there is (h_i, h_j).
        p, q = moved[0] * seen[:, i], moved[1] * seen[:, j]
        g_i, g_j = image[:, i], image[:, j]
        h_i, h_j = g_i + k_i * p + k_ij * q, g_j + k_ij * p + k_j * q
        change = p * (g_i + h_i) + q * (g_j + h_j)
        change -= ((det * k_j - sign * z) * h_i**2 + (det * k_i - sign * z) * h_j**2) / factor
        change -= 2.0 * (sign - det * k_ij) * h_i * h_j / factor
        total += (change / variance + factor_slope / factor).imag.sum(axis=0)
    found = np.full(len(allowed), -np.inf)
    found[allowed] = width * total / 2
    return found


def descend(graph: Floats, free: Bools, members: list[Ints], patches: list[Patch]) -> Floats:
    """Flip pairs that gain most, one after the other, as long as the errors of the eigenvalues fall.

    Parameters
    ----------
    graph : float array, shape (u, u)
    free : bool array, shape (u, u)
        Pairs that may be flipped.
    members : list of int64 arrays
        For each patch the positions of its members.
    patches : list of Patch
    """
    i, j = np.nonzero(np.triu(free, k=1))
    inside = []
    for own in members:
        position = np.full(len(graph), -1)
        position[own] = np.arange(len(own))
        held = np.flatnonzero((position[i] >= 0) & (position[j] >= 0))
        inside.append((held, position[i[held]], position[j[held]]))

    def gained(at: int) -> Floats:
        state = state_of(patches[at], graph[np.ix_(members[at], members[at])])
        return gains(patches[at], state, *inside[at][1:], width)

    sharpness, off = 0, _error(graph, members, patches)
    while off > EXACT and sharpness < len(WIDTHS):
        total, width = np.zeros(len(i)), WIDTHS[sharpness] * off
        for (held, *_), gain in zip(inside, ordered_map(gained, range(len(patches)))):
            total[held] += gain
        best = np.argsort(-total, kind="stable")[:TRIED]
        for at in best[total[best] > LEAST]:
            flipped = graph.copy()
            flipped[i[at], j[at]] = flipped[j[at], i[at]] = 1.0 - graph[i[at], j[at]]
            now = _error(flipped, members, patches)
            if now < CLOSER * off:
                graph, off = flipped, now
                break
        else:
            sharpness += 1
    return graph


def _error(graph: Floats, members: list[Ints], patches: list[Patch]) -> float:
    """Root mean square error of the eigenvalues of some patches."""
    squares = []
    for own, patch in zip(members, patches):
        values = np.linalg.eigvalsh(scaled(graph[np.ix_(own, own)]))
        squares.append(float(np.mean((values[::-1][: len(patch.mu)] - patch.mu) ** 2)))
    return float(np.sqrt(np.mean(squares)))
