"""Rows as subset sums: who the neighbours of a node are, solved exactly where the numbers are precise enough.

With x_j = u_j / √d_j and M = diag(1 - λ) the eigen-equation of node i reads

    Σ_{j in N(i)} x_j = d_i M x_i,

so N(i) is a set of d_i points with a known sum. Rows with few unknown neighbours are solved, each edge found is
subtracted from the row of its other end, and so on (`peeling`). A solved row carries its proof: its sum fits in
all columns at once, which chance would hardly do (`ACCIDENT`).

Members with equal x and equal degree cannot be told apart, and their rows have the same solution. They form a
*class*, and what is solved are the numbers of neighbours that a member of one class has in another: if not all, it
is open which, and the pairs share the probability.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lograb.attacks.posterior.peeling import Rows, peel
from lograb.attacks.posterior.row_degrees import scales, whole_degrees
from lograb.progress import Progress, ignore
from lograb.types import Bools, Floats, Ints

ZERO = 1e-7
"""Eigenvalues below this count as 0."""
VALUE_ERROR = 3e-11
"""Standard deviation of the rounding of published eigenvalues."""
LEAST_ERROR = 1e-11
"""Error of entries, in units of 1 / √q, that eigensolvers leave at least."""
ALIKE = 8.0
"""Errors by which entries of one class may differ."""
CLASSES_TO = 1e-5
"""Error, in units of 1 / √q, up to which equal rows are told from similar ones."""
ALIVE = 30.0
"""Errors that the largest entry of a column must exceed to say something about a component."""
BUDGET = 3e9
"""Sums over all rows of all patches: bounds the time, to about five minutes."""
TRIAL, MOST_SCALES = 2e7, 16
"""Sums that are spent on a scale of degrees, to see whether rows fit, and scales that are tried."""


@dataclass(frozen=True)
class RowFacts:
    """What the rows of a patch tell, by positions of members.

    Attributes
    ----------
    component : int array, shape (q,)
        There is no edge between two components.
    degrees : int array, shape (q,), -1 where unknown
    solved : bool array, shape (q,)
        Rows all of whose neighbours are known: their pairs that are not listed are no edges.
    pairs : int array, shape (m, 2), i < j
    probability : float array, shape (m,)
        1 for edges; less where members cannot be told apart.
    left : float
        What is left of the budget.
    """

    component: Ints
    degrees: Ints
    solved: Bools
    pairs: Ints
    probability: Floats
    left: float


def solve_rows(
    vectors: Floats,
    values: Floats,
    error: Floats,
    value_error: float = VALUE_ERROR,
    budget: float = BUDGET,
    progress: Progress = ignore,
) -> RowFacts | None:
    """Solve the rows of one patch as far as they can be.

    Parameters
    ----------
    vectors : float array, shape (q, k)
        Eigenvectors of the normalized Laplacian, in columns.
    values : float array, shape (k,)
        Their eigenvalues, ascending; all that are 0 among them, if any other is.
    error : float array, shape (q, k)
        Standard deviation of each entry's error: noise and rounding.
    value_error : float
        Standard deviation of the eigenvalues' errors.
    budget : float
        How many sums may be looked at.
    progress : callable

    Returns
    -------
    RowFacts, or None where no degree is known.
    """
    q, zero = len(vectors), values < ZERO
    if not zero.any():
        return None
    error = np.maximum(np.broadcast_to(error, vectors.shape), LEAST_ERROR / np.sqrt(q))
    if (np.linalg.norm(vectors[:, zero], axis=1) < ALIKE * error[:, zero].max(axis=1)).any():
        return None
    component, degrees, doubt = whole_degrees(vectors[:, zero], error[:, zero].max(axis=1))
    if ((degrees < 0) | (doubt > 0)).mean() > 0.5:
        return None
    if component.max() + 1 != zero.sum():
        return None  # eigenvalues that are not 0, or noise, pass for components
    solved = degrees == 0
    pairs, probability = [np.empty((0, 2), np.int64)], [np.empty(0)]
    for number in np.argsort(np.bincount(component), kind="stable").tolist():  # the large ones last
        inside = np.flatnonzero(component == number)
        if len(inside) == 1:
            continue
        tells = np.flatnonzero(~zero)
        tells = tells[(np.abs(vectors[np.ix_(inside, tells)]) > ALIVE * error[np.ix_(inside, tells)]).any(axis=0)]
        part = _Part(vectors[np.ix_(inside, tells)], values[tells], error[np.ix_(inside, tells)], value_error,
                     degrees[inside], doubt[inside])  # fmt: skip
        facts, budget = _solve_component(part, budget, progress)
        if facts is None:
            degrees[inside] = -1
            continue
        degrees[inside], solved[inside] = facts.degrees, facts.solved
        pairs.append(inside[facts.pairs])
        probability.append(facts.probability)
    return RowFacts(component, degrees, solved, np.concatenate(pairs), np.concatenate(probability), budget)


@dataclass(frozen=True)
class _Part:
    """What is seen of a component: the columns that tell something, and degrees, with their errors."""

    vectors: Floats
    values: Floats
    error: Floats
    value_error: float
    degrees: Ints
    doubt: Floats


def _solve_component(part: _Part, budget: float, progress: Progress) -> tuple[RowFacts | None, float]:
    """Solve the rows of a component, at the smallest scale of degrees at which any can be; and what is left."""
    degrees = part.degrees
    if not part.vectors.size or (degrees < 1).any():
        return None, budget
    # Σ_a μ_a² u_ia² is at most Σ_j S_ij², which large degrees make small.
    least = float((((1.0 - part.values) * part.vectors) ** 2).sum(axis=1).max()) * int(degrees.min())
    able = [1] if part.doubt.any() else scales(degrees)
    possible = [scale for scale in able if scale * least < 1.01][:MOST_SCALES]
    for scale in possible:
        state, label = _classes(replace(part, degrees=scale * degrees, doubt=scale * part.doubt))
        trial = budget if len(possible) == 1 else min(budget, TRIAL)
        budget += peel(state, trial, progress) - trial
        if state.proved and len(possible) > 1:
            budget = peel(state, budget, progress)
        if state.proved or len(possible) == 1:
            return _facts(state, label, np.where(part.doubt > 0, -1, scale * degrees), budget), budget
    return None, budget


def _classes(part: _Part) -> tuple[Rows, Ints]:
    """Set up the rows: of each class of members that cannot be told apart, those of its first member.

    Members with doubtful degrees, which are large, may be neighbours, but their own rows cannot be solved.
    """
    label = _label(part)
    first = np.unique(label, return_index=True)[1]
    known, doubt = part.degrees[first], part.doubt[first]
    root = np.sqrt(known)[:, None]
    x = part.vectors[first] / root
    x_variance = (part.error[first] / root) ** 2 + (0.5 * x * (doubt / known)[:, None]) ** 2
    scaled = known[:, None] * (1.0 - part.values)
    variance = scaled**2 * x_variance + (known[:, None] * part.value_error) ** 2 * (x**2 + x_variance)
    # Neighbours are close where columns are weighed by 1 / √λ (commute time).
    missing = known + np.ceil(3.0 * doubt).astype(np.int64)
    place = x / np.sqrt(part.values)
    return Rows(x, scaled * x, variance, x_variance, missing, np.bincount(label), place, doubt == 0), label


def _label(part: _Part) -> Ints:
    """Number the classes of members that cannot be told apart, shape (q,)."""
    degrees, q = part.degrees, len(part.degrees)
    if np.median(part.error) * np.sqrt(q) > CLASSES_TO:
        return np.arange(q)
    ray = np.random.default_rng(1).standard_normal(part.vectors.shape[1])
    order = np.lexsort((part.vectors @ ray, degrees))
    before, after = order[:-1], order[1:]
    alike = np.abs(part.vectors[after] - part.vectors[before]) <= ALIKE * (part.error[after] + part.error[before])
    same = alike.all(axis=1) & (degrees[after] == degrees[before])
    label = np.empty(q, dtype=np.int64)
    label[order] = np.concatenate([[0], np.cumsum(~same)])
    return label


def _facts(state: Rows, label: Ints, degrees: Ints, left: float) -> RowFacts:
    """Spread what is known of classes over their members; a link is believed if the rows of its ends add up."""
    off = (state.rest**2 / state.variance).sum(axis=1) > state.limit
    done = (state.missing == 0) & state.asked
    wrong, solved = done & off, done & ~off
    for end in np.flatnonzero(wrong).tolist():
        solved[list(state.links[end])] = False
    members = np.split(np.argsort(label, kind="stable"), np.cumsum(state.size)[:-1])
    pairs, probability = [np.empty((0, 2), np.int64)], [np.empty(0)]
    for (here, there), share in _shares(state, solved).items():
        ends = np.stack(np.meshgrid(members[here], members[there]), axis=-1).reshape(-1, 2)
        ends = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
        pairs.append(ends)
        probability.append(np.full(len(ends), share))
    return RowFacts(np.zeros_like(label), degrees, solved[label], np.concatenate(pairs),
                    np.concatenate(probability), left)  # fmt: skip


def _shares(state: Rows, solved: Bools) -> dict[tuple[int, int], float]:
    """Give linked pairs of classes, one of them solved, the share of their pairs that are edges."""
    shares = {}
    for here, links in enumerate(state.links):
        for there, number in links.items():
            if here <= there and (solved[here] or solved[there]):
                shares[here, there] = number / float(state.size[there] - (here == there))
    return shares
