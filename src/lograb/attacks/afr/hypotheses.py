"""Stage 2b, continued: find RANSAC's best sample without decomposing all of them.

A hypothesis is the rotation Q = U Vᵀ that aligns a sample, from its cross product C = U Σ Vᵀ. Hundreds
of singular value decompositions are what RANSAC costs, and nearly all of them belong to hypotheses
that lose. Matrix products alone give a bracket for the number of points that agree with Q:

An odd polynomial f that maps [0, 1] into itself turns C, scaled to norm at most 1, into X = U S Vᵀ with
S = f(Σ). For a point a and its partner b, with α = a V and β = b U,

    ⟨a, b Q⟩ - ⟨a, b X⟩ = Σ_i α_i β_i (1 - s_i),

and since 1 - s ≤ 1 - s² on [0, 1], Cauchy and Schwarz bound this by the root of
(‖a‖² - ‖a Xᵀ‖²)(‖b‖² - ‖b X‖²). The residual ‖a - b Q‖² = ‖a‖² + ‖b‖² - 2⟨a, b Q⟩ lies in an interval of twice
that half-width: narrow for points that lie where f has come close to 1, which a few steps achieve for all
but the smallest singular values.

Only hypotheses that the brackets leave in the race are decomposed, in double precision, so the outcome is
the one that decomposing all would have had. The polynomial is the Newton–Schulz iteration with the scaling
of Chen and Chow (2014), which lifts small singular values by up to 1.5 √3 per step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lograb.attacks.alignment import procrustes, residuals
from lograb.parallel import ordered_map
from lograb.types import Floats, Ints


@dataclass(frozen=True)
class Level:
    """How closely to bracket.

    Attributes
    ----------
    start : float
        Singular values above this share of the norm come close to 1.
    steps : int
        Steps of the iteration.
    dtype : float32 or float64
        Precision of the iteration.
    slack : float
        Widens the brackets by this share of the squared norms, against rounding. A step magnifies errors
        by at most 1.5 √3; they come to 1e-6 after five steps in single, 1e-12 after nine in double precision.
    """

    start: float
    steps: int
    dtype: npt.DTypeLike
    slack: float

    def scalings(self) -> list[float]:
        """Scale each step so that the images of the interval's two ends meet."""
        out, low = [], self.start
        for _ in range(self.steps):
            scale = float(np.sqrt(3.0 / (1.0 + low + low**2)))
            out.append(scale)
            low = 0.5 * scale * low * (3.0 - (scale * low) ** 2)
        return out


LEVELS = (Level(0.06, 5, np.float32, 1e-4), Level(0.002, 9, np.float64, 1e-7))
# So many entries of stacked matrices are worked on at once: about what a core's cache holds.
AT_ONCE = 1 << 16


