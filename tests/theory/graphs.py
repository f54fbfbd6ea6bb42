"""Small graphs for the tests of the theory."""

from __future__ import annotations

import numpy as np


def from_edges(q, edges):
    adjacency = np.zeros((q, q), dtype=bool)
    for i, j in edges:
        adjacency[i, j] = adjacency[j, i] = True
    return adjacency


def random_adjacency(rng, q, density):
    upper = np.triu(rng.random((q, q)) < density, k=1)
    return upper | upper.T


def connected_adjacency(rng, q, density):
    """A random tree with random edges on top."""
    tree = from_edges(q, [(i, int(rng.integers(0, i))) for i in range(1, q)])
    return tree | random_adjacency(rng, q, density)


def path(q):
    return from_edges(q, [(i, i + 1) for i in range(q - 1)])


def star(q):
    return from_edges(q, [(0, i) for i in range(1, q)])


def cycle(q):
    return path(q) | from_edges(q, [(0, q - 1)])


def clique(q):
    return ~np.eye(q, dtype=bool)


def two_hubs(q):
    """Complete bipartite with two hubs: non-edges with the most two-step walks."""
    return from_edges(q, [(h, i) for h in (0, 1) for i in range(2, q)])


SHAPES = {"path": path, "star": star, "cycle": cycle, "clique": clique, "two hubs": two_hubs,
          "empty": lambda q: np.zeros((q, q), dtype=bool)}  # fmt: skip


def edge_list(adjacency):
    return np.argwhere(np.triu(adjacency)).astype(np.int64)
