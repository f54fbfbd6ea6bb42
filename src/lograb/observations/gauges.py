"""What an embedding leaves undetermined: the choice of basis.

Eigenvectors have no sign, and inside a repeated eigenvalue no direction at all; ego networks are
nearly stars, so repeated eigenvalues are the rule. Which basis a LAPACK returns is an accident of
its version. It could even tell something about the node order. So the accident is removed: the
published basis is a function of the eigenspaces and of a *reference* matrix only.

Let P be the projector onto an eigenspace and W a (q, r) reference with a normal distribution. The
columns of P W, orthonormalised, are a basis of (a random r-dimensional part of) the eigenspace,
uniformly distributed, and the same whatever basis P was computed from. With r = 1 this is a
random sign. Hence the three gauges:

``sign``
    A fresh reference for every patch, applied to each eigenspace by itself: random signs, random
    bases inside repeated eigenvalues. Columns still belong to eigenvalues.
``rotation``
    After that, a random element of O(r) mixes all columns: only the projector survives. Of a complete patch
    nothing does: a random orthogonal matrix that no eigenvector enters is published.
``none``
    One fixed positive reference, a row per node id, for all patches and all seeds: the best case
    for an eavesdropper. The first eigenvector of a connected patch is then positive.

Where the cut at k runs through a repeated eigenvalue, ``P`` is the projector onto the whole
eigenspace, so the part that is kept is random too (dense solver, and the eigenvalue 0 always; else,
for patches beyond its limit, the kept part is the one that the sparse solver found from its fixed start).
"""

from __future__ import annotations

import numpy as np

from lograb.observations.spectra import REPEAT_TOLERANCE
from lograb.types import Floats


def choose_basis(values: Floats, vectors: Floats, reference: Floats) -> Floats:
    """Choose the basis (b, q, r) of eigenspaces that a reference (b, q, r) singles out.

    Values (b, s), s >= r, ascend; vectors (b, q, s) are orthonormal. Column j of the basis lies in the eigenspace
    of values[:, j].
    """
    rank = reference.shape[2]
    space = np.zeros(values.shape, dtype=np.int64)
    np.cumsum(np.diff(values, axis=1) > REPEAT_TOLERANCE, axis=1, out=space[:, 1:])
    # Eigenvectors beyond the eigenspace that the cut runs through have no part in the result.
    needed = int((space <= space[:, rank - 1 : rank]).sum(axis=1).max())
    vectors = vectors[:, :, :needed]
    same = space[:, :needed, None] == space[:, None, :rank]
    return np.asarray(vectors @ orthonormalise((vectors.swapaxes(1, 2) @ reference) * same))


def rotate(vectors: Floats, reference: Floats) -> Floats:
    """Mix all columns by the random orthogonal matrix that a normal reference singles out.

    Of a complete patch that is the reference's own basis, whatever the eigenvectors: it is published as such, for
    to multiply by eigenvectors would leave their rounding errors.
    """
    if vectors.shape[1] == vectors.shape[2]:
        return orthonormalise(reference)
    return np.asarray(vectors @ orthonormalise(vectors.swapaxes(1, 2) @ reference))


def orthonormalise(columns: Floats) -> Floats:
    """Gram-Schmidt: the unique Q of QR with a positive diagonal of R, for each matrix of a stack."""
    q, r = np.linalg.qr(columns)
    sign = np.where(np.diagonal(r, axis1=1, axis2=2) < 0, -1.0, 1.0)
    return np.asarray(q * sign[:, None, :])


def fixed_reference(n_nodes: int, k: int) -> Floats:
    """Make the reference of gauge ``none``: positive, one row per node id, the same every time.

    Columns are drawn one after the other, so that those for a smaller k are the first of a larger's.
    """
    return np.random.default_rng(20260101).uniform(0.5, 1.5, size=(k, n_nodes)).T


GAUGES = {
    "sign": "random signs, and a random basis inside each repeated eigenvalue (default)",
    "rotation": "a random rotation of all columns: only the projector onto their span survives",
    "none": "one fixed convention for all patches: the best case for an eavesdropper",
}
