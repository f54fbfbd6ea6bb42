"""Rows as subset sums: who the neighbours of a node are, solved exactly where the numbers are precise enough.

With x_j = u_j / √d_j and M = diag(1 - λ) the eigen-equation of node i reads

    Σ_{j in N(i)} x_j = d_i M x_i,

so N(i) is a set of d_i points with a known sum. Rows with few unknown neighbours are solved by looking all sums
up; each edge found is subtracted from the row of its other end, and so on (*peeling*). A solved row carries its
proof: its sum fits in all columns at once, where chance would give `log_chance`.

Members with equal x and equal degree cannot be told apart, and their rows have the same solution. They form a
*class*, and what is solved are the numbers of neighbours that a member of one class has in another: if not all, it
is open which, and the pairs share the probability.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations

import numpy as np
from scipy.special import expit, gammaln, logit, softmax

from lograb.attacks.posterior.row_degrees import whole_degrees
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
ACCIDENT = float(np.log(1e-6))
"""Log probability of a fit by chance up to which a row counts as solved."""
MOST_MISSING = 8
EFFORTS = (2_000, 40_000, 1_200_000)
"""Sums per half of a row, one pass after the other."""
LEAST = 1e-3
"""Distance from 0 and 1 that a row keeps while several sets fit it."""
MATCHES = 1_000_000
"""Sums that fit in one direction beyond which a row is too vague."""
DEAR = 4
"""What comparing such a sum in all columns costs, in sums."""
BUDGET = 1_000_000_000
"""Sums over all rows of a patch: bounds the time."""


@dataclass(frozen=True)
class RowFacts:
    """What the rows of a patch tell, by positions of members.

    Attributes
    ----------
    degrees : int array, shape (q,), -1 where unknown
    solved : bool array, shape (q,)
        Rows all of whose neighbours are known: their pairs that are not listed are no edges.
    pairs : int array, shape (m, 2), i < j
    probability : float array, shape (m,)
        1 for edges; less where members cannot be told apart, or where several sets fit rows that are not solved.
    log_chance : float array, shape (q,)
        Log probability that the row fits by chance; 0 where it was not solved by itself.
    """

    degrees: Ints
    solved: Bools
    pairs: Ints
    probability: Floats
    log_chance: Floats


@dataclass
class _Classes:
    """The rows of a patch while they are solved; n classes of members, p columns.

    `rest` (n, p) and `missing` (n,) are what the sum and the number of neighbours lack, `variance` (n, p) is that
    of the errors in `rest`, `links[c]` the classes where c is known to have neighbours, with their number,
    `leaning[c]` those where it may have, with the number that is expected.
    """

    x: Floats
    rest: Floats
    variance: Floats
    x_variance: Floats
    degree: Ints
    missing: Ints
    size: Ints
    component: Ints
    place: Floats
    links: list[dict[int, int]] = field(default_factory=list)
    leaning: dict[int, dict[int, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n, p = self.x.shape
        self.links, self.log_chance = [{} for _ in range(n)], np.zeros(n)
        self.scale = np.maximum(self.x.std(axis=0), 1e-300)
        # Any three directions do; fixed ones make the answer a function of what is seen.
        self.rays = np.random.default_rng(0).standard_normal((p, 3)) / self.scale[:, None]
        self.heights = self.x @ self.rays
        self.limit = p + 6.0 * np.sqrt(2.0 * p) + 10.0


def solve_rows(
    vectors: Floats,
    values: Floats,
    error: Floats,
    value_error: float = VALUE_ERROR,
    progress: Progress = ignore,
) -> RowFacts | None:
    """Solve the rows of one patch as far as they can be.

    Parameters
    ----------
    vectors : float array, shape (q, k)
        Eigenvectors of the normalized Laplacian, in columns.
    values : float array, shape (k,)
        Their eigenvalues, ascending; all that are 0 among them.
    error : float array, shape (q, k)
        Standard deviation of each entry's error: noise and rounding.
    value_error : float
        Standard deviation of the eigenvalues' errors.
    progress : callable

    Returns
    -------
    RowFacts, or None where no column or no degree tells anything.
    """
    q, zero = len(vectors), values < ZERO
    if zero.all() or not zero.any():
        return None
    error = np.maximum(np.broadcast_to(error, vectors.shape), LEAST_ERROR / np.sqrt(q))
    component, degrees = whole_degrees(vectors[:, zero], error[:, zero].mean(axis=1))
    if (degrees < 0).mean() > 0.5:
        return None
    label = _label(vectors, error, zero, degrees, component)
    state = _classes(vectors, values, error, value_error, zero, degrees, component, label)
    _peel(state, progress)
    return _facts(state, label, degrees)


def _label(vectors: Floats, error: Floats, zero: Bools, degrees: Ints, component: Ints) -> Ints:
    """Number the classes of members that cannot be told apart, shape (q,)."""
    q = len(vectors)
    if np.median(error) * np.sqrt(q) > CLASSES_TO:
        return np.arange(q)
    ray = np.random.default_rng(1).standard_normal(int((~zero).sum()))
    kept, doubt = vectors[:, ~zero], error[:, ~zero]
    order = np.lexsort((kept @ ray, component, degrees))
    before, after = order[:-1], order[1:]
    alike = (np.abs(kept[after] - kept[before]) <= ALIKE * (doubt[after] + doubt[before])).all(axis=1)
    alike &= (degrees[after] == degrees[before]) & (component[after] == component[before]) & (degrees[after] > 0)
    label = np.empty(q, dtype=np.int64)
    label[order] = np.concatenate([[0], np.cumsum(~alike)])
    return label


def _classes(
    vectors: Floats, values: Floats, error: Floats, value_error: float, zero: Bools, degrees: Ints,
    component: Ints, label: Ints,
) -> _Classes:
    """Set up the rows: of each class, those of its first member."""
    first = np.unique(label, return_index=True)[1]
    known = degrees[first].clip(0)
    root = np.sqrt(np.maximum(known, 1))[:, None]
    mu = 1.0 - values[~zero]
    x, x_variance = vectors[first][:, ~zero] / root, (error[first][:, ~zero] / root) ** 2
    scaled = known[:, None] * mu
    return _Classes(
        x, scaled * x, scaled**2 * x_variance + (known[:, None] * x * value_error) ** 2, x_variance, known,
        np.where(degrees[first] < 0, 0, known), np.bincount(label), component[first],
        # Neighbours are close where columns are weighed by 1 / √λ (commute time).
        x * root / np.sqrt(values[~zero]),
    )  # fmt: skip


def _peel(state: _Classes, progress: Progress) -> None:
    """Solve rows, cheapest first, until nothing changes; each success makes others cheaper."""
    levels = [(effort, missing) for effort in EFFORTS for missing in range(1, MOST_MISSING + 1)
              if not (missing <= 2 and effort == EFFORTS[1])]  # fmt: skip
    spent, level = 0, 0
    tried: dict[tuple[int, int], tuple[int, int, int]] = {}
    whole = int(state.missing.sum())
    while level < len(levels) and spent < BUDGET:
        effort, missing = levels[level]
        before = int(state.missing.sum())
        for row in np.flatnonzero(state.missing == missing).tolist():
            if state.missing[row] != missing or spent > BUDGET:
                continue
            among = _candidates(state, row, _shortlist(effort, missing))
            mark = (missing, len(among), int(among.sum()))
            if tried.get((row, level)) == mark or not len(among):
                continue
            tried[row, level] = mark
            spent += _solve(state, row, among, missing)
        progress("rows", whole - int(state.missing.sum()), whole)
        # After progress cheaper levels may have become possible.
        level = 0 if state.missing.sum() < before else level + 1


@lru_cache
def _shortlist(effort: int, missing: int) -> int:
    """Give the number of candidates of which half the missing ones can be chosen in `effort` ways."""
    half, count, ways = (missing + 1) // 2, 1, 1.0
    while ways <= effort:
        count += 1
        ways = np.exp(gammaln(count + half) - gammaln(half + 1) - gammaln(count))
    return count


def _candidates(state: _Classes, row: int, most: int) -> Ints:
    """List the classes that may hold missing neighbours of a row, the nearest if there are many."""
    open_ = (state.missing > 0) & (state.component == state.component[row])
    open_[list(state.links[row])] = False
    open_[row] &= state.size[row] > 1
    among = np.flatnonzero(open_)
    if len(among) > most:
        away = ((state.place[among] - state.place[row]) ** 2).sum(axis=1)
        among = np.sort(among[np.argpartition(away, most)[:most]])
    return among


@lru_cache(maxsize=64)
def _choices(count: int, taken: int) -> Ints:
    """List all ways to take some of `count` things, shape (ways, taken); pairs with repetition."""
    if taken == 2:
        return np.stack(np.triu_indices(count), axis=1)
    chosen = list(combinations(range(count), taken))
    return np.array(chosen, dtype=np.int64).reshape(len(chosen), taken)


def _solve(state: _Classes, row: int, among: Ints, missing: int) -> int:
    """Look for the missing neighbours of a row, settle what all fitting sets hold; gives what that cost."""
    half = missing // 2
    ours, theirs = among[_choices(len(among), missing - half)], among[_choices(len(among), half)]
    sets, misfit, matches = _fitting(state, row, among, ours, theirs)
    chance = _accident(state, row, among, missing, len(ours) * len(theirs))
    feasible = np.array([_feasible(state, row, chosen) for chosen in sets.tolist()], dtype=bool)
    if chance < ACCIDENT and feasible.any():
        sets, weights = sets[feasible], softmax(-0.5 * misfit[feasible])
        others = np.unique(sets)
        counts = (sets[:, :, None] == others).sum(axis=1)
        for other, number in zip(others.tolist(), counts.T):
            if number.min() and number.min() == number.max():
                _link(state, row, other, int(number[0]))
        if len(sets) == 1:
            state.log_chance[row] = chance
        state.leaning[row] = dict(zip(others.tolist(), (weights @ counts).tolist()))
    return len(ours) + len(theirs) + DEAR * matches


def _fitting(state: _Classes, row: int, among: Ints, ours: Ints, theirs: Ints) -> tuple[Ints, Floats, int]:
    """Find all unions of two sets whose sum is what the row lacks, their χ², and how many looked so at first.

    Sums are compared in one direction by a sorted search, then in two more, then in all columns by χ².
    """
    variance = state.variance[row] + (ours.shape[1] + theirs.shape[1]) * state.x_variance[among].max(axis=0)
    reach = 6.0 * np.sqrt((state.rays**2 * variance[:, None]).sum(axis=0))
    wanted = state.rest[row] @ state.rays - state.heights[ours].sum(axis=1)
    offered = state.heights[theirs].sum(axis=1)
    order = np.argsort(offered[:, 0])
    offered = offered[order]
    low = np.searchsorted(offered[:, 0], wanted[:, 0] - reach[0])
    count = np.searchsorted(offered[:, 0], wanted[:, 0] + reach[0], side="right") - low
    matches = int(count.sum())
    if matches > MATCHES:
        return np.empty((0, ours.shape[1] + theirs.shape[1]), dtype=np.int64), np.empty(0), 0
    left = np.repeat(np.arange(len(ours)), count)
    right = np.arange(len(left)) + np.repeat(low - np.cumsum(count) + count, count)
    for ray in (1, 2):
        fits = np.abs(offered[right, ray] - wanted[left, ray]) <= reach[ray]
        left, right = left[fits], right[fits]
    sets = np.unique(np.sort(np.concatenate([ours[left], theirs[order[right]]], axis=1), axis=1), axis=0)
    rest = state.rest[row] - state.x[sets].sum(axis=1)
    doubt = state.variance[row] + state.x_variance[sets].sum(axis=1)
    misfit = (rest**2 / doubt).sum(axis=1)
    return sets[misfit < state.limit], misfit[misfit < state.limit], matches


def _accident(state: _Classes, row: int, among: Ints, missing: int, ways: int) -> float:
    """Bound the log probability that some set of candidates fits by chance.

    Sums of candidates are about normal, so no point is likelier than their mean; a fit lies in an ellipsoid of
    known volume.
    """
    p = state.x.shape[1]
    spread = state.x[among].std(axis=0) if len(among) > MOST_MISSING else state.scale
    spread = np.maximum(spread, 1e-9 * state.scale) * np.sqrt(missing)
    variance = state.variance[row] + missing * state.x_variance[among].mean(axis=0)
    volume = 0.5 * p * np.log(np.pi * state.limit) - gammaln(0.5 * p + 1.0) + 0.5 * np.log(variance).sum()
    return float(np.log(ways) + volume - 0.5 * p * np.log(2.0 * np.pi) - np.log(spread).sum())


def _feasible(state: _Classes, row: int, chosen: list[int]) -> bool:
    """Whether the other ends have room: numbers of neighbours are whole, and not more than there are members."""
    for other in set(chosen):
        count = chosen.count(other)
        back, rest = divmod(int(state.size[row]) * count, int(state.size[other]))
        if rest or count > state.size[other] - (other == row) or back > min(state.size[row], state.missing[other]):
            return False
    return True


def _link(state: _Classes, row: int, other: int, count: int) -> None:
    """Settle that members of one class have `count` neighbours in another, and so the other way round."""
    ends = {(row, other): count, (other, row): int(state.size[row]) * count // int(state.size[other])}
    for (here, there), number in ends.items():
        state.links[here][there] = number
        state.rest[here] -= number * state.x[there]
        state.variance[here] += number**2 * state.x_variance[there]
        state.missing[here] -= number


def _facts(state: _Classes, label: Ints, degrees: Ints) -> RowFacts:
    """Spread what is known of classes over their members; a link is believed if the rows of its ends add up."""
    off = (state.rest**2 / state.variance).sum(axis=1) > state.limit
    done = (state.missing == 0) & (degrees[np.unique(label, return_index=True)[1]] >= 0)
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
    return RowFacts(degrees, solved[label], np.concatenate(pairs), np.concatenate(probability),
                    state.log_chance[label])  # fmt: skip


def _shares(state: _Classes, solved: Bools) -> dict[tuple[int, int], float]:
    """Give pairs of classes the share of their pairs that are edges: by links, else by how the two rows lean."""
    shares = {}
    for here, links in enumerate(state.links):
        for there, number in links.items():
            if here <= there and (solved[here] or solved[there]):
                shares[here, there] = number / float(state.size[there] - (here == there))
    for here, leaning in state.leaning.items():
        for there in leaning:
            ends = min(here, there), max(here, there)
            if here != there and ends not in shares and not solved[here] and not solved[there]:
                views = [state.leaning[a].get(b, 0.0) / state.size[b] for a, b in (ends, ends[::-1])
                         if a in state.leaning and b not in state.links[a]]  # fmt: skip
                if views:
                    shares[ends] = float(expit(logit(np.clip(views, LEAST, 1.0 - LEAST)).mean()))
    return shares
