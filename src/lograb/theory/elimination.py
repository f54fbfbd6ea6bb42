"""Exact recovery of *truncated* noiseless patches, proved without the truth.

Everything below follows from the observation (U, Λ, λ_{k+1}) of a connected patch; nothing is guessed.

*Bounds on entries.* The hidden part of L, namely L - U Λ Uᵀ, has its eigenvalues in [λ_{k+1}, 2] on the
complement of span(U). Both (hidden part) - λ_{k+1} (I - UUᵀ) and 2 (I - UUᵀ) - (hidden part) are thus positive
semidefinite, and their diagonals are known because L_ii = 1. For such matrices |R_ij| <= √(R_ii R_jj), which
confines every entry of S = I - L to an interval.

*Degrees.* The first eigenvector is √(d_i / Σd), so the degrees are known up to one factor, and they are whole
numbers of at most q - 1: few factors are possible (one, if the centre of a 1-hop patch is known). Given the
factor, S_ij is 0 or 1 / √(d_i d_j); if its interval excludes one of them, the pair is decided.

*Rows.* Row i of S U = U (I - Λ) gives k linear equations for the 0/1 unknowns of that row. If the columns of its
undecided pairs are linearly independent, the row is decided. Degrees decide more: a row that has all its
neighbours has no others. Repeat; decided rows decide columns by symmetry.

A factor that leads to a contradiction is out. If exactly one factor survives and it decides all pairs, the patch
is recovered exactly. The converse is not claimed: many patches stay undecided.
"""

from __future__ import annotations

import numpy as np

from lograb.theory.certified_heat import orthonormal
from lograb.theory.exactness import check_spectrum
from lograb.types import Bools, Floats, Ints

SLACK = 1e-6
INDEPENDENT = 1e-5


def entry_bounds(vectors: Floats, values: Floats, next_value: float) -> tuple[Floats, Floats]:
    """Confine the off-diagonal entries of S = I - L, for a noiseless patch without isolated nodes.

    From vectors (q, k) and values (k,) to the lowest and highest possible entries, each of shape (q, q), slack for
    rounding included; their diagonals have no meaning.
    """
    kept, projector = (vectors * values) @ vectors.T, vectors @ vectors.T
    hidden = 1.0 - np.diag(projector)
    low, high = np.full(kept.shape, -np.inf), np.full(kept.shape, np.inf)
    for end, sign in ((next_value, 1.0), (2.0, -1.0)):
        centre = end * projector - kept
        diagonal = sign * (1.0 - np.diag(kept) - end * hidden)
        root = np.sqrt(np.maximum(diagonal, 0.0) + SLACK**2)
        radius = np.outer(root, root) + SLACK
        low, high = np.maximum(low, centre - radius), np.minimum(high, centre + radius)
    return low, high


def possible_degrees(first: Floats, centre: int | None = None) -> list[Ints]:
    """List the degree sequences that a first eigenvector (q,) of a connected patch allows.

    The centre, if any, is the position of a node that is known to be joined to all others.
    """
    q, shares = len(first), first**2
    if shares.min() < 1e-9:
        return []
    ratio = shares / shares.min()
    found = []
    for least in range(1, int((q - 1) / ratio.max() + SLACK) + 1):
        degrees = np.rint(ratio * least)
        whole = np.abs(ratio * least - degrees).max() < 1e-3 / q
        even = degrees.sum() % 2 == 0 and degrees.sum() >= 2 * (q - 1)
        if whole and even and (centre is None or degrees[centre] == q - 1):
            found.append(degrees.astype(np.int64))
    return found


def eliminate(vectors: Floats, values: Floats, next_value: float, centre: int | None = None) -> Bools | None:
    """Prove the edges of a truncated noiseless patch by the rules above, shape (q, q); None unless all of them.

    Vectors have shape (q, k) with k < q; `next_value` is λ_{k+1}; `centre` the position of a node that the
    protocol says is joined to all others (1-hop patches).
    """
    spectrum = np.append(values, next_value)
    connected = len(values) > 0 and spectrum[1] > SLACK
    if not connected or not orthonormal(vectors):
        return None
    low, high = entry_bounds(vectors, values, next_value)
    open_factors = []
    for degrees in possible_degrees(vectors[:, 0], centre):
        state = _decide(low, high, vectors, values, degrees)
        if state is not None:
            open_factors.append(state)
    if len(open_factors) != 1 or (open_factors[0] < 0).any():
        return None
    adjacency = open_factors[0] == 1
    certain = check_spectrum(adjacency, vectors, values, next_value).consistent
    return adjacency if certain else None


def _decide(low: Floats, high: Floats, vectors: Floats, values: Floats, degrees: Ints) -> Ints | None:
    """Apply the rules for one degree sequence: 1 edge, 0 none, -1 open, shape (q, q); None if impossible."""
    weight = 1.0 / np.sqrt(np.outer(degrees, degrees))
    off = ~np.eye(len(degrees), dtype=bool)
    can_be, can_miss = (low <= weight) & (weight <= high) & off, ((low <= 0) & (high >= 0)) | ~off
    if not (can_be | can_miss).all():
        return None
    state = np.where(can_be & can_miss, -1, can_be.astype(np.int64))
    # Row i of S U = U (I - Λ), divided by 1 / √d_i: Σ_j a_ij u_r(j) / √d_j = √d_i (1 - λ_r) u_r(i).
    columns = vectors / np.sqrt(degrees)[:, None]
    targets = np.sqrt(degrees)[:, None] * vectors * (1.0 - values)
    tried = np.zeros(len(degrees), dtype=np.int64)  # a row is worth solving again only if it has fewer unknowns
    while True:
        before = int((state < 0).sum())
        if not _use_degrees(state, degrees):
            return None
        for i in range(len(degrees)):
            unknown = np.flatnonzero(state[i] < 0)
            if 0 < len(unknown) <= columns.shape[1] and len(unknown) != tried[i]:
                tried[i] = len(unknown)
                if not _use_row(state, i, unknown, columns, targets):
                    return None
        if int((state < 0).sum()) == before:
            return state if before or (state.sum(axis=1) == degrees).all() else None


def _use_degrees(state: Ints, degrees: Ints) -> bool:
    """Fill rows that have all their neighbours, or can only just get them; False on a contradiction."""
    sure, possible = (state == 1).sum(axis=1), (state != 0).sum(axis=1)
    if (sure > degrees).any() or (possible < degrees).any():
        return False
    for full, value in ((sure == degrees, 0), (possible == degrees, 1)):
        rows, cols = np.nonzero((state < 0) & full[:, None])
        state[rows, cols] = state[cols, rows] = value
    sure = (state == 1).sum(axis=1)
    return bool((sure <= degrees).all())


def _use_row(state: Ints, i: int, unknown: Ints, columns: Floats, targets: Floats) -> bool:
    """Solve the equations of one row where they have one solution; False on a contradiction."""
    matrix = columns[unknown].T
    rest = targets[i] - columns[state[i] == 1].sum(axis=0)
    left, singular, right = np.linalg.svd(matrix, full_matrices=False)
    if singular[-1] < INDEPENDENT:
        return True
    solution = right.T @ ((left.T @ rest) / singular)
    answer = np.rint(solution)
    # Two 0/1 answers differ by at least 1, which moves the equations by at least the least singular value.
    wrong = np.abs(matrix @ answer - rest).max() > SLACK or ((answer != 0) & (answer != 1)).any()
    if wrong:
        return False
    state[i, unknown] = state[unknown, i] = answer.astype(np.int64)
    return True
