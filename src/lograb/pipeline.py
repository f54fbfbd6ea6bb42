"""The whole flow on one screen: read this first.

    source ──► Graph ──► Patches ──► Observations ──► Instance ──► one file
           graphs/    patches/   observations/            archive/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from lograb import archive
from lograb.archive.manifest import Manifest
from lograb.archive.tables import Array, canonical, join
from lograb.consistency import check_graph
from lograb.errors import LograbError
from lograb.graphs import count_graphs, load_graph, load_graphs
from lograb.graphs.fetch import Progress
from lograb.instance import Instance
from lograb.observations import observe
from lograb.patches import PatchEdges, decompose, induced_edges, read_node_lists
from lograb.ragged import pointer
from lograb.spec import InstanceSpec
from lograb.types import Graph, Observations, Patches

NodeLists = Iterable[Iterable[object]]


def generate(
    source: Any,
    *,
    graph: int | None = None,
    patches: NodeLists | str | Path | None = None,
    header: bool | None = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> Instance:
    """Fragment a graph and observe its patches: a benchmark instance in memory.

    Parameters
    ----------
    source : catalog name, path, Graph, networkx graph, scipy sparse matrix or PyG Data
    graph : int, optional
        Which graph of a dataset that holds many; all of them by default.
    patches : node lists, or a file of them
        For ``strategy="custom"``.
    header : bool, optional
        For an edge list: whether its first line is a header; None to find out.
    progress : callable, optional
    **parameters
        The fields of `InstanceSpec`: strategy, d, p, k, sigma, gauge, seed, clusters, seed_nodes,
        eigenvalues.

    Examples
    --------
    >>> import lograb
    >>> instance = lograb.generate("karate", d=1, p=0.6, k=8, sigma=0.05)
    >>> instance.observations.n_patches
    20
    """
    manifest, pieces = _plan(source, graph, patches, header, progress, parameters)
    tables = list(pieces)
    return Instance(manifest, join(tables) if len(tables) > 1 else tables[0])


def generate_file(
    source: Any,
    path: str | Path,
    *,
    truth: bool = True,
    graph: int | None = None,
    patches: NodeLists | str | Path | None = None,
    header: bool | None = None,
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
    **parameters: Any,
) -> str:
    """Like `generate`, but straight into a file, one graph in memory at a time.

    `notify` is called with each notice of the reader; an archive without truth does not keep them.
    Returns the SHA-256 of the file. With ``truth=False`` whatever would answer Task 1 is left out.
    """
    for name, given in (("source", source), ("patches", patches)):
        file = Path(given) if isinstance(given, str | Path) else None
        if file is not None and file.is_file() and file.resolve() == Path(path).resolve():
            raise LograbError(f"the output '{path}' is the file of the {name}: choose another name")
    with archive.Writer(path, truth=truth) as writer:  # first, so that a bad path fails before work starts
        manifest, pieces = _plan(source, graph, patches, header, progress, parameters)
        if notify is not None:
            for text in manifest.notices:
                notify(text)
        for tables in pieces:
            writer.append(tables)
        return writer.finish(manifest)


def load(path: str | Path) -> Instance:
    """Open an instance's file; its parts are read and verified when they are asked for."""
    return Instance(*archive.read(path))


def verify(path: str | Path) -> Manifest:
    """Check every byte of an instance's file, and that its parts fit each other.

    Raises
    ------
    ArchiveError
        Naming the first member that does not hold.
    """
    manifest = archive.verify(path)
    for graph in load(path):
        check_graph(graph)
    return manifest


