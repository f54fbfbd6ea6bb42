"""Stage 2b: robust alignment of two point sets with known correspondence (Lemma 3's procedure).

RANSAC draws many small samples, aligns on each, and keeps the alignment that most correspondences
agree with (`lograb.attacks.alignment.hypotheses` says how, for all samples at once).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lograb.attacks.alignment.hypotheses import best_sample
from lograb.attacks.alignment.procrustes import procrustes, residuals
from lograb.types import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Alignment:
    """An orthogonal map that carries the second point set onto the first, and who agrees with it."""

    turn: Floats  # (r, r): first ≈ second @ turn on the inliers
    inliers: Bools  # (m,)
    samples: int  # how many samples were drawn; 0 for plain Procrustes


def align(first: Floats, second: Floats, tolerance: float) -> Alignment:
    """Align by plain Procrustes on all points; the inliers are those within the tolerance."""
    turn = procrustes((second.T @ first)[None])[0]
    return Alignment(turn, residuals(first, second, turn) <= tolerance, 0)


def ransac_align(
    first: Floats, second: Floats, tolerance: float, iterations: int, rng: np.random.Generator, size: int = 0
) -> Alignment:
    """Align two point sets robustly.

    Samples have r + 1 points, or more if asked for. Where there are no more points, RANSAC is Procrustes. The
    best sample's consensus set is aligned once more as a whole, and kept if that loses no inlier. Points have the
    shape (m, r); inliers have residuals up to the tolerance.
    """
    m, r = first.shape
    size = max(size, r + 1)
    if m <= size:
        return align(first, second, tolerance)
    sample = _without_repetitions(_draw(iterations, m, size, rng), m)
    _, turn, inliers = best_sample(first, second, sample, tolerance)
    if inliers.any():
        refined = procrustes((second[inliers].T @ first[inliers])[None])[0]
        again = residuals(first, second, refined) <= tolerance
        if np.count_nonzero(again) >= np.count_nonzero(inliers):
            turn, inliers = refined, again
    return Alignment(turn, inliers, iterations)


def _draw(n: int, m: int, size: int, rng: np.random.Generator) -> Ints:
    """Draw n samples of some of m points, shape (n, size): those with the smallest of m random numbers each.

    Positive numbers are in the order of their bits. The last bits are replaced by the point, because plain
    numbers are partitioned twice as fast as their positions.
    """
    last = np.uint64((1 << (m - 1).bit_length()) - 1)
    bits = rng.random((n, m)).view(np.uint64)
    bits &= ~last
    bits |= np.arange(m, dtype=np.uint64)
    bits.partition(size - 1, axis=1)
    return (bits[:, :size] & last).astype(np.int64)


def _without_repetitions(sample: Ints, m: int) -> Ints:
    """Drop samples of the same points as an earlier one, where m points are too few for all to differ."""
    n, size = sample.shape
    if math.comb(m, size) > 4 * n:
        return sample
    chosen = np.zeros((n, m), dtype=bool)
    chosen[np.arange(n)[:, None], sample] = True
    bits = np.packbits(chosen, axis=1)
    return sample[np.sort(np.unique(bits.view(f"S{bits.shape[1]}"), return_index=True)[1])]
