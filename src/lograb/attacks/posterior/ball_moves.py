"""Moves of a random walk over graphs whose balls of radius 2 should be those seen; compiled: it makes millions.

The cost of a graph counts the facts that it breaks, each with its weight. One kind is a member of a ball to which
neither an edge nor a path of two edges leads from the centre (`missing`); the other is a path of two edges out of
a ball (`barred`). `cover` counts the ways to reach each pair: a move looks at the neighbours of its ends only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np

from lograb.types import Bools, Floats, Ints

F = TypeVar("F", bound=Callable[..., Any])
SPREAD = -7046029254386353131
"""2^64 over the golden ratio, by which keys are spread over the table."""


def compiled(function: F) -> F:
    """Compile a function when it is first called, and keep that on disk where there is a place for it."""
    made: Any
    try:
        made = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # neither the package nor the user's folder can be written
        made = numba.njit(nogil=True)(function)
    return made  # type: ignore[no-any-return]


class Web(NamedTuple):
    """A graph on pairs that may be edges, and what has to be known to change it.

    Attributes
    ----------
    n : number of nodes
    ends : int64 array, shape (m, 2)
        The pairs; every two nodes of which one is a centre and the other in its ball are among them.
    table : int64 array, shape (a power of two, 2)
        Hash table: keys u * n + w with u < w, -1 where it is empty, and the numbers of their pairs.
    centre : bool array, shape (n,)
    inside : bool array, shape (m,)
        Pairs with a centre: reaching them is asked for.
    odds : float array, shape (2,)
        Log-odds of being an edge: of pairs that close no triangle, and of those that do.
    edge : bool array, shape (m,)
    cover : int64 array, shape (m,)
        Paths of one or two edges between the ends of each pair.
    heads, degree, near : int64 arrays, shapes (n,), (n,), (2 m,)
        The neighbours of i are near[heads[i] : heads[i] + degree[i]].
    bags : int64 array, shape (3, twice the largest number of neighbours)
        Scratch space.
    """

    n: int
    ends: Ints
    table: Ints
    centre: Bools
    inside: Bools
    odds: Floats
    edge: Bools
    cover: Ints
    heads: Ints
    degree: Ints
    near: Ints
    bags: Ints


@compiled
def fill(table: Ints, keys: Ints) -> None:
    """Put keys into an empty table."""
    mask = len(table) - 1
    for number in range(len(keys)):
        at = (keys[number] * SPREAD) >> 20 & mask
        while table[at, 0] >= 0:
            at = (at + 1) & mask
        table[at, 0], table[at, 1] = keys[number], number


@compiled
def find(web: Web, u: int, w: int) -> int:
    """Give the number of a pair, -1 if it cannot be an edge."""
    key = u * web.n + w if u < w else w * web.n + u
    mask = len(web.table) - 1
    at = (key * SPREAD) >> 20 & mask
    while web.table[at, 0] != key:
        if web.table[at, 0] < 0:
            return -1
        at = (at + 1) & mask
    return int(web.table[at, 1])


@compiled
def cost(web: Web, u: int, w: int, pair: int, missing: float, barred: float) -> float:
    """By how much the facts' cost differs with the edge (u, w) from that without it."""
    alone = 1 if web.edge[pair] else 0  # ways to reach a pair that hangs on this edge
    total = 0.0
    if web.inside[pair] and web.cover[pair] == alone:
        total -= missing
    for turn in range(2):
        start, via = (u, w) if turn == 0 else (w, u)
        for at in range(web.heads[via], web.heads[via] + web.degree[via]):
            stop = web.near[at]
            if stop != start and (web.centre[start] or web.centre[stop]):
                other = find(web, start, stop)
                if other < 0:
                    total += barred
                elif web.cover[other] == alone:
                    total -= missing
    return total


@compiled
def put(web: Web, u: int, w: int, pair: int, sign: int) -> None:
    """Add (sign 1) or remove (sign -1) an edge."""
    web.edge[pair] = sign > 0
    web.cover[pair] += sign
    for turn in range(2):
        start, via = (u, w) if turn == 0 else (w, u)
        if sign < 0:
            last = web.heads[start] + web.degree[start] - 1
            at = web.heads[start]
            while web.near[at] != via:
                at += 1
            web.near[at] = web.near[last]
            web.degree[start] -= 1
    for turn in range(2):
        start, via = (u, w) if turn == 0 else (w, u)
        for at in range(web.heads[via], web.heads[via] + web.degree[via]):
            other = find(web, start, web.near[at])
            if other >= 0:
                web.cover[other] += sign
    if sign > 0:
        web.near[web.heads[u] + web.degree[u]] = w
        web.near[web.heads[w] + web.degree[w]] = u
        web.degree[u] += 1
        web.degree[w] += 1