def _plan(
    source: Any,
    graph: int | None,
    patches: NodeLists | str | Path | None,
    header: bool | None,
    progress: Progress | None,
    parameters: dict[str, Any],
) -> tuple[Manifest, Iterator[dict[str, Array]]]:
    """Check everything that can be checked before work starts; then make the tables lazily."""
    spec = InstanceSpec.of(**parameters)
    if spec.seed is None:
        raise LograbError("generating an instance needs a seed")
    lists = read_node_lists(patches) if isinstance(patches, str | Path) else patches
    lists = None if lists is None else [list(item) for item in lists]
    total = count_graphs(source) if graph is None else 1
    if total > 1 and lists is not None:
        raise LograbError("the strategy 'custom' cuts one graph: choose it with graph=I (--graph I)")
    if total > 1:
        graphs = load_graphs(source, progress=progress)
    else:
        graphs = iter([load_graph(source, graph=graph, header=header, progress=progress)])
    first = next(graphs)
    manifest = Manifest(
        name=first.origin.source if total > 1 else first.name,
        spec=spec,
        origin=first.origin,
        notices=first.notices,
        n_features=0 if first.features is None else first.features.shape[1],
    )
    numbered = enumerate(chain([first], graphs), start=graph or 0)
    return manifest, _fragment_all(numbered, spec, spec.seed, lists, total, progress)


def _fragment_all(
    numbered: Iterable[tuple[int, Graph]],
    spec: InstanceSpec,
    seed: int,
    node_lists: NodeLists | None,
    total: int,
    progress: Progress | None,
) -> Iterator[dict[str, Array]]:
    """Fragment graph after graph; each draws from a stream of its own, whatever its company."""
    for done, (number, graph) in enumerate(numbered):
        if progress is not None:
            progress("fragmenting", done, total if total > 1 else None)
        yield fragment(graph, spec, np.random.SeedSequence(seed, spawn_key=(number,)), node_lists)


def fragment(
    graph: Graph, spec: InstanceSpec, seed: np.random.SeedSequence, node_lists: NodeLists | None = None
) -> dict[str, Array]:
    """Cut, observe and lay out one graph: Algorithm 1 for the whole of it.

    Selection, gauge and noise draw from streams of their own, so that changing one parameter
    leaves the others' draws alone. The noise's stream depends on everything that is shared: with
    one stream for all, whoever sees a graph at two noise levels could subtract the noise.
    """
    cut_rng, gauge_rng = (np.random.default_rng(child) for child in seed.spawn(2))
    patches = decompose(graph, spec, cut_rng, node_lists)
    edges = induced_edges(patches, graph)
    content = sha256(spec.model_dump_json().encode())
    for array in (patches.ptr, patches.nodes, edges.ptr, edges.entries):
        content.update(np.ascontiguousarray(array, dtype="<i8").data)
    key = np.frombuffer(content.digest(), dtype="<u4").tolist()
    noise_rng = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 2, *key)))
    observations = observe(patches, edges, spec, gauge_rng, noise_rng)
    return canonical(_lay_out(graph, patches, edges, observations))


def _lay_out(graph: Graph, patches: Patches, edges: PatchEdges, seen: Observations) -> dict[str, Array]:
    columns: dict[str, Array | None] = {
        "graphs/nodes": np.array([0, graph.n_nodes]),
        "graphs/patches": np.array([0, len(patches)]),
        "observations/ptr": seen.ptr,
        "observations/nodes": seen.nodes,
        "observations/value_ptr": seen.value_ptr,
        "observations/values": seen.values,
        "observations/vector_ptr": seen.vector_ptr,
        "observations/vectors": seen.vectors,
        "observations/next_values": seen.next_values,
        "observations/centres": seen.centres,
        "fragments/core": patches.core,
        "patch_edges/ptr": edges.ptr,
        "patch_edges/ends": edges.entries - np.repeat(patches.ptr[:-1], np.diff(edges.ptr))[:, None],
        "truth/ptr": np.array([0, graph.n_edges]),
        "truth/edges": graph.edges,
        "truth/co_observed": edges.co_observed,
    }
    if graph.node_names is not None:
        names = [name.encode("utf-8") for name in graph.node_names]
        columns["nodes/name_ptr"] = pointer([len(name) for name in names])
        columns["nodes/names"] = np.frombuffer(b"".join(names), dtype=np.uint8)
    if sp.issparse(graph.features):
        features = sp.csr_array(graph.features)
        columns["features/ptr"], columns["features/columns"] = features.indptr, features.indices
        columns["features/weights"] = features.data
    elif graph.features is not None:
        columns["features/dense"] = graph.features
    if graph.labels is not None:
        columns["labels/classes" if graph.labels.ndim == 1 else "labels/indicators"] = graph.labels
    return {name: column for name, column in columns.items() if column is not None}
