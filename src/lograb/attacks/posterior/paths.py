"""Paths of two edges: what a ball says about the pairs inside it, once some of them are known.

A ball of radius 2 or more around v contains every node to which a path of two edges leads. So if j lies outside,
on no path v - x - j are both pairs edges: once (v, x) is known, (x, j) is none. Most pairs that share only a
large, noisy patch are ruled out so.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit

from lograb.attacks.posterior.beliefs import CERTAIN, Beliefs, Scene, Status
from lograb.pairs import unpair
from lograb.types import Bools, Ints

MOST_MEMBERS = 20_000_000
"""Members of the balls around known neighbours, summed over all nodes, up to which pairs are ruled out."""
IN_REACH = 0.05
"""Share of edges among open pairs in reach on which the model is wrong."""


def paths(scene: Scene, beliefs: Beliefs) -> Beliefs:
    """Doubt the model on a few pairs, and judge again those that balls of radius 2 or more say something about."""
    if scene.whole.protocol.d > 1 and len(scene.ball):
        return reconcile(beliefs, scene.ball, scene.whole.n_nodes, scene.settings.misfit)
    return _misfit(beliefs, scene.settings.misfit, None)


def _misfit(beliefs: Beliefs, misfit: float, share: float | None) -> Beliefs:
    """Take the model to be wrong on some open pairs, of which a share are edges: as among all unless given."""
    probability, open_ = beliefs.probability, beliefs.open
    share = float(probability[open_].mean()) if share is None and open_.any() else share or 0.0
    mixed = np.clip((1.0 - misfit) * probability + misfit * share, expit(-CERTAIN), expit(CERTAIN))
    return beliefs.settle(open_, logit(mixed), Status.OPEN)


def reconcile(beliefs: Beliefs, ball: Ints, n_nodes: int, misfit: float) -> Beliefs:
    """Rule out pairs that known edges bar, where balls have radius 2 or more.

    Parameters
    ----------
    ball : int64 array, increasing
        centre * n_nodes + member, without the centres themselves.
    misfit : float
        Share of open pairs on which the model is wrong.
    """
    keys, edges = beliefs.keys, np.flatnonzero(beliefs.known > 0)
    # Where two known edges lead out of a ball together, the one at its centre is usually right.
    reopened = np.zeros(len(keys), dtype=bool)
    reopened[edges[out_of_reach(keys[edges], keys[edges], ball, n_nodes)]] = True
    beliefs = beliefs.settle(reopened, beliefs.log_odds, Status.OPEN)
    known = beliefs.known
    barred = (known == 0) & out_of_reach(keys, keys[known > 0], ball, n_nodes)
    beliefs = beliefs.settle(barred, np.full(len(keys), -CERTAIN), Status.CERTAIN)
    return _misfit(beliefs, misfit, IN_REACH)


def out_of_reach(keys: Ints, edges: Ints, ball: Ints, n_nodes: int) -> Bools:
    """Say which pairs cannot be edges given some that are, where balls have radius 2 or more; shape (m,).

    Each end of an edge lies in the ball of every centre that the other end is joined to.

    Parameters
    ----------
    keys, edges : int64 arrays, shapes (m,) and (e,)
        Pairs as u * n_nodes + w, u < w.
    ball : int64 array, increasing
        centre * n_nodes + member, without the centres themselves.
    """
    barred = np.zeros(len(keys), dtype=bool)
    shape = (n_nodes, n_nodes)
    ball = np.append(ball, np.unique(ball // n_nodes) * (n_nodes + 1))  # a centre is in its ball
    inside = sp.csr_array((np.ones(len(ball)), (ball // n_nodes, ball % n_nodes)), shape=shape)
    ends = unpair(edges, n_nodes)
    ends = np.concatenate([ends, ends[:, ::-1]])
    sizes = np.diff(inside.indptr)[ends[:, 1]]
    if sizes.sum() > MOST_MEMBERS:
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
