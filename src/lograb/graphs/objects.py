"""The user's own graph, taken from an object in memory.

The rules are those of files (see `lograb.graphs.files`). Objects are recognised by what they offer;
networkx and torch are never imported here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from lograb.errors import LograbError
from lograb.graphs.formats.simple import (
    MAX_ATTRIBUTE_CHARS,
    RawGraph,
    apply_rules,
    as_pairs,
    check_features,
    check_ids,
    check_labels,
    collect_attributes,
    names_of,
    read_matrix,
)
from lograb.names import shorten
from lograb.spec import Origin
from lograb.types import Graph

ACCEPTED = ("networkx Graph, DiGraph, MultiGraph or MultiDiGraph", "scipy sparse matrix or array",
            "square numpy array", "torch_geometric Data", "a list of these")
_SCALARS = (str, int, float, np.generic)


def graph_from_object(obj: Any, *, name: str | None = None) -> Graph:
    """Make a graph from what another library holds (`ACCEPTED`); a `Graph` is returned as it is.

    Nodes are in the order of the object. The name is by default networkx' own, or "graph".
    """
    if isinstance(obj, Graph):
        return obj
    if _from_library(obj, "networkx") and hasattr(obj, "is_multigraph"):
        raw, own_name = _read_networkx(obj), str(obj.name or "")
    elif sp.issparse(obj) or isinstance(obj, np.ndarray):
        refuse_edges(obj)
        raw, own_name = read_matrix(obj), ""
    elif _has(obj, "edge_index") and _has(obj, "num_nodes"):
        raw, own_name = _read_pyg(obj), ""
    else:
        refuse_edges(obj)
        raise LograbError(f"a graph must be one of: {'; '.join(ACCEPTED)}; got {type(obj).__module__}."
                          f"{type(obj).__qualname__}. A file is read with its path")
    name = name or own_name or "graph"
    return apply_rules(raw, name, Origin(source=name, kind="memory"))


def refuse_edges(obj: Any) -> None:
    """Tell whoever hands over edges where a graph is expected how to make a graph of them."""
    if isinstance(obj, list | tuple):
        rows = [isinstance(item, list | tuple) or getattr(item, "ndim", 0) == 1 for item in obj]
        is_edges, what, edges = bool(rows) and all(rows), "a list of pairs", "edges"
    else:
        shape = obj.shape if isinstance(obj, np.ndarray) and obj.dtype.kind in "iu" else ()
        is_edges, what = len(shape) == 2 and 2 in shape and shape != (2, 2), f"an array of shape {shape}"
        edges = "edges" if shape[1:] == (2,) else "edges.T"
    if is_edges:
        raise LograbError(f"a graph is not made of edges alone, got {what}: say how many nodes there are, with "
                          f"lograb.Graph.from_edges(name, n_nodes, {edges})")


def _from_library(obj: Any, library: str) -> bool:
    return any(kind.__module__.split(".")[0] == library for kind in type(obj).__mro__)


def _has(obj: Any, attribute: str) -> bool:
    """Tell whether an attribute is there and not None; Data has many that are None."""
    return getattr(obj, attribute, None) is not None


def _read_networkx(graph: Any) -> RawGraph:
    nodes = list(graph.nodes)
    if names_of(nodes) is not None:  # as in a file: the order of insertion would give edges away
        whole = all(isinstance(node, int) for node in nodes)
        nodes.sort(key=None if whole else str)
    index = {node: i for i, node in enumerate(nodes)}
    pairs = np.array([(index[u], index[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
    weighted = any("weight" in data for _, _, data in graph.edges(data=True))
    attributes, notices = _node_attributes(graph.nodes, nodes)
    return RawGraph(len(nodes), pairs, "directed" if graph.is_directed() else "undirected",
                    node_names=names_of(nodes), attributes=attributes,
                    notices=("edge weights dropped",) * weighted + notices)


def _node_attributes(data: Any, nodes: list[Any]) -> tuple[dict[str, tuple[str | None, ...]], tuple[str, ...]]:
    """Take attributes that are text or numbers; a set of nodes, as some generators leave it, is neither."""
    found: dict[str, dict[int, str]] = {}
    left_out, size = set(), 0
    for i, node in enumerate(nodes):
        for name, value in data[node].items():
            if not isinstance(value, _SCALARS):
                left_out |= {str(name)} if value is not None else set()
            elif value == value:  # not a number is no value
                text = str(value)
                size += len(text)
                found.setdefault(str(name), {})[i] = text
    if size > MAX_ATTRIBUTE_CHARS:
        return {}, (f"node attributes not kept: more than {MAX_ATTRIBUTE_CHARS} characters",)
    notices = (f"node attributes that are neither text nor number dropped: {shorten(sorted(left_out))}",)
    return collect_attributes(found, len(nodes)), notices if left_out else ()


def _read_pyg(data: Any) -> RawGraph:
    n_nodes = int(data.num_nodes)
    pairs = as_pairs(_array(data.edge_index).T, "edge_index")
    check_ids(pairs, n_nodes)
    ignored = [key for key in ("edge_weight", "edge_attr") if _has(data, key)]
    return RawGraph(
        n_nodes, pairs, "both",
        features=check_features(_array(data.x), n_nodes) if _has(data, "x") else None,
        labels=check_labels(_array(data.y), n_nodes) if _has(data, "y") else None,
        notices=(f"edge attributes dropped: {', '.join(ignored)}",) if ignored else ())


def _array(tensor: Any) -> npt.NDArray[Any]:
    """Turn a tensor into an array: off the tape, off the device."""
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu().numpy()
    return np.asarray(tensor)
