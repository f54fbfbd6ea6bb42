"""What an attacker does who knows the defence (Kerckhoffs): all of it is read off `Observations.protocol`.

*Noised or rounded eigenvalues* are no checksum any more. They stay evidence while they are sharper than what an
attacker would guess; beyond that he treats them as withheld. The first one is 0 whatever was published.

*A sanitised graph*: what patches show is that graph, and the attack's probabilities p are about it. With a =
P(true | shown) and b = P(true | not shown), by Bayes, a pair is a true edge with probability p a + (1 - p) b. The
share ρ of true edges among pairs alike follows from the share shown: shown = ρ keep + (1 - ρ) add, with known
rates. Pairs are alike if they have as many common neighbours in what is shown: true edges close triangles, flipped
ones do not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from lograb.attacks.cut import best_expected_f1
from lograb.defences import as_defences, noise_of
from lograb.pairs import shared_pairs
from lograb.types import Bools, Floats, Ints, Observations, Reconstruction

USELESS = 0.5
"""Noise of eigenvalues from which on they are better guessed; chosen on generated graphs."""
EXACT = 1e-9
MOST_PATHS = 50_000_000
"""Paths of length two up to which common neighbours are counted."""
BINS = (0, 1, 2, 3, 5, 9, 17, 33, 65, 129)
"""Pairs with so many common neighbours at least are alike."""


def value_noise(seen: Observations) -> float:
    """Give the largest standard deviation of what is wrong with the eigenvalues; 0 where they are exact."""
    if seen.values is None or not seen.protocol.defences:
        return 0.0
    noise = noise_of(seen.protocol, seen.sizes, seen.ranks)
    return float(np.hypot(noise.values.max(initial=0.0), noise.blur))


def read_values(seen: Observations) -> Observations:
    """Make the best of noised eigenvalues: the first is 0, and too noisy ones are left out."""
    noise = value_noise(seen)
    if seen.values is None or noise <= EXACT:
        return seen
    if noise > USELESS:
        return replace(seen, values=None, next_values=None)
    values = seen.values.copy()
    values[seen.value_ptr[:-1][seen.ranks > 0]] = 0.0
    return replace(seen, values=values)


def unsanitise(seen: Observations, answer: Reconstruction) -> Reconstruction:
    """Turn what an attack found in a sanitised graph into probabilities of true edges, and claim the likely ones.

    Answers whose scores are no probabilities are left as they are.
    """
    graph = [one for one in as_defences(seen.protocol.defences) if one.on_graph]
    scores = answer.scores if answer.judged_scores is None else answer.judged_scores
    pairs = answer.edges if answer.judged is None else answer.judged
    if not graph or answer.unlisted is None or not len(pairs):
        return answer
    nodes = np.unique(seen.nodes)
    n_pairs = max(len(nodes) * (len(nodes) - 1) // 2, 1)
    decided = _decided(seen, len(nodes), n_pairs)
    counted: Bools = np.ones(len(pairs), dtype=bool)
    if seen.centres is not None and seen.protocol.d == 1:  # of other pairs nobody knows whether they are edges
        counted = np.asarray(np.isin(pairs, seen.centres).any(axis=1))
    density = float(np.clip(scores[counted].sum() / decided, 0.0, 1.0))
    keep, add = 1.0, 0.0
    for one in graph:  # one after the other
        k, a = one.flip_rates(density, n_pairs)
        keep, add = keep * k + (1 - keep) * a, add * k + (1 - add) * a
    alike, shown, count = _alike(seen, pairs, scores, counted, decided)
    usual = float(np.clip((density - add) / max(keep - add, 1e-12), 1.0 / n_pairs, 1.0))
    # Few pairs say little: what they say is weighed against what holds for all.
    doubt = (add + 1.0 / count) / count / max(keep - add, 1e-12) ** 2
    own = np.clip((shown / count - add) / max(keep - add, 1e-12), 0.0, 1.0)
    share = np.clip((own / doubt + 1.0 / usual) / (1.0 / doubt + 1.0 / usual**2), 0.0, 1.0)
    if_shown = share * keep / (share * keep + (1 - share) * add)
    if_not = share * (1 - keep) / (share * (1 - keep) + (1 - share) * (1 - add))
    true = scores * if_shown[alike] + (1 - scores) * if_not[alike]
    rest = float(if_not[0] + answer.unlisted * (if_shown[0] - if_not[0]))
    # True edges that are not shown count as missed; between patches that were given nobody can know of any.
    edges = usual * (decided if seen.protocol.strategy == "custom" else n_pairs)
    cut, expected = best_expected_f1(true, max(0.0, edges - float(true.sum())))
    claimed = true >= cut
    told: dict[str, Any] = answer.diagnostics | {
        "flip_rates": [float(keep), float(add)], "expected": expected, "cut": cut if np.isfinite(cut) else None,
        "unlisted": rest}  # fmt: skip
    return replace(answer, edges=pairs[claimed], scores=true[claimed], judged=pairs, judged_scores=true,
                   unlisted=rest, diagnostics=told)  # fmt: skip


def _decided(seen: Observations, n: int, n_pairs: int) -> float:
    """Count the pairs of observed nodes that would be shown if they were edges."""
    if seen.protocol.strategy == "custom":
        return float(max(shared_pairs(seen.n_nodes, seen.nodes, seen.ptr, np.empty((0, 2), np.int64))[0], 1))
    if seen.protocol.strategy in ("d-hop", "random") and seen.protocol.d == 1:
        return n_pairs * (1.0 - (1.0 - min(seen.n_patches / n, 1.0)) ** 2)
    return float(n_pairs)


def _alike(
    seen: Observations, pairs: Ints, scores: Floats, counted: Bools, decided: float
) -> tuple[Ints, Floats, Floats]:
    """Sort pairs by their common neighbours in what is shown: the bin of each, edges shown and pairs in each bin.

    Only pairs that are counted make neighbours: others are seen inside patches alone, thus more often among
    friends.
    """
    n, likely = seen.n_nodes, pairs[(scores > 0.5) & counted]
    ends = np.concatenate([likely, likely[:, ::-1]])
    shown = sp.csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    if not len(likely) or float((shown.sum(axis=1) ** 2).sum()) > MOST_PATHS:
        return np.zeros(len(pairs), np.int64), np.array([scores[counted].sum()]), np.array([decided])
    common = sp.csr_array(sp.triu(shown @ shown, k=1))
    common.sort_indices()  # to look pairs up is quick then
    alike = np.searchsorted(BINS, common[pairs[:, 0], pairs[:, 1]], side="right") - 1
    one, other, many = sp.find(common)
    if seen.centres is not None and seen.protocol.d == 1:  # as `decided` counts
        ends = np.isin(np.arange(n), seen.centres)
        many = many[ends[one] | ends[other]]
    inside = np.bincount(np.searchsorted(BINS, many, side="right") - 1, minlength=len(BINS)).astype(float)
    inside[0] = decided - inside[1:].sum()
    shown_there = np.bincount(alike, scores * counted, minlength=len(BINS)).astype(float)
    return np.asarray(alike, dtype=np.int64), shown_there, np.maximum(inside, 1.0)
