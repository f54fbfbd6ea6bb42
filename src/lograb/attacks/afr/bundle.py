"""Stage 3a: adjust all frames of an island together (Appendix "Bundle Adjustment").

The printed objective has a rotation of its own for each pair and so falls apart into independent
Procrustes problems (`bundle="literal"`). What drifts when patches are stitched one after the other
are the absolute frames R_v; those are adjusted here, over all pairs of an island:

    minimise over R_v in O(k):   Σ over pairs (v, w) of ‖A_vw R_v - B_vw R_w‖²

with A and B the consensus rows of both patches. With orthogonal frames only the cross terms vary:
the objective is a constant minus 2 Σ tr(R_vᵀ C_vw R_w), C_vw = A_vwᵀ B_vw. Riemannian gradient
descent with Armijo's rule lowers it in every step. On a tree of pairs there is nothing to gain:
each pair can be met exactly in turn; cycles are what there is to adjust.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from lograb.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class Adjustment:
    """Adjusted frames (n, k, k), and the objective before, after each step, and the steps taken."""

    frames: Floats
    objective: list[float]


def adjust(
    frames: Floats, first: Ints, second: Ints, cross: Floats, constant: float, steps: int, tolerance: float = 1e-9
) -> Adjustment:
    """Lower the objective by Riemannian descent until the gradient vanishes or steps run out.

    Parameters
    ----------
    frames : float array, shape (n, k, k), orthogonal
    first, second : int arrays, shape (m,)
        The pairs, as positions in `frames`.
    cross : float array, shape (m, k, k)
        C = AᵀB of each pair.
    constant : float
        Σ ‖A‖² + ‖B‖².
    steps : int
    tolerance : float
        Stop when the squared gradient falls below this multiple of the constant.
    """
    gather = [_gather(part, len(frames)) for part in (first, second)]
    objective = [_objective(frames, first, second, cross, constant)]
    length = 1.0
    for _ in range(steps):
        towards_second = _sum(gather[0], cross @ frames[second])
        towards_first = _sum(gather[1], cross.swapaxes(1, 2) @ frames[first])
        gradient = _tangent(frames, -2 * (towards_second + towards_first))
        norm = float((gradient**2).sum())
        if norm <= tolerance * constant:
            break
        length *= 4.0
        while length > 1e-12:
            trial = _retract(frames - length * gradient)
            value = _objective(trial, first, second, cross, constant)
            if value <= objective[-1] - 1e-4 * length * norm:
                break
            length *= 0.5
        else:
            break
        frames, objective = trial, [*objective, value]
    return Adjustment(frames, objective)


def _gather(part: Ints, n: int) -> sp.csr_array:
    ones = np.ones(len(part))
    return sp.csr_array((ones, (part, np.arange(len(part)))), shape=(n, len(part)))


def _sum(gather: sp.csr_array, blocks: Floats) -> Floats:
    """Add up the blocks that belong to the same frame."""
    k = blocks.shape[1]
    return np.asarray(gather @ blocks.reshape(len(blocks), k * k)).reshape(-1, k, k)


def _objective(frames: Floats, first: Ints, second: Ints, cross: Floats, constant: float) -> float:
    return constant - 2 * float(np.einsum("mij,mij->", frames[first], cross @ frames[second]))


def _tangent(frames: Floats, pull: Floats) -> Floats:
    """Project onto the tangent space of O(k): the skew part, R skew(Rᵀ G)."""
    inner = frames.swapaxes(1, 2) @ pull
    return np.asarray(frames @ (0.5 * (inner - inner.swapaxes(1, 2))))


def _retract(frames: Floats) -> Floats:
    """Return to O(k) by the nearest orthogonal matrix."""
    left, _, right = np.linalg.svd(frames)
    return np.asarray(left @ right)
