"""What noise does to an eavesdropper's belief in an edge (noise as a defence).

Observe x = a w + noise, where a is 1 for an edge and 0 otherwise, w the value an edge would have. As the
noise grows the posterior tends to the *prior*, which is 0.5 only for an eavesdropper who thinks that half of
all pairs are edges. In sparse graphs it tends to the density: noise makes edges unlikely, not uncertain.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from lograb.errors import LograbError
from lograb.types import Floats


def edge_posterior(
    observed: npt.ArrayLike, edge_value: npt.ArrayLike, sigma: float, prior: float = 0.5
) -> Floats:
    """Compute P(edge | observed value) under Gaussian noise, elementwise.

    `edge_value` is expected where there is an edge, 0 where there is none; an infinite sigma gives the prior.
    """
    if not sigma > 0 or not 0 < prior < 1:
        raise LograbError(f"need sigma > 0 and a prior between 0 and 1, got {sigma} and {prior}")
    x, w = np.asarray(observed, dtype=float), np.asarray(edge_value, dtype=float)
    return np.asarray(expit(logit(prior) + (w * x - w * w / 2) / sigma**2))
