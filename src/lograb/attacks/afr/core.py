"""Stage 1b: how far a patch can be trusted, and which patches are core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lograb.attacks.afr.settings import AfrSettings
from lograb.theory.fidelity import fidelity as mix
from lograb.theory.fidelity import gap_to_truncation
from lograb.theory.heat import truncation_residual
from lograb.types import Bools, Floats, Observations


@dataclass(frozen=True, eq=False)
class Fidelity:
    """Fidelity of every patch: gap, truncation residual, ratio, score; each of shape (n_patches,)."""

    gap: Floats
    residual: Floats
    ratio: Floats
    score: Floats
    core: Bools

    def why(self, settings: AfrSettings) -> dict[str, Any]:
        """Count the patches that fail each demand on a core patch; in words where none meets them all."""
        fails = {f"fidelity below {settings.s_min}": self.score < settings.s_min,
                 f"gap below {settings.delta_min}": self.gap < settings.delta_min}  # fmt: skip
        told = {what: int(which.sum()) for what, which in fails.items()}
        large = int((~self.core & ~np.logical_or(*fails.values())).sum())
        counts = told | ({"too many members": large} if large else {})
        out: dict[str, Any] = {"not_core": counts}
        if not self.core.any():
            reasons = ", ".join(f"{count} with {what}" for what, count in counts.items())
            out["nothing_claimed"] = f"none of {len(self.core)} patches is core: {reasons}"
        return out


def fidelity(seen: Observations, entropy: Floats, settings: AfrSettings) -> Fidelity:
    """Score every patch: s = α ρ + (1 - α) entropy, with ρ = δ / (δ + η).

    A complete spectrum has nothing beyond it: δ = ∞, η = 0, ρ = 1.
    """
    assert seen.values is not None
    assert seen.next_values is not None
    # The last kept eigenvalue, and the first one left out.
    kept, beyond = np.zeros(seen.n_patches), np.where(seen.complete, np.inf, seen.next_values)
    ends, some = seen.value_ptr[1:], seen.ranks > 0
    kept[some] = seen.values[ends[some] - 1]
    if settings.drop_last == "everywhere":
        dropped = seen.complete & (seen.ranks > 1)
        kept[dropped], beyond[dropped] = seen.values[ends[dropped] - 2], kept[dropped]
    gap, residual = np.maximum(beyond - kept, 0.0), truncation_residual(beyond, settings.t)
    ratio = gap_to_truncation(gap, residual)
    score = mix(ratio, entropy, settings.alpha)
    core = (score >= settings.s_min) & (gap >= settings.delta_min) & (seen.sizes <= settings.max_size)
    if settings.q_max is not None:
        core &= seen.sizes <= settings.q_max
    return Fidelity(gap, residual, ratio, score, core)
