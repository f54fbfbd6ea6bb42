"""The strategies by name, and the one function that applies them.

A new strategy is one function ``(graph, spec, rng, brought) -> Patches``, one line in
`STRATEGIES`, and its name in `lograb.spec.StrategyName`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lograb.errors import LograbError
from lograb.patches.balls import balls
from lograb.patches.cluster import clusters
from lograb.spec import InstanceSpec
from lograb.types import Graph, Ints, Patches

Decompose = Callable[[Graph, InstanceSpec, np.random.Generator, Patches | None], Patches]


@dataclass(frozen=True)
class Strategy:
    """A way to cut a graph, and what it stands for."""

    name: str
    description: str
    decompose: Decompose


def n_observed(n: int, share: float) -> int:
    """Count the observed of n nodes (or patches)."""
    return min(n, max(1, round(share * n)))


def select(n: int, share: float, rng: np.random.Generator) -> Ints:
    """Draw round(share * n) of the numbers 0 .. n - 1 (at least one), increasing."""
    return np.sort(rng.choice(n, size=n_observed(n, share), replace=False)).astype(np.int64)


def _d_hop(graph: Graph, spec: InstanceSpec, rng: np.random.Generator, _: Patches | None) -> Patches:
    return balls(graph.adjacency, select(graph.n_nodes, spec.p, rng), spec.d)


def _random(graph: Graph, spec: InstanceSpec, rng: np.random.Generator, _: Patches | None) -> Patches:
    observed = select(graph.n_nodes, spec.p, rng)
    n_seeds = max(1, round(len(observed) / 2)) if spec.seed_nodes is None else spec.seed_nodes
    if n_seeds > len(observed):
        raise LograbError(f"seed_nodes must not exceed the {len(observed)} observed nodes, got {n_seeds}")
    seeds = np.sort(rng.choice(observed, size=n_seeds, replace=False))
    return balls(graph.adjacency, seeds, spec.d)


def _cluster(graph: Graph, spec: InstanceSpec, rng: np.random.Generator, _: Patches | None) -> Patches:
    observed = select(graph.n_nodes, spec.p, rng)
    return clusters(graph.adjacency, observed, spec.d, spec.clusters, spec.cluster_size, rng)


def _custom(graph: Graph, spec: InstanceSpec, rng: np.random.Generator, brought: Patches | None) -> Patches:
    assert brought is not None
    kept = select(len(brought), spec.p, rng)
    names = None if brought.names is None else tuple(brought.names[i] for i in kept)
    return Patches.from_lists(graph.n_nodes, [brought[i] for i in kept], names=names)


def _global(graph: Graph, spec: InstanceSpec, rng: np.random.Generator, _: Patches | None) -> Patches:
    return Patches.from_lists(graph.n_nodes, [select(graph.n_nodes, spec.p, rng)])


STRATEGIES = {
    s.name: s
    for s in (
        Strategy("d-hop", "the ball of radius d around every observed node, in the whole graph", _d_hop),
        Strategy("cluster", "METIS clusters of the observed subgraph, each with a halo of d hops", _cluster),
        Strategy("random", "balls of radius d around randomly drawn observed nodes", _random),
        Strategy("custom", "patches that the user brings; p is the fraction of them kept", _custom),
        Strategy("global", "one patch: the whole graph, or the subgraph of the observed nodes", _global),
    )
}


def decompose(
    graph: Graph, spec: InstanceSpec, rng: np.random.Generator, brought: Patches | None = None
) -> Patches:
    """Cut a graph into the patches that a spec asks for (Algorithm 1, lines 2 and 3).

    `brought` are the user's own, for the strategy ``custom`` only; see `lograb.patches.custom`.
    """
    choose(spec.strategy, brought is not None)
    return STRATEGIES[spec.strategy].decompose(graph, spec, rng, brought)


def choose(strategy: str | None, brought: bool) -> str:
    """Give the strategy: what is asked for, else ``custom`` for patches that are brought, else ``d-hop``."""
    if strategy is None:
        return "custom" if brought else "d-hop"
    if strategy == "custom" and not brought:
        raise LograbError("the strategy 'custom' needs patches, got none: bring node lists or groups with patches "
                          "(--patches FILE), or cut by a node attribute with patches_by (--patches-by NAME)")
    if strategy != "custom" and brought:
        raise LograbError(f"patches that you bring are the strategy 'custom', got the strategy '{strategy}': "
                          "leave one of the two out")
    return strategy
