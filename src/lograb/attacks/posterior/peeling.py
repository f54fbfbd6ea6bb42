"""Rows of one component, solved cheapest first; each edge found is subtracted from the row of its other end.

Two ways to find the missing neighbours of a row: all sums of two halves are looked up among the nearest
candidates, or a linear program chooses the nearest members that add up. Whatever is found must fit in all columns
at once, where chance would not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations

import numpy as np
from scipy.optimize import linprog
from scipy.special import gammaln

from lograb.progress import Progress, ignore
from lograb.ragged import ranges
from lograb.types import Bools, Floats, Ints

ACCIDENT = float(np.log(1e-6))
"""Log probability of a fit by chance up to which a row counts as solved."""
TELLING = 10.0
"""How far, in errors, candidates must be spread in a column that tells them apart."""
ALL, PROGRAM = 0, -1
LEVELS = ((ALL, 1, 2), (2_000, 1, 8), (40_000, 3, 8), (PROGRAM, 3, 40), (1_200_000, 1, 8))
"""Ways to solve rows, in this order: sums per half of a row, or `ALL` candidates, or a linear `PROGRAM`; and how
many neighbours may be missing."""
IN_PROGRAM, PROGRAM_COST = 1000, 400
"""Candidates of a linear program, and what each costs, in sums."""
PRECISE = 1e-6
"""Errors, relative to what candidates are spread, up to which linear programs are exact enough."""
MATCHES = 1_000_000
"""Sums that fit in one direction beyond which a row is too vague."""
DEAR = 2
"""What comparing such a sum in all columns costs, in sums."""
CHANGED = 0.1
"""Share of the candidates that must be gone before the same is tried again."""


@dataclass
class Rows:
    """The rows of a component while they are solved; n classes of members, p columns.

    `rest` (n, p) and `missing` (n,) are what the sum and the number of neighbours lack, `variance` (n, p) is that
    of the errors in `rest`, `place` (n, p) where classes lie, `size` (n,) their members, `asked` (n,) whose rows
    are solved. `links[c]` are the classes where c is known to have neighbours, with their number;
    `proved` says whether any row was solved by itself.
    """

    x: Floats
    rest: Floats
    variance: Floats
    x_variance: Floats
    missing: Ints
    size: Ints
    place: Floats
    asked: Bools
    links: list[dict[int, int]] = field(init=False)
    proved: bool = False

    def __post_init__(self) -> None:
        n, p = self.x.shape
        self.links = [{} for _ in range(n)]
        self.scale = _spread(self.x)
        self.far = (self.place**2).sum(axis=1)
        # Any three directions do; fixed ones make the answer a function of what is seen.
        self.rays = np.random.default_rng(0).standard_normal((p, 3)) / np.abs(self.x).mean(axis=0)[:, None]
        self.heights = self.x @ self.rays
        self.limit = p + 6.0 * np.sqrt(2.0 * p) + 10.0
        self.precise = bool(np.median(np.sqrt(self.x_variance) / self.scale) < PRECISE)


def _spread(x: Floats) -> Floats:
    """How far points (n, p) lie apart, in each column: where most of them are, whatever a few far out do."""
    return np.maximum(1.5 * np.median(np.abs(x - np.median(x, axis=0)), axis=0), 1e-300)


def peel(state: Rows, budget: float, progress: Progress = ignore) -> float:
    """Solve rows until nothing changes or the budget is spent; gives what is left of it."""
    level, whole = 0, int(state.missing.sum())
    tried: dict[tuple[int, int], tuple[int, int]] = {}
    while level < len(LEVELS) and budget > 0:
        effort, least, most = LEVELS[level]
        before = int(state.missing.sum())
        crowd = int(np.log(np.maximum((state.missing > 0).sum(), 1)) / CHANGED)
        order = np.argsort(state.missing, kind="stable")
        order = order[state.asked[order]]
        for row in order[(state.missing[order] >= least) & (state.missing[order] <= most)].tolist():
            missing, mark = int(state.missing[row]), (int(state.missing[row]), crowd)
            if least <= missing <= most and tried.get((row, level)) != mark and budget > 0:
                tried[row, level] = mark
                budget -= _solve(state, row, missing, effort)
        progress("rows", whole - int(state.missing.sum()), whole)
        # After progress cheaper levels may have become possible.
        level = 0 if state.missing.sum() < before else level + 1
    return budget


@lru_cache
def _shortlist(effort: int, missing: int) -> int:
    """Give the number of candidates of which half the missing ones can be chosen in `effort` ways."""
    half, count, ways = (missing + 1) // 2, 1, 1.0
    while ways <= effort:
        count += 1
        ways = np.exp(gammaln(count + half) - gammaln(half + 1) - gammaln(count))
    return count


def _candidates(state: Rows, row: int, missing: int, effort: int) -> Ints:
    """List the classes that may hold missing neighbours of a row, the nearest if there are many."""
    most = {ALL: len(state.x), PROGRAM: IN_PROGRAM}.get(effort) or _shortlist(effort, missing)
    open_ = state.missing > 0
    open_[list(state.links[row])] = False
    open_[row] &= state.size[row] > 1
    among = np.flatnonzero(open_)
    if len(among) > most:
        among = np.sort(among[np.argpartition(_away(state, row, among), most)[:most]])
    return among


def _away(state: Rows, row: int, among: Ints) -> Floats:
    """Squared distance of candidates, relative to how far out they lie: neighbours have nearly the same place."""
    squares = ((state.place[among] - state.place[row]) ** 2).sum(axis=1)
    return np.asarray(squares / (state.far[among] + state.far[row] + 1e-300))


@lru_cache(maxsize=64)
def choices(count: int, taken: int) -> Ints:
    """List all ways to take some of `count` things, shape (ways, taken); pairs with repetition."""
    if taken == 2:
        return np.stack(np.triu_indices(count), axis=1)
    chosen = list(combinations(range(count), taken))
    return np.array(chosen, dtype=np.int64).reshape(len(chosen), taken)


def _solve(state: Rows, row: int, missing: int, effort: int) -> float:
    """Look for the missing neighbours of a row, settle what all fitting sets hold; gives what that cost."""
    if effort == PROGRAM and not state.precise:
        return 0.0
    among = _candidates(state, row, missing, effort)
    if state.size[among].sum() < missing:
        return 0.0
    if _accident(state, row, among, missing) > ACCIDENT:
        return float(len(among))
    if effort == PROGRAM:
        sets, cost = _programmed(state, row, among, missing)
    else:
        half = missing // 2
        parts = [among[choices(len(among), taken)] for taken in (missing - half, half)]
        sets, matches = _fitting(state, among, state.rest[row], state.variance[row], *parts)
        cost = float(len(parts[0]) + len(parts[1]) + DEAR * matches)
    feasible = np.array([_feasible(state, row, chosen) for chosen in sets.tolist()], dtype=bool)
    if feasible.any():
        _settle(state, row, sets[feasible])
    return cost


def _settle(state: Rows, row: int, sets: Ints) -> None:
    """Link a row to what all sets that fit hold."""
    for other in np.unique(sets).tolist():
        counts = (sets == other).sum(axis=1)
        if counts.min() and counts.min() == counts.max():
            _link(state, row, other, int(counts[0]))
    state.proved |= len(sets) == 1


def _fitting(
    state: Rows, among: Ints, rest: Floats, variance: Floats, ours: Ints, theirs: Ints
) -> tuple[Ints, int]:
    """Find all unions of two sets whose sum is `rest`, and how many looked so at first.

    Sums are compared in one direction by a sorted search, then in two more, then in all columns by χ².
    """
    width = ours.shape[1] + theirs.shape[1]
    widest = variance + width * state.x_variance[among].max(axis=0)
    reach = 6.0 * np.sqrt((state.rays**2 * widest[:, None]).sum(axis=0))
    wanted = rest @ state.rays - state.heights[ours].sum(axis=1)
    offered = state.heights[theirs].sum(axis=1)
    order = np.argsort(offered[:, 0])
    offered = offered[order]
    low = np.searchsorted(offered[:, 0], wanted[:, 0] - reach[0])
    count = np.searchsorted(offered[:, 0], wanted[:, 0] + reach[0], side="right") - low
    matches = int(count.sum())
    if matches > MATCHES:
        return np.empty((0, width), dtype=np.int64), 0
    left = np.repeat(np.arange(len(ours)), count)
    right = ranges(low, count)
    for ray in (1, 2):
        fits = np.abs(offered[right, ray] - wanted[left, ray]) <= reach[ray]
        left, right = left[fits], right[fits]
    sets = np.unique(np.sort(np.concatenate([ours[left], theirs[order[right]]], axis=1), axis=1), axis=0)
    return sets[_misfit(state, sets, rest, variance) < state.limit], matches


def _misfit(state: Rows, sets: Ints, rest: Floats, variance: Floats) -> Floats:
    """χ² of sets (m, width) whose sum should be `rest`."""
    doubt = variance + state.x_variance[sets].sum(axis=1)
    return np.asarray(((rest - state.x[sets].sum(axis=1)) ** 2 / doubt).sum(axis=1))


def _programmed(state: Rows, row: int, among: Ints, missing: int) -> tuple[Ints, float]:
    """Choose the nearest candidates that add up by a linear program; then all that fit but for two of them."""
    cost, spread = float(PROGRAM_COST * len(among)), np.maximum(np.abs(state.x[among]).mean(axis=0), 1e-300)
    room = np.minimum(state.size[among] - (among == row), missing)
    sums = np.vstack([(state.x[among] / spread).T, np.ones(len(among))])
    answer = linprog(np.sqrt(_away(state, row, among)), A_eq=sums,
                     b_eq=np.append(state.rest[row] / spread, missing),
                     bounds=np.stack([np.zeros(len(among)), room], axis=1), method="highs")  # fmt: skip
    nothing = np.empty((0, missing), dtype=np.int64), cost
    if answer.status != 0:
        return nothing
    found = np.repeat(among, np.round(answer.x).astype(np.int64))
    if len(found) != missing or _misfit(state, found[None], state.rest[row], state.variance[row])[0] > state.limit:
        return nothing
    fitting = [found[None]]
    singles = among[:, None]
    for pair in combinations(range(missing), 2):
        kept = np.delete(found, pair)
        rest = state.rest[row] - state.x[kept].sum(axis=0)
        variance = state.variance[row] + state.x_variance[kept].sum(axis=0)
        swaps = _fitting(state, among, rest, variance, singles, singles)[0]
        fitting.append(np.concatenate([np.broadcast_to(kept, (len(swaps), len(kept))), swaps], axis=1))
        cost += 2.0 * len(among)
    return np.unique(np.sort(np.concatenate(fitting), axis=1), axis=0), cost


def _accident(state: Rows, row: int, among: Ints, missing: int) -> float:
    """Bound the log probability that some set of candidates fits by chance.

    Sums of candidates are about normal, so no point is likelier than their mean; a fit lies in an ellipsoid of
    known volume. Columns in which candidates hardly differ do not count.
    """
    local = len(among) in range(2 * missing, len(state.x) // 2)
    spread = (_spread(state.x[among]) if local else state.scale) * np.sqrt(missing)
    error = np.sqrt(state.variance[row] + missing * state.x_variance[among].mean(axis=0))
    telling = spread > TELLING * error
    p = int(telling.sum())
    ways = gammaln(len(among) + missing) - gammaln(missing + 1) - gammaln(len(among))
    volume = 0.5 * p * np.log(0.5 * state.limit) - gammaln(0.5 * p + 1.0)
    return float(ways + volume + np.log(error[telling] / spread[telling]).sum())


def _feasible(state: Rows, row: int, chosen: list[int]) -> bool:
    """Whether the other ends have room: numbers of neighbours are whole, and not more than there are members."""
    for other in set(chosen):
        count = chosen.count(other)
        back, rest = divmod(int(state.size[row]) * count, int(state.size[other]))
        if rest or count > state.size[other] - (other == row) or back > min(state.size[row], state.missing[other]):
            return False
    return True


def _link(state: Rows, row: int, other: int, count: int) -> None:
    """Settle that members of one class have `count` neighbours in another, and so the other way round."""
    ends = {(row, other): count, (other, row): int(state.size[row]) * count // int(state.size[other])}
    for (here, there), number in ends.items():
        state.links[here][there] = number
        state.rest[here] -= number * state.x[there]
        state.variance[here] += number**2 * state.x_variance[there]
        state.missing[here] -= number
