"""Membership in balls of radius 2, solved as a whole: which graphs have just these balls?

A ball of radius 2 holds the nodes to which one or two edges lead from its centre, and no others. Every member is a
fact about the graph, and every node outside is one. Few graphs meet all of them. The graph that was cut is hardly
ever the only one, but it shares most of its edges with the others. They are drawn by a random walk (`ball_moves`):
first with facts that weigh little, then more and more (simulated annealing), until they are met. From then on each
graph on the way is a draw from the posterior.

How likely a pair is before any fact is learnt from the graph at the end of cooling, for pairs that would close a
triangle and for the others: as often as such pairs are edges there.

One walk stays near the graph at which it has arrived, and cannot tell how many others there are. So there are
two, each from scratch. The true graph is one more that meets all facts: what one walk finds is true about as often
as the other finds it too, and that is what is promised.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import isotonic_regression

from lograb.attacks.posterior.beliefs import CERTAIN, Beliefs, Scene, Status, log_odds_of
from lograb.attacks.posterior.fusion import judge
from lograb.attacks.posterior.paths import MOST_UNSURE, rule_out, unsure
from lograb.attacks.posterior.rules import Ball, ball_matrix, star_keys, verdicts
from lograb.pairs import edge_keys, unpair
from lograb.parallel import ordered_map
from lograb.progress import Progress, ignore
from lograb.types import Bools, Floats, Ints

if TYPE_CHECKING:
    from lograb.attacks.posterior.ball_moves import Web

FIRST_ODDS = -1.0
"""Log-odds of an edge while facts are not met yet. With less, walks to dense graphs get stuck at sparse ones."""
LOOSE, TIGHT = (1.25, 0.125), (10.0, 10.0)
"""What a broken fact costs at first and in the end: a member that is not reached, a path that leads out."""
STAGES = 40
"""Steps of cooling."""
SWEEPS, MOST_STEPS = 480, 12_000_000
"""Moves of each walk while cooling: for each pair that may change, and at most."""
DRAWS = 30
"""Graphs that count, and as many before them that do not; for each half of them a quarter of the moves."""
EXCHANGES, TURNS = 0.04, 0.3
"""Shares of moves that exchange the neighbours of two nodes, and that turn an edge."""
MOST_INSIDE = 0.9
"""Mean share of the nodes that a ball holds beyond which nearly everything is open, and nothing is drawn."""
LEAST_ASKED = 0.15
"""Share of the pairs that balls say something about below which nothing is drawn."""
MOST_UNCHECKED = 0.03
"""As `MOST_UNSURE`, where no check will follow."""
BORNE_OUT = 0.5
"""Share of one walk's edges that the other finds too, from which balls need no rotated columns beside them."""
MOST_PAIRS = 1_000_000
"""Pairs up to which graphs are drawn at all."""


class Drawn(NamedTuple):
    """What balls tell.

    Attributes
    ----------
    probability : float array, shape (m,)
        Of each pair.
    agreement : float
        Share of one walk's edges that the other finds too.
    """

    probability: Floats
    agreement: float


