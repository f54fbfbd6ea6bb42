"""How well claimed edges match true ones, over the whole graph and over the recovered nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lograb.pairs import edge_keys
from lograb.types import Bools, Floats, Ints


@dataclass(frozen=True)
class EdgeCounts:
    """Claimed, true and correctly claimed edges.

    Precision is 0 where nothing is claimed and recall is 0 where nothing is true: an attack
    earns no credit for staying silent.
    """

    claimed: int
    true: int
    hits: int

    @property
    def precision(self) -> float:
        """Share of the claims that are right."""
        return self.hits / self.claimed if self.claimed else 0.0

    @property
    def recall(self) -> float:
        """Share of the true edges that are claimed."""
        return self.hits / self.true if self.true else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall: 2 hits / (claimed + true)."""
        return 2 * self.hits / (self.claimed + self.true) if self.claimed + self.true else 0.0

    def f1_interval(self, level: float = 0.95, draws: int = 2000) -> tuple[float, float]:
        """Bootstrap F1 over pairs: each pair that is claimed or true is a hit, a false claim or a miss.

        Pairs are drawn as if they were independent; edges of one node are not quite, so the
        interval is a little narrow.
        """
        kinds = np.array([self.hits, self.claimed - self.hits, self.true - self.hits])
        if not kinds.sum():
            return 0.0, 0.0
        drawn = np.random.default_rng(0).multinomial(kinds.sum(), kinds / kinds.sum(), size=draws)
        return bootstrap_interval(2 * drawn[:, 0] / (drawn[:, 0] + drawn.sum(axis=1)), level)


def bootstrap_interval(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """Take the central part of bootstrapped values."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def count_edges(truth: Ints, claimed: Ints, n_nodes: int, nodes: Ints | None = None) -> EdgeCounts:
    """Compare claimed with true edges.

    Parameters
    ----------
    truth, claimed : int arrays, shape (m, 2)
        Pairs (u, w) with u < w, none twice.
    n_nodes : int
    nodes : int array, optional
        Count only edges among these nodes (scope ``recovered``); all by default (``global``).
    """
    if nodes is not None:
        inside = np.zeros(n_nodes, dtype=bool)
        inside[nodes] = True
        truth, claimed = truth[_within(inside, truth)], claimed[_within(inside, claimed)]
    hits = np.isin(edge_keys(claimed, n_nodes), edge_keys(truth, n_nodes)).sum()
    return EdgeCounts(len(claimed), len(truth), int(hits))


def list_f1(truth: Ints, claimed: Ints, scores: Floats, n_nodes: int, top: int = 5) -> float:
    """Count F1 as the paper's appendix does, over a directed list (its paragraph "F1 computation").

    The list holds for each node its `top` best claims, so an edge can stand in it twice, and counts twice. A true
    edge that neither of its ends lists is missed in both directions, as a symmetric adjacency matrix holds it.
    """
    u, w = np.concatenate([claimed, claimed[:, ::-1]]).T
    order = np.lexsort((w, -np.tile(scores, 2), u))
    place = np.arange(len(u)) - np.searchsorted(u[order], u[order])
    listed = claimed[order[place < top] % max(len(claimed), 1)]
    true, found = edge_keys(truth, n_nodes), edge_keys(listed, n_nodes)
    hits = int(np.isin(found, true).sum())
    missed = 2 * int(np.isin(true, found, invert=True).sum())
    return 2 * hits / (hits + len(found) + missed) if len(found) + missed else 0.0


def _within(inside: Bools, edges: Ints) -> Bools:
    return np.asarray(inside[edges[:, 0]] & inside[edges[:, 1]])
