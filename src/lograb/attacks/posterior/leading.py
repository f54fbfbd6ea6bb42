"""What the columns with eigenvalue 0 show: degrees up to a factor, and components.

On a connected patch the first eigenvector is √(d_i / vol) with vol = Σ d, so the embedding gives degrees up to the
one number vol. A disconnected patch has as many columns with eigenvalue 0 as components. Its rows in those columns
are parallel inside a component and orthogonal across, with squared length d_i / vol of the component: they show
the components, isolated nodes included, and the degrees in each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lograb.attacks.posterior.batches import Batch
from lograb.attacks.posterior.evidence import attenuation
from lograb.attacks.posterior.isolated import LENGTH, ZERO
from lograb.types import Bools, Floats, Ints


@dataclass(frozen=True)
class Leading:
    """What the columns with eigenvalue 0 say about a batch.

    Attributes
    ----------
    entries : float array, shape (b, q)
        Estimates of √(d_i / vol).
    variance : float array, shape (b, q)
        Of the entries; infinite where the columns are not paired with eigenvalues.
    together : float array, shape (b, q, q), or None
        How surely two members lie in one component, 0 to 1; None where every patch is connected.
    hub : int64 array, shape (b,)
        Position of a member that is joined to all others; -1 where none is known.
    """

    entries: Floats
    variance: Floats
    together: Floats | None
    hub: Ints

    @property
    def hubs(self) -> tuple[Ints, Ints]:
        """Index of the known hubs in arrays of shape (b, q)."""
        known = np.flatnonzero(self.hub >= 0)
        return known, self.hub[known]

    @property
    def connected(self) -> Bools:
        """Patches with a single component, shape (b,)."""
        if self.together is None:
            return np.ones(len(self.entries), dtype=bool)
        return np.asarray((self.together == 1.0).all(axis=(1, 2)))

    @property
    def sizes(self) -> Floats:
        """Members of the component of each member, shape (b, q)."""
        if self.together is None:
            return np.full(self.entries.shape, float(self.entries.shape[1]))
        return np.asarray(self.together.sum(axis=2))

    def over_component(self, values: Floats) -> Floats:
        """Sum values (b, q) over the component of each member."""
        if self.together is None:
            return np.repeat(values.sum(axis=1, keepdims=True), values.shape[1], axis=1)
        return np.asarray(np.einsum("bij,bj->bi", self.together, values))

    def of(self, which: Ints) -> Leading:
        """Take some patches out."""
        together = None if self.together is None else self.together[which]
        return Leading(self.entries[which], self.variance[which], together, self.hub[which])

    @property
    def isolated(self) -> Bools:
        """Members without an edge in the patch, shape (b, q): d / vol is 1 there, and at most 1/2 elsewhere."""
        return np.asarray(self.entries**2 > LENGTH) & (self.together is not None)


def zero_columns(batch: Batch) -> Bools:
    """Columns with eigenvalue 0, shape (b, r)."""
    zero = batch.mu > 1.0 - ZERO
    zero[:, 0] = True
    return zero


def leading(batch: Batch, hub: Ints | None = None) -> Leading:
    """Read √(d_i / vol), and the components, off a batch; `hub` as in `Leading`."""
    b, q = len(batch.which), batch.size
    hub = np.full(b, -1, dtype=np.int64) if hub is None else hub
    if not batch.paired:
        return Leading(np.full((b, q), q**-0.5), np.full((b, q), np.inf), None, hub)
    scale = attenuation(batch)[:, None]
    first = batch.frame[:, :, 0]
    inside = (batch.frame**2).sum(axis=2)
    zero = zero_columns(batch)
    alike = (batch.frame**2 * zero[:, None, :]).sum(axis=2)  # in which any basis would do
    variance = batch.variance[:, None] * (np.maximum(1.0 - inside, 0.0) + 0.5 * np.maximum(inside - alike, 0.0))
    sign = np.where(first.sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    entries, together = first * sign * np.sqrt(scale), None
    n_zero = zero.sum(axis=1, keepdims=True)
    several = n_zero > 1
    if several.any():
        rows = batch.frame * (zero * np.sqrt(scale))[:, None, :]
        lengths = (rows**2).sum(axis=2) - variance * n_zero
        spread = np.sqrt(2.0 * n_zero * variance**2 + 4.0 * variance * np.maximum(lengths, 0.0))  # of a length
        lengths = np.maximum(lengths, 1e-3)
        entries = np.where(several, np.sqrt(lengths), entries)
        wide = spread**2 / (4.0 * np.maximum(lengths, spread) + 1e-12)
        # cos² of two rows is 1 inside a component and 0 across, but for what noise adds to it.
        products = (rows @ rows.swapaxes(1, 2)) ** 2
        noise, least = variance[:, :, None] * lengths[:, None, :], np.maximum(lengths, spread)
        both = least[:, :, None] * least[:, None, :]
        together = np.clip((products - noise - noise.swapaxes(1, 2)) / both, 0.0, 1.0)
        # Rows that drown in noise are short, and therefore in a large component: all in the same.
        drowned = 1.0 - batch.strength[:, None] * lengths**2 / (lengths**2 + spread**2)
        apart = (1.0 - drowned[:, :, None] * drowned[:, None, :]) * (1.0 - together)
        together = 1.0 - np.where(several[:, :, None], apart, 0.0)
        variance = np.where(several, np.maximum(variance, wide), variance)
        together[:, np.arange(q), np.arange(q)] = 1.0
    silent = (batch.strength == 0) | batch.broken  # the first column is not that of degrees
    entries[silent], variance[silent] = q**-0.5, 1.0
    return Leading(entries, variance, together, hub)
