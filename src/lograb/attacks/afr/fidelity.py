"""Stage 1b: how far a patch can be trusted, and which patches are core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lograb.attacks.afr.settings import AfrSettings
from lograb.types import Bools, Floats, Observations


@dataclass(frozen=True, eq=False)
class Fidelity:
    """Fidelity of every patch: gap, truncation residual, ratio, score; each of shape (n_patches,)."""

    gap: Floats
    residual: Floats
    ratio: Floats
    score: Floats
    core: Bools


def fidelity(seen: Observations, entropy: Floats, settings: AfrSettings) -> Fidelity:
    """Score every patch: s = α ρ + (1 - α) entropy, with ρ = δ / (δ + η).

    A complete spectrum has nothing beyond it: δ = ∞, η = 0, ρ = 1.
    """
    assert seen.values is not None
    assert seen.next_values is not None
    complete = seen.complete
    last = np.zeros(seen.n_patches)
    kept = seen.ranks > 0
    last[kept] = seen.values[seen.value_ptr[1:][kept] - 1]
    following = np.where(complete, 2.0, seen.next_values)
    gap = np.where(complete, np.inf, following - last)
    residual = np.where(complete, 0.0, np.exp(-settings.t * following))
    finite = np.where(complete, 1.0, gap)
    ratio = np.where(complete, 1.0, finite / (finite + residual))
    score = settings.alpha * ratio + (1 - settings.alpha) * entropy
    core = (score >= settings.s_min) & (gap >= settings.delta_min) & (seen.sizes <= settings.max_size)
    if settings.q_max is not None:
        core &= seen.sizes <= settings.q_max
    return Fidelity(gap, residual, ratio, score, core)
