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

import math
import threading
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from lograb.attacks.alignment.procrustes import procrustes, residuals
from lograb.parallel import split_map
from lograb.types import Bools, Floats, Ints


@dataclass(frozen=True)
class Level:
    """How closely to bracket.

    A step magnifies errors by at most 1.5 √3; they come to about 1e-5 after five steps in single, 1e-12 after nine
    in double precision.
    """

    start: float  # singular values above this share of the norm come close to 1
    steps: int  # of the iteration
    dtype: npt.DTypeLike  # its precision, float32 or float64
    slack: float  # widens the brackets by this share of the squared norms, against rounding

    @cached_property
    def scalings(self) -> list[float]:
        """Scale each step so that the images of the interval's two ends meet."""
        out, low = [], self.start
        for _ in range(self.steps):
            scale = math.sqrt(3.0 / (1.0 + low + low**2))
            out.append(scale)
            low = 0.5 * scale * low * (3.0 - (scale * low) ** 2)
        return out

    @cached_property
    def noise(self) -> float:
        """Share of the largest products below which rounding errors may grow past the slack."""
        growth = math.prod(1.5 * scale for scale in self.scalings)
        return float(np.finfo(self.dtype).eps) * growth / self.slack


LEVELS = (Level(0.05, 5, np.float32, 1e-3), Level(0.002, 9, np.float64, 1e-7))
AT_ONCE = 1 << 20
"""Entries of one stack of matrices; about eight stacks are kept, 32 MB in single precision."""
WORTH = 1 << 19
"""Samples times r³ for which a thread pays its start."""
SMALL = 8
"""Dimensions up to which a transposed factor is better copied."""
DECOMPOSED = 2700
"""Divided by r², so many samples are decomposed in the time of a bracket."""


class Room(threading.local):
    """Memory kept from call to call, one per thread: fresh pages would cost more than the products in them."""

    held = np.empty(0, np.uint8)

    def lend(self, dtype: npt.DTypeLike, *shapes: tuple[int, ...]) -> list[Floats]:
        """Lend arrays of these shapes, filled with anything, until the next call."""
        sizes = [math.prod(shape) for shape in shapes]
        need = sum(sizes) * np.dtype(dtype).itemsize
        if need > len(self.held):
            self.held = np.empty(need, np.uint8)
        flat, start = self.held[:need].view(dtype), 0
        out = []
        for shape, size in zip(shapes, sizes):
            out.append(flat[start : start + size].reshape(shape))
            start += size
        return out


_room = Room()


def best_sample(first: Floats, second: Floats, sample: Ints, tolerance: float) -> tuple[int, Floats, Bools]:
    """Find the first of the samples whose alignment most points agree with, that alignment, and who agrees.

    A sample (n, size) is made of rows of both sets (m, r); points agree whose residual is within the tolerance.
    """
    r = first.shape[1]
    few = DECOMPOSED // r**2
    tried: dict[int, tuple[Floats, Bools]] = {}
    if r == 1:
        best = _best_sign(first[:, 0], second[:, 0], sample, tolerance)
    elif len(sample) <= few:
        turns, agree = _align(first, second, sample, tolerance)
        best = int(np.argmax(np.count_nonzero(agree, axis=1)))
        tried[best] = turns[best], agree[best]
    else:
        low, high = bracket(first, second, sample, tolerance, LEVELS[0])
        levels = iter(LEVELS[1:])
        while len(open_ := contenders(low, high)):
            # What the most promising ones reach, the others must exceed.
            chosen = open_
            if len(open_) > few // 4:
                chosen = open_[np.argsort(-(low + high)[open_], kind="stable")[:2]]
            turns, agree = _align(first, second, sample[chosen], tolerance)
            tried.update(zip(chosen.tolist(), zip(turns, agree)))
            low[chosen] = high[chosen] = np.count_nonzero(agree, axis=1)
            open_ = contenders(low, high)
            if len(open_) > few and (level := next(levels, None)):
                low[open_], high[open_] = bracket(first, second, sample[open_], tolerance, level)
        best = int(np.argmax(low))
    if best not in tried:
        turns, agree = _align(first, second, sample[best : best + 1], tolerance)
        tried[best] = turns[0], agree[0]
    return best, *tried[best]


def _best_sign(first: Floats, second: Floats, sample: Ints, tolerance: float) -> int:
    """`best_sample` on a line, where all alignments there are keep it or turn it round."""
    kept = (first * second)[sample].sum(axis=1) >= 0
    agree = [int((np.abs(first - sign * second) <= tolerance).sum()) for sign in (-1, 1)]
    return int(np.argmax(np.take(agree, kept.astype(np.int64))))


def contenders(low: Ints, high: Ints) -> Ints:
    """List the hypotheses that are not settled and may still be the first with the largest count."""
    leader = np.argmax(low)
    alive = high > low[leader]
    alive[:leader] = high[:leader] >= low[leader]
    alive &= low < high
    return np.flatnonzero(alive)


