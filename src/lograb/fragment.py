"""One graph, cut, observed and laid out as columns: Algorithm 1."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import numpy as np

from lograb.archive.layout import lay_out
from lograb.archive.tables import Array
from lograb.observations import observe
from lograb.patches import decompose, induced_edges
from lograb.progress import Progress, ignore
from lograb.spec import InstanceSpec
from lograb.types import Graph, Patches


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
    unasked = {"cluster_size"} if spec.cluster_size is None else None  # what is not asked for changes no noise
    content = sha256(spec.model_dump_json(exclude=unasked).encode())
    for array in (patches.ptr, patches.nodes, edges.ptr, edges.entries):
        content.update(np.ascontiguousarray(array, dtype="<i8").data)
    key = np.frombuffer(content.digest(), dtype="<u4").tolist()
    noise_rng = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 2, *key)))
    observations = observe(patches, edges, spec, gauge_rng, noise_rng, order_rng, progress)
    named = replace(observations, node_names=graph.node_names, patch_names=patches.names)
    return lay_out(named, graph, edges, patches.core)
