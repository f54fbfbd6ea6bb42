"""What clusters with halos of one step say about pairs, whoever is at home where.

A node has a home, and lies in the halo of every other cluster in which it has a neighbour. So the patches that
hold it are the homes of itself and of its neighbours, and no others:

- an edge inside a cluster has both its ends at home there;
- a node that lies in two patches, and is at home in one, has a neighbour in both who is at home in the other.

All edges of a node show at home, so that is where its degree is largest. Where noise hides the degrees, any of its
patches may be; but who lies in many patches has many neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, logit

from lograb.attacks.alignment.overlaps import Overlaps, count_overlaps, locate_overlaps
from lograb.attacks.posterior.degrees import Work
from lograb.pairs import upper_pairs
from lograb.ragged import pointer, runs
from lograb.types import Bools, Floats, Ints, Observations

if TYPE_CHECKING:
    from lograb.attacks.posterior.beliefs import Scene

NEIGHBOURS = 1.5
"""Neighbours at home in another cluster that a member of its halo has, not counting those that have it for one."""
MOST_SHARED, ENOUGH = 200, 0.9
"""Nodes that two patches share, above which such a neighbour may be anybody; and the share of all that are shared
in which it may not."""
MOST_MET = 0.95
LEAST, LEAST_INSIDE = 1e-6, 0.1
STEPS = 4
AT_ONCE = 2_000_000
"""Members of patches that are compared at once."""


def narrow(seen: Observations, which: Ints) -> bool:
    """Tell whether patches `which` are clusters with halos so narrow that it can be said who needs whom."""
    if seen.protocol.strategy != "cluster" or seen.protocol.d != 1:
        return False
    shared = count_overlaps(seen, 2, which)[2]
    return bool(shared[shared <= MOST_SHARED].sum() >= ENOUGH * shared.sum())


def odds_with_halos(scene: Scene, works: list[Work], keys: Ints, by_chance: Floats, free: Bools) -> Floats:
    """Log-odds of all pairs before any evidence but degrees and membership, from those by degrees alone; (m,).

    They promise as many edges as degrees do, each edge counted in every patch that holds it.
    """
    seen, chance, counts = scene.seen, expit(by_chance), scene.counts
    home, together = homes(seen, works), np.zeros(len(keys))
    for work in works:
        here = home[_entries(seen, work)]
        one, two = upper_pairs(work.batch.size)
        both = (here[:, one] * here[:, two]).ravel()
        together += np.bincount(scene.entry[work.batch.entries], both, len(keys))
    met = meetings(seen, np.concatenate([batch.which for batch in scene.batches]), home, keys)
    promised, demanded = (float((counts * share)[free].sum()) for share in (chance, met))
    wanted = max(promised - demanded, LEAST_INSIDE * promised, LEAST)
    inside = logit(np.clip(chance * together, LEAST, 1.0 - LEAST))
    for _ in range(STEPS):
        has = float((counts * (1.0 - met) * expit(inside))[free].sum())
        inside = inside + np.log(wanted / max(has, LEAST))
    return np.asarray(logit(np.clip(met + (1.0 - met) * expit(inside), LEAST, 1.0 - LEAST)))


def _entries(seen: Observations, work: Work) -> Ints:
    """Where the members of a batch stand among those of all patches, shape (b, q)."""
    return np.asarray(seen.ptr[work.batch.which][:, None] + np.arange(work.batch.size))


def homes(seen: Observations, works: list[Work]) -> Floats:
    """Probability that a patch is the home of its member, for each entry of `seen.nodes`.

    Degrees count in units of their mean in the patch: the levels of two patches differ for reasons of their own.
    """
    n, shape = seen.n_nodes, len(seen.nodes)
    read, mean, error = np.zeros(shape, dtype=bool), np.zeros(shape), np.zeros(shape)
    for work in works:
        at, level = _entries(seen, work), work.start.mean.mean(axis=1, keepdims=True)
        read[at], mean[at], error[at] = True, work.start.mean / level, np.sqrt(work.start.variance) / level
    patches = np.maximum(np.bincount(seen.nodes[read], minlength=n), 1)
    usual, doubt = (np.bincount(seen.nodes, values, n) / patches for values in (mean, error))
    mean = np.where(read, mean, usual[seen.nodes])  # of patches beyond the budget nothing is known
    highest = np.zeros(n)
    np.maximum.at(highest, seen.nodes, mean)
    likely = np.exp((mean - highest[seen.nodes]) / (2.0 * doubt + 0.02)[seen.nodes])
    return np.asarray(likely / np.bincount(seen.nodes, likely, n)[seen.nodes])


def meetings(seen: Observations, which: Ints, home: Floats, keys: Ints) -> Floats:
    """Probability that a pair is an edge because one of the two needs a neighbour in another cluster, (m,).

    Of the overlaps of patches `which` only those of few nodes count, a bounded number of members at once.
    """
    first, second, shared = count_overlaps(seen, 2, which)
    first, second = first[shared <= MOST_SHARED], second[shared <= MOST_SHARED]
    total = np.zeros(len(keys))
    asked = home * np.bincount(seen.nodes)[seen.nodes]  # who lies in many patches is a neighbour of many
    for start, stop in runs(pointer(np.minimum(seen.sizes[first], seen.sizes[second])), AT_ONCE):
        overlaps = locate_overlaps(seen, first[start:stop], second[start:stop])
        total += _needs(seen, overlaps, home, asked, keys)
    return np.asarray(np.minimum(1.0 - (1.0 - np.minimum(total, 1.0)) ** NEIGHBOURS, MOST_MET))


def _needs(seen: Observations, overlaps: Overlaps, home: Floats, asked: Floats, keys: Ints) -> Floats:
    """How likely each pair is to be what one of its two nodes needs, summed over overlaps, (m,)."""
    total = np.zeros(len(keys))
    for size in np.unique(overlaps.sizes).tolist():
        at = overlaps.ptr[:-1][overlaps.sizes == size][:, None] + np.arange(size)
        order = np.argsort(seen.nodes[overlaps.in_first[at]], axis=1)
        sides = overlaps.in_first, overlaps.in_second
        here, there = (np.take_along_axis(side[at], order, axis=1) for side in sides)
        i, j = upper_pairs(size)
        rate = np.zeros((len(at), len(i)))
        for own, other in ((home[here], asked[there]), (home[there], asked[here])):
            others = np.maximum(other.sum(axis=1, keepdims=True) - other, LEAST)  # who may be the neighbour
            rate += (own[:, i] * other[:, j] / others[:, i] + own[:, j] * other[:, i] / others[:, j]) / 2.0
        members = seen.nodes[here]
        found = (members[:, i] * seen.n_nodes + members[:, j]).ravel()
        place = np.minimum(np.searchsorted(keys, found), len(keys) - 1)
        hit = keys[place] == found
        total += np.bincount(place[hit], rate.ravel()[hit], len(keys))
    return total
