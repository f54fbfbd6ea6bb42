"""A dataset and its patches in numbers: what the paper argues with (§6.1, Appendix A)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, dijkstra

from lograb.instance import Instance
from lograb.types import Graph, Ints, Observations

EXACT = 2_000  # patches up to which every one is a start for the diameter
MOST = 200_000_000  # pairs of patches that are looked at for the paper's overlap condition


def describe(instance: Instance) -> dict[str, Any]:
    """Describe the graphs of an instance, averaged over them, and their patches.

    Clustering is the mean of the local coefficients. The correlation of features and edges is that between the
    cosine of two nodes' features and whether they are joined, over all edges and as many other pairs. The patch
    graph joins patches that share a node, or, as ``aligned``, at least k + 1 nodes, which alignment needs (§5).
    Its diameter is that of the largest component, and at least that where ``diameter_exact`` is false.
    """
    rng = np.random.default_rng(0)
    parts = [_one(graph, rng) for graph in instance]
    told: dict[str, Any] = {}
    for name in parts[0]:
        values = [part[name] for part in parts if part[name] is not None]
        told[name] = float(np.mean(values)) if values else None
    summary = instance.summary()
    kept = ("n_graphs", "n_nodes", "n_edges", "n_patches", "complete_share", "co_observed_edges")
    sizes = {f"patch_{what}": summary["patch_sizes"][what] for what in ("median", "max")}
    return told | {name: summary[name] for name in kept} | sizes | {"n_classes": _n_classes(instance)}


def _n_classes(instance: Instance) -> int | None:
    labels = [graph.labels for graph in instance if graph.labels is not None]
    if not labels:
        return None
    return int(labels[0].shape[1] if labels[0].ndim == 2 else len(np.unique(np.concatenate(labels))))


def _one(instance: Instance, rng: np.random.Generator) -> dict[str, Any]:
    graph, seen = instance.truth, instance.observations
    diameter, exact = patch_graph_diameter(seen)
    return {
        "clustering": clustering(graph),
        "feature_edge_correlation": feature_correlation(graph, rng),
        "patch_graph_diameter": diameter,
        "diameter_exact": exact,
        "aligned_pairs": aligned_pairs(seen, seen.protocol.k + 1),
    }


def clustering(graph: Graph) -> float:
    """Average the local clustering coefficients; a node with fewer than two neighbours counts as 0."""
    adjacency = sp.csr_array(graph.adjacency, dtype=np.float64)
    degrees = adjacency.sum(axis=1)
    triangles = np.zeros(graph.n_nodes)
    for start in range(0, graph.n_nodes, 4096):  # in blocks: the square of a dense graph is large
        rows = adjacency[start : start + 4096]
        triangles[start : start + 4096] = (rows @ adjacency).multiply(rows).sum(axis=1)
    possible = degrees * (degrees - 1)
    return float(np.divide(triangles, possible, out=np.zeros_like(triangles), where=possible > 0).mean())


def feature_correlation(graph: Graph, rng: np.random.Generator) -> float | None:
    """Correlate the similarity of features with edges; None without features, edges or other pairs."""
    edges, n = graph.edges, graph.n_nodes
    if graph.features is None or not len(edges) or len(edges) > n * (n - 1) // 4:
        return None
    known = set(map(tuple, edges.tolist()))
    others: set[tuple[int, int]] = set()
    while len(others) < len(edges):
        for u, w in np.sort(rng.integers(n, size=(len(edges), 2)), axis=1).tolist():
            if u != w and (u, w) not in known and len(others) < len(edges):
                others.add((u, w))
    pairs = np.concatenate([edges, np.array(sorted(others))])
    similar = _cosines(sp.csr_array(graph.features, dtype=np.float64), pairs)
    joined = np.arange(len(pairs)) < len(edges)
    return None if similar.std() == 0 else float(np.corrcoef(similar, joined)[0, 1])


def _cosines(features: sp.csr_array, pairs: Ints) -> Any:
    lengths = np.sqrt(features.multiply(features).sum(axis=1))
    products = features[pairs[:, 0]].multiply(features[pairs[:, 1]]).sum(axis=1)
    size = lengths[pairs[:, 0]] * lengths[pairs[:, 1]]
    return np.divide(products, size, out=np.zeros(len(pairs)), where=size > 0)


def patch_graph_diameter(seen: Observations) -> tuple[int, bool]:
    """Find how many steps apart patches are at most, along those that share nodes; and whether that is exact.

    Searched in the graph of patches and nodes, where a step is two, so that no pairs of patches are formed.
    """
    m, n = seen.n_patches, seen.n_nodes
    owner = np.repeat(np.arange(m), seen.sizes)
    both = sp.csr_array((np.ones(len(owner), np.int8), (owner, m + seen.nodes)), shape=(m + n, m + n))
    both = (both + both.T).tocsr()
    label = connected_components(both, directed=False)[1][:m]
    largest = np.flatnonzero(label == np.bincount(label).argmax())
    exact = len(largest) <= EXACT
    starts, found = largest if exact else largest[:1], 0
    for _ in range(1 if exact else 8):  # from the far end of the last search: a lower bound, and mostly the truth
        for part in np.array_split(starts, -(-len(starts) // 64)):
            steps = dijkstra(both, directed=False, unweighted=True, indices=part)[:, :m]
            steps[np.isinf(steps)] = -1
            found = max(found, int(steps.max()))
        starts = np.array([steps[-1].argmax()])
    return found // 2, exact


def aligned_pairs(seen: Observations, least: int) -> int | None:
    """Count pairs of patches that share at least so many nodes; None where there are too many to look at."""
    large = np.flatnonzero(seen.sizes >= least)
    owner = np.repeat(np.arange(seen.n_patches), seen.sizes)
    inside = np.isin(owner, large)
    counts = np.bincount(seen.nodes[inside], minlength=seen.n_nodes).astype(float)
    if (counts**2).sum() > MOST:
        return None
    rows = sp.csr_array((np.ones(inside.sum(), np.int32), (owner[inside], seen.nodes[inside])),
                        shape=(seen.n_patches, seen.n_nodes))[large]  # fmt: skip
    shared = sp.triu(rows @ rows.T, k=1).tocsr()
    return int((shared.data >= least).sum())
