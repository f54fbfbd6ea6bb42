"""The attacker who ignores the embeddings: who sits in whose patch?

In a ball of radius 1 every member is a neighbour of the centre. No spectral noise, differential
privacy included, touches this channel, and leaving the centres out hardly helps: `centres` finds most of
them again from the patches alone.

Which rule applies is decided by what is public. The protocol says how patches were cut:

- balls of radius 1 (``d-hop``, ``random``): their centres, published or inferred;
- ``custom`` lists, about which it says nothing: taken for balls of radius 1 if they do not contradict that
  and the centre of at least half of them follows. Balls of radius 2 pass this test too, and are misread;
- everything else, and balls that contradict each other: co-occurrence;
- a single patch, and patches in which all pairs co-occur alike, say nothing about any pair: no claim.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from lograb.attacks.alignment.overlaps import membership_matrix
from lograb.attacks.attack import Attack
from lograb.attacks.baselines.centres import possible_centres
from lograb.attacks.known_defences import unsanitise
from lograb.pairs import unpair
from lograb.progress import Progress, ignore
from lograb.ragged import owners, ranges
from lograb.types import Bools, Floats, Ints, Observations, Reconstruction

# Larger patches say next to nothing about a single pair, and their pairs would fill the memory.
MAX_SIZE = 2000
# With more candidates no pair of a patch is more likely an edge than not.
MAX_CANDIDATES = 4
# Similarities that differ by less are the same.
TIED = 1e-12


class Membership(Attack):
    """Ignore the embeddings and read who sits in whose patch."""

    name = "membership"
    uses = ("members", "centres")
    scenario = "ignores the embeddings and reads who sits in whose patch"
    cost = "members, or their pairs"
    trivial = True

    def reconstruct(
        self, seen: Observations, rng: np.random.Generator, progress: Progress = ignore
    ) -> Reconstruction:
        """Claim what patch membership alone reveals."""
        answer = membership(seen)
        # Only claims about centres are about the graph; with flips in it they are probabilities.
        sure = answer.diagnostics["rule"] not in ("co-occurrence", "none") and seen.protocol.defences
        return replace(unsanitise(seen, replace(answer, unlisted=0.0)), unlisted=None) if sure else answer


def membership(seen: Observations) -> Reconstruction:
    """Claim the edges that patch membership alone reveals.

    In balls of radius 1 a pair is an edge if one of the two is the centre: certain where the centre is
    known, else as likely as the share of candidates that the pair holds; claimed from one half on.
    Otherwise the pairs that co-occur most for how often their nodes occur at all.
    """
    nodes = np.unique(seen.nodes)
    rule, candidates = _centre_candidates(seen)
    if candidates is None:
        pairs, scores = _closest_companions(seen)
        told = {"rule": rule if len(pairs) else "none", "skipped_patches": int((seen.sizes > MAX_SIZE).sum())}
        return Reconstruction(seen.n_nodes, pairs, scores, nodes, diagnostics=told)
    pairs, scores = _pairs_with_centres(seen, candidates)
    claimed = scores >= 0.5
    told = {"rule": rule, "undecided_patches": int((_per_patch(seen, candidates) > 1).sum())}
    return Reconstruction(seen.n_nodes, pairs[claimed], scores[claimed], nodes, pairs, scores, diagnostics=told)


def _centre_candidates(seen: Observations) -> tuple[str, Bools | None]:
    """Choose the rule; flag the members that may be the centre of their patch, None without balls."""
    if seen.centres is not None and seen.protocol.d == 1:
        return "centre-member", seen.nodes == seen.centres[owners(seen.ptr)]
    strategy = seen.protocol.strategy
    if strategy == "custom" or (strategy in ("d-hop", "random") and seen.protocol.d == 1):
        candidates = possible_centres(seen)
        if candidates is not None:
            counts = _per_patch(seen, candidates)[seen.sizes > 1]
            if strategy != "custom" or (counts == 1).sum() * 2 >= len(counts):
                return "inferred centre-member", candidates
    return "co-occurrence", None


def _per_patch(seen: Observations, candidates: Bools) -> Ints:
    """Count the candidates of each patch."""
    return np.bincount(owners(seen.ptr)[candidates], minlength=seen.n_patches)


def _pairs_with_centres(seen: Observations, candidates: Bools) -> tuple[Ints, Floats]:
    """List the pairs that hold a candidate, with the largest share of candidates that a patch gives them."""
    counts = _per_patch(seen, candidates)
    owner = owners(seen.ptr)
    entry = np.flatnonzero(candidates & (counts[owner] <= MAX_CANDIDATES))
    patch = owner[entry]
    centre = np.repeat(entry, seen.sizes[patch])
    member = ranges(seen.ptr[patch], seen.sizes[patch])
    centre, member = centre[centre != member], member[centre != member]
    shares = (1.0 + candidates[member]) / counts[owner[member]]
    u, w = seen.nodes[centre], seen.nodes[member]
    keys, index = np.unique(np.minimum(u, w) * seen.n_nodes + np.maximum(u, w), return_inverse=True)
    scores = np.zeros(len(keys))
    np.maximum.at(scores, index, shares)
    return unpair(keys, max(seen.n_nodes, 1)), scores


def _closest_companions(seen: Observations) -> tuple[Ints, Floats]:
    """Claim for each node the companions with which it shares the largest part of its patches.

    The similarity of u and w is c_uw / sqrt(c_u c_w), with c the number of patches. A pair is
    claimed if it is the best one of either node; ties count. Where all pairs are equally similar, none is.
    """
    inside = membership_matrix(seen, np.flatnonzero(seen.sizes <= MAX_SIZE))
    together = sp.triu(inside.T @ inside, k=1, format="coo")
    pairs = np.stack([together.row, together.col], axis=1).astype(np.int64)
    similarity, best = closest(pairs, together.data, inside.sum(axis=0))
    return pairs[best], similarity[best]


def closest(pairs: Ints, together: Ints, counts: Ints) -> tuple[Floats, Bools]:
    """Rate how alike the patches of two nodes are, and tell which pairs are the best of one of their nodes.

    Parameters
    ----------
    pairs : int64 array, shape (m, 2)
    together : int64 array, shape (m,)
        Patches that hold both nodes.
    counts : int64 array, shape (n_nodes,)
        Patches that hold each node.
    """
    both: Floats = np.sqrt(counts[pairs[:, 0]] * counts[pairs[:, 1]].astype(float))
    similarity = together / np.maximum(both, 1.0)
    if not len(pairs) or np.ptp(similarity) <= TIED:
        return similarity, np.zeros(len(pairs), dtype=bool)
    best = np.zeros(len(counts))
    np.maximum.at(best, pairs[:, 0], similarity)
    np.maximum.at(best, pairs[:, 1], similarity)
    return similarity, similarity >= np.minimum(best[pairs[:, 0]], best[pairs[:, 1]]) * (1 - TIED)
