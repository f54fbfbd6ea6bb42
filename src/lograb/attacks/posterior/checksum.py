"""Published eigenvalues as a checksum: graphs whose spectrum is exactly the published one.

Noise is put on the eigenvectors only. The eigenvalues of a patch are exact, and a graph with a single wrong pair
has others: whoever guesses a patch can check the guess, and knows when it is right. A guess that fails is mended
(`mending`); one that passes is weighed against the others with the same eigenvalues (`exchanges`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from lograb.attacks.posterior.batches import Batch
from lograb.attacks.posterior.exchanges import judge
from lograb.attacks.posterior.fusion import Pairs
from lograb.attacks.posterior.graphs import Patch, passes
from lograb.attacks.posterior.mending import MAX_DESCENT, search
from lograb.parallel import ordered_map
from lograb.progress import Progress, ignore
from lograb.types import Bools, Floats, Ints

MAX_COST = 8.0
"""Largest log-odds that other patches lend to a pair: they may err together."""
MAX_SIZE = 200
"""Members of the largest patch that is checked."""
MAX_WRONG = (20.0, 3.0)
"""Expected number of wrong pairs up to which a patch is mended: up to `MAX_DESCENT` members, and beyond."""


@dataclass(frozen=True)
class Checked:
    """What the checksums say about the pairs of some batches.

    Attributes
    ----------
    log_odds : float array, shape (m,)
        Of the pairs that patches that passed settle; 0 for the others.
    likely : float array, shape (m,)
        Share of the patches that contain a pair in whose last graph, mended or not, it is an edge.
    passed : int
        How many patches passed.
    left : int64 array
        Patches that did not, and are small enough to be mended.
    """

    log_odds: Floats
    likely: Floats
    passed: int
    left: Ints


def check(
    batches: list[Batch],
    observed: list[Floats],
    pairs: Pairs,
    log_odds: Floats,
    own: Floats,
    progress: Progress = ignore,
) -> Checked:
    """Check the likeliest graph of every patch against its eigenvalues, and mend those that fail.

    Parameters
    ----------
    batches : list of Batch, with eigenvalues and their columns
    observed : list of float array, shape (b, q, r)
        The embeddings as published, for each batch.
    pairs : Pairs
    log_odds : float array, shape (m,)
    own : float array
        For each pair in each batch: the part of its log-odds that comes from this patch.
    """
    size = len(log_odds)
    likely, low, high = np.zeros(size), np.zeros(size), np.zeros(size)
    n_passed, n_checked, left = 0, 0, [np.empty(0, np.int64)]
    total = sum(len(batch.which) for batch in batches)

    def one(position: int) -> tuple[Bools, Floats, Floats]:
        batch = batches[position]
        given = log_odds[pairs.entry[batch.entries]]
        others = np.clip(given - own[batch.entries], -MAX_COST, MAX_COST)
        return _check(batch, observed[position], batch.matrix(given), batch.matrix(others))

    for batch, (passed, graphs, odds) in zip(batches, ordered_map(one, range(len(batches)))):
        entry = pairs.entry[batch.entries]
        likely += np.bincount(entry, batch.pairs(graphs), size)
        np.minimum.at(low, entry, batch.pairs(odds))
        np.maximum.at(high, entry, batch.pairs(odds))
        n_passed += int(passed.sum())
        n_checked += len(passed)
        progress("checking patches", n_checked, total)
        if batch.size <= MAX_DESCENT:
            left.append(batch.which[~passed])
    return Checked(low + high, likely / np.maximum(pairs.counts, 1), n_passed, np.sort(np.concatenate(left)))


def _check(batch: Batch, observed: Floats, log_odds: Floats, cost: Floats) -> tuple[Bools, Floats, Floats]:
    """Check and mend one batch: which patches passed, all graphs, and the log-odds of pairs where they did."""
    graphs, odds = (log_odds > 0).astype(float), np.zeros(log_odds.shape)
    if batch.size > MAX_SIZE:
        return np.zeros(len(graphs), dtype=bool), graphs, odds
    passed = passes(graphs, batch.mu)
    off_diagonal = ~np.eye(batch.size, dtype=bool)
    wrong = expit(-np.abs(log_odds))[:, off_diagonal].sum(axis=1) / 2
    for at in np.flatnonzero(passed | (wrong < MAX_WRONG[batch.size > MAX_DESCENT])):
        patch = Patch(observed[at], batch.mu[at], float(batch.variance[at]), log_odds[at], cost[at])
        if not passed[at]:
            graphs[at], passed[at] = search(patch)
        if passed[at]:
            judged = judge(patch, graphs[at])
            passed[at] = judged is not None
            if judged is not None:
                graphs[at], odds[at] = judged
    return passed, graphs, odds
