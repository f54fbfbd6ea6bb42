"""Observations that lograb did not make, with the truth where it is at hand, as the columns of an instance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lograb.archive.layout import lay_out
from lograb.archive.manifest import Manifest
from lograb.archive.tables import Array, check
from lograb.errors import LograbError
from lograb.names import shorten
from lograb.patches import induced_edges
from lograb.spec import InstanceSpec, Origin, Protocol
from lograb.types import Graph, Observations, Patches


def packed(observations: Observations, truth: Graph | None, name: str) -> tuple[Manifest, dict[str, Array]]:
    """Lay out observations as they are; see `lograb.instance.Instance.from_observations`."""
    if not isinstance(observations, Observations) or not isinstance(truth, Graph | None):
        raise LograbError("an instance is made of Observations (Observations.from_arrays makes them) and a Graph "
                          "as truth (load_graph reads one)")  # fmt: skip
    seen = observations if truth is None else _numbered_as(observations, truth)
    features = seen.features if truth is None else truth.features
    edges = None if truth is None else induced_edges(Patches(seen.n_nodes, seen.nodes, seen.ptr), truth)
    tables = lay_out(seen, truth, edges)
    check(tables)
    manifest = Manifest(
        name=name,
        spec=InstanceSpec.of(**seen.protocol.model_dump() | {"sigma": _of_one_release(seen.protocol)}, seed=None,
                             eigenvalues=seen.values is not None),
        origin=Origin(source=name, kind="packed"),
        notices=() if truth is None else truth.notices,
        truth=truth is not None,
        n_features=0 if features is None else features.shape[1],
    )
    return manifest, tables


def _of_one_release(protocol: Protocol) -> float | None:
    return None if protocol.sigma is None else protocol.sigma * protocol.releases**0.5


def _numbered_as(seen: Observations, graph: Graph) -> Observations:
    """Give the observed nodes the numbers that nodes of the same names have in a graph."""
    names = graph.node_names or tuple(map(str, range(graph.n_nodes)))
    index = {name: i for i, name in enumerate(names)}
    shown = np.unique(seen.nodes).tolist()
    own = {i: seen.node_names[i] if seen.node_names is not None else str(i) for i in shown}
    unknown = [own[i] for i in shown if own[i] not in index]
    if unknown:
        raise LograbError(f"{len(unknown)} of {len(shown)} observed nodes are not in the graph '{graph.name}' "
                          f"with the nodes {shorten(names, 3)}: {shorten(unknown)}")  # fmt: skip
    number = np.full(seen.n_nodes, -1, dtype=np.int64)
    number[shown] = [index[own[i]] for i in shown]
    ids = [number[seen.members(i)] for i in range(seen.n_patches)]
    vectors = [seen.block(i)[np.argsort(ids[i])].ravel() for i in range(seen.n_patches)]
    return replace(seen, n_nodes=graph.n_nodes, nodes=np.concatenate(list(map(np.sort, ids))),
                   vectors=np.concatenate(vectors), node_names=graph.node_names,
                   centres=None if seen.centres is None else number[seen.centres], features=None)  # fmt: skip
