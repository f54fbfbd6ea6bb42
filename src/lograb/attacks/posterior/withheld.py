"""Withheld eigenvalues, found in the numbers: a row with few neighbours tells all of them.

With x_j = u_j / √d_j the eigen-equation of member i reads Σ_{j in N(i)} x_ja = d_i μ_a x_ia in every column a. So a
set of d_i members is a guess of all μ_a at once. For the true neighbours they descend from 1 to -1, as eigenvalues
do; for a wrong set of m columns by chance only (1 in m! 2^m). And different rows must agree to the last digit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lograb.attacks.posterior.peeling import choices
from lograb.attacks.posterior.row_degrees import scales, whole_degrees
from lograb.attacks.posterior.rows import ALIVE, LEAST_ERROR
from lograb.types import Bools, Floats, Ints

AMONG = {1: 100_000, 2: 300, 3: 60, 4: 36}
"""Among how many of the nearest members sets of so many neighbours are looked for."""
ROWS, AGREE = 40, 6
"""Rows that are asked at most, and how many must agree at least."""
GUESSES = 3000
"""Guesses from one row beyond which it says too little."""
CLEAR = 1e3
"""Errors that an entry must exceed for its column to be read in that row."""
SIGMAS = 6.0
"""Errors by which guesses may differ."""


@dataclass(frozen=True)
class Guesses:
    """What sets of neighbours make of μ, and the errors of that, each shape (m, columns); infinite where unread."""

    mu: Floats
    error: Floats

    def like(self, other: Guesses) -> Bools:
        """Tell which of them agree with which others, in two columns at least, shape (m, others)."""
        agree: Bools = np.ones((len(self.mu), len(other.mu)), dtype=bool)
        common = np.zeros(agree.shape, dtype=np.int64)
        for mu, error, mu2, error2 in zip(self.mu.T, self.error.T, other.mu.T, other.error.T):
            read = np.isfinite(error)[:, None] & np.isfinite(error2)
            common += read
            agree &= ~read | (np.abs(mu[:, None] - mu2) <= SIGMAS * (error[:, None] + error2))
        return agree & (common >= min(2, self.mu.shape[1]))


def find_values(vectors: Floats, error: Floats) -> tuple[Floats, float] | None:
    """Find the eigenvalues of a truncated patch in its eigenvectors, which must be nearly exact.

    Parameters
    ----------
    vectors : float array, shape (q, k)
        Eigenvectors of the normalized Laplacian, in columns, by ascending eigenvalue.
    error : float array, shape (q, k)
        Standard deviation of each entry's error.

    Returns
    -------
    values : float array, shape (k,)
    error : float
        The largest of their standard deviations.
    None where some cannot be told.
    """
    q, k = vectors.shape
    error = np.maximum(error, LEAST_ERROR / np.sqrt(q))
    kernel = _kernel(vectors, error)
    if kernel is None:
        return None
    zeros, component, degrees = kernel
    mu, spread = np.ones(k), np.full(k, np.inf)
    spread[:zeros] = 0.0
    for number in range(zeros):
        inside = np.flatnonzero(component == number)
        tells = np.flatnonzero((np.abs(vectors[inside]) > ALIVE * error[inside]).any(axis=0) & (spread > 0))
        if len(inside) < 2 or not len(tells):
            continue
        block = np.ix_(inside, tells)
        root = np.sqrt(degrees[inside])[:, None]
        found = _agreed(vectors[block] / root, error[block] / root, degrees[inside])
        if found is not None:
            better = found[1] < spread[tells]
            mu[tells[better]], spread[tells[better]] = found[0][better], found[1][better]
    return (1.0 - mu, float(spread.max())) if np.isfinite(spread).all() else None


def _kernel(vectors: Floats, error: Floats) -> tuple[int, Ints, Ints] | None:
    """Count the columns with eigenvalue 0: there are as many as components, whose degrees are whole numbers."""
    for zeros in range(1, vectors.shape[1]):
        component, degrees, doubt = whole_degrees(vectors[:, :zeros], error[:, :zeros].mean(axis=1))
        if component.max() + 1 == zeros and (degrees >= 0).all() and not doubt.any():
            return zeros, component, degrees
    return None


def _agreed(x: Floats, error: Floats, degrees: Ints) -> tuple[Floats, Floats] | None:
    """Find the μ of a component on which rows agree, and their errors, at the smallest scale of degrees."""
    for scale in scales(degrees):
        if scale * degrees.min() > max(AMONG):
            return None
        found = _at_scale(x, error, scale * degrees)
        if found is not None:
            return found
    return None


def _at_scale(x: Floats, error: Floats, degrees: Ints) -> tuple[Floats, Floats] | None:
    """Ask rows, those with the fewest neighbours first, until enough agree."""
    asked: list[Guesses] = []
    votes: list[Ints] = []
    for row in _different(x, error, degrees):
        new = _guesses(x, error, row, int(degrees[row]))
        if not 0 < len(new.mu) <= GUESSES:
            continue
        found = np.ones(len(new.mu), dtype=np.int64)
        for at, old in enumerate(asked):
            alike = new.like(old)
            found += alike.any(axis=1)
            votes[at] = votes[at] + alike.any(axis=0)
        asked.append(new)
        votes.append(found)
        if found.max() >= AGREE:
            break
    needed = min(AGREE, max(2, len(asked) - 1))
    if not votes or max(int(vote.max()) for vote in votes) < needed:
        return None
    best = int(np.argmax([vote.max() for vote in votes]))
    chosen = Guesses(asked[best].mu[[votes[best].argmax()]], asked[best].error[[votes[best].argmax()]])
    return _mean(chosen, asked)


def _different(x: Floats, error: Floats, degrees: Ints) -> list[int]:
    """Choose rows with few neighbours that are not those of twins."""
    rows: list[int] = []
    for row in np.argsort(degrees, kind="stable").tolist():
        if degrees[row] > max(AMONG) or len(rows) == ROWS:
            break
        gaps = np.abs(x[rows] - x[row]) > SIGMAS * (error[rows] + error[row])
        if gaps.any(axis=1).all():
            rows.append(row)
    return rows


def _guesses(x: Floats, error: Floats, row: int, degree: int) -> Guesses:
    """List what sets of neighbours of a row make of μ, where that descends from 1 to -1."""
    clear = np.abs(x[row]) > CLEAR * error[row]
    away = (((x - x[row]) ** 2) / (1.0 + np.arange(x.shape[1]))).sum(axis=1)
    away[row] = np.inf
    near = np.argsort(away)[: min(AMONG[degree], len(x) - 1)]
    sets = near[choices(len(near), degree)]
    sums = x[sets][:, :, clear].sum(axis=1)
    whole = degree * x[row, clear]
    spread = (np.sqrt((error[sets][:, :, clear] ** 2).sum(axis=1)) + degree * error[row, clear]) / np.abs(whole)
    mu, room = sums / whole, SIGMAS * spread
    fits = (np.abs(mu) < 1.0 + room).all(axis=1)
    fits &= (np.diff(mu, axis=1) <= room[:, 1:] + room[:, :-1]).all(axis=1)
    if clear.sum() < min(2, x.shape[1]):
        fits[:] = False
    count = int(fits.sum())
    found = Guesses(np.zeros((count, x.shape[1])), np.full((count, x.shape[1]), np.inf))
    found.mu[:, clear], found.error[:, clear] = mu[fits], spread[fits]
    return found


def _mean(chosen: Guesses, asked: list[Guesses]) -> tuple[Floats, Floats]:
    """Average the guesses that agree with one, the nearest of each row, by their errors."""
    total, weight = np.zeros(chosen.mu.shape[1]), np.zeros(chosen.mu.shape[1])
    for guesses in asked:
        like = np.flatnonzero(chosen.like(guesses)[0])
        if len(like):
            one = like[np.abs(guesses.mu[like] - chosen.mu).sum(axis=1).argmin()]
            total += guesses.mu[one] / guesses.error[one] ** 2
            weight += 1.0 / guesses.error[one] ** 2
    return total / np.maximum(weight, 1e-300), 1.0 / np.sqrt(np.maximum(weight, 1e-300))
