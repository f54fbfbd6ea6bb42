"""One graph, cut, observed and laid out as columns: Algorithm 1."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import scipy.sparse as sp

from lograb.archive import schema
from lograb.archive.tables import Array, canonical
from lograb.observations import observe
from lograb.patches import PatchEdges, decompose, induced_edges
from lograb.progress import Progress, ignore
from lograb.ragged import pack_names
from lograb.spec import InstanceSpec
from lograb.types import Graph, Observations, Patches


def fragment(
    graph: Graph, spec: InstanceSpec, seed: np.random.SeedSequence, brought: Patches | None = None,
    progress: Progress = ignore,
) -> dict[str, Array]:
    """Cut, observe and lay out one graph: Algorithm 1 for the whole of it.

    `brought` are the user's own patches, for the strategy ``custom``.

    Selection, gauge and noise draw from streams of their own, so that changing one parameter
    leaves the others' draws alone. The noise's stream depends on everything that is shared: with
    one stream for all, whoever sees a graph at two noise levels could subtract the noise.
    """
    cut_rng, gauge_rng, order_rng = (np.random.default_rng(child) for child in seed.spawn(3))
    progress("cutting patches", 0, None)
    patches = decompose(graph, spec, cut_rng, brought)
    edges = induced_edges(patches, graph)
    content = sha256(spec.model_dump_json().encode())
    for array in (patches.ptr, patches.nodes, edges.ptr, edges.entries):
        content.update(np.ascontiguousarray(array, dtype="<i8").data)
    key = np.frombuffer(content.digest(), dtype="<u4").tolist()
    noise_rng = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 2, *key)))
    observations = observe(patches, edges, spec, gauge_rng, noise_rng, order_rng, progress)
    return canonical(_lay_out(graph, patches, edges, observations))


def _lay_out(graph: Graph, patches: Patches, edges: PatchEdges, seen: Observations) -> dict[str, Array]:
    columns: dict[str, Array | None] = {
        schema.GRAPH_NODES: np.array([0, graph.n_nodes]),
        schema.GRAPH_PATCHES: np.array([0, len(patches)]),
        schema.PTR: seen.ptr,
        schema.MEMBERS: seen.nodes,
        schema.VALUE_PTR: seen.value_ptr,
        schema.VALUES: seen.values,
        schema.VECTOR_PTR: seen.vector_ptr,
        schema.VECTORS: seen.vectors,
        schema.NEXT_VALUES: seen.next_values,
        schema.CENTRES: seen.centres,
        schema.CORE: patches.core,
        schema.EDGE_PTR: edges.ptr,
        schema.EDGE_ENDS: edges.entries - np.repeat(patches.ptr[:-1], np.diff(edges.ptr))[:, None],
        schema.TRUTH_PTR: np.array([0, graph.n_edges]),
        schema.TRUTH: graph.edges,
        schema.CO_OBSERVED: edges.co_observed,
    }
    if graph.node_names is not None:
        columns[schema.NAME_PTR], columns[schema.NAMES] = pack_names(graph.node_names)
    if patches.names is not None:
        columns[schema.PATCH_NAME_PTR], columns[schema.PATCH_NAMES] = pack_names(patches.names)
    if sp.issparse(graph.features):
        features = sp.csr_array(graph.features)
        columns[schema.FEATURE_PTR], columns[schema.FEATURE_COLUMNS] = features.indptr, features.indices
        columns[schema.FEATURE_WEIGHTS] = features.data
    elif graph.features is not None:
        columns[schema.FEATURES] = graph.features
    if graph.labels is not None:
        columns[schema.CLASSES if graph.labels.ndim == 1 else schema.INDICATORS] = graph.labels
    return {name: column for name, column in columns.items() if column is not None}
