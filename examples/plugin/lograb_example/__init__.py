"""Thirty lines that add an attack, a dataset and a model to lograb; pyproject.toml names them."""

from collections.abc import Iterator

import numpy as np

from lograb import Graph, Observations, Reconstruction
from lograb.attacks import Attack
from lograb.graphs.dataset import Dataset
from lograb.learning.nodes.catalog import Model
from lograb.learning.nodes.settings import Settings


class Neighbours(Attack):
    """Claim that members of small patches know each other."""

    name, uses = "neighbours", ("members",)
    scenario, cost = "who sits in whose patch", "pairs in small patches"
    most: int = 3

    def reconstruct(self, seen: Observations, rng, progress=None) -> Reconstruction:
        """Join all members of a patch of at most `most`."""
        pairs = {(min(u, w), max(u, w)) for i in range(seen.n_patches) for u in seen.members(i).tolist()
                 for w in seen.members(i).tolist() if u != w and len(seen.members(i)) <= self.most}
        return Reconstruction(seen.n_nodes, sorted(pairs), np.ones(len(pairs)), np.unique(seen.nodes))


def _ring(progress: object) -> Iterator[Graph]:
    edges = [(i, (i + 1) % 60) for i in range(60)]
    yield Graph.from_edges("ring", 60, edges, labels=np.arange(60) // 20)


RING = Dataset("ring", "a ring", "built-in", "60 nodes in a circle", 1, 60, 60, 3, None, "MIT", "", _ring,
               lambda: "built in")
LINEAR = Model("linear", "lograb_example.net:Linear", Settings, "a linear map of the spectral coordinates")
