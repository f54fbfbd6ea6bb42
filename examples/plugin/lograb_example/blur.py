"""A defence, apart: what adds noise tells how much, so that attackers know it.

It is a heuristic, as defences are that say nothing else: it clips nothing, so the noise guarantees nothing.
"""

from dataclasses import replace

import numpy as np

from lograb import Observations
from lograb.defences import Defence


class Blur(Defence):
    """Add noise to the eigenvectors."""

    name, touches = "blur", ("eigenvectors",)
    does, exposes = "adds noise to the eigenvectors", "eigenvalues, membership"
    by: float = 0.1

    def apply(self, seen: Observations, rng, releases: int) -> Observations:
        """Add noise; over several releases it averages out."""
        noise = self.by / np.sqrt(releases) * rng.standard_normal(len(seen.vectors))
        return replace(seen, vectors=seen.vectors + noise)

    def vector_noise(self, sizes, ranks):
        """The same for every patch."""
        return np.full(len(ranks), self.by)
