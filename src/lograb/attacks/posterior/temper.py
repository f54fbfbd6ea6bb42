"""Self-knowledge: how wrong the attack is, told by what was seen, without the truth.

With Ŝ made of the probabilities p, Ŝ Y - Y M holds (Ŝ - S) U and noise of known size. So what is left of its
square estimates Σ w² (a - p)² u², the error that was made; if probabilities are right, that is Σ w² p (1 - p) u²
on average. What exceeds it are pairs that are not what they are taken for: edges that are none, and missed ones.
The number of edges, which degrees tell, says how many of each. Probabilities are moved, patch by patch.
"""

from __future__ import annotations

import numpy as np

from lograb.attacks.posterior.batches import Batch
from lograb.attacks.posterior.beliefs import Beliefs, Scene, Status, log_odds_of
from lograb.attacks.posterior.degrees import LEAST_LEFT, Work
from lograb.attacks.posterior.isolated import ZERO
from lograb.pairs import vectors_of
from lograb.parallel import ordered_map
from lograb.types import Floats

TRUST = 0.5
"""Share of the error shown that is put down to wrong pairs; the rest is wrong degrees."""
SHARED_RATE, LIKELY_RATE = 0.05, 0.3
"""Standard deviations of the share of wrong pairs: between patches of one shape, and of what all share."""
TOLERANCE = 0.15
"""Share of the edges by which the number that degrees tell may be off."""


def temper(scene: Scene, beliefs: Beliefs) -> Beliefs:
    """Move the probabilities of open pairs by the errors that their patches show."""
    works, probability = list(beliefs.works.values()), beliefs.probability
    total = np.zeros((2, len(beliefs.keys)))

    def one(work: Work) -> tuple[Floats, Floats]:
        return _errors(scene, beliefs, work, probability)

    for work, shares in zip(works, ordered_map(one, works)):
        for row, share in zip(total, shares):
            row += np.bincount(scene.entry[work.batch.entries], work.batch.for_pairs(share), len(row))
    false, missed = total / np.maximum(scene.counts, 1)
    missed = np.minimum(missed * beliefs.chance, 0.9)
    moved = probability * (1.0 - false) + (1.0 - probability) * missed
    return beliefs.settle(beliefs.open, log_odds_of(moved), Status.OPEN)


def _errors(scene: Scene, beliefs: Beliefs, work: Work, probability: Floats) -> tuple[Floats, Floats]:
    """Estimate how wrong the probabilities are in the patches of a batch, each shape (b,).

    Given are the share of the edges believed that are none, and the probability of the others to be edges, in
    units of their chance.
    """
    batch, places, degrees = work.batch, scene.places(work.batch), work.degrees.mean
    p, chance = batch.matrix(probability[places]), batch.matrix(beliefs.chance[places])
    free = batch.matrix(beliefs.open[places].astype(float))
    if scene.radius == 2:  # balls tell more about them than noisy patches do
        degrees = np.maximum(p.sum(axis=2), LEAST_LEFT)
    root = 1.0 / np.sqrt(degrees)
    weights = root[:, :, None] * root[:, None, :]
    shown = weights**2 * (batch.frame**2).sum(axis=2)[:, None, :]  # squared residual that a wrong pair makes

    def total(values: Floats) -> Floats:
        return np.asarray(values.sum(axis=(1, 2)))

    doubt = total(shown * p * (1.0 - p))
    excess, deviation = _excess(batch, vectors_of(scene.seen, batch.which), p * weights, doubt)
    heavy = shown * free
    by_false = np.maximum(total(heavy * p * np.maximum(2.0 * p - 1.0, 0.0)), 1e-9)
    by_missed = np.maximum(total(heavy * chance * (1.0 - p) * np.maximum(1.0 - 2.0 * p, 0.0)), 1e-9)
    edges, others = total(p * free), total(chance * (1.0 - p) * free)
    both = by_false + by_missed
    rate = _rate(excess / both, deviation / both)
    made = np.maximum(TRUST * rate * both, 1e-12)
    lacking = degrees.sum(axis=1) - total(p)
    # Along all mixtures of both kinds that explain the error, the one that has the right number of edges.
    share = (others / by_missed - lacking / made) / (edges / by_false + others / by_missed + 1e-12)
    share = np.clip(share, 0.0, 1.0)
    missed = np.minimum((1.0 - share) * made / by_missed, 1.0)  # at worst nothing but chance is left
    if batch.valued:  # eigenvalues tell how many edges there are
        short = (lacking - TOLERANCE * degrees.sum(axis=1)) / np.maximum(others, 1e-9)
        fits = (excess < 2.0 * deviation) & batch.readable
        missed = np.where(fits, missed, np.clip(short, missed, 1.0))
    wrong = np.clip(share * made / by_false, 0.0, 1.0)
    if not batch.readable:  # what fixes no scale promises too much
        wrong = np.maximum(wrong, 1.0 - (1.0 + TOLERANCE) * degrees.sum(axis=1) / np.maximum(total(p), 1e-9))
    heard = batch.strength  # a patch that is not believed shows no errors either
    if batch.readable:  # nor one that shows no eigenvalue but 0
        heard = heard * (batch.mu[:, -1] < 1.0 - ZERO)
    return heard * wrong, heard * missed


def _excess(batch: Batch, observed: Floats, estimate: Floats, doubt: Floats) -> tuple[Floats, Floats]:
    """Squared residual beyond what noise and doubt make of it, and the standard deviation of that; shapes (b,)."""
    if batch.readable:
        fitted = observed * batch.mu[:, None, :]
        norm = (batch.mu**2).sum(axis=1)
    else:
        inner = batch.frame.swapaxes(1, 2) @ estimate @ batch.frame
        if batch.paired:
            inner = inner * np.eye(batch.rank)
        fitted, norm = observed @ inner, (inner**2).sum(axis=(1, 2))
    squares = ((estimate @ observed - fitted) ** 2).sum(axis=(1, 2))
    noise = batch.variance * (batch.rank * (estimate**2).sum(axis=(1, 2)) + batch.size * norm)
    deviation = 2.0 * noise / np.sqrt(batch.rank * batch.size) + 0.1 * doubt
    return squares - noise - doubt, deviation


def _rate(rate: Floats, deviation: Floats) -> Floats:
    """Shrink the shares of wrong pairs to what all patches of a shape have in common, and that towards 0."""
    precision = 1.0 / (deviation**2 + SHARED_RATE**2)
    common = (rate * precision).sum() / (precision.sum() + 1.0 / LIKELY_RATE**2)
    own = 1.0 / np.maximum(deviation, 1e-6) ** 2
    return np.asarray(np.maximum((own * rate + common / SHARED_RATE**2) / (own + 1.0 / SHARED_RATE**2), 0.0))
