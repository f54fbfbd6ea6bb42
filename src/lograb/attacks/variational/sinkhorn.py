"""Entropic optimal transport between point clouds of equal size (the S_ε of Appendix B's argument).

For a cost matrix C between two clouds of n points with mass 1/n each,

    OT_ε = min over plans T of ⟨T, C⟩ + ε KL(T | a ⊗ b),

where T has the marginals a = b = (1/n, ..., 1/n). Sinkhorn's iteration finds potentials f, g with
T_ij = a_i b_j exp((f_i + g_j - C_ij) / ε), and OT_ε = ⟨f, a⟩ + ⟨g, b⟩. By the envelope theorem the
derivative of OT_ε with respect to C is T itself: nothing has to be differentiated through the iteration.

Everything works on stacks: C has shape (s, n, n) and every problem of the stack its own ε.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lograb.types import Floats

# Scalings beyond this are absorbed into the potentials before they overflow.
ABSORB = 1e60
# How often convergence is looked at, in iterations.
CHECK = 10


@dataclass(frozen=True, eq=False)
class Transport:
    """Solved transport problems."""

    cost: Floats  # (s,), OT_ε of each problem
    plan: Floats  # (s, n, n)
    error: Floats  # (s,), largest violation of a marginal, relative to 1/n


def squared_distances(first: Floats, second: Floats) -> Floats:
    """Compute ‖x_i - y_j‖² for stacks of clouds: (s or 1, n, k) and (s, n, k) give (s, n, n)."""
    squares = (first**2).sum(axis=-1)[:, :, None] + (second**2).sum(axis=-1)[:, None, :]
    return np.asarray(np.maximum(squares - 2 * first @ second.swapaxes(1, 2), 0.0))


def sinkhorn(cost: Floats, epsilon: Floats, iterations: int, tolerance: float) -> Transport:
    """Solve a stack of entropic transport problems with uniform marginals.

    The scalings exp(f/ε), exp(g/ε) are iterated by matrix products; large ones are absorbed into the
    potentials, so that a small ε costs iterations but never overflows. It stops once every marginal is met to the
    relative tolerance, or after `iterations`, a few more to finish a round of checks.
    """
    scaled = cost / epsilon[:, None, None]
    n = scaled.shape[1]
    # In units of ε, and including log a and log b: T_ij = exp(f_i + g_j - C_ij / ε).
    f = scaled.min(axis=2)
    g = (scaled - f[:, :, None]).min(axis=1)
    kernel = np.exp(f[:, :, None] + g[:, None, :] - scaled)
    u, v = np.ones((len(cost), n, 1)), np.ones((len(cost), n, 1))
    error = np.full(len(cost), np.inf)
    for step in range(0, iterations, CHECK):
        for _ in range(CHECK):
            u = 1.0 / (n * (kernel @ v))
            v = 1.0 / (n * (kernel.swapaxes(1, 2) @ u))
        error = np.abs(n * u * (kernel @ v) - 1).max(axis=(1, 2))
        if error.max() < tolerance:
            break
        if step + CHECK < iterations and max(u.max(), v.max(), 1 / u.min(), 1 / v.min()) > ABSORB:
            f, g = f + np.log(u[:, :, 0]), g + np.log(v[:, :, 0])
            kernel = np.exp(f[:, :, None] + g[:, None, :] - scaled)
            u, v = np.ones_like(u), np.ones_like(v)
    plan = u * kernel * v.swapaxes(1, 2)
    # ⟨f, a⟩ + ⟨g, b⟩ in the potentials of the module's text, which leave log a and log b out.
    potentials = (f + np.log(u[:, :, 0])).mean(axis=1) + (g + np.log(v[:, :, 0])).mean(axis=1)
    return Transport(epsilon * (potentials + 2 * np.log(n)), plan, error)
