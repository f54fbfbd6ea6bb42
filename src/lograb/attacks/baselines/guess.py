"""The attacker who guesses: what chance alone achieves."""

from __future__ import annotations

import numpy as np

from lograb.attacks.attack import Attack
from lograb.progress import Progress, ignore
from lograb.ragged import owners
from lograb.types import Observations, Reconstruction


class Random(Attack):
    """Guess one companion for every node."""

    name = "random"
    uses = ("members",)
    scenario = "guesses for every node one companion from a patch that contains it"
    cost = "members"
    trivial = True

    def reconstruct(
        self, seen: Observations, rng: np.random.Generator, progress: Progress = ignore
    ) -> Reconstruction:
        """Claim one random companion for every observed node.

        The companion is drawn from a random patch that contains the node, so every claim is a pair
        that could have been observed. One claim per node is about the density of a sparse graph.
        """
        order = rng.permutation(len(seen.nodes))
        nodes, first = np.unique(seen.nodes[order], return_index=True)
        entry = order[first]
        patch = owners(seen.ptr)[entry]
        start, size = seen.ptr[patch], seen.sizes[patch]
        # A shift by 1 .. q - 1 inside the patch never lands on the node itself.
        shift = 1 + (rng.random(len(entry)) * (size - 1)).astype(np.int64)
        companion = seen.nodes[start + (entry - start + shift) % size]
        pairs = np.sort(np.stack([nodes, companion], axis=1), axis=1)
        pairs = np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)
        return Reconstruction(seen.n_nodes, pairs, np.full(len(pairs), 0.5), nodes)
