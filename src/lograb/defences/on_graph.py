"""Defences on the graph, before it is cut: edge-level ε for all that is made of it (LinkTeller, Wu et al. 2022).

Both draw how many pairs change, then which ones: memory grows with the edges before and after, never with n².
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from pydantic import Field
from scipy.optimize import brentq

from lograb.defences.defence import Defence
from lograb.errors import LograbError
from lograb.types import Floats, Graph, Ints

MOST_EDGES = 50_000_000
"""Edges of the largest graph that is made."""
COUNT_SHARE = 0.01
"""Share of ε that lap-graph spends on the number of edges, as published."""


class EdgeRand(Defence):
    """Randomised response on every pair of nodes."""

    name = "edge-rand"
    touches = ("membership", "centres", "eigenvalues", "eigenvectors")
    guarantee = "formal"
    unit = "edge"
    does = "flips every pair of nodes with probability 1 / (1 + e^ε) before the graph is cut"
    exposes = "nodes: one with many edges is protected edge by edge only"
    on_graph = True

    epsilon: float = Field(gt=0, le=50)

    def edge_epsilon(self) -> float:
        """ε itself: a pair answers truthfully e^ε times as often as not."""
        return self.epsilon

    def flip_rates(self, density: float, n_pairs: int) -> tuple[float, float]:
        """1 - f and f."""
        flip = 1.0 / (1.0 + np.exp(self.epsilon))
        return 1.0 - flip, flip

    def sanitise(self, graph: Graph, rng: np.random.Generator) -> Graph:
        """Flip pairs."""
        keep, flip = self.flip_rates(0.0, 0)
        edges = _upper(graph)
        n_free = _pairs(graph.n_nodes) - len(edges)
        expected = keep * len(edges) + flip * n_free
        if expected > MOST_EDGES:
            least = np.log(max(n_free / MOST_EDGES - 1.0, 1.0)) + 0.1
            raise LograbError(f"edge-rand with epsilon={self.epsilon} makes {expected:,.0f} edges, more than "
                              f"{MOST_EDGES:,}: {graph.n_nodes:,} nodes need an epsilon of at least {least:.1f}; "
                              "lap-graph keeps the number of edges")  # fmt: skip
        kept = edges[rng.random(len(edges)) < keep]
        return _with_edges(graph, kept, edges, int(rng.binomial(n_free, flip)), rng)


class LapGraph(Defence):
    """Laplace noise on every pair of nodes; the largest are the edges, as many as there were, about."""

    name = "lap-graph"
    touches = EdgeRand.touches
    guarantee = "formal"
    unit = "edge"
    does = "adds Laplace noise to all pairs of nodes and keeps the N largest, N a noisy count"
    exposes = EdgeRand.exposes
    on_graph = True

    epsilon: float = Field(gt=0, le=50)

    def edge_epsilon(self) -> float:
        """ε itself: what the count and the pairs spend together."""
        return self.epsilon

    def flip_rates(self, density: float, n_pairs: int) -> tuple[float, float]:
        """Tails of the noise beyond the value at which as many pairs pass as there are edges."""
        scale = 1.0 / ((1.0 - COUNT_SHARE) * self.epsilon)
        density = float(np.clip(density, 1.0 / max(n_pairs, 2), 0.5))

        def passing(cut: float) -> float:
            return density * _tail(cut - 1.0, scale) + (1.0 - density) * _tail(cut, scale) - density

        cut = float(brentq(passing, -60.0 * scale, 60.0 * scale + 1.0))
        return _tail(cut - 1.0, scale), _tail(cut, scale)

    def sanitise(self, graph: Graph, rng: np.random.Generator) -> Graph:
        """Draw the values of all edges, and of as many other pairs as can be among the largest."""
        scale = 1.0 / ((1.0 - COUNT_SHARE) * self.epsilon)
        edges, n_pairs = _upper(graph), _pairs(graph.n_nodes)
        wanted = round(len(edges) + rng.laplace(0.0, 1.0 / (COUNT_SHARE * self.epsilon)))
        wanted = min(max(wanted, 0), n_pairs)
        if wanted > MOST_EDGES:
            raise LograbError(f"lap-graph with epsilon={self.epsilon} keeps {wanted:,} edges, more than "
                              f"{MOST_EDGES:,}: choose a larger epsilon")  # fmt: skip
        n_free = n_pairs - len(edges)
        # Values beyond the `share` quantile: more of them than are wanted, but for chances below 1e-20.
        share = min(1.0, (wanted + 10.0 * np.sqrt(wanted) + 100.0) / max(n_free, 1))
        count = n_free if share == 1.0 else int(rng.binomial(n_free, share))
        free = _laplace_beyond(share * rng.random(count), scale)
        ours = 1.0 + rng.laplace(0.0, scale, len(edges))
        values = np.concatenate([ours, free])
        order = np.argpartition(-values, wanted - 1)[:wanted] if 0 < wanted < len(values) else np.arange(wanted)
        return _with_edges(graph, edges[order[order < len(edges)]], edges, int((order >= len(edges)).sum()), rng)


def _tail(value: float, scale: float) -> float:
    """P(Laplace > value)."""
    tail = float(np.exp(-abs(value) / scale) / 2)
    return tail if value >= 0 else 1.0 - tail


def _laplace_beyond(tails: Floats, scale: float) -> Floats:
    """Give the values whose upper tails are these: draws beyond a quantile, if tails are drawn below its tail."""
    tails = np.maximum(tails, np.finfo(float).tiny)
    low = scale * np.log(2 * np.maximum(1 - tails, 1e-300))
    return np.asarray(np.where(tails < 0.5, -scale * np.log(2 * tails), low))


def _pairs(n: int) -> int:
    return n * (n - 1) // 2


def _upper(graph: Graph) -> Ints:
    """Number the edges (u, w), u < w, as u * n + w, increasing."""
    edges = graph.edges
    return np.asarray(edges[:, 0] * graph.n_nodes + edges[:, 1])


def _distinct(keys: Ints) -> Ints:
    """Sort and drop repetitions: np.unique hashes, which takes ten times as long for many keys."""
    keys = np.sort(keys)
    return keys[np.diff(keys, prepend=-1) > 0]


def _with_edges(graph: Graph, kept: Ints, edges: Ints, n_new: int, rng: np.random.Generator) -> Graph:
    """Replace the edges: those kept, and so many of the pairs that were none, drawn without repetition."""
    n = graph.n_nodes
    new = np.empty(0, np.int64)
    while len(new) < n_new:
        u, w = rng.integers(n, size=(2, int(1.1 * (n_new - len(new))) + 16))
        drawn = _distinct((np.minimum(u, w) * n + np.maximum(u, w))[u != w])
        if len(edges):
            drawn = drawn[edges[np.minimum(np.searchsorted(edges, drawn), len(edges) - 1)] != drawn]
        new = _distinct(np.concatenate([new, drawn]))
    if len(new) > n_new:
        new = rng.choice(new, n_new, replace=False)
    keys = np.concatenate([kept, new])
    rows, cols = keys // n, keys % n
    upper = sp.coo_array((np.ones(len(keys), dtype=bool), (rows, cols)), shape=(n, n)).tocsr()
    adjacency = sp.csr_array(upper + upper.T)
    adjacency.sort_indices()
    return replace(graph, adjacency=adjacency)
