"""Heat-kernel thresholding of many patches at many times, judged with the truth in hand."""

from __future__ import annotations

import numpy as np

from lograb.theory.heat import heat_kernel_matrix, separation, times_to_try, truncation_residual
from lograb.theory.stacks import Stack
from lograb.types import Bools, Floats

N_TIMES = 12
PAPER_TIME = 0.8

HeatScan = dict[str, tuple[Floats, Floats, Floats]]
"""By name the best margin over the times tried, its time and its threshold, each of shape (b,).

``theorem``: γ_t - 2 η; ``by-pair``: the same with the residual η √(c_i c_j) of each pair, c_i = 1 - Σ_r u_r(i)²
being the share of node i outside of the kept subspace; ``observed``: least edge entry minus largest other entry of
the observed kernel itself. Positive margins mean exact recovery at that time with that threshold.
"""


def scan_heat(stack: Stack, adjacency: Bools, spectra: tuple[Floats, Floats], times: Floats) -> HeatScan:
    """Try several times (b, n) on every patch of a stack.

    The truth comes as adjacency matrices (b, q, q) and the spectra of their Laplacians, values before vectors.
    """
    values, vectors = spectra
    outside = np.sqrt(np.clip(1.0 - (stack.vectors**2).sum(axis=2), 0.0, None))
    leverage = outside[:, :, None] * outside[:, None, :]
    none = np.full(len(stack.which), -np.inf)
    results: HeatScan = {name: (none, none, none) for name in ("theorem", "by-pair", "observed")}
    for t in times.T:
        kernel = heat_kernel_matrix(vectors, values, t)
        shown = heat_kernel_matrix(stack.vectors, stack.values, t)
        eta = truncation_residual(stack.next_values, t)
        low, high = separation(kernel, adjacency)
        bounds = {
            "theorem": (low - eta, high + eta),
            "by-pair": separation(kernel, adjacency, eta[:, None, None] * leverage),
            "observed": separation(shown, adjacency),
        }
        for name, (lower, upper) in bounds.items():
            better = lower - upper > results[name][0]
            found = zip((lower - upper, t, (lower + upper) / 2), results[name])
            margin, time, threshold = (np.where(better, new, old) for new, old in found)
            results[name] = margin, time, threshold
    return results


def promising_times(stack: Stack) -> Floats:
    """List times (b, n) at which the theorem could hold.

    Where it cannot hold at any time (λ_{k+1} = 0 or not shown), times for complete spectra are listed; they
    matter to ``observed`` only. The paper's time is always among them.
    """
    lists = [times_to_try(float(x), N_TIMES) for x in stack.next_values]
    lists = [found if len(found) else times_to_try(np.nan, N_TIMES) for found in lists]
    return np.stack([np.append(found, PAPER_TIME) for found in lists])