def best_sample(first: Floats, second: Floats, sample: Ints, tolerance: float) -> int:
    """Find the first of the samples whose alignment most points agree with.

    Parameters
    ----------
    first, second : float arrays, shape (m, r)
    sample : int array, shape (n, size)
        Rows of both.
    tolerance : float
        Largest residual of a point that agrees.
    """
    if first.shape[1] == 1:
        return _best_sign(first[:, 0], second[:, 0], sample, tolerance)
    low, high = np.zeros(len(sample), np.int64), np.full(len(sample), len(first))
    few = max(4, 128 // first.shape[1] ** 2)  # so few are decomposed rather than bracketed
    for level in LEVELS:
        open_ = contenders(low, high)
        if len(open_) <= few:
            break
        least, most = bracket(first, second, sample[open_], tolerance, level)
        low[open_], high[open_] = np.maximum(low[open_], least), np.minimum(high[open_], most)
        promising = open_[np.argsort(-(low + high)[open_], kind="stable")[:few]]
        low[promising] = high[promising] = _count(first, second, sample[promising], tolerance)
    while len(open_ := contenders(low, high)):
        low[open_] = high[open_] = _count(first, second, sample[open_], tolerance)
    return int(np.argmax(low))


def _best_sign(first: Floats, second: Floats, sample: Ints, tolerance: float) -> int:
    """`best_sample` on a line, where all alignments there are keep it or turn it round."""
    kept = (first * second)[sample].sum(axis=1) >= 0
    agree = [int((np.abs(first - sign * second) <= tolerance).sum()) for sign in (-1, 1)]
    return int(np.argmax(np.take(agree, kept.astype(np.int64))))


def contenders(low: Ints, high: Ints) -> Ints:
    """List the hypotheses that are not settled and may still be the first with the largest count."""
    most = low.max()
    leader = np.argmax(low)
    alive = (high > most) | ((high == most) & (np.arange(len(high)) < leader))
    return np.flatnonzero(alive & (low < high))


def bracket(first: Floats, second: Floats, sample: Ints, tolerance: float, level: Level) -> tuple[Ints, Ints]:
    """Count, for the alignment of each sample, the points that certainly and those that possibly agree.

    Returns
    -------
    low, high : int64 arrays, shape (n,)
    """
    m, r = first.shape
    norm = max(np.linalg.norm(first, axis=1).max(), np.linalg.norm(second, axis=1).max(), tolerance) or 1.0
    first, second, limit = first / norm, second / norm, (tolerance / norm) ** 2
    a, b = first.astype(level.dtype), second.astype(level.dtype)
    products = (second[:, :, None] * first[:, None, :]).reshape(m, r * r)
    chosen = np.zeros((len(sample), m))
    chosen[np.arange(len(sample))[:, None], sample] = 1
    scalings = level.scalings()
    # A cross product that all but cancels is rounding errors: it counts as small, so that its bracket stays open.
    noise = m * np.finfo(float).eps * float(np.prod([1.5 * scale for scale in scalings])) / level.slack

    def count(part: Floats) -> tuple[Ints, Ints]:
        cross = part @ products
        cross /= np.maximum(np.sqrt(np.einsum("nj,nj->n", cross, cross)), noise)[:, None]
        squeezed = _squeeze(cross.reshape(-1, r, r).astype(level.dtype), scalings)
        middle, width = _residuals(a, b, squeezed, level.slack)
        return (middle + width <= limit).sum(axis=1), m - (middle - width > limit).sum(axis=1)

    parts = [chosen]
    if chosen.shape[0] * r * r > AT_ONCE:
        parts = np.array_split(chosen, 2 * -(-chosen.shape[0] * r * r // (2 * AT_ONCE)))
    lows, highs = zip(*ordered_map(count, parts, workers=1 if len(parts) == 1 else None))
    return np.concatenate(lows), np.concatenate(highs)


def _squeeze(cross: Floats, scalings: list[float]) -> Floats:
    """Carry the singular values of stacked matrices, Frobenius norm at most 1, into [0, 1] and close to 1.

    Parameters
    ----------
    cross : float array, shape (n, r, r); overwritten
    """
    n, r, _ = cross.shape
    here, there, copy = cross, np.empty_like(cross), cross.copy()
    gram = copy.swapaxes(1, 2) @ here  # two buffers: of one, numpy would take a slower routine
    diagonal = gram.reshape(n, r * r)[:, :: r + 1]
    # The root of the Gram matrix's norm bounds the spectral norm more tightly; at norm 1 it is r^(-1/4) or more.
    bound = np.maximum(np.einsum("nij,nij->n", gram, gram) ** 0.25, r**-0.25)
    for step, scale in enumerate(scalings):
        if step == 0:
            gram *= (-0.5 * (scale / bound) ** 3)[:, None, None]
            diagonal += (1.5 * scale / bound)[:, None]
        else:
            np.multiply(here, -0.5 * scale**3, out=copy)
            np.matmul(copy.swapaxes(1, 2), here, out=gram)
            diagonal += 1.5 * scale
        np.matmul(here, gram, out=there)
        here, there = there, here
    return here


def _residuals(a: Floats, b: Floats, turn: Floats, slack: float) -> tuple[Floats, Floats]:
    """Bracket the squared residuals by middle and half-width, each of shape (n, m)."""
    turned, back = b @ turn, a @ turn.swapaxes(1, 2)
    a_square, b_square = (a**2).sum(axis=1), (b**2).sum(axis=1)
    a_rest = np.maximum(a_square - np.einsum("nmr,nmr->nm", back, back), 0) + slack * a_square
    b_rest = np.maximum(b_square - np.einsum("nmr,nmr->nm", turned, turned), 0) + slack * b_square
    middle = a_square + b_square - 2 * np.einsum("nmr,mr->nm", turned, a)
    return middle, 2 * np.sqrt(a_rest * b_rest) + 0.01 * slack * (a_square + b_square)


def _count(first: Floats, second: Floats, sample: Ints, tolerance: float) -> Ints:
    """Align the samples and count who agrees, shape (n,)."""
    turns = procrustes(second[sample].swapaxes(1, 2) @ first[sample])
    return np.asarray((residuals(first, second, turns) <= tolerance).sum(axis=1))