@compiled
def price(web: Web, pair: int, missing: float, barred: float) -> float:
    """What an edge costs at this place, by facts and odds, given all other edges."""
    u, w = web.ends[pair]
    closes = 1 if web.cover[pair] > (1 if web.edge[pair] else 0) else 0
    return float(cost(web, u, w, pair, missing, barred) - web.odds[closes])


@compiled
def toggle(web: Web, pair: int, missing: float, barred: float) -> float:
    """Add an edge, or remove it, and give the change of cost."""
    sign = -1 if web.edge[pair] else 1
    change = sign * price(web, pair, missing, barred)
    put(web, web.ends[pair, 0], web.ends[pair, 1], pair, sign)
    return change


@compiled
def flip(web: Web, rng: np.random.Generator, pair: int, missing: float, barred: float) -> float:
    """Add or remove an edge if that is accepted, and give the change of cost."""
    sign = -1 if web.edge[pair] else 1
    change = sign * price(web, pair, missing, barred)
    if change > 0 and rng.random() >= np.exp(-change):
        return 0.0
    put(web, web.ends[pair, 0], web.ends[pair, 1], pair, sign)
    return change


@compiled
def turn_edge(web: Web, rng: np.random.Generator, pair: int, missing: float, barred: float) -> None:
    """Turn an edge around one of its ends, onto a pair that is none."""
    u, w = web.ends[pair]
    if rng.random() < 0.5:
        u, w = w, u
    if web.edge[pair] or web.degree[u] == 0:
        return
    old = web.near[web.heads[u] + rng.integers(0, web.degree[u])]
    left = find(web, u, old)
    change = toggle(web, left, missing, barred) + price(web, pair, missing, barred)
    if change <= 0 or rng.random() < np.exp(-change):
        put(web, u, w, pair, 1)
    else:
        put(web, u, old, left, 1)


@compiled
def exchange(
    web: Web, rng: np.random.Generator, pair: int, missing: float, barred: float, repair: bool
) -> None:  # fmt: skip
    """Exchange the neighbours of two nodes, those that can be: so a hub moves at once, not edge by edge.

    With `repair` each of them may go back, or lose its edge, before all that is accepted or undone.
    """
    one, two = web.ends[pair]
    count = 0
    for side in range(2):
        end = web.ends[pair, side]
        for at in range(web.heads[end], web.heads[end] + web.degree[end]):
            node = web.near[at]
            if node in (one, two):
                continue
            first, second = find(web, one, node), find(web, two, node)
            if first >= 0 and second >= 0 and web.edge[first] != web.edge[second]:
                web.bags[0, count], web.bags[1, count], web.bags[2, count] = first, second, web.edge[first]
                count += 1
    change = 0.0
    for at in range(count):
        old, new = web.bags[0, at], web.bags[1, at]
        if not web.edge[old]:
            old, new = new, old
        change += toggle(web, old, missing, barred)
        change += toggle(web, new, missing, barred)
    if repair:
        for at in range(count):
            change += flip(web, rng, web.bags[0, at], missing, barred)
            change += flip(web, rng, web.bags[1, at], missing, barred)
    if change > 0 and rng.random() >= np.exp(-change):
        for at in range(count):
            for side in range(2):
                if web.edge[web.bags[side, at]] != (web.bags[2, at] == 1 - side):
                    toggle(web, web.bags[side, at], missing, barred)


@compiled
def walk(
    web: Web, rng: np.random.Generator, steps: int, exchanges: float, turns: float, missing: float, barred: float,
    cooling: bool,
) -> None:  # fmt: skip
    """Make so many moves, of each kind its share; the rest are flips."""
    for _ in range(steps):
        pair = int(rng.integers(0, len(web.ends)))
        kind = rng.random()
        if kind < exchanges:
            exchange(web, rng, pair, missing, barred, cooling)
        elif kind < exchanges + turns:
            turn_edge(web, rng, pair, missing, barred)
        else:
            flip(web, rng, pair, missing, barred)


@compiled
def add_chances(web: Web, total: Floats, missing: float, barred: float) -> None:
    """Add to `total` (m,) how likely each pair is an edge, given all others as they are."""
    for pair in range(len(web.ends)):
        total[pair] += 1.0 / (1.0 + np.exp(min(price(web, pair, missing, barred), 700.0)))