def possible_pairs(ball: Ball, n_nodes: int) -> Ints:
    """List the pairs that share a ball and that no centre rules out, as keys u * n_nodes + w; none if too many."""
    holds = ball_matrix(ball, n_nodes)
    sizes = np.maximum(np.diff(holds.indptr), 1).astype(float)
    if float((sizes**2).sum()) > 40 * MOST_PAIRS:
        return np.empty(0, np.int64)
    met = sp.triu(holds.T @ holds, k=1, format="coo")
    pairs = np.stack([met.row, met.col], axis=1).astype(np.int64)
    keys = np.sort(edge_keys(pairs[verdicts(pairs, ball, ball // n_nodes, n_nodes, 2) == 0], n_nodes))
    return keys if len(keys) <= MOST_PAIRS else np.empty(0, np.int64)


def balls(scene: Scene, beliefs: Beliefs) -> Beliefs:
    """Where balls of radius 2 leave much open, judge again with graphs that have them in place of chance."""
    n = scene.seen.n_nodes
    most = MOST_UNSURE if scene.checked else MOST_UNCHECKED
    if scene.radius != 2 or not unsure(rule_out(beliefs, scene.ball, n), most):
        return beliefs
    keys = possible_pairs(scene.ball, n)
    if not np.isin(keys, beliefs.keys).all():  # not every ball was read
        return beliefs
    at = np.searchsorted(beliefs.keys, keys)
    drawn = draw_graphs(keys, scene.ball, n, scene.rng, scene.progress)
    if drawn is None:
        return beliefs
    odds = np.full(len(beliefs.keys), -CERTAIN)
    odds[at] = log_odds_of(drawn.probability)
    beliefs = replace(beliefs.settle(beliefs.open, odds, Status.OPEN), drawn=odds).tell(balls=drawn.agreement)
    # Columns in an arbitrary basis fix no scale: they err about many pairs at once, and balls do not.
    enough = scene.seen.protocol.gauge == "rotation" and drawn.agreement > BORNE_OUT
    return beliefs if enough else judge(scene, beliefs)


def draw_graphs(
    keys: Ints, ball: Ball, n_nodes: int, rng: np.random.Generator, progress: Progress = ignore
) -> Drawn | None:  # fmt: skip
    """Draw graphs that have the balls seen, and tell how often each pair is an edge in them.

    Balls are taken at their word. None where they contradict each other, or are so few or so large that the
    graphs could be anything.

    Parameters
    ----------
    keys : int64 array, shape (m,)
        The pairs that may be edges, see `possible_pairs`.
    ball : Ball
        All balls; their radius is 2.
    """
    if not len(keys) or not np.isin(star_keys(ball, n_nodes), keys).all():
        return None
    if len(ball) > MOST_INSIDE * n_nodes * len(np.unique(ball // n_nodes)):
        return None
    webs = [_web(keys, ball, n_nodes) for _ in range(2)]
    if webs[0].inside.mean() < LEAST_ASKED:
        return None
    reports, sources = (progress, ignore), rng.spawn(2)
    found = list(ordered_map(lambda at: _walk(webs[at], sources[at], reports[at]), range(2)))
    return Drawn(*agreed(*found))


def agreed(one: Floats, other: Floats) -> tuple[Floats, float]:
    """Fuse two independent estimates into probabilities, by how far each bears the other out.

    How often pairs of one estimate are edges in the other is learnt by isotonic regression, both ways at once: s
    for pairs that look alike. A third draw has pairs that one of two found with s / (1 + s), and those that both
    found with 2 s / (1 + s) (Polya's urn). The share of edges on which the two agree comes with it.
    """
    told, place, times = np.unique(np.append(one, other), return_inverse=True, return_counts=True)
    worth = isotonic_regression(np.bincount(place, np.append(other, one)) / times, weights=times).x
    first, second = np.interp(one, told, worth), np.interp(other, told, worth)
    share = float(2.0 * (one @ other) / max(float((one + other).sum()), 1e-9))
    return (first + second) / (1.0 + np.maximum(first, second)), share


def _walk(web: Web, rng: np.random.Generator, progress: Progress) -> Floats:
    """Walk from no graph to those that have the balls, and give the probabilities of pairs in them, shape (m,)."""
    from lograb.attacks.posterior.ball_moves import add_chances, walk  # numba takes a second to import

    steps = min(SWEEPS * len(web.ends), MOST_STEPS)
    loose, tight = np.array(LOOSE), np.array(TIGHT)
    for stage in range(STAGES):
        progress("fitting balls", stage, STAGES)
        missing, barred = loose * (tight / loose) ** (stage / (STAGES - 1))
        walk(web, rng, steps // STAGES, EXCHANGES, TURNS, missing, barred, True)
    _learn(web)  # once: from draw to draw they would drift to where most graphs are, which is dense
    found: Floats = np.zeros(len(web.ends))
    for draw in range(2 * DRAWS):
        progress("drawing graphs", draw, 2 * DRAWS)
        walk(web, rng, steps // (4 * DRAWS), EXCHANGES, TURNS, *TIGHT, False)
        if draw >= DRAWS:
            add_chances(web, found, *TIGHT)
    return found / DRAWS


def _web(keys: Ints, ball: Ball, n_nodes: int) -> Web:
    """Lay out a graph without edges on these pairs."""
    from lograb.attacks.posterior.ball_moves import Web, fill

    ends = unpair(keys, n_nodes)
    size = 1 << int(np.ceil(np.log2(3 * len(keys) + 4)))
    table = np.full((size, 2), -1, np.int64)
    fill(table, keys)
    centre = np.bincount(ball // n_nodes, minlength=n_nodes) > 0
    room = np.bincount(ends.ravel(), minlength=n_nodes)
    heads = (np.cumsum(room) - room).astype(np.int64)
    zeros = np.zeros(len(keys), np.int64)
    inside: Bools = np.asarray(centre[ends].any(axis=1))
    bags = np.zeros((3, 2 * int(room.max(initial=0)) + 1), np.int64)
    return Web(n_nodes, ends, table, centre, inside, np.full(2, FIRST_ODDS), zeros.astype(bool), zeros,
               heads, np.zeros(n_nodes, np.int64), np.zeros(2 * len(keys), np.int64), bags)  # fmt: skip


def _learn(web: Web) -> None:
    """Set the odds before any evidence to what they are in the graph at hand."""
    closes = web.cover - web.edge > 0

    def odds(where: Bools) -> float:
        return float(np.log((web.edge[where].sum() + 1.0) / ((~web.edge[where]).sum() + 1.0)))

    web.odds[:] = odds(~closes), odds(closes)
