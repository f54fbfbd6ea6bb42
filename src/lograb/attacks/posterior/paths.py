"""Paths of two edges: what a ball says about the pairs inside it, once some of them are known.

A ball of radius 2 or more around v contains every node to which a path of two edges leads, and one of radius 2
no others. For a centre v and a node j that is a fact about all paths v - x - j at once:

    j outside   on none of them are both pairs edges,
    j inside    (v, j) is an edge, or on at least one of them both pairs are.

Most pairs that share only a large, noisy patch are ruled out by the first kind (`out_of_reach`). The others, few
by then, are candidates for the second kind: by some path j came into the ball. Pairs and facts exchange messages
(sum-product): a pair tells each fact how likely it is an edge by all else that is known, and the fact answers with
the ratio of its own likelihoods with that edge and without. Where pairs and facts form a tree and one fact at most
raises each pair, the result is the exact posterior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit

from lograb.attacks.pairs import unpair
from lograb.attacks.posterior.rounds import CERTAIN, probabilities
from lograb.attacks.posterior.settings import PosteriorSettings
from lograb.ragged import pointer, ranges
from lograb.types import Bools, Floats, Ints

MOST = 4_000_000
"""Paths up to which they are followed at all."""
FAINT = 1e-3
"""Probability below which a pair that is known to be none stands on no path."""
SOUND = 5.0
"""Log-odds by a check beyond which a pair is known."""
ITERATIONS = 20
DAMPING = 0.7
"""Share of the old messages that is kept."""
SUREST = 9.0
"""Log-odds at which a pair is cut in what it tells."""
LEAST = 1e-9
"""Probability of what is on no list, so that none is left without."""


@dataclass(frozen=True)
class Paths:
    """Paths from centres, sorted into facts.

    Attributes
    ----------
    ends : int64 array, shape (2, m)
        Positions of the two pairs of each path. The pair (v, j) itself counts as a path whose other pair is
        certain; that one stands behind all others.
    fact : int64 array, shape (m,)
        To which fact each path belongs.
    inside : bool array, shape (f,)
        Of each fact, whether the ball contains the node.
    """

    ends: Ints
    fact: Ints
    inside: Bools


def reconcile(
    keys: Ints,
    judged: Floats,
    checked: Floats,
    ball: Ints,
    tells: Bools,
    n_nodes: int,
    settings: PosteriorSettings,
) -> Floats:
    """Judge pairs again by the balls, of radius 2 or more, that they lie in or out of; their probabilities.

    Parameters
    ----------
    keys : int64 array, shape (m,), increasing
    judged, checked : float arrays, shape (m,)
        Log-odds as in `probabilities`.
    ball : int64 array, increasing
        centre * n_nodes + member, without the centres themselves.
    tells : bool array, shape (n_nodes,)
        As in `list_paths`.
    """
    known = np.where(np.abs(judged) == CERTAIN, judged, np.where(np.abs(checked) > SOUND, checked, 0.0))
    barred = (known == 0) & out_of_reach(keys, keys[known > 0], ball, n_nodes, settings.max_entries)
    judged, checked = np.where(barred, -CERTAIN, judged), np.where(barred, 0.0, checked)
    probability = np.clip(probabilities(judged, checked, settings.misfit), expit(-CERTAIN), expit(CERTAIN))
    free = (known == 0) & ~barred
    paths = list_paths(keys, free | (probability > FAINT), ball, tells, n_nodes)
    return np.asarray(expit(follow(paths, logit(probability), free)))


def out_of_reach(keys: Ints, edges: Ints, ball: Ints, n_nodes: int, most: int) -> Bools:
    """Say which pairs cannot be edges given some that are, where balls have radius 2 or more; shape (m,).

    Each end of an edge lies in the ball of every centre that the other end is joined to.

    Parameters
    ----------
    keys, edges : int64 arrays, shapes (m,) and (e,)
        Pairs as u * n_nodes + w, u < w.
    ball : int64 array, increasing
        centre * n_nodes + member, without the centres themselves.
    most : int
        Members of the balls around known neighbours, summed over all nodes, up to which it is tried at all.
    """
    barred = np.zeros(len(keys), dtype=bool)
    shape = (n_nodes, n_nodes)
    ball = np.append(ball, np.unique(ball // n_nodes) * (n_nodes + 1))  # a centre is in its ball
    inside = sp.csr_array((np.ones(len(ball)), (ball // n_nodes, ball % n_nodes)), shape=shape)
    ends = unpair(edges, n_nodes)
    ends = np.concatenate([ends, ends[:, ::-1]])
    sizes = np.diff(inside.indptr)[ends[:, 1]]
    if sizes.sum() > most:
        return barred
    ends = ends[sizes > 0]
    joined = sp.csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=shape)
    met = (joined @ inside).tocoo()
    found = met.row.astype(np.int64) * n_nodes + met.col
    order = np.argsort(found)
    found, times = np.append(found[order], -1), np.append(met.data[order], 0.0)
    needed = np.diff(joined.indptr)
    one, other = unpair(keys, n_nodes).T
    for i, j in ((one, other), (other, one)):
        wanted = i * n_nodes + j
        place = np.searchsorted(found[:-1], wanted)
        barred |= np.where(found[place] == wanted, times[place], 0.0) < needed[i]
    return barred


def list_paths(keys: Ints, live: Bools, ball: Ints, tells: Bools, n_nodes: int) -> Paths:
    """List the paths through live pairs that start at a centre; none if there are more than `MOST`.

    Parameters
    ----------
    keys : int64 array, shape (m,), increasing
    live : bool array, shape (m,)
        The others are no edges.
    ball : int64 array, increasing
    tells : bool array, shape (n_nodes,)
        Centres with balls of radius 2 all of whose pairs are among `keys`: only they tell how a node came inside.
    """
    place = np.tile(np.flatnonzero(live), 2)
    low, high = unpair(keys[live], n_nodes).T
    start, stop = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.argsort(start, kind="stable")
    place, start, stop = place[order], start[order], stop[order]
    ptr = pointer(np.bincount(start, minlength=n_nodes))
    is_centre = np.zeros(n_nodes, dtype=bool)
    is_centre[ball // n_nodes] = True
    direct = np.flatnonzero(is_centre[start])
    steps = np.diff(ptr)[stop[direct]]
    if steps.sum() > MOST:
        direct, steps = direct[:0], steps[:0]
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


def follow(paths: Paths, log_odds: Floats, free: Bools) -> Floats:
    """Add to the log-odds of the free pairs what the facts say about them, shape (m,).

    What lowers a pair adds up. Of what raises it the strongest counts: facts about the same pair lean on the same
    alternatives, and where little is known yet their sum would run away.
    """
    size, m = len(log_odds), len(paths.inside)
    asked = np.append(free, False)
    speaks = np.bincount(paths.fact, asked[paths.ends].any(axis=0), m)[paths.fact] > 0
    ends, fact = paths.ends[:, speaks], paths.fact[speaks]
    open_, inside = asked[ends], paths.inside[fact]
    given = np.append(log_odds, SUREST)
    messages, own = np.zeros(ends.shape), np.zeros(ends.shape)
    raised, lowered = np.zeros(size + 1), np.zeros(size + 1)
    for _ in range(ITERATIONS):
        # To each fact a pair tells all but what it heard from this fact.
        this, other = edge = expit(np.minimum((given + raised + lowered)[ends] - own, SUREST))
        broken = np.log1p(-this * other)
        # The logarithm of the probability that no other path holds.
        rest = np.minimum(np.bincount(fact, broken, m)[fact] - broken, -LEAST)
        partner = edge[::-1]
        brought = np.log1p((partner - 1.0) * np.exp(rest)) - np.log(-np.expm1(rest))
        said = np.where(open_, np.where(inside, brought, np.log1p(-partner)), 0.0)
        messages = DAMPING * messages + (1.0 - DAMPING) * said
        raised = np.zeros(size + 1)
        np.maximum.at(raised, ends, messages)
        lowered = np.bincount(ends.ravel(), np.minimum(messages, 0.0).ravel(), size + 1).astype(float)
        own = np.where(messages >= raised[ends], messages, np.minimum(messages, 0.0))
    return np.asarray(log_odds + (raised + lowered)[:size])
