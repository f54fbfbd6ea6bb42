"""One graph, cut, observed and laid out as columns: Algorithm 1."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import numpy as np

from lograb.archive.layout import lay_out
from lograb.archive.tables import Array
from lograb.defences import as_defences, share
from lograb.defences.catalog import Shared
from lograb.observations import observe
from lograb.patches import PatchEdges, decompose, induced_edges
from lograb.progress import Progress, ignore
from lograb.spec import InstanceSpec
from lograb.types import Bools, Graph, Ints, Observations, Patches


def fragment(
    graph: Graph, spec: InstanceSpec, seed: np.random.SeedSequence, brought: Patches | None = None,
    progress: Progress = ignore,
) -> dict[str, Array]:
    """Cut, observe and lay out one graph: Algorithm 1 for the whole of it.

    `brought` are the user's own patches, for the strategy ``custom``.

    Selection, gauge and noise draw from streams of their own, so that changing one parameter
    leaves the others' draws alone. The noise's stream depends on everything that is shared: with
    one stream for all, whoever sees a graph at two noise levels could subtract the noise.

    Some defences act on the graph, and everything shared is made of what they leave of it; the truth stays what it
    is.
    """
    cut_rng, gauge_rng, order_rng = (np.random.default_rng(child) for child in seed.spawn(3))
    defences = as_defences(spec.defences)
    sanitised = graph
    for i, defence in enumerate(d for d in defences if d.on_graph):
        progress(defence.name, 0, None)
        # All edges count: whoever guesses the seed must not be able to replay the flips without the graph.
        content = sha256(f"{defence}".encode() + np.ascontiguousarray(graph.edges, dtype="<i8").tobytes())
        own = (*seed.spawn_key, 3, i, *_words(content.digest()))
        sanitised = defence.sanitise(sanitised, np.random.default_rng(np.random.SeedSequence(seed.entropy,
                                                                                             spawn_key=own)))
    progress("cutting patches", 0, None)
    patches = decompose(sanitised, spec, cut_rng, brought)
    edges = induced_edges(patches, sanitised)
    content = sha256(spec.model_dump_json(exclude=_unused(spec)).encode())
    for array in (patches.ptr, patches.nodes, edges.ptr, edges.entries):
        content.update(np.ascontiguousarray(array, dtype="<i8").data)
    key = (*seed.spawn_key, 2, *_words(content.digest()))
    noise_rng = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=key))
    observations = observe(patches, edges, spec, gauge_rng, noise_rng, order_rng, progress)
    named = replace(observations, node_names=graph.node_names, patch_names=patches.names)
    shared = share(named, [d for d in defences if not d.on_graph], noise_rng, spec)
    if sanitised is not graph:
        edges = induced_edges(patches, graph)
    return lay_out_shared(named, shared, graph, edges, patches.core)


def _words(digest: bytes) -> list[int]:
    return np.frombuffer(digest, dtype="<u4").tolist()  # type: ignore[no-any-return]


def _unused(spec: InstanceSpec) -> set[str]:
    """Name what is not asked for, and so changes no noise."""
    later = (("defences", ()), ("releases", 1), ("cluster_size", None), ("precision", "float64"))
    return {name for name, empty in later if getattr(spec, name) == empty}


def lay_out_shared(
    seen: Observations, shared: Shared, graph: Graph | None, edges: PatchEdges | None, core: Bools | None,
    key: Ints | None = None,
) -> dict[str, Array]:
    """Lay out what is shared in the end, with the truth about it.

    Where nodes have fresh names in every patch, the truth is about those: one graph beside the other, and a key
    that says whom each name stands for; `key` says so of names that are fresh already.
    """
    if shared.entries is None:
        return lay_out(shared.seen, graph, edges, core, key)
    old = seen.nodes[shared.entries]
    core = None if core is None else core[shared.entries]
    if graph is None or edges is None:
        return lay_out(shared.seen, core=core)
    place = np.empty(len(old), np.int64)
    place[shared.entries] = np.arange(len(old))
    renamed = Graph.from_edges(graph.name, len(old), place[edges.entries], origin=graph.origin,
                               features=None if graph.features is None else graph.features[old],
                               labels=None if graph.labels is None else graph.labels[old])  # fmt: skip
    patches = Patches(len(old), shared.seen.nodes, shared.seen.ptr)
    whom = old if key is None else key[old]
    return lay_out(shared.seen, renamed, induced_edges(patches, renamed), core, whom)
