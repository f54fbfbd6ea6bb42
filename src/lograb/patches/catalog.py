"""The strategies by name, and the one function that applies them.

A new strategy is one function ``(graph, spec, rng, node_lists) -> Patches``, one line in
`STRATEGIES`, and its name in `lograb.spec.StrategyName`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from lograb.errors import LograbError
from lograb.patches.balls import balls
from lograb.patches.cluster import clusters
from lograb.patches.custom import custom
from lograb.spec import InstanceSpec
from lograb.types import Graph, Ints, Patches

NodeLists = Iterable[Iterable[object]]
Decompose = Callable[[Graph, InstanceSpec, np.random.Generator, NodeLists | None], Patches]


@dataclass(frozen=True)
class Strategy:
    """A way to cut a graph, and what it stands for."""

    name: str
    description: str
    decompose: Decompose


def select(n: int, share: float, rng: np.random.Generator) -> Ints:
    """Draw round(share * n) of the numbers 0 .. n - 1 (at least one), increasing."""
    count = min(n, max(1, round(share * n)))
    return np.sort(rng.choice(n, size=count, replace=False)).astype(np.int64)


def _d_hop(graph: Graph, spec: InstanceSpec, rng: np.random.Generator, _: NodeLists | None) -> Patches:
    return balls(graph.adjacency, select(graph.n_nodes, spec.p, rng), spec.d)


def _random(graph: Graph, spec: InstanceSpec, rng: np.random.Generator, _: NodeLists | None) -> Patches:
    observed = select(graph.n_nodes, spec.p, rng)
    n_seeds = max(1, round(len(observed) / 2)) if spec.seed_nodes is None else spec.seed_nodes
    if n_seeds > len(observed):
        raise LograbError(f"seed_nodes must not exceed the {len(observed)} observed nodes, got {n_seeds}")
    seeds = np.sort(rng.choice(observed, size=n_seeds, replace=False))
    return balls(graph.adjacency, seeds, spec.d)


def _cluster(graph: Graph, spec: InstanceSpec, rng: np.random.Generator, _: NodeLists | None) -> Patches:
    return clusters(graph.adjacency, select(graph.n_nodes, spec.p, rng), spec.d, spec.clusters, rng)


def _custom(
    graph: Graph, spec: InstanceSpec, rng: np.random.Generator, node_lists: NodeLists | None
) -> Patches:
    patches = custom(graph.n_nodes, graph.node_names, node_lists or ())
    kept = select(len(patches), spec.p, rng)
    return Patches.from_lists(graph.n_nodes, [patches[i] for i in kept])


def _global(graph: Graph, spec: InstanceSpec, rng: np.random.Generator, _: NodeLists | None) -> Patches:
    return Patches.from_lists(graph.n_nodes, [select(graph.n_nodes, spec.p, rng)])


STRATEGIES = {
    s.name: s
    for s in (
        Strategy("d-hop", "the ball of radius d around every observed node, in the whole graph", _d_hop),
        Strategy("cluster", "METIS clusters of the observed subgraph, each with a halo of d hops", _cluster),
        Strategy("random", "balls of radius d around randomly drawn observed nodes", _random),
        Strategy("custom", "node lists that the user brings; p is the fraction of lists kept", _custom),
        Strategy("global", "one patch: the whole graph, or the subgraph of the observed nodes", _global),
    )
}


def decompose(
    graph: Graph, spec: InstanceSpec, rng: np.random.Generator, node_lists: NodeLists | None = None
) -> Patches:
    """Cut a graph into the patches that a spec asks for (Algorithm 1, lines 2 and 3).

    Parameters
    ----------
    graph : Graph
    spec : InstanceSpec
    rng : numpy.random.Generator
    node_lists : iterable of node lists
        For the strategy ``custom`` only, by node name or id.
    """
    if (spec.strategy == "custom") != (node_lists is not None):
        got = "no node lists" if node_lists is None else "node lists"
        raise LograbError("the strategy 'custom', and only that one, needs node lists; "
                          f"got {got} with the strategy '{spec.strategy}'")
    return STRATEGIES[spec.strategy].decompose(graph, spec, rng, node_lists)
