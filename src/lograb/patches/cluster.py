"""Clusters with a halo: the data silos of §4.1."""

from __future__ import annotations

import numpy as np
import pymetis
import scipy.sparse as sp

from lograb.errors import LograbError
from lograb.patches.balls import grow, rows_as_patches
from lograb.ragged import owners
from lograb.types import Ints, Matrix, Patches

CLUSTER_SIZE = 50


def metis(adjacency: Matrix, n_clusters: int, seed: int) -> Ints:
    """Partition nodes into at most `n_clusters` balanced clusters with few edges between them."""
    if n_clusters == 1:
        return np.zeros(adjacency.shape[0], dtype=np.int64)
    graph = pymetis.CSRAdjacency(adjacency.indptr, adjacency.indices)
    _, part = pymetis.part_graph(n_clusters, graph, options=pymetis.Options(seed=seed))
    return np.asarray(part, dtype=np.int64)


def clusters(
    adjacency: Matrix, observed: Ints, radius: int, n_clusters: int | None, size: int | None,
    rng: np.random.Generator,
) -> Patches:
    """Cluster the observed subgraph with METIS and add to each cluster a halo of `radius` hops.

    Without `n_clusters` there are as many as make about `size` observed nodes each, 50 by default.

    Both steps stay inside the subgraph of the observed nodes: an unobserved node belongs to no
    silo. A cluster need not be connected. METIS may leave clusters empty; those are dropped. METIS numbers
    neighbouring clusters alike; so that this gives nothing away they are ordered by their first node.
    """
    n = adjacency.shape[0]
    inner = adjacency[observed][:, observed]
    if n_clusters is None:
        n_clusters = max(1, round(len(observed) / (size or CLUSTER_SIZE)))
    if n_clusters > len(observed):
        raise LograbError(f"clusters must not exceed the {len(observed)} observed nodes, got {n_clusters}")
    part = metis(inner, n_clusters, seed=int(rng.integers(2**31 - 1)))
    _, first, part = np.unique(part, return_index=True, return_inverse=True)
    part = np.argsort(np.argsort(first))[part]
    shape = (int(part.max()) + 1, len(observed))
    cores = sp.csr_array((np.ones(len(part), dtype=bool), (part, np.arange(len(part)))), shape=shape)
    local = rows_as_patches(grow(cores, inner, radius))
    core = part[local.nodes] == owners(local.ptr)
    return Patches(n, observed[local.nodes], local.ptr, core=core)
