"""Withheld eigenvalues, found in the numbers: a row with few neighbours tells all of them.

With x_j = u_j / √d_j the eigen-equation of member i reads Σ_{j in N(i)} x_ja = d_i μ_a x_ia in every column a. So
a set of d_i members is a guess of all μ_a at once. For the true neighbours they descend from 1 to -1, as
eigenvalues do; for a wrong set of m columns by chance only (1 in m! 2^m). And different rows must agree to the
last digit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from lograb.attacks.posterior.peeling import choices
from lograb.attacks.posterior.precision import entry_error, low_noise
from lograb.attacks.posterior.row_degrees import kernel_of, points, scales, telling
from lograb.parallel import ordered_map
from lograb.ragged import ranges
from lograb.types import Bools, Floats, Ints, Observations

AMONG = {1: 100_000, 2: 300, 3: 60, 4: 36}
"""Among how many of the nearest members sets of so many neighbours are looked for."""
ROWS, ALONE, AGREE = 40, 16, 6
"""Rows that are asked at most, and without agreement; and how many must agree, but where fewer can be asked."""
LEAST_ROWS, BY_CHANCE = 4, 1e-3
"""The fewest rows that must agree, and guesses that may agree with another by chance."""
GUESSES = 3000
"""Guesses from one row beyond which it says too little."""
FIRST = 4
"""Columns that are looked at first."""
CLEAR = 1e3
"""Errors that an entry must exceed for its column to be read in that row."""
SIGMAS = 6.0
"""Errors by which guesses may differ."""
MOST_PATCHES = 500
"""Patches whose eigenvalues are looked for, smallest first: bounds the time, to a minute or two."""
VALUES_TO = 1e-4
"""Error of an eigenvalue that is found."""


@dataclass(frozen=True)
class Guesses:
    """What sets of neighbours of one row make of μ, with errors, (m, columns); which columns the row reads.

    `votes` (m,) are the rows that have a guess like it, this one included.
    """

    mu: Floats
    error: Floats
    reads: Bools
    votes: Ints

    def like(self, other: Guesses) -> tuple[Ints, Ints]:
        """List which of them agree with which others in all columns that both rows read, if chance would not."""
        columns = np.flatnonzero(self.reads & other.reads)
        errors = [one.error[:, columns].max(axis=0, initial=0.0) for one in (self, other)]
        rooms = SIGMAS * (errors[0] + errors[1])
        if len(other.mu) * np.prod(np.minimum(rooms, 1.0)) > BY_CHANCE:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        columns, rooms = columns[np.argsort(rooms)], np.sort(rooms)
        order = np.argsort(other.mu[:, columns[0]])
        near = other.mu[order, columns[0]]
        start = np.searchsorted(near, self.mu[:, columns[0]] - rooms[0])
        count = np.searchsorted(near, self.mu[:, columns[0]] + rooms[0], side="right") - start
        one, two = np.repeat(np.arange(len(count)), count), order[ranges(start, count)]
        for column in columns if len(one) else ():
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
    kernel = kernel_of(vectors, error)
    if kernel is None:
        return None
    zeros, component, degrees, doubt = kernel
    mu, spread = np.ones(vectors.shape[1]), np.full(vectors.shape[1], np.inf)
    spread[:zeros] = 0.0
    for number in range(zeros):
        inside = np.flatnonzero(component == number)
        tells = np.flatnonzero(telling(vectors[inside], error[inside]) & (spread > 0))
        if len(inside) < 2 or not len(tells):
            continue
        block = np.ix_(inside, tells)
        x, x_error = points(vectors[block], error[block], degrees[inside], doubt[inside])
        found = _agreed(x, x_error, degrees[inside], doubt[inside] == 0)
        if found is not None:
            better = found[1] < spread[tells]
            mu[tells[better]], spread[tells[better]] = found[0][better], found[1][better]
    known = np.flatnonzero(spread < VALUES_TO)
    return Found(known, 1.0 - mu[known], float(spread[known].max())) if len(known) > zeros else None


def fill_in(seen: Observations, variance: Floats, blur: Floats) -> tuple[Observations, Floats, dict[int, Found]]:
    """Find the eigenvalues of truncated patches that follow from their eigenvectors.

    Parameters
    ----------
    variance : float array, shape (n_patches,)
        σ² of the embeddings.
    blur : float array, shape (n_patches,)
        Standard deviation of the eigenvalues' errors; infinite where they are withheld.

    Returns
    -------
    seen, blur
        With the eigenvalues of exact patches that were found in all columns.
    found : dict
        Of all patches, what was found.
    """
    which = np.flatnonzero(low_noise(seen, variance) & (blur > VALUES_TO))
    which = which[np.argsort(seen.sizes[which], kind="stable")][:MOST_PATCHES]

    def one(patch: int) -> Found | None:
        block = seen.block(patch)
        error = entry_error(block, variance[patch])
        return None if error is None else find_values(block, error)

    told = zip(which.tolist(), ordered_map(one, which.tolist()))
    found = {patch: about for patch, about in told if about is not None}
    values = np.zeros(seen.value_ptr[-1]) if seen.values is None else seen.values.copy()
    blur = blur.copy()
    for patch, about in found.items():
        if variance[patch] == 0 and len(about.columns) == seen.ranks[patch]:
            values[seen.value_ptr[patch] : seen.value_ptr[patch + 1]] = about.values
            blur[patch] = about.error
    return (replace(seen, values=values) if np.isfinite(blur).any() else seen), blur, found


def _agreed(x: Floats, error: Floats, degrees: Ints, sure: Bools) -> tuple[Floats, Floats] | None:
    """Find the μ of a component on which rows agree, and their errors, at the smallest scale of degrees.

    None where equal degrees leave open which scale it is, or rows agree on several answers.
    """
    found: list[Guesses | None] = []
    for scale in scales(degrees) if sure.all() else [1]:
        if scale * degrees.min() > max(AMONG) or (found and degrees.max() > degrees.min()):
            break
        mean, several = _at_scale(x, error, scale * degrees, sure)
        found += [mean] if several or mean is not None else []
    return None if len(found) != 1 or found[0] is None else (found[0].mu[0], found[0].error[0])


def _at_scale(x: Floats, error: Floats, degrees: Ints, sure: Bools) -> tuple[Guesses | None, bool]:
    """Ask rows, those with the fewest neighbours first: until enough agree, then for the columns still missing.

    Gives on what they agree, and whether on several answers.
    """
    asked: list[Guesses] = []
    clear = np.abs(x) > CLEAR * error
    mean, several = None, False
    for row in _different(x, error, degrees, sure):
        if mean is not None and not (clear[row] & ~mean.reads).any():
            continue
        new = _guesses(x, error, row, int(degrees[row]), clear[row])
        if not 0 < len(new.mu) <= GUESSES:
            continue
        if mean is None:
            for old in asked:
                one, two = new.like(old)
                new.votes[np.unique(one)] += 1
                old.votes[np.unique(two)] += 1
            asked.append(new)
            if new.votes.max() >= AGREE:
                mean, several = _mean(asked)
        elif len(like := mean.like(new)[1]):
            mean = _joined(mean, new, like)
        if len(asked) == ALONE if mean is None else mean.reads.all():
            break
    most = max((guesses.votes.max() for guesses in asked), default=0)
    if mean is None and LEAST_ROWS <= most >= len(asked) - 1:
        mean, several = _mean(asked)
    return mean, several


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


def _guesses(x: Floats, error: Floats, row: int, degree: int, clear: Bools) -> Guesses:
    """List what sets of neighbours of a row make of μ in clear columns, where that descends from 1 to -1."""
    columns = np.flatnonzero(clear)
    away = (((x - x[row]) ** 2) / (1.0 + np.arange(x.shape[1]))).sum(axis=1)
    away[row] = np.inf
    near = np.argsort(away)[: min(AMONG[degree], len(x) - 1)]
    sets = near[choices(len(near), degree)] if len(columns) else near[:0, None]
    for few in (columns[:FIRST], columns):  # most are ruled out by a few columns
        whole = degree * x[row, few]
        spread = np.sqrt(sum(error[:, few][one] ** 2 for one in sets.T)) + degree * error[row, few]
        mu, spread = sum(x[:, few][one] for one in sets.T) / whole, spread / np.abs(whole)
        room = SIGMAS * spread
        fits = (np.abs(mu) < 1.0 + room).all(axis=1) & (mu < 1.0 - room).any(axis=1)
        fits &= (np.diff(mu, axis=1) <= room[:, 1:] + room[:, :-1]).all(axis=1)
        sets, mu, spread = sets[fits], mu[fits], spread[fits]
    shape = len(sets), x.shape[1]
    found = Guesses(np.zeros(shape), np.full(shape, np.inf), clear, np.ones(len(sets), dtype=np.int64))
    found.mu[:, clear], found.error[:, clear] = mu, spread
    return found


def _mean(asked: list[Guesses]) -> tuple[Guesses | None, bool]:
    """Average the guess with the most votes and those that agree with it; None where rows agree on others too.

    In symmetric graphs, or where the rows asked are alike, they do.
    """
    best = max(asked, key=lambda guesses: int(guesses.votes.max()))
    at = [int(best.votes.argmax())]
    mean = Guesses(best.mu[at], best.error[at], best.reads, best.votes[at])
    for guesses in asked:
        like = mean.like(guesses)[1]
        rivals = 2 * guesses.votes > mean.votes
        rivals[like] = False
        if rivals.any() and (mean.reads & guesses.reads).any():
            return None, True
        if len(like) and guesses is not best:
            mean = _joined(mean, guesses, like)
    return mean, False


def _joined(mean: Guesses, guesses: Guesses, like: Ints) -> Guesses:
    """Average a guess and the nearest of some others, by their errors."""
    both = mean.reads & guesses.reads
    one = like[np.abs(guesses.mu[like] - mean.mu)[:, both].sum(axis=1).argmin()]
    weights = 1.0 / mean.error**2, 1.0 / guesses.error[[one]] ** 2
    total = np.maximum(weights[0] + weights[1], 1e-300)
    mu = (weights[0] * mean.mu + weights[1] * guesses.mu[one]) / total
    return Guesses(mu, 1.0 / np.sqrt(total), mean.reads | guesses.reads, mean.votes)
