"""The whole flow on one screen: read this first.

    source ──► Graph ──► Patches ──► Observations ──► Instance ──► one file
           graphs/    patches/   observations/            archive/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from lograb import archive
from lograb.archive.manifest import Manifest
from lograb.archive.tables import Array, join
from lograb.consistency import check_graph
from lograb.errors import LograbError
from lograb.fragment import NodeLists, fragment
from lograb.graphs import count_graphs, load_graph, load_graphs
from lograb.instance import Instance
from lograb.patches import read_node_lists
from lograb.progress import Progress
from lograb.spec import InstanceSpec
from lograb.types import Graph


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
    if spec.seed is None or spec.sigma is None:
        raise LograbError("generating an instance needs a seed and a noise level sigma")
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
