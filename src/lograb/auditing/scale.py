"""Where nothing that is shared tells how many edges there are, probabilities may be off by any factor.

Eigenvectors alone rank pairs. How many of the first are edges follows from eigenvalues, from rows that are solved,
or from who sits in whose patch. Where none of these speaks, all that the attack claims may be right, or nothing.
"""

from __future__ import annotations

import numpy as np

from lograb.attacks.known_defences import value_noise
from lograb.attacks.posterior.batches import LOUD
from lograb.attacks.posterior.noise import patch_noise
from lograb.auditing.checks import check_patches
from lograb.pairs import edge_keys, shared_pairs, unpair
from lograb.patches import induced_edges
from lograb.types import Bools, Floats, Graph, Ints, Observations, Patches, Reconstruction

EXACT = 1e-6
"""σ² q below which an embedding is exact, and the eigenvalue below which it is 0."""
SHARP = 0.05
"""Error of eigenvalues up to which they tell how many edges there are."""
SETTLED = 1 - 1e-4
"""Probability from which on a pair that was solved, checked or told by membership is settled."""
APART = 0.1
"""Share by which a graph that passes its check may have other than the expected number of edges."""


def loose_pairs(seen: Observations, answer: Reconstruction, plain: Ints, known: tuple[Ints, Floats]) -> Bools:
    """Tell which pairs may have any probability, for all that the attack says.

    Parameters
    ----------
    answer : what posterior claims
    plain : keys of what the attack that reads no embedding claims
    known : keys and probabilities of the pairs to judge
    """
    keys, chances = known
    n = max(seen.n_nodes, 1)
    open_ = np.flatnonzero(unscaled_patches(seen, answer.edges, known))
    if not len(open_):
        return np.zeros(len(keys), dtype=bool)
    told = np.setdiff1d(np.arange(seen.n_patches), open_)
    firm = _inside(seen, told, unpair(keys, n))
    rows, passed = answer.diagnostics.get("rows") or {}, answer.diagnostics.get("passed") or []
    solved = bool(rows.get("solved")) or any(passed)
    settled = (chances >= SETTLED) & (np.isin(keys, plain) | solved)
    return np.asarray(~firm & ~settled)


def unscaled_patches(seen: Observations, claims: Ints, known: tuple[Ints, Floats]) -> Bools:
    """Tell of which patches the embedding ranks pairs, and nothing tells how many of the first are edges.

    Where it is complete and exact, every edge follows. Exact eigenvalues of noisy ones tell it well enough. Of
    exact truncated ones the attack must have found a graph with these eigenvalues, and expect its edges.
    """
    noise = patch_noise(seen) * seen.sizes
    rotated = seen.protocol.gauge == "rotation"
    exact, ranks_pairs = noise < EXACT, (seen.sizes > 1) & (seen.ranks > 0) & (noise <= LOUD)
    ranks_pairs &= ~(seen.complete & rotated)  # the whole space, turned: it says nothing
    told = seen.complete & exact
    if seen.values is not None and not rotated and value_noise(seen) <= SHARP:
        largest = np.maximum.reduceat(np.append(seen.values, 0.0), seen.value_ptr[:-1])
        checked = check_patches(seen, claims)
        agrees = _as_expected(seen, claims, known) & (False if checked is None else checked)
        told |= np.where(seen.ranks > 0, largest > EXACT, False) & (~exact | agrees)
    return np.asarray(ranks_pairs & ~told)


def _as_expected(seen: Observations, claims: Ints, known: tuple[Ints, Floats]) -> Bools:
    """Tell in which patches about as many pairs are claimed as are expected to be edges."""
    n, (keys, chances) = max(seen.n_nodes, 1), known
    patches = Patches(seen.n_nodes, seen.nodes, seen.ptr)
    claimed = np.diff(induced_edges(patches, Graph.from_edges("claims", seen.n_nodes, claims)).ptr)
    listed = induced_edges(patches, Graph.from_edges("listed", seen.n_nodes, unpair(keys, n)))
    pairs = edge_keys(seen.nodes[listed.entries], n)
    sums = np.append(0.0, np.cumsum(chances[np.searchsorted(keys, pairs)]))
    hoped = sums[listed.ptr[1:]] - sums[listed.ptr[:-1]]
    return np.asarray(np.abs(hoped - claimed) <= APART * claimed + 1.0)


def _inside(seen: Observations, which: Ints, pairs: Ints) -> Bools:
    """Tell which pairs share one of some patches."""
    ptr = np.append(0, np.cumsum(seen.sizes[which]))
    entries = np.isin(np.repeat(np.arange(seen.n_patches), seen.sizes), which)
    return np.asarray(shared_pairs(max(seen.n_nodes, 1), seen.nodes[entries], ptr, pairs)[1], dtype=bool)
