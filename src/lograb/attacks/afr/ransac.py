"""Stage 2b: robust alignment of two point sets with known correspondence (Lemma 3's procedure).

RANSAC draws many small samples, aligns on each, and keeps the alignment that most correspondences
agree with. All samples of one overlap are aligned at once, in stacked matrix products and SVDs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lograb.attacks.alignment import procrustes
from lograb.types import Bools, Floats


@dataclass(frozen=True, eq=False)
class Alignment:
    """An orthogonal map that carries the second point set onto the first, and who agrees with it.

    Attributes
    ----------
    turn : float array, shape (r, r)
        first ≈ second @ turn on the inliers.
    inliers : bool array, shape (m,)
    samples : int
        How many samples were drawn; 0 for plain Procrustes.
    """

    turn: Floats
    inliers: Bools
    samples: int


def align(first: Floats, second: Floats, tolerance: float) -> Alignment:
    """Align by plain Procrustes on all points; the inliers are those within the tolerance."""
    turn = procrustes((second.T @ first)[None])[0]
    return Alignment(turn, residuals(first, second, turn) <= tolerance, 0)


def residuals(first: Floats, second: Floats, turn: Floats) -> Floats:
    """Distance of each point of the first set from its turned partner, shape (..., m)."""
    return np.asarray(np.linalg.norm(first - second @ turn, axis=-1))


def ransac_align(
    first: Floats, second: Floats, tolerance: float, iterations: int, rng: np.random.Generator
) -> Alignment:
    """Align two point sets robustly.

    Samples have r + 1 points. Where there are no more points than that, RANSAC is Procrustes. The
    best sample's consensus set is aligned once more as a whole, and kept if that loses no inlier.

    Parameters
    ----------
    first, second : float arrays, shape (m, r)
    tolerance : float
        Largest residual of an inlier.
    """
    m, r = first.shape
    if m <= r + 1:
        return align(first, second, tolerance)
    sample = np.argsort(rng.random((iterations, m)), axis=1)[:, : r + 1]
    turns = procrustes(second[sample].swapaxes(1, 2) @ first[sample])
    agree = residuals(first[None], second[None], turns) <= tolerance
    best = int(np.argmax(agree.sum(axis=1)))
    turn, inliers = turns[best], agree[best]
    if inliers.any():
        refined = procrustes((second[inliers].T @ first[inliers])[None])[0]
        again = residuals(first, second, refined) <= tolerance
        if again.sum() >= inliers.sum():
            turn, inliers = refined, again
    return Alignment(turn, inliers, iterations)


def survivable_inlier_fraction(iterations: int, sample: int, failure: float = 0.05) -> float:
    """Smallest inlier fraction at which RANSAC still draws a clean sample (Lemma 3).

    With probability 1 - failure, `iterations` samples of the given size contain one without outlier.
    """
    return float((1 - failure ** (1 / iterations)) ** (1 / sample))
