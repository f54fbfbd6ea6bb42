"""Several graphs in a list: converted one by one, and brought to the same columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import scipy.sparse as sp

from lograb.errors import LograbError
from lograb.graphs.objects import graph_from_object, refuse_edges
from lograb.spec import Origin
from lograb.types import Graph


def check_list(objects: Sequence[Any]) -> None:
    """Refuse a list that holds no graphs, before any is converted."""
    refuse_edges(objects)
    if not objects:
        raise LograbError("a list of graphs needs at least one graph, got an empty list")


def graphs_from_list(objects: Sequence[Any]) -> list[Graph]:
    """Make graphs of a list's objects.

    Either all graphs have features, as many as the others, or none has; the same with labels. Where
    some have named nodes and others numbered ones, the numbers become names. Graphs from
    memory, or of different origin, get the origin "graphs".
    """
    graphs = [_convert(i, item) for i, item in enumerate(objects)]
    for what in ("features", "labels"):
        kinds = [_kind(getattr(graph, what)) for graph in graphs]
        odd = next((i for i, kind in enumerate(kinds) if kind != kinds[0]), None)
        if odd is not None:
            raise LograbError(f"all graphs of a list need the same {what}, or none; graph 0 has {kinds[0]}, graph "
                              f"{odd} has {kinds[odd]}")  # fmt: skip
    if len({graph.node_names is None for graph in graphs}) > 1:
        graphs = [replace(graph, node_names=graph.node_names or tuple(map(str, range(graph.n_nodes))))
                  for graph in graphs]  # fmt: skip
    origins = {graph.origin for graph in graphs}
    if len(graphs) > 1 and (len(origins) > 1 or graphs[0].origin.kind == "memory"):
        graphs = [replace(graph, origin=Origin(source="graphs")) for graph in graphs]
    return graphs


def _convert(i: int, item: Any) -> Graph:
    if isinstance(item, str | bytes) or hasattr(item, "__fspath__"):
        raise LograbError(f"a list of graphs holds graphs, got {item!r:.60} in place {i}: load it with "
                          "lograb.load_graph")
    try:
        return graph_from_object(item)
    except LograbError as error:
        raise LograbError(f"graph {i} of the list: {error}") from None


def _kind(rows: Any) -> str:
    """Say what columns there are, apart from the number of rows."""
    if rows is None:
        return "none"
    form = "sparse" if sp.issparse(rows) else "dense"
    return "one per node" if rows.ndim == 1 else f"{rows.shape[1]} per node ({form})"
