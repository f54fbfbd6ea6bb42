"""Exact recovery that needs no truth: complete spectra, and estimates checked against what was seen.

A complete noiseless spectrum gives the Laplacian itself, L = U Λ Uᵀ, and its off-diagonal entries are 0 or
-1 / √(d_i d_j), at most -1 / (q - 1): cutting half way is exact as long as no entry is off by 1 / (2 (q - 1)).
Orthonormality of U shows that there is no noise. It cannot show that the columns belong to their
eigenvalues (a rotation of all columns keeps it); recomputing the Laplacian of the estimate does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lograb.errors import LograbError
from lograb.theory.certified_heat import orthonormal
from lograb.theory.heat import normalized_laplacian
from lograb.types import Bools, Floats

TOLERANCE = 1e-6
"""Entries of Laplacians count as equal below this; those of different graphs differ by 1 / (q - 1)."""


def complete_adjacency(vectors: Floats, values: Floats) -> tuple[Bools, Bools]:
    """Read patches off their complete spectra, and tell where that is proved to be exact.

    Parameters
    ----------
    vectors : float array, shape (..., q, q)
    values : float array, shape (..., q)

    Returns
    -------
    adjacency : bool array, shape (..., q, q)
    certain : bool array, shape (...)
        True where U is orthonormal and U Λ Uᵀ is the Laplacian of the estimate. Since a normalized Laplacian
        determines its graph, the estimate is then the truth, if (U, Λ) is what the protocol promises: the
        eigenpairs of the patch up to errors far below 1 / (q - 1), columns in order.
    """
    q = vectors.shape[-1]
    if vectors.shape[-2] != q:
        raise LograbError(f"a complete spectrum has as many vectors as nodes, got {q} for {vectors.shape[-2]}")
    laplacian = (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    cut = 0.5 / max(q - 1, 1)
    adjacency = (-laplacian > cut) & ~np.eye(q, dtype=bool)
    adjacency = adjacency & np.swapaxes(adjacency, -1, -2)
    error = np.abs(normalized_laplacian(adjacency) - laplacian).max(axis=(-1, -2), initial=0.0)
    return adjacency, np.asarray(orthonormal(vectors) & (error <= TOLERANCE))


@dataclass(frozen=True)
class SpectrumCheck:
    """An estimated patch against the spectrum that was observed.

    Equal eigenvalues and observed columns that are eigenvectors of the estimate say that the kept subspaces agree;
    no basis is compared.
    """

    value_error: float  # largest difference of the bottom eigenvalues, λ_{k+1} included where it was shown
    vector_error: float  # largest entry of L̂ U - U Λ
    complete: bool  # whether the whole spectrum was observed
    noiseless: bool  # whether the observed columns are orthonormal

    @property
    def consistent(self) -> bool:
        """Whether the estimate would have produced the observation. By itself no proof: see `proves_equality`."""
        return self.noiseless and max(self.value_error, self.vector_error) <= TOLERANCE

    @property
    def proves_equality(self) -> bool:
        """Whether the estimate must be the truth.

        With a complete noiseless spectrum consistency means L̂ = U Λ Uᵀ = L, and L determines the edges. With
        a truncated one different graphs may agree in all that was shown: see `truncated_twins`.
        """
        return self.consistent and self.complete


def check_spectrum(
    adjacency: Bools, vectors: Floats, values: Floats, next_value: float = np.nan
) -> SpectrumCheck:
    """Recompute the spectrum of an estimated patch (q, q) and compare it with the observed one.

    `next_value` is λ_{k+1}, or NaN where it does not exist or was not shown.
    """
    q, k = vectors.shape
    laplacian = normalized_laplacian(adjacency)
    seen = values if np.isnan(next_value) else np.append(values, next_value)
    if len(seen) > q:
        raise LograbError(f"a patch of {q} nodes has no {len(seen)} eigenvalues")
    value_error = np.abs(np.linalg.eigvalsh(laplacian)[: len(seen)] - seen).max(initial=0.0)
    vector_error = np.abs(laplacian @ vectors - vectors * values).max(initial=0.0)
    return SpectrumCheck(float(value_error), float(vector_error), k == q, bool(orthonormal(vectors)))


def truncated_twins() -> tuple[Bools, Bools]:
    """Build two connected graphs on five nodes with the same bottom three eigenvalues and bottom two vectors.

    λ_2 < λ_3, so the kept subspace is well defined: at k = 2 no check of an observation tells them apart.
    """
    pairs = (
        [(0, 1), (0, 3), (0, 4), (1, 2), (1, 4), (2, 3)],
        [(0, 1), (0, 2), (0, 4), (1, 3), (1, 4), (2, 3)],
    )
    twins = np.zeros((2, 5, 5), dtype=bool)
    for twin, edges in zip(twins, pairs):
        rows, cols = np.array(edges).T
        twin[rows, cols] = twin[cols, rows] = True
    return twins[0], twins[1]