def bracket(first: Floats, second: Floats, sample: Ints, tolerance: float, level: Level) -> tuple[Ints, Ints]:
    """Count, for the alignment of each sample, the points that certainly and those that possibly agree."""
    (m, r), (n, size) = first.shape, sample.shape
    points = np.stack([first, second], axis=1)
    squares = np.einsum("msr,msr->sm", points, points)
    norm = max(math.sqrt(squares.max()), tolerance) or 1.0
    points, squares = (points / norm).astype(level.dtype), (squares / norm**2).astype(level.dtype)
    a, b = points.transpose(1, 2, 0).copy()
    ones = np.ones(m, level.dtype)
    half_limit = (tolerance / norm) ** 2 / 2
    once = min(n, max(1, AT_ONCE // (r * max(r, m))))
    rows, matrices, moved = _room.lend(level.dtype, (once, size, 2, r), (4, once, r, r), (2, once, r, m))
    low, high = np.empty(n, np.int64), np.empty(n, np.int64)

    def count(start: int, part: slice) -> None:
        """Count for this part of the samples from `start` on, in the same part of the room."""
        mine = slice(start + part.start, start + part.stop)
        np.take(points, sample[mine], axis=0, out=rows[part], mode="clip")  # this mode needs no copy
        np.matmul(rows[part, :, 1].swapaxes(1, 2), rows[part, :, 0], out=matrices[0, part])
        turn = _squeeze(matrices[:, part], level, size**1.5 * level.noise)
        images = moved[:, part]
        if r <= SMALL:  # one product for all; the transposed turns go where the Gram matrices were
            np.copyto(matrices[3, part], turn.swapaxes(1, 2))
            for turns, side, image in zip((turn, matrices[3, part]), (a, b), images):
                np.matmul(turns.reshape(-1, r), side, out=image.reshape(-1, m))
        else:
            np.matmul(turn, a, out=images[0])
            np.matmul(turn.swapaxes(1, 2), b, out=images[1])
        middle, width = _half_residuals(a, images, squares, level.slack)
        low[mine] = (middle + width <= half_limit) @ ones  # faster than a sum
        high[mine] = m - (middle - width > half_limit) @ ones

    for start in range(0, n, once):
        stop = min(start + once, n)
        split_map(partial(count, start), stop - start, (stop - start) * r**3 // WORTH)
    return low, high


def _squeeze(matrices: Floats, level: Level, least: float) -> Floats:
    """Carry the singular values of stacked matrices into [0, 1] and close to 1.

    Of the matrices (4, n, r, r) the first is squeezed; all are overwritten, and one of them is returned. Norms
    below `least` are rounding errors: such matrices are left small, so that their brackets stay open.
    """
    here: Floats
    here, there, copy, gram = matrices
    n, r, _ = here.shape
    diagonal = gram.reshape(n, r * r)[:, :: r + 1]
    # Two buffers: of one, numpy would take a slower routine. Small products are faster without transposed factors.
    turned = copy.swapaxes(1, 2) if r <= SMALL else copy
    np.copyto(turned, here)
    np.matmul(turned.swapaxes(1, 2), here, out=gram)
    # The root of the Gram matrix's norm bounds the spectral norm more tightly than the matrix's own norm.
    bound = np.maximum(np.einsum("nij,nij->n", gram, gram) ** 0.25, least)
    for step, scale in enumerate(level.scalings):
        if step == 0:
            gram *= (-0.5 * (scale / bound) ** 3)[:, None, None]
            diagonal += (1.5 * scale / bound)[:, None]
        else:
            np.multiply(here, -0.5 * scale**3, out=turned)
            np.matmul(turned.swapaxes(1, 2), here, out=gram)
            diagonal += 1.5 * scale
        np.matmul(here, gram, out=there)
        here, there = there, here
    return here


def _half_residuals(a: Floats, images: Floats, squares: Floats, slack: float) -> tuple[Floats, Floats]:
    """Bracket half the squared residuals by middle and half-width, each of shape (n, m).

    From points of the first set in columns (r, m), images a Xᵀ and b X (2, n, r, m), and squared lengths (2, m).
    """
    rest = np.einsum("snrm,snrm->snm", images, images)
    np.subtract(((1.0 + slack) * squares)[:, None], rest, out=rest)
    np.maximum(rest, (slack * squares)[:, None], out=rest)
    half = squares.sum(axis=0) / 2
    middle = half - np.einsum("nrm,rm->nm", images[1], a)
    width = np.sqrt(rest[0] * rest[1])
    width += 0.01 * slack * half
    return middle, width


def _align(first: Floats, second: Floats, sample: Ints, tolerance: float) -> tuple[Floats, Bools]:
    """Decompose the cross products of some samples: turns, shape (n, r, r), and who agrees, shape (n, m)."""
    turns = procrustes(second[sample].swapaxes(1, 2) @ first[sample])
    return turns, residuals(first, second, turns) <= tolerance
