"""k-recoverability (Definition 2) measured, and how local recovery composes (local-to-global recoverability).

For 0/1 adjacency matrices ‖Â - A‖_F² is twice the number of pairs on which they differ, so the relative
error is √(|Ê Δ E| / |E|): no matrix is needed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lograb.eigen import eigh
from lograb.errors import LograbError
from lograb.pairs import edge_keys
from lograb.theory.heat import normalized_laplacian
from lograb.types import Bools, Floats, Ints

Recover = Callable[[Floats, Floats, Bools], Bools]
"""Maps eigenvectors (q, k), eigenvalues (k,) and the truth (q, q), which oracles use, to an estimate (q, q)."""


def relative_error(truth: Ints, claimed: Ints, n_nodes: int) -> float:
    """Compute ‖Â - A‖_F / ‖A‖_F from lists (m, 2) of unique pairs (u, w), u < w, in O(|E| log |E|).

    It is 0 where both are empty, infinite where only the truth is.
    """
    differing = np.setxor1d(edge_keys(truth, n_nodes), edge_keys(claimed, n_nodes), assume_unique=True)
    return error_from_counts(len(differing), len(truth))


def error_from_counts(mistakes: int, n_edges: int) -> float:
    """Compute the relative Frobenius error √(mistakes / |E|)."""
    if n_edges == 0:
        return np.inf if mistakes else 0.0
    return float(np.sqrt(mistakes / n_edges))


def truncated_inverse(vectors: Floats, values: Floats, truth: Bools) -> Bools:
    """Invert what is kept, S = U (I - Λ) Uᵀ, and cut at the threshold with fewest mistakes (an oracle)."""
    q = len(truth)
    upper = np.triu_indices(q, k=1)
    entries = ((vectors * (1.0 - values)) @ vectors.T)[upper]
    edges = truth[upper]
    order = np.argsort(-entries, kind="stable")
    # Claiming the c largest entries costs the others among them and the edges behind them.
    cost = np.concatenate([[0], np.cumsum(np.where(edges[order], -1, 1))])
    ordered = entries[order]
    splits = np.concatenate([[True], ordered[:-1] - ordered[1:] > 1e-9, [True]]) if q > 1 else np.ones(1, bool)
    best = int(np.argmin(np.where(splits, cost, q * q)))
    estimate = np.zeros((q, q), dtype=bool)
    kept = order[:best]
    estimate[upper[0][kept], upper[1][kept]] = True
    return estimate | estimate.T


def recoverable_rank(truth: Bools, epsilon: float, recover: Recover = truncated_inverse) -> int | None:
    """Find the empirical k*(ε): the least k at which `recover` errs by at most ε (Definition 2).

    The error need not fall with k; this is the first k that suffices. None where no k does. By default `recover`
    is the truncated inverse with the best threshold.
    """
    if epsilon < 0:
        raise LograbError(f"epsilon must not be negative, got {epsilon}")
    values, vectors = eigh(normalized_laplacian(truth))
    n_edges = int(truth.sum()) // 2
    for k in range(1, len(truth) + 1):
        estimate = recover(vectors[:, :k], values[:k], truth)
        if error_from_counts(int((estimate ^ truth).sum()) // 2, n_edges) <= epsilon:
            return k
    return None


def printed_global_error(diameter: int, epsilon: float, constant: float = 1.0) -> float:
    """Evaluate the printed global error, of order diam(G) ε. It ignores edges that no patch contains."""
    return constant * diameter * epsilon


def union_error_bound(patch_mistakes: Ints, n_unseen: int, n_edges: int) -> float:
    """Bound the global relative error when patches are judged by themselves and their edges united.

    Each wrong pair of the union, or each missing one, is wrong in some patch or lies in none:
    |Ê Δ E| <= Σ_v mistakes_v + unseen. With exact patches equality holds: no alignment enters.
    (A pair claimed by any patch is claimed; hence a true edge is missing only if every patch misses it.) The
    unseen are the true edges that no patch contains, `n_edges` counts all true edges.
    """
    return error_from_counts(int(np.sum(patch_mistakes)) + n_unseen, n_edges)
