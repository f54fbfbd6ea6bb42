"""Withheld eigenvalues, found in the numbers: a row with few neighbours tells all of them.

With x_j = u_j / √d_j the eigen-equation of member i reads Σ_{j in N(i)} x_ja = d_i μ_a x_ia in every column a. So
a set of d_i members is a guess of all μ_a at once. For the true neighbours they descend from 1 to -1, as
eigenvalues do; for a wrong set of m columns by chance only (1 in m! 2^m). And different rows must agree to the
last digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lograb.attacks.posterior.peeling import choices
from lograb.attacks.posterior.row_degrees import scales, whole_degrees
from lograb.attacks.posterior.rows import ALIKE, ALIVE, LEAST_ERROR
from lograb.ragged import ranges
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
MOST_DOUBTFUL = 0.5
"""Share of the members whose degrees may be in doubt."""
VALUES_TO = 1e-4
"""Error of an eigenvalue that is found."""


@dataclass(frozen=True)
class Guesses:
    """What sets of neighbours of one row make of μ, with errors, (m, columns); and what it reads."""

    mu: Floats
    error: Floats
    reads: Bools

    def like(self, other: Guesses) -> tuple[Ints, Ints]:
        """List which of them agree with which others in all columns that both rows read, two at least."""
        columns = np.flatnonzero(self.reads & other.reads)
        if len(columns) < min(2, len(self.reads)):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        first, order = columns[0], np.argsort(other.mu[:, columns[0]])
        room = SIGMAS * (self.error[:, first] + other.error[:, first].max(initial=0.0))
        near = other.mu[order, first]
        start = np.searchsorted(near, self.mu[:, first] - room)
        count = np.searchsorted(near, self.mu[:, first] + room, side="right") - start
        one, two = np.repeat(np.arange(len(count)), count), order[ranges(start, count)]
        for column in columns:
            off = np.abs(self.mu[one, column] - other.mu[two, column])
            agree = off <= SIGMAS * (self.error[one, column] + other.error[two, column])
            one, two = one[agree], two[agree]
        return one, two


class Found(NamedTuple):
    """Columns whose eigenvalues were found, these values, and the largest of their standard deviations."""

    columns: Ints
    values: Floats
    error: float


def find_values(vectors: Floats, error: Floats) -> Found | None:
    """Find the eigenvalues of a truncated patch in its eigenvectors, which must be nearly exact.

    Parameters
    ----------
    vectors : float array, shape (q, k)
        Eigenvectors of the normalized Laplacian, in columns, by ascending eigenvalue.
    error : float array, shape (q, k)
        Standard deviation of each entry's error.

    Returns
    -------
    Found, or None where nothing but zeros can be told.
    """
    q, k = vectors.shape
    error = np.maximum(error, LEAST_ERROR / np.sqrt(q))
    kernel = _kernel(vectors, error)
    if kernel is None:
        return None
    zeros, component, degrees, doubt = kernel
    mu, spread = np.ones(k), np.full(k, np.inf)
    spread[:zeros] = 0.0
    for number in range(zeros):
        inside = np.flatnonzero(component == number)
        tells = np.flatnonzero((np.abs(vectors[inside]) > ALIVE * error[inside]).any(axis=0) & (spread > 0))
        if len(inside) < 2 or not len(tells):
            continue
        block, root = np.ix_(inside, tells), np.sqrt(degrees[inside])[:, None]
        x, off = vectors[block] / root, (doubt[inside] / degrees[inside])[:, None]
        found = _agreed(x, np.hypot(error[block] / root, 0.5 * x * off), degrees[inside], doubt[inside] == 0)
        if found is not None:
            better = found[1] < spread[tells]
            mu[tells[better]], spread[tells[better]] = found[0][better], found[1][better]
    known = np.flatnonzero(spread < VALUES_TO)
    return Found(known, 1.0 - mu[known], float(spread[known].max())) if len(known) > zeros else None


def _kernel(vectors: Floats, error: Floats) -> tuple[int, Ints, Ints, Floats] | None:
    """Count the columns with eigenvalue 0; number the components, as many, and give degrees with their doubt."""
    for zeros in range(1, vectors.shape[1]):
        blur = error[:, :zeros].max(axis=1)
        if (np.linalg.norm(vectors[:, :zeros], axis=1) < ALIKE * blur).any():
            continue  # some component has its column farther on
        component, degrees, doubt = whole_degrees(vectors[:, :zeros], blur)
        if component.max() + 1 == zeros and (degrees >= 0).all() and (doubt > 0).mean() < MOST_DOUBTFUL:
            return zeros, component, degrees, doubt
    return None


def _agreed(x: Floats, error: Floats, degrees: Ints, sure: Bools) -> tuple[Floats, Floats] | None:
    """Find the μ of a component on which rows agree, and their errors, at the smallest scale of degrees."""
    for scale in scales(degrees) if sure.all() else [1]:
        if scale * degrees.min() > max(AMONG):
            return None
        found = _at_scale(x, error, scale * degrees, sure)
        if found is not None:
            return found
    return None


def _at_scale(x: Floats, error: Floats, degrees: Ints, sure: Bools) -> tuple[Floats, Floats] | None:
    """Ask rows, those with the fewest neighbours first, until enough agree in every column."""
    asked: list[Guesses] = []
    votes: list[Ints] = []
    for row in _different(x, error, degrees, sure):
        new = _guesses(x, error, row, int(degrees[row]))
        if not 0 < len(new.mu) <= GUESSES:
            continue
        found = np.ones(len(new.mu), dtype=np.int64)
        for at, old in enumerate(asked):
            one, two = new.like(old)
            found[np.unique(one)] += 1
            votes[at][np.unique(two)] += 1
        asked.append(new)
        votes.append(found)
        if found.max() >= AGREE and np.isfinite((mean := _mean(asked, votes))[1]).all():
            return mean
    needed = min(AGREE, max(2, len(asked) - 1))
    return _mean(asked, votes) if votes and max(int(vote.max()) for vote in votes) >= needed else None


def _different(x: Floats, error: Floats, degrees: Ints, sure: Bools) -> list[int]:
    """Choose rows with few neighbours that are not those of twins."""
    rows: list[int] = []
    for row in np.argsort(degrees, kind="stable").tolist():
        if degrees[row] > max(AMONG) or len(rows) == ROWS:
            break
        if not sure[row]:
            continue
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
    found = Guesses(np.zeros((int(fits.sum()), x.shape[1])), np.full((int(fits.sum()), x.shape[1]), np.inf), clear)
    found.mu[:, clear], found.error[:, clear] = mu[fits], spread[fits]
    return found


def _mean(asked: list[Guesses], votes: list[Ints]) -> tuple[Floats, Floats]:
    """Average the guess with the most votes and those that agree with it, the nearest of each row."""
    best = int(np.argmax([vote.max() for vote in votes]))
    at, source = votes[best].argmax(), asked[best]
    chosen = Guesses(source.mu[[at]], source.error[[at]], source.reads)
    total, weight = np.zeros(len(chosen.reads)), np.zeros(len(chosen.reads))
    for guesses in asked:
        like = chosen.like(guesses)[1]
        if len(like):
            both = chosen.reads & guesses.reads
            one = like[np.abs((guesses.mu[like] - chosen.mu)[:, both]).sum(axis=1).argmin()]
            total += guesses.mu[one] / guesses.error[one] ** 2
            weight += 1.0 / guesses.error[one] ** 2
    with np.errstate(divide="ignore"):
        return total / np.maximum(weight, 1e-300), 1.0 / np.sqrt(weight)
