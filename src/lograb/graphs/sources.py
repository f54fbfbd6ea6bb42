"""From whatever names a graph to the graph: catalog name, file, Python object, or a list of objects."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from lograb.errors import LograbError, Notify, warn
from lograb.graphs.catalog import Dataset, find_dataset, is_dataset
from lograb.progress import Progress
from lograb.types import Graph

Source = object
"""A catalog name, a path, a `Graph`, a networkx, scipy sparse or PyTorch Geometric object, or a list of those."""


def load_graph(
    source: Source,
    *,
    graph: int | None = None,
    header: bool | None = None,
    progress: Progress | None = None,
    notify: Notify | None = None,
) -> Graph:
    """Load one graph.

    Parameters
    ----------
    source : str, path, Graph or graph-like object
        A name in the catalog wins over a file of the same name; write ``./cora`` for the file.
    graph : int, optional
        Which graph of a collection, from 0. Must be given for a collection.
    header : bool, optional
        For an edge list in a file: whether its first line is a header; None to find out.
    progress : callable, optional
        Called during downloads with file name, bytes done and bytes in total (or None).
    notify : callable, optional
        Called with each notice about what was changed on the way; without it they are issued as
        warnings of the class `LograbNotice`.

    Returns
    -------
    Graph
    """
    count = count_graphs(source)
    if graph is None:
        if count != 1:
            raise LograbError(f"'{_label(source)}' holds {count} graphs: choose one from 0 to {count - 1} "
                              "with graph=I (--graph I), or go through all of them with load_graphs")
        graph = 0
    if not 0 <= graph < count:
        raise LograbError(f"the graph of '{_label(source)}' must be from 0 to {count - 1}, got {graph}")
    found = next(islice(_open(_resolve(source), progress, header), graph, None), None)
    if found is None:
        raise LograbError(f"'{_label(source)}' ended before graph {graph}: its files hold fewer than the "
                          f"{count} graphs that the publisher lists; get them again")
    for text in found.notices:
        (notify or warn)(text)
    return found


def load_graphs(
    source: Source, *, progress: Progress | None = None, notify: Notify | None = None
) -> Iterator[Graph]:
    """Yield all graphs of a source, one at a time; see `load_graph`.

    Of notices that differ only in their numbers, the first is told.
    """
    return _with_notices(_open(_resolve(source), progress), notify or warn)


def _with_notices(graphs: Iterator[Graph], notify: Notify) -> Iterator[Graph]:
    told: set[str] = set()
    for graph in graphs:
        for text in graph.notices:
            kind = re.sub(r"\d+", "0", text)
            if kind not in told:
                notify(text)
            told.add(kind)
        yield graph


def count_graphs(source: Source) -> int:
    """Return the number of graphs of a source, without loading any."""
    found = _resolve(source)
    if isinstance(found, list | tuple):
        return len(found)
    return found.n_graphs if isinstance(found, Dataset) else 1


def _open(found: Source, progress: Progress | None, header: bool | None = None) -> Iterator[Graph]:
    """Yield the graphs of what `_resolve` found; readers are imported when they are needed."""
    if isinstance(found, Dataset):
        return found.load(progress)
    if isinstance(found, list | tuple):
        from lograb.graphs.collection import graphs_from_list

        return iter(graphs_from_list(found))
    if isinstance(found, Path):
        from lograb.graphs.files import read_graph

        return iter((read_graph(found, header=header),))
    from lograb.graphs.objects import graph_from_object

    return iter((graph_from_object(found),))


def _resolve(source: Source) -> Source:
    """Return a Dataset for a catalog name, a Path for a file, and any other object as it is."""
    if isinstance(source, list | tuple):
        from lograb.graphs.collection import check_list

        check_list(source)
    if not isinstance(source, str | os.PathLike):
        return source
    text = os.fspath(source)
    if isinstance(source, str) and is_dataset(source):
        return find_dataset(source)
    path = Path(os.fsdecode(text)).expanduser()
    if path.is_file():
        return path
    if path.is_dir():
        raise LograbError(f"a graph must be read from a file, '{source}' is a folder; name a file in it")
    if not isinstance(source, str) or path.suffix or len(path.parts) > 1 or os.sep in source:
        raise LograbError(f"no such file: '{source}'; give an existing file or a name from "
                          "'lograb list datasets'")
    return find_dataset(source)


def _label(source: Source) -> str:
    return str(source) if isinstance(source, str | os.PathLike) else type(source).__name__
