"""How many eigenvectors are enough: the proxy ℓ*(ε) of the truncation corollary, and what is wrong with it.

ℓ*(ε) = min{k : λ_{k+1} <= ε} is meant for eigenvalues that decay with k. Laplacian eigenvalues ascend from
λ_1 = 0, so ℓ* is 0 for every graph and every ε. The residual exp(-t λ_{k+1}) it is said to control *falls*
as λ_{k+1} rises; `residual_rank` is the number of eigenvectors that makes it small.
"""

from __future__ import annotations

import numpy as np

from lograb.errors import LograbError
from lograb.types import Floats


def proxy_rank(values: Floats, epsilon: float) -> int | None:
    """Evaluate ℓ*(ε) by its definition on a list λ_1, λ_2, ...; None where no k satisfies it."""
    small = np.flatnonzero(np.asarray(values) <= epsilon)
    return int(small[0]) if len(small) else None


def polynomial_rank(scale: float, exponent: float, epsilon: float) -> int:
    """Evaluate ℓ*(ε) for λ_k = C k^(-α): ceil((C/ε)^(1/α)) - 1, never below 0."""
    _check(scale, exponent, epsilon)
    return max(0, int(np.ceil((scale / epsilon) ** (1 / exponent))) - 1)


def exponential_rank(scale: float, exponent: float, epsilon: float) -> int:
    """Evaluate ℓ*(ε) for λ_k = C e^(-αk): ceil(ln(C/ε) / α) - 1, never below 0 (printed without that)."""
    _check(scale, exponent, epsilon)
    return max(0, int(np.ceil(np.log(scale / epsilon) / exponent)) - 1)


def residual_rank(values: Floats, t: float, epsilon: float) -> int:
    """Find the least k with exp(-t λ_{k+1}) <= ε for ascending eigenvalues, shape (q,).

    q itself where only the complete spectrum does it, as is common: λ <= 2 bounds the residual from below.
    """
    enough = np.flatnonzero(np.exp(-t * np.asarray(values)) <= epsilon)
    return int(enough[0]) if len(enough) else len(values)


def _check(scale: float, exponent: float, epsilon: float) -> None:
    if min(scale, exponent, epsilon) <= 0:
        raise LograbError(f"scale, exponent and epsilon must be positive, got {scale}, {exponent}, {epsilon}")
