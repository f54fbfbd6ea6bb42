"""Paths of two edges: what a ball says about the pairs inside it, once some of them are known.

A ball of radius 2 or more around v contains every node to which a path of two edges leads, and one of radius 2
no others. For a centre v and a node j that is a fact about all paths v - x - j at once:

    j outside   on none of them are both pairs edges,
    j inside    (v, j) is an edge, or on at least one of them both pairs are.

Most pairs that share only a large, noisy patch are ruled out by the first kind (`out_of_reach`). The others, few
by then, are candidates for the second kind: by some path j came into the ball. Pairs and facts exchange messages
(sum-product): a pair tells each fact how likely it is an edge by all else that is known, and the fact answers with
the ratio of its own likelihoods with that edge and without. Where pairs and facts form a tree and one fact at most
raises each pair, the result is the exact posterior. Where little is known messages run away.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit

from lograb.attacks.posterior.beliefs import CERTAIN, Beliefs, Scene, Status, log_odds_of
from lograb.attacks.posterior.rules import Ball, ball_matrix
from lograb.pairs import unpair
from lograb.ragged import pointer, ranges
from lograb.types import Bools, Floats, Ints

MOST = 2_000_000
"""Paths up to which they are followed at all."""
MOST_MEMBERS = 20_000_000
"""Members of the balls around known neighbours, summed over all nodes, up to which pairs are ruled out."""
FAINT = 1e-3
"""Probability up to which a known pair is on no path: it counts as impossible."""
MOST_UNSURE = 0.1
"""Expected number of wrong pairs, over that of edges, up to which paths are followed."""
ENOUGH = 100.0
IN_REACH = 0.05
"""Share of edges among open pairs in reach on which the model is wrong."""
ITERATIONS = 20
DAMPING = 0.7
"""Share of the old messages that is kept."""
MOST_TOLD = 9.0
"""Log-odds at which a pair is cut in what it tells a fact."""
LEAST = 1e-9
"""Probability that a node came in by none of the paths listed; it keeps logarithms finite."""


@dataclass(frozen=True)
class Paths:
    """Paths from centres, sorted into facts.

    Attributes
    ----------
    ends : int64 array, shape (2, m)
        Positions of the two pairs of each path. The pair (v, j) itself counts as a path whose other pair is
        certain, and has the position after the last.
    fact : int64 array, shape (m,)
        To which fact each path belongs.
    inside : bool array, shape (f,)
        Of each fact, whether the ball contains the node. Facts may be without a path.
    """

    ends: Ints
    fact: Ints
    inside: Bools


def paths(scene: Scene, beliefs: Beliefs) -> Beliefs:
    """Doubt the model on a few pairs, and judge again those that balls of radius 2 or more say something about."""
    if scene.radius > 1:
        return reconcile(scene, beliefs)
    return _misfit(beliefs, scene.settings.misfit, None)


def _misfit(beliefs: Beliefs, misfit: float, share: float | None) -> Beliefs:
    """Take the model to be wrong on some open pairs, of which a share are edges: as among all unless given."""
    probability, open_ = beliefs.probability, beliefs.open
    share = float(probability[open_].mean()) if share is None and open_.any() else share or 0.0
    return beliefs.settle(open_, log_odds_of((1.0 - misfit) * probability + misfit * share), Status.OPEN)


def reconcile(scene: Scene, beliefs: Beliefs) -> Beliefs:
    """Judge pairs again by the balls, of radius 2 or more, that they lie in or out of."""
    read = np.concatenate([batch.which for batch in scene.batches])
    tells = np.isin(np.arange(scene.seen.n_nodes), scene.centres[read]) & (scene.radius == 2)
    return by_balls(beliefs, scene.ball, tells, scene.seen.n_nodes, scene.settings.misfit)


def by_balls(beliefs: Beliefs, ball: Ball, tells: Bools, n_nodes: int, misfit: float) -> Beliefs:
    """Rule out pairs that known edges bar, and let the others exchange messages with what balls say.

    `misfit` is the share of open pairs on which the model is wrong, `tells` is as in `list_paths`.
    """
    beliefs = rule_out(beliefs, ball, n_nodes)
    if beliefs.drawn is not None:  # balls have had their say
        return beliefs
    beliefs = _misfit(beliefs, misfit, IN_REACH)
    if unsure(beliefs):
        return beliefs
    free, probability = beliefs.known == 0, beliefs.probability
    listed = list_paths(beliefs.keys, free | (probability > FAINT), ball, tells, n_nodes)
    log_odds = follow(listed, logit(probability), free, beliefs.status == Status.WEIGHED)
    return replace(beliefs, log_odds=np.clip(log_odds, -CERTAIN, CERTAIN))


def rule_out(beliefs: Beliefs, ball: Ball, n_nodes: int) -> Beliefs:
    """Rule out the pairs that known edges bar."""
    keys, edges = beliefs.keys, np.flatnonzero(beliefs.known > 0)
    # Where two known edges lead out of a ball together, the one at its centre is usually right.
    reopened = np.zeros(len(keys), dtype=bool)
    reopened[edges[out_of_reach(keys[edges], keys[edges], ball, n_nodes)]] = True
    beliefs = beliefs.settle(reopened, beliefs.log_odds, Status.OPEN)
    known = beliefs.known
    barred = (known == 0) & out_of_reach(keys, keys[known > 0], ball, n_nodes)
    return beliefs.settle(barred, np.full(len(keys), -CERTAIN), Status.CERTAIN)


def unsure(beliefs: Beliefs, most: float = MOST_UNSURE) -> bool:
    """Whether so much is open that messages would run away, or another share of the edges."""
    free, probability = beliefs.known == 0, beliefs.probability
    wrong = float(np.minimum(probability, 1.0 - probability)[free].sum())
    return wrong > most * max(float(probability.sum()), ENOUGH)


def out_of_reach(keys: Ints, edges: Ints, ball: Ball, n_nodes: int) -> Bools:
    """Say which pairs cannot be edges given some that are, where balls have radius 2 or more; shape (m,).

    Each end of an edge lies in the ball of every centre that the other end is joined to.

    Parameters
    ----------
    keys, edges : int64 arrays, shapes (m,) and (e,)
        Pairs as u * n_nodes + w, u < w.
    """
    barred, inside = np.zeros(len(keys), dtype=bool), ball_matrix(ball, n_nodes)
    ends = unpair(edges, n_nodes)
    ends = np.concatenate([ends, ends[:, ::-1]])
    sizes = np.diff(inside.indptr)[ends[:, 1]]
    if sizes.sum() > MOST_MEMBERS or not len(keys):
        return barred
    ends = ends[sizes > 0]
    joined = sp.csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=inside.shape)
    met, needed = joined @ inside, np.diff(joined.indptr)
    met.sort_indices()  # to look pairs up is quick then
    one, other = unpair(keys, n_nodes).T
    for i, j in ((one, other), (other, one)):
        barred |= met[i, j] < needed[i]
    return barred


def list_paths(keys: Ints, live: Bools, ball: Ball, tells: Bools, n_nodes: int) -> Paths:
    """List the paths through live pairs that start at a centre; none if there are more than `MOST`.

    Parameters
    ----------
    keys : int64 array, shape (m,), increasing
    live : bool array, shape (m,)
        The others are no edges.
    tells : bool array, shape (n_nodes,)
        Centres with balls of radius 2 all of whose pairs are among `keys`: only they tell how a node came inside.
    """
    low, high = unpair(keys[live], n_nodes).T
    degrees = np.bincount(low, minlength=n_nodes) + np.bincount(high, minlength=n_nodes)
    is_centre = np.bincount(ball // n_nodes, minlength=n_nodes) > 0
    if (is_centre[low] * degrees[high] + is_centre[high] * degrees[low]).sum() > MOST:
        return Paths(np.empty((2, 0), np.int64), np.empty(0, np.int64), np.empty(0, dtype=bool))
    place, start, stop = np.tile(np.flatnonzero(live), 2), np.append(low, high), np.append(high, low)
    order = np.argsort(start, kind="stable")
    place, start, stop = place[order], start[order], stop[order]
    direct = np.flatnonzero(is_centre[start])
    steps, ptr = degrees[stop[direct]], pointer(degrees)
    first, second = np.repeat(direct, steps), ranges(ptr[stop[direct]], steps)
    certain = np.full(len(direct), len(keys))
    ends = np.stack([place[np.append(first, direct)], np.append(place[second], certain)])
    centre, node = start[np.append(first, direct)], stop[np.append(second, direct)]
    # The balls of two centres say the same about paths between them.
    rank = np.where(is_centre, np.arange(n_nodes) + np.where(tells, 0, n_nodes), 2 * n_nodes)
    once = rank[centre] < rank[node]
    ends, names = ends[:, once], (centre * n_nodes + node)[once]
    names, fact = np.unique(names, return_inverse=True)
    inside = np.isin(names, ball)
    kept = (~inside | tells[names // n_nodes])[fact]
    return Paths(ends[:, kept], fact[kept], inside)


def follow(paths: Paths, log_odds: Floats, free: Bools, weighed: Bools) -> Floats:
    """Add to the log-odds of the free pairs what the facts say about them, shape (m,).

    What lowers a pair adds up. Of what raises it the strongest counts: facts about the same pair lean on the same
    alternatives, and where little is known yet their sum would run away. Nothing raises a pair that was weighed by
    a check: that compared whole graphs, in each of which every node came in by some path.
    """
    size, m = len(log_odds), len(paths.inside)
    asked, given = np.append(free, False), np.append(log_odds, MOST_TOLD)
    holds = (~asked & (given > 0))[paths.ends].all(axis=0)
    says = np.bincount(paths.fact, asked[paths.ends].any(axis=0), m) > 0
    says &= ~(paths.inside & (np.bincount(paths.fact, holds, m) > 0))  # it is known how the node came in
    ends, fact = paths.ends[:, says[paths.fact]], paths.fact[says[paths.fact]]
    inside, pair = paths.inside[fact], ends.ravel()
    hears = asked[ends] & ~(inside & np.append(weighed, False)[ends])
    answers, heard = np.zeros(ends.shape), np.zeros(ends.shape)
    raised, lowered = np.zeros(size + 1), np.zeros(size + 1)
    for _ in range(ITERATIONS):
        this, other = edge = expit(np.minimum(given[ends] + heard, MOST_TOLD))
        broken = np.log1p(-this * other)
        # The logarithm of the probability that no other path holds.
        rest = np.minimum(np.bincount(fact, broken, m)[fact] - broken, -LEAST)
        partner = edge[::-1]
        brought = np.log1p((partner - 1.0) * np.exp(rest)) - np.log(-np.expm1(rest))
        answer = np.where(hears, np.where(inside, brought, np.log1p(-partner)), 0.0)
        answers = DAMPING * answers + (1.0 - DAMPING) * answer
        raises, lowers = answers.ravel(), np.minimum(answers, 0.0)
        lowered = np.bincount(pair, lowers.ravel(), size + 1).astype(float)
        raised, others = _strongest(pair, raises, size + 1)
        heard = others.reshape(ends.shape) + lowered[ends] - lowers
    return log_odds + (raised + lowered)[:size]


def _strongest(pair: Ints, values: Floats, size: int) -> tuple[Floats, Floats]:
    """Find the largest value above 0 of each pair, shape (size,), and for each value the largest of the others."""
    best, second = np.zeros(size), np.zeros(size)
    np.maximum.at(best, pair, values)
    is_best = values >= best[pair]
    np.maximum.at(second, pair[~is_best], values[~is_best])
    alone = np.bincount(pair, is_best, size) == 1
    return best, np.where(is_best & alone[pair], second[pair], best[pair])
