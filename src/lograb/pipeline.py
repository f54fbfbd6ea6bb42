"""The whole flow on one screen: read this first.

    source ──► Graph ──► Patches ──► Observations ──► Instance ──► one file
           graphs/    patches/   observations/            archive/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from lograb import archive
from lograb.archive.manifest import Manifest
from lograb.archive.tables import Array, join
from lograb.consistency import check_graph
from lograb.errors import LograbError, Notify, warn
from lograb.fragment import fragment
from lograb.graphs import count_graphs, load_graph, load_graphs
from lograb.instance import Instance
from lograb.patches import Bring, Given, bring, choose
from lograb.progress import Progress
from lograb.spec import InstanceSpec
from lograb.types import Graph, Patches


def generate(
    source: Any,
    *,
    graph: int | None = None,
    patches: Given | None = None,
    patches_by: str | None = None,
    header: bool | None = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> Instance:
    """Fragment a graph and observe its patches: a benchmark instance in memory.

    Parameters
    ----------
    source : catalog name, path, Graph, networkx graph, scipy sparse matrix, PyG Data, or a list of graphs
    graph : int, optional
        Which graph of a dataset that holds many; all of them by default.
    patches : node lists, a dict of them by group, a dict of groups by node, or a file of any of these
        The user's own patches: the strategy is then ``custom``. A file may also be a table
        ``node,group``. Groups give the patches their names.
    patches_by : str, optional
        Cut by an attribute of the nodes: one patch for each of its values. "label" cuts by class.
    header : bool, optional
        For an edge list: whether its first line is a header; None to find out.
    progress : callable, optional
    **parameters
        The fields of `InstanceSpec`: strategy, d, p, k, sigma, gauge, seed, clusters, seed_nodes,
        eigenvalues.

    What was changed in the data on the way is told in warnings of the class `LograbNotice`.

    Examples
    --------
    >>> import lograb
    >>> instance = lograb.generate("karate", d=1, p=0.6, k=8, sigma=0.05)
    >>> instance.observations.n_patches
    20
    """
    manifest, pieces = _plan(source, graph, bring(patches, patches_by), header, progress, None, parameters)
    tables = list(pieces)
    return Instance(manifest, join(tables) if len(tables) > 1 else tables[0])


def generate_file(
    source: Any,
    path: str | Path,
    *,
    truth: bool = True,
    graph: int | None = None,
    patches: Given | None = None,
    patches_by: str | None = None,
    header: bool | None = None,
    progress: Progress | None = None,
    notify: Notify | None = None,
    **parameters: Any,
) -> str:
    """Like `generate`, but straight into a file, one graph in memory at a time.

    `notify` is called with each notice; without it they are warnings. An archive without truth does not keep them.
    Returns the SHA-256 of the file. With ``truth=False`` whatever would answer Task 1 is left out.
    """
    for name, given in (("source", source), ("patches", patches)):
        file = Path(given) if isinstance(given, str | Path) else None
        if file is not None and file.is_file() and file.resolve() == Path(path).resolve():
            raise LograbError(f"the output '{path}' is the file of the {name}: choose another name")
    with archive.Writer(path, truth=truth) as writer:  # first, so that a bad path fails before work starts
        cut_by = bring(patches, patches_by)
        manifest, pieces = _plan(source, graph, cut_by, header, progress, notify, parameters)
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
    cut_by: Bring | None,
    header: bool | None,
    progress: Progress | None,
    notify: Notify | None,
    parameters: dict[str, Any],
) -> tuple[Manifest, Iterator[dict[str, Array]]]:
    """Check everything that can be checked before work starts; then make the tables lazily."""
    spec = InstanceSpec.of(**parameters | {"strategy": choose(parameters.get("strategy"), cut_by is not None)})
    if spec.seed is None:
        raise LograbError("generating an instance needs a seed")
    total = count_graphs(source) if graph is None else 1
    if total > 1 and cut_by is not None:
        raise LograbError("the strategy 'custom' cuts one graph: choose it with graph=I (--graph I)")
    if total > 1:
        graphs = load_graphs(source, progress=progress, notify=notify)
    else:
        graphs = iter([load_graph(source, graph=graph, header=header, progress=progress, notify=notify)])
    first = next(graphs)
    brought, notices = cut_by(first) if cut_by is not None else (None, ())
    for text in notices:
        (notify or warn)(text)
    manifest = Manifest(
        name=first.origin.source if total > 1 else first.name,
        spec=spec,
        origin=first.origin,
        notices=(*first.notices, *notices),
        n_features=0 if first.features is None else first.features.shape[1],
    )
    numbered = enumerate(chain([first], graphs), start=graph or 0)
    return manifest, _fragment_all(numbered, spec, spec.seed, brought, total, progress)


def _fragment_all(
    numbered: Iterable[tuple[int, Graph]],
    spec: InstanceSpec,
    seed: int,
    brought: Patches | None,
    total: int,
    progress: Progress | None,
) -> Iterator[dict[str, Array]]:
    """Fragment graph after graph; each draws from a stream of its own, whatever its company."""
    for done, (number, graph) in enumerate(numbered):
        if progress is not None:
            progress("fragmenting", done, total if total > 1 else None)
        yield fragment(graph, spec, np.random.SeedSequence(seed, spawn_key=(number,)), brought)
