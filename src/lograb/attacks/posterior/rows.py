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

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logit

from lograb.attacks.posterior.beliefs import Beliefs, Beyond, Scene, Status
from lograb.attacks.posterior.peeling import Rows, peel
from lograb.attacks.posterior.precision import entry_error, low_noise, rounding_error
from lograb.attacks.posterior.row_degrees import ALIKE, MOST_DOUBTFUL, points, scales, telling, whole_degrees
from lograb.attacks.posterior.withheld import VALUES_TO, Found
from lograb.pairs import edge_keys, upper_pairs
from lograb.progress import Progress, ignore
from lograb.types import Bools, Floats, Ints

SOLVED = 13.0
"""Log-odds of pairs in rows that are solved."""
ZERO = 1e-7
"""Eigenvalues below this count as 0."""
VALUE_ERROR = 3e-11
"""Standard deviation of the rounding of published eigenvalues."""
CLASSES_TO = 1e-5
"""Error, in units of 1 / √q, up to which equal rows are told from similar ones."""
BUDGET = 3e9
"""Sums over all rows of all patches: bounds the time, to about five minutes."""
TRIAL, MOST_SCALES = 2e7, 16
"""Sums that are spent on a scale of degrees, to see whether rows fit, and scales that are tried."""


@dataclass(frozen=True)
class RowFacts:
    """What the rows of a patch, or of a component, tell, by positions of members.

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


def rows(scene: Scene, beliefs: Beliefs) -> Beliefs:
    """Solve rows of truncated patches with little noise, and settle the pairs in them."""
    seen = scene.seen
    if seen.protocol.gauge == "rotation":
        return beliefs
    read = {patch: places for batch in scene.batches
            for patch, places in zip(batch.which.tolist(), scene.places(batch))}  # fmt: skip
    odds, solved, missing = np.zeros(len(beliefs.keys)), [], 0.0
    beyond, chances, unread = [np.empty(0, np.int64)], [np.empty(0)], []
    for patch, facts in _solved(scene):
        solved.append(facts.solved)
        if patch in read:
            known = odds[read[patch]]
            odds[read[patch]] = np.where(known == 0, _odds(facts), known)
        else:
            unread.append(patch)
            beyond.append(edge_keys(seen.members(patch)[facts.pairs], seen.n_nodes))
            chances.append(facts.probability)
            missing += max(float(facts.degrees.clip(0).sum() / 2 - facts.probability.sum()), 0.0)
    keys, index = np.unique(np.concatenate(beyond), return_inverse=True)
    probability = np.zeros(len(keys))
    np.maximum.at(probability, index, np.concatenate(chances))
    new = ~np.isin(keys, beliefs.keys)
    told = {"patches": len(solved), "solved": sum(int(some.sum()) for some in solved),
            "members": sum(map(len, solved))}  # fmt: skip
    beliefs = beliefs.settle(beliefs.open & (odds != 0), odds, Status.WEIGHED).tell(rows=told)
    return replace(beliefs, beyond=Beyond(np.array(unread, np.int64), keys[new], probability[new], missing))


def _solved(scene: Scene) -> Iterator[tuple[int, RowFacts]]:
    """Give what the rows tell of each patch that is exact enough."""
    seen, budget = scene.seen, BUDGET
    for patch in np.flatnonzero(low_noise(seen, scene.variance)).tolist():
        block, known = seen.block(patch), scene.found.get(patch)
        if scene.blur[patch] <= VALUES_TO:
            known = Found(np.arange(block.shape[1]), seen.spectrum(patch), float(scene.blur[patch]))
        error = None if known is None else entry_error(block, scene.variance[patch])
        if known is None or error is None or not known.values.any():  # components and degrees only
            continue
        rounding = float(rounding_error(known.values[known.values > 0]).max(initial=0.0))
        value_error = max(known.error, VALUE_ERROR, rounding)
        if value_error > VALUES_TO:
            continue
        facts = solve_rows(block[:, known.columns], known.values, error[:, known.columns], value_error, budget,
                           scene.progress)  # fmt: skip
        if facts is not None:
            budget = facts.left
            yield patch, facts


def _odds(facts: RowFacts) -> Floats:
    """Log-odds of all pairs i < j of a patch, flat; 0 where nothing is known."""
    apart = facts.component[:, None] != facts.component[None, :]
    odds = np.where(apart | facts.solved[:, None] | facts.solved[None, :], -SOLVED, 0.0)
    i, j = facts.pairs.T
    odds[i, j] = np.clip(logit(facts.probability), -SOLVED, SOLVED)
    # Ties of even odds are settled too: as far as they can be.
    odds[i, j] = np.where(odds[i, j] == 0, 1e-9, odds[i, j])
    return odds[upper_pairs(len(odds))]


def solve_rows(
    vectors: Floats,
    values: Floats,
    error: Floats,
    value_error: float = VALUE_ERROR,
    budget: float = BUDGET,
    progress: Progress = ignore,
) -> RowFacts | None:
    """Solve the rows of one patch as far as they can be; None where no degree is known.

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
    """
    zero = values < ZERO
    if not zero.any():
        return None
    kernel, blur = vectors[:, zero], error[:, zero].max(axis=1)
    component, degrees, doubt = whole_degrees(kernel, blur)
    vague = ((degrees < 0) | (doubt > 0)).mean() > MOST_DOUBTFUL
    if vague or component.max() + 1 != zero.sum():  # eigenvalues that are not 0, or noise, pass for components
        return None
    solved, pairs, probability = degrees == 0, [np.empty((0, 2), np.int64)], [np.empty(0)]
    for number in np.argsort(np.bincount(component), kind="stable").tolist():  # the large ones last
        inside = np.flatnonzero(component == number)
        if len(inside) > 1:
            rest = np.ix_(inside, ~zero)
            part = _Part(vectors[rest], values[~zero], error[rest], value_error, degrees[inside], doubt[inside])
            facts = _solve_component(part, budget, progress)
            degrees[inside], solved[inside], budget = facts.degrees, facts.solved, facts.left
            pairs.append(inside[facts.pairs])
            probability.append(facts.probability)
    return RowFacts(component, degrees, solved, np.concatenate(pairs), np.concatenate(probability), budget)


@dataclass(frozen=True)
class _Part:
    """What is seen of a component: columns whose eigenvalue is not 0, and degrees, with their errors."""

    vectors: Floats
    values: Floats
    error: Floats
    value_error: float
    degrees: Ints
    doubt: Floats


def _solve_component(part: _Part, budget: float, progress: Progress) -> RowFacts:
    """Solve the rows of a component, at the smallest scale of degrees at which any can be."""
    q, degrees, alive = len(part.degrees), part.degrees, telling(part.vectors, part.error)
    nothing = RowFacts(np.zeros(q, np.int64), np.full(q, -1), np.zeros(q, dtype=bool), np.empty((0, 2), np.int64),
                       np.empty(0), budget)  # fmt: skip
    if not alive.any() or (degrees < 1).any():
        return nothing
    part = replace(part, vectors=part.vectors[:, alive], values=part.values[alive], error=part.error[:, alive])
    # Σ_a μ_a² u_ia² is at most Σ_j S_ij², which large degrees make small.
    least = float((((1.0 - part.values) * part.vectors) ** 2).sum(axis=1).max()) * int(degrees.min())
    able = [1] if part.doubt.any() else scales(degrees)
    possible = [scale for scale in able if scale * least < 1.01][:MOST_SCALES]
    label = _label(part)
    for scale in possible:
        state = _classes(replace(part, degrees=scale * degrees, doubt=scale * part.doubt), label)
        trial = budget if len(possible) == 1 else min(budget, TRIAL)
        budget += peel(state, trial, progress) - trial
        if state.proved and len(possible) > 1:
            budget = peel(state, budget, progress)
        if state.proved or len(possible) == 1:
            known = np.where(part.doubt > 0, -1, scale * degrees)
            return RowFacts(nothing.component, known, *_members(state, label), budget)
    return replace(nothing, left=budget)


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


def _classes(part: _Part, label: Ints) -> Rows:
    """Set up the rows: of each class of members that cannot be told apart, those of its first member.

    Members with doubtful degrees, which are large, may be neighbours, but their own rows cannot be solved.
    """
    first = np.unique(label, return_index=True)[1]
    known, doubt = part.degrees[first], part.doubt[first]
    x, x_error = points(part.vectors[first], part.error[first], known, doubt)
    scaled = known[:, None] * (1.0 - part.values)
    x_variance = x_error**2
    variance = scaled**2 * x_variance + (known[:, None] * part.value_error) ** 2 * (x**2 + x_variance)
    # Neighbours are close where columns are weighed by 1 / √λ (commute time).
    missing = known + np.ceil(3.0 * doubt).astype(np.int64)
    place = x / np.sqrt(part.values)
    return Rows(x, scaled * x, variance, x_variance, missing, np.bincount(label), place, doubt == 0)


def _members(state: Rows, label: Ints) -> tuple[Bools, Ints, Floats]:
    """Spread what is known of classes over their members: the rows solved, pairs, and their probabilities.

    A link is believed if the rows of its ends add up.
    """
    off = (state.rest**2 / state.variance).sum(axis=1) > state.limit
    done = (state.missing == 0) & state.asked
    wrong, solved = done & off, done & ~off
    for end in np.flatnonzero(wrong).tolist():
        solved[list(state.links[end])] = False
    members = np.split(np.argsort(label, kind="stable"), np.cumsum(state.size)[:-1])
    pairs, probability = [np.empty((0, 2), np.int64)], [np.empty(0)]
    for here, links in enumerate(state.links):
        for there, number in links.items():
            if here <= there and (solved[here] or solved[there]):
                ends = np.stack(np.meshgrid(members[here], members[there]), axis=-1).reshape(-1, 2)
                ends = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
                pairs.append(ends)
                probability.append(np.full(len(ends), number / float(state.size[there] - (here == there))))
    return solved[label], np.concatenate(pairs), np.concatenate(probability)
