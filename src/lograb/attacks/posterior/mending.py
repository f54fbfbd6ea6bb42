"""Mend a graph that has not the published eigenvalues.

One wrong pair is found exactly: flipping (i, j) changes A - μ D in four entries, so a determinant of order two
says whether μ becomes an eigenvalue, for all pairs at once. So are two or three wrong pairs, if all but
one of them are among the least certain. More are approached by a search. For a graph with
S = I - L = V diag(ν) Vᵀ and the observation Y = U + σE, the residual of the eigen-equation in the graph's own
basis,

    Vᵀ (S Y - Y M)  with entries  (ν_b - μ_a) (Vᵀ Y)_ba,

has variance σ² (ν_b - μ_a)² if the graph is the true one. The search goes downhill in the sum of squares weighted
by 1 / (σ² (ν_b - μ_a)² + τ), where τ is the mean squared error of the graph's eigenvalues: coarse far from the
goal, and exact near it. It flips one or two pairs at a time, chosen by the first-order change of the residual.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from lograb.attacks.posterior.graphs import EXACT, SAME, Patch, State, passes, spectral_error, state_of
from lograb.types import Floats, Ints

STEPS = 24
MAX_DESCENT = 100
"""Members of the largest patch that is searched for more wrong pairs."""
CANDIDATES = (60, 300)
"""Least certain pairs that are tried as one of two wrong ones, and that may be flipped in a step downhill."""
IN_TWOS = 12
"""Least certain pairs of which two at a time are tried."""
USUAL_SIZE = 60
"""Members of a patch up to which all of them are tried."""
FEW = 4
"""Eigenvalues that a graph with two pairs flipped is first checked against."""
RIDGE = 1e-9
SMALL = 1e-3
"""Determinants below this make a candidate."""
TIED = 1e-7
"""Difference of determinants up to which flips are as good as each other."""
TRIED = (8, 20)
"""Single and double flips of a step whose spectrum is computed, in patches of usual size."""
SHARPNESS = (1.0, 0.1, 0.01)
"""Factors on τ, the next when a search is stuck."""


def _weights(patch: Patch, state: State, tau: float) -> tuple[Floats, Floats]:
    """Inverse variances of the residual, and the norming term of their density, shapes (..., q, r) and (...,)."""
    gaps = (state.values[..., :, None] - patch.mu) ** 2
    variance = max(patch.variance, 1e-10)
    norm = np.log(variance + tau / (gaps + tau))
    column = np.arange(len(patch.mu))
    norm[..., gaps.shape[-2] - 1 - column, column] = 0.0  # an eigenvalue against its own
    return 1.0 / (variance * gaps + tau), norm.sum(axis=(-1, -2))


def _objective(patch: Patch, state: State, tau: float) -> Floats:
    weight, norm = _weights(patch, state, tau)
    return np.asarray(((weight * state.residual**2).sum(axis=(-1, -2)) + norm) / 2)


def _flipped(graph: Floats, *pairs: tuple[np.ndarray, np.ndarray]) -> Floats:
    """Flip pairs: result n has the n-th pair of each list flipped."""
    graphs = np.repeat(graph[None], len(pairs[0][0]), axis=0)
    n = np.arange(len(graphs))
    for i, j in pairs:
        graphs[n, i, j] = graphs[n, j, i] = 1.0 - graphs[n, i, j]
    return graphs


def _changes(patch: Patch, state: State, i: np.ndarray, j: np.ndarray) -> Floats:
    """Change of the residual when a pair is flipped, in the basis of the present graph, shape (c, q, r).

    With s the scaled rows, flipping (i, j) multiplies row and column i by a factor, those of j by another, and
    sets the entry (i, j); in the basis V the row s_i is ν ∘ v_i.
    """
    graph, basis, values, seen = state.graph, state.basis, state.values, patch.observed
    degrees = graph.sum(axis=1)
    sign = 1.0 - 2.0 * graph[i, j]
    image = (basis * values) @ (basis.T @ seen)  # S Y
    total = np.zeros((len(i), len(graph), len(patch.mu)))
    factors = []
    for one in (i, j):
        before, after = degrees[one], degrees[one] + sign
        factor = np.sqrt(np.maximum(before, 1.0) / np.maximum(after, 1.0)) - 1.0
        alone = (after == 0) * 1.0 - (before == 0) * 1.0  # the diagonal of isolated nodes
        left, right = basis[one], (basis * values)[one]
        own = image[one] - (before == 0)[:, None] * seen[one]
        right = right - (before == 0)[:, None] * left
        total += left[:, :, None] * (factor[:, None] * own + alone[:, None] * seen[one])[:, None, :]
        total += right[:, :, None] * (factor[:, None] * seen[one])[:, None, :]
        factors.append(factor)
    now = graph[i, j] / np.sqrt(np.maximum(degrees[i] * degrees[j], 1.0))
    then = (1.0 - graph[i, j]) / np.sqrt(np.maximum((degrees[i] + sign) * (degrees[j] + sign), 1.0))
    rest = (then - now - (factors[0] + factors[1]) * now)[:, None]
    total += basis[i][:, :, None] * (rest * seen[j])[:, None, :]
    total += basis[j][:, :, None] * (rest * seen[i])[:, None, :]
    return total


def _resolvents(patch: Patch, state: State, most: int | None) -> tuple[Floats, Floats]:
    """Invert A - μ D for published μ that the graph lacks, the most lacking first: μ (m,), inverses (m, q, q)."""
    lacking = np.abs(state.values - patch.mu[:, None]).min(axis=1)
    chosen = np.argsort(-lacking, kind="stable")[:most]
    mu = patch.mu[chosen[lacking[chosen] > SAME]]
    vectors = state.basis / np.sqrt(np.maximum(state.graph.sum(axis=1), 1.0))[:, None]
    return mu, (vectors / (state.values - mu[:, None])[:, None, :]) @ vectors.T


def _determinants(mu: Floats, inverse: Floats, sign: Floats) -> Floats:
    """Factor by which det(A - μ D) changes if a pair is flipped, shape (..., q, q).

    It is 0 where μ becomes an eigenvalue. A flip changes A - μ D in the entries of i and j only, by
    ±[[-μ, 1], [1, -μ]]: a determinant of order two.
    """
    own = np.einsum("...ii->...i", inverse)
    mu = mu[..., None, None]
    both = own[..., :, None] + own[..., None, :]
    minor = own[..., :, None] * own[..., None, :] - inverse**2
    return np.asarray(1.0 + sign * (2.0 * inverse - mu * both) + (mu**2 - 1.0) * minor)


def _worst_factors(mu: Floats, inverse: Floats, graph: Floats) -> Floats:
    """Largest factor over all μ if a pair is flipped, shape (q, q); infinite where flips are not tried.

    A node i without edges counts as A_ii = D_ii = 1. Joining it to j adds a row: the factor is 1 + K_jj (1/μ - μ).
    Taking a node's only edge away makes the determinant 0 whatever μ is, and is not tried.
    """
    factors = np.abs(_determinants(mu, inverse, 1.0 - 2.0 * graph)).max(axis=0)
    degrees = graph.sum(axis=1)
    alone = degrees == 0
    if alone.any():
        usable = np.abs(mu) > SMALL
        own, away = np.einsum("mii->mi", inverse[usable]), mu[usable, None]
        joining = np.abs(1.0 + own * (1.0 / away - away)).max(axis=0, initial=0.0 if usable.any() else np.inf)
        factors[alone] = joining
        factors[:, alone] = joining[:, None]
        factors[np.ix_(alone, alone)] = np.inf
    least = np.minimum(degrees[:, None], degrees[None, :])
    factors[((least == 1) & (graph > 0)) | np.eye(len(graph), dtype=bool)] = np.inf
    return np.asarray(factors)


def _one_wrong(patch: Patch, state: State, certainty: Floats) -> Floats | None:
    """Find the graph if a single pair is wrong: exactly, and among all pairs; of equals the least certain."""
    mu, inverse = _resolvents(patch, state, None)
    if not len(mu):
        return None
    factors = _worst_factors(mu, inverse, state.graph)
    if factors.min() > SMALL:
        return None
    equal = np.where(factors < factors.min() + TIED, certainty, np.inf)
    i, j = np.unravel_index([np.argmin(equal), np.argmin(factors)], factors.shape)
    graphs = _flipped(state.graph, (i, j))
    right = passes(graphs, patch.mu)
    return np.asarray(graphs[np.argmax(right)]) if right.any() else None


def _fewer(tries: int, size: int) -> int:
    """Lower a number of tries in patches above the usual size: a try costs the square of it, or more."""
    return int(tries * min(1.0, (USUAL_SIZE / size) ** 2)) + 1


def _with_others(patch: Patch, state: State, sets: list[Ints]) -> Floats | None:
    """Find the graph if a set of pairs is wrong, and one more, which may be any.

    Parameters
    ----------
    sets : list of int64 arrays
        Sets of pairs, as positions i * q + j, each tried in turn.
    """
    mu, inverse = _resolvents(patch, state, FEW)
    q = len(state.graph)
    best: tuple[float, Floats] | None = None
    for pairs in sets if len(mu) else []:
        i, j = pairs // q, pairs % q
        flipped = state.graph.copy()
        flipped[i, j] = flipped[j, i] = 1.0 - flipped[i, j]
        nodes, place = np.unique(np.concatenate([i, j]), return_inverse=True)
        if (state.graph[nodes].sum(axis=1) == 0).any() or (flipped[nodes].sum(axis=1) == 0).any():
            continue
        # Woodbury: the inverse after the first flips.
        block = np.zeros((len(mu), len(nodes), len(nodes)))
        for one, other, sign in zip(place[: len(i)], place[len(i) :], 1.0 - 2.0 * state.graph[i, j]):
            block[:, [one, other], [other, one]] += sign
            block[:, [one, other], [one, other]] -= sign * mu[:, None]
        columns = inverse[:, :, nodes]
        try:
            core = np.linalg.solve((1.0 + RIDGE) * np.eye(len(nodes)) + block @ columns[:, nodes], block)
        except np.linalg.LinAlgError:  # with these flips alone some μ is an eigenvalue, and twice
            continue
        factors = _worst_factors(mu, inverse - columns @ core @ columns.swapaxes(1, 2), flipped)
        factors[i, j] = factors[j, i] = np.inf
        at = int(np.argmin(factors))
        if factors.flat[at] < (best[0] if best else SMALL):
            flipped[at // q, at % q] = flipped[at % q, at // q] = 1.0 - flipped[at // q, at % q]
            best = float(factors.flat[at]), flipped
    return best[1] if best and passes(best[1], patch.mu) else None


def _least_certain(certainty: Floats, most: int) -> Ints:
    """Give the pairs that are least certain, as positions i * q + j, i < j."""
    i, j = np.triu_indices(len(certainty), k=1)
    least = np.argsort(certainty[i, j], kind="stable")[:most]
    return i[least] * len(certainty) + j[least]


def few_wrong(patch: Patch, state: State, certainty: Floats, most: int = 3) -> Floats | None:
    """Find the graph if up to three pairs are wrong, or `most`, all but one of them among the least certain.

    Parameters
    ----------
    certainty : float array, shape (q, q)
        Of the pairs.
    """
    least = _least_certain(certainty, _fewer(CANDIDATES[0], len(certainty)))
    found = _one_wrong(patch, state, certainty)
    if found is None and most > 1:
        found = _with_others(patch, state, list(least[:, None]))
    if found is None and most > 2:
        found = _with_others(patch, state, [np.array(two) for two in combinations(least[:IN_TWOS].tolist(), 2)])
    return found


def search(patch: Patch) -> tuple[Floats, bool]:
    """Look for a graph with the published eigenvalues near the likeliest one.

    Returns
    -------
    graph : float array, shape (q, q)
        Where the search ended.
    found : bool
        Whether it has the published eigenvalues.
    """
    graph, certainty = (patch.log_odds > 0).astype(float), np.abs(patch.log_odds)
    large, sharpness, turned = len(graph) > MAX_DESCENT, 0, True
    for _ in range(STEPS):
        state = state_of(patch, graph)
        if spectral_error(state.values, patch.mu) < EXACT:
            return graph, True
        found = few_wrong(patch, state, certainty, 3 if large else 1 + turned)
        if found is not None:
            return found, True
        if large:
            break
        better = _downhill(patch, state, SHARPNESS[sharpness])
        if better is not None:
            graph, turned = better, False
        elif sharpness + 1 < len(SHARPNESS):
            sharpness, turned = sharpness + 1, True
        else:
            break
    return graph, False


def _downhill(patch: Patch, state: State, sharpness: float) -> Floats | None:
    """Flip the one or two uncertain pairs that lower the objective most, with a factor on τ; None if none does."""
    graph, kept = state.graph, state.values[::-1][: len(patch.mu)]
    least = _least_certain(np.abs(patch.log_odds), CANDIDATES[1])
    i, j = least // len(graph), least % len(graph)
    one, two = np.triu_indices(len(i), k=1)
    n_single, n_double = (_fewer(tries, len(graph)) for tries in TRIED)
    tau = max(sharpness * float(((kept - patch.mu) ** 2).mean()), 1e-14)
    root = np.sqrt(_weights(patch, state, tau)[0])
    change = (_changes(patch, state, i, j) * root).reshape(len(i), -1)
    price = np.where(graph[i, j] > 0, patch.cost[i, j], -patch.cost[i, j])
    single = change @ (state.residual * root).ravel() + (change**2).sum(axis=1) / 2 + price
    double = single[one] + single[two] + (change @ change.T)[one, two]
    best = np.argsort(single, kind="stable")[:n_single]
    pairs = np.argpartition(double, min(n_double, len(double) - 1))[:n_double] if len(double) else one
    one, two = one[pairs], two[pairs]
    tried = np.concatenate([_flipped(graph, (i[best], j[best])),
                            _flipped(graph, (i[one], j[one]), (i[two], j[two]))])  # fmt: skip
    prices = np.concatenate([price[best], price[one] + price[two]])
    gain = _objective(patch, state_of(patch, tried), tau) - _objective(patch, state, tau) + prices
    return np.asarray(tried[np.argmin(gain)]) if gain.min() < -1e-6 else None
