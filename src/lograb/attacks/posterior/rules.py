"""What membership alone says about pairs: certain edges and certain non-edges.

In a ball of radius 1 each member is a neighbour of the centre. In a ball of any radius all neighbours of the
centre are members, so a centre has no edge to a node outside its ball.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from lograb.attacks.baselines.centres import possible_centres
from lograb.ragged import owners
from lograb.types import Ints, Observations

Ball = Ints
"""centre * n_nodes + member of all balls, increasing, without the centres themselves."""


def known_centres(seen: Observations) -> Ints:
    """Give the centre of each patch that was grown from one, or must have been; -1 for the others."""
    unknown = np.full(seen.n_patches, -1, dtype=np.int64)
    if seen.protocol.strategy not in ("d-hop", "random"):
        return unknown
    if seen.centres is not None:
        return np.asarray(seen.centres)
    if seen.protocol.strategy != "d-hop" or seen.protocol.d != 1:
        return unknown
    possible = possible_centres(seen)
    if possible is not None:
        owner = owners(seen.ptr)[possible]
        alone = np.bincount(owner, minlength=seen.n_patches) == 1
        unknown[owner[alone[owner]]] = seen.nodes[possible][alone[owner]]
    return unknown


def ball_keys(seen: Observations, centres: Ints) -> Ball:
    """Number the (centre, member) pairs; `centres` is that of each patch, or -1."""
    centre = centres[owners(seen.ptr)]
    keys = (centre * seen.n_nodes + seen.nodes)[(centre >= 0) & (centre != seen.nodes)]
    return np.unique(keys)


def ball_matrix(ball: Ball, n_nodes: int) -> sp.csr_array:
    """Lay out who lies in the ball of whom, shape (n_nodes, n_nodes); a centre lies in its own."""
    ball = np.append(ball, np.unique(ball // n_nodes) * (n_nodes + 1))
    ends = ball // n_nodes, ball % n_nodes
    return sp.csr_array((np.ones(len(ball), np.float32), ends), shape=(n_nodes, n_nodes))


def star_keys(ball: Ball, n_nodes: int) -> Ints:
    """Turn (centre, member) numbers into numbers u * n_nodes + w of unordered pairs, u < w."""
    centre, member = ball // n_nodes, ball % n_nodes
    return np.unique(np.minimum(centre, member) * n_nodes + np.maximum(centre, member))


def verdicts(pairs: Ints, ball: Ball, centres: Ints, n_nodes: int, radius: int) -> Ints:
    """Decide pairs (m, 2) by membership: 1 is an edge, -1 is none, 0 is open."""
    is_centre = np.zeros(n_nodes, dtype=bool)
    is_centre[centres[centres >= 0]] = True
    verdict = np.zeros(len(pairs), dtype=np.int64)
    for one, other in ((pairs[:, 0], pairs[:, 1]), (pairs[:, 1], pairs[:, 0])):
        asked = np.flatnonzero(is_centre[one])
        keys = one[asked] * n_nodes + other[asked]
        inside = np.isin(keys, ball)
        verdict[asked[~inside]] = -1
        if radius == 1:
            asked = asked[inside]
            verdict[asked[verdict[asked] == 0]] = 1
    return verdict
