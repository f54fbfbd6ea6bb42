"""Which of the graphs with the published eigenvalues it is.

They are practically those in which two members have changed places; the eigenvectors weigh them.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lograb.attacks.posterior.graphs import SAME, Patch, State, state_of
from lograb.types import Bools, Floats, Ints

VISIBLE = 3e-5
"""Change of the published eigenvalues that shows."""
DEVIATIONS = 5.0
"""Standard deviations by which the eigenvectors of a graph may be off."""
MAX_GAIN = 9.0
"""Largest log-odds that one patch lends to a pair."""
GAIN = 1e-3
"""Log-likelihood that an exchange must gain: far more than rounding, so that exchanges come to an end."""


def swaps(patch: Patch, state: State) -> Floats:
    """Rate graphs in which two members have changed places, against the present graph of a patch.

    Returns
    -------
    float array, shape (q, q)
        Log-likelihood ratio of the present graph against the one with i and j exchanged; infinite where that is
        the same graph.
    """
    graph, seen = state.graph, patch.observed
    variance = max(patch.variance, 1e-10)
    apart = np.abs(state.values[:, None] - patch.mu) > SAME
    inner = state.basis.T @ seen
    crossed = state.basis @ (apart * inner) @ seen.T
    own = np.diag(crossed)
    linear = own[:, None] + own[None, :] - crossed - crossed.T
    square = 2.0 * _squared_distances(seen)
    # Within an eigenspace any basis does: its share does not count.
    starts = np.flatnonzero(np.append(True, patch.mu[:-1] - patch.mu[1:] > SAME))
    for first, last in zip(starts, np.append(starts[1:], len(patch.mu))):
        inside = state.basis[:, ~apart[:, first]]
        square -= _squared_distances(inside) * _squared_distances(seen[:, first:last])
    loss = (square - 2.0 * linear) / (2.0 * variance)
    degrees = graph.sum(axis=1)
    differing = degrees[:, None] + degrees[None, :] - 2.0 * graph @ graph - 2.0 * graph
    mixed = graph @ patch.cost
    kept = np.diag(mixed)
    loss += kept[:, None] + kept[None, :] - mixed - mixed.T - 2.0 * graph * patch.cost
    return np.where(differing > 0.5, loss, np.inf)


def _squared_distances(rows: Floats) -> Floats:
    squares = (rows**2).sum(axis=1)
    return np.asarray(squares[:, None] + squares[None, :] - 2.0 * rows @ rows.T)


def plausible(patch: Patch, state: State) -> bool:
    """Test whether the eigenvectors of a graph fit the embedding: outside its eigenspaces there is only noise."""
    apart = np.abs(state.values[:, None] - patch.mu) > SAME
    expected = float(apart.sum())
    found = ((state.basis.T @ patch.observed)[apart] ** 2).sum() / max(patch.variance, 1e-10)
    return bool(found < expected + DEVIATIONS * np.sqrt(2.0 * expected) + DEVIATIONS)


def visible(patch: Patch, state: State) -> Bools:
    """Pairs whose flip changes a published eigenvalue, shape (q, q).

    To first order μ_a changes by 2 x_i x_j - μ_a (x_i² + x_j²) with x = u_a / √d. That is 0 for all pairs inside a
    component that shows the eigenvalue 1 only: its graph could be any.
    """
    rank, values = len(patch.mu), state.values
    shown = values > patch.mu[-1] - SAME
    if shown.sum() > rank:  # the cut runs through an eigenspace: how much of it there is was not published
        shown = values > patch.mu[-1] + SAME
    mu, vectors = values[shown], state.basis[:, shown]
    vectors = vectors / np.sqrt(np.maximum(state.graph.sum(axis=1), 1.0))[:, None]
    squares = vectors**2
    own, both = (squares**2 * mu**2).sum(axis=1), (squares * mu**2) @ squares.T
    mixed = (squares * vectors * mu) @ vectors.T
    change = 4.0 * squares @ squares.T + own[:, None] + own[None, :] + 2.0 * both - 4.0 * (mixed + mixed.T)
    return np.asarray(change > VISIBLE**2)


def judge(patch: Patch, graph: Floats) -> tuple[Floats, Floats] | None:
    """Settle which of the graphs with the published eigenvalues it is, and give the log-odds of its pairs.

    Returns
    -------
    graph : float array, shape (q, q)
    log_odds : float array, shape (q, q)
        0 for pairs that the published eigenvalues do not depend on.

    None if no such graph fits the eigenvectors.
    """
    q = len(graph)
    while True:  # each exchange raises the likelihood: this ends
        state = state_of(patch, graph)
        loss = swaps(patch, state)
        i, j = np.unravel_index(np.argmin(loss), loss.shape)
        if not loss[i, j] < -GAIN:
            break
        order = np.arange(q)
        order[[i, j]] = j, i
        graph = graph[np.ix_(order, order)]
    if not plausible(patch, state):
        return None
    found = []
    for i, j in np.argwhere(np.triu(loss < MAX_GAIN, k=1)):
        differ = np.flatnonzero(graph[i] != graph[j])
        differ = differ[(differ != i) & (differ != j)]
        one, other = np.repeat([i, j], len(differ)), np.tile(differ, 2)
        found.append((float(loss[i, j]), np.append(one * q + other, other * q + one)))
    odds = odds_against(q, found)
    return graph, np.where(visible(patch, state), np.where(graph > 0, -np.log(odds), np.log(odds)), 0.0)


def odds_against(size: int, others: Iterable[tuple[float, Ints]]) -> Floats:
    """Odds that a pair is not as in a graph, given other graphs it may be; shape (size, size).

    Others that change a pair in common exclude each other. So what competes with those that change a given pair
    are all that change the pair in which most of them meet; the rest does not matter.

    Parameters
    ----------
    others : pairs of a float and an int64 array
        Log-likelihood that each of them costs, and the pairs it changes, in both directions, as i * size + j. The
        same graph counts once.
    """
    distinct = {np.sort(changed).tobytes(): (np.exp(-price), changed) for price, changed in others}
    weight, rivals = np.zeros(size * size), np.zeros(size * size)
    for share, changed in distinct.values():
        weight[changed] += share
    for _, changed in distinct.values():
        rivals[changed] = np.maximum(rivals[changed], weight[changed].max(initial=0.0))
    return np.maximum(weight / (1.0 + np.maximum(rivals - weight, 0.0)), np.exp(-MAX_GAIN)).reshape(size, size)
