"""How well two patches can be aligned and how errors add up along a tree of patches.

The stitch-soundness theorem, the alignment lemma (Lemma 4) and the accumulation lemma. What the proofs miss:

- Lemma 4 assumes that the two patches' eigenvectors agree on the overlap up to a rotation. They do not, even
  without noise: the path 0-1-2-3 with the 1-hop patches of 1 and 2 has residual 0.293 at k = 1.
  `alignment_bound` therefore takes that *mismatch* as an argument.
- The accumulation lemma uses the alignment residual as if it were the error of the rotation. The two
  are linked by the least singular value of the overlap: `rotation_bound`. A flat overlap leaves
  the rotation undetermined.
- Stitch soundness takes that singular value to grow like the overlap. Eigenvectors are orthonormal, so their
  overlaps have singular values of at most 1, and more points do not reduce the error.
"""

from __future__ import annotations

import numpy as np

from lograb.errors import LograbError
from lograb.types import Floats


def alignment_bound(error_first: float, error_second: float, mismatch: float = 0.0) -> float:
    """Bound the `procrustes_distance` of perturbed overlaps, the left side of Lemma 4.

    It is at most mismatch + ‖E_v‖_F + ‖E_w‖_F, where the mismatch is the distance of the unperturbed overlaps.
    Lemma 4 as printed sets it to 0.
    """
    return mismatch + error_first + error_second


def rotation_bound(residual_estimated: float, residual_true: float, least_singular_value: float) -> float:
    """Bound ‖Q̂ - Q‖_F for two rotations that both align an overlap well.

    From ‖B (Q̂ - Q)‖_F <= ‖A - B Q̂‖_F + ‖A - B Q‖_F, with B the (m, k) block that is rotated and
    `least_singular_value` that of B; infinite where B does not have rank k.
    """
    if least_singular_value < 0:
        raise LograbError(f"a singular value must not be negative, got {least_singular_value}")
    total = residual_estimated + residual_true
    return total / least_singular_value if least_singular_value > 0 else np.inf


def stitch_bound(sigma: float, consensus: int, constant: float = 1.0) -> float:
    """Evaluate stitch soundness: C σ / √m for a consensus set of m points with rows of constant length."""
    if consensus < 1 or sigma < 0:
        raise LograbError(f"need a consensus of at least one point and sigma >= 0, got {consensus} and {sigma}")
    return constant * sigma / float(np.sqrt(consensus))


def accumulated_rotation_error(steps: Floats | list[float], k: int) -> float:
    """Bound the rotation error after a chain of stitches: the sum of the steps' errors, at most 2 √k.

    The steps are ‖Q̂ - Q‖_F of every stitch on the way from the root, k the dimension of the rotations. The
    induction step needs no approximation: Q̂R̂ - QR = Q̂ (R̂ - R) + (Q̂ - Q) R exactly.
    """
    return float(min(np.sum(steps), 2.0 * np.sqrt(k)))


def accumulation_bound(depth: int, align: float, local: float = 0.0, embedding_norm: float = 1.0) -> float:
    """Bound the embedding error at a depth (accumulation lemma): ‖P‖ depth ε_align + ε_local.

    ε_align bounds the *rotation* error of each stitch (see `rotation_bound`), ε_local is ‖E_u‖_F of the patch's
    own embedding, and ‖P‖ its spectral norm, 1 for orthonormal columns.
    """
    if depth < 0:
        raise LograbError(f"a depth must not be negative, got {depth}")
    return embedding_norm * depth * align + local


def random_accumulation(depth: int, step: float) -> float:
    """Predict the root-mean-square error of a chain of independent centred small errors: √depth · step."""
    return float(np.sqrt(depth)) * step
