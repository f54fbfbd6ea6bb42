"""PROTEINS and MSRC_21 from the TU Dortmund collection of graph datasets (Morris et al., 2020).

The format: text files, one line per node or edge of all graphs together, all ids from 1.
``_A`` lists edges in both directions, ``_graph_indicator`` the graph of each node.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lograb.errors import LograbError
from lograb.graphs.dataset import UNSTATED, Dataset
from lograb.graphs.fetch import RawFile, fetch, locate
from lograb.progress import Progress
from lograb.ragged import pointer
from lograb.spec import Origin
from lograb.types import Graph, Ints

URL = "https://chrsmrrs.github.io/datasets/"
CHECKSUMS = {
    "PROTEINS": {
        "A": "4c4b33e272fc95cac6d27ed6d5d12b9a852c8610e91fff59f8f0dbdd5a20df67",
        "graph_indicator": "8d4ff1e852a5c28561e9bffb44cf9490bc552b13a3b6156dd12dc7f44e9afc4a",
        "graph_labels": "c0ef9810c440775252872318d0c8adc385588e14bc4c47a2c34aa96ee3c7cdcd",
        "node_attributes": "54eef829abb37e458a5fbf3a3c581e48e5810e220463c2cd951856b9ceb08f07",
        "node_labels": "f758e8ad3d6e3c026b50833d75f6f90735b94eb3345e4243707f495ca8afea8d",
    },
    "MSRC_21": {
        "A": "a8c0a1e70ccaa98056fa547d0df671fe4084cb0a9dc28af62cd5687b6c4c17f7",
        "graph_indicator": "8d4c2e55f287aff9acbc686bd436ad1a6b08bed3a744d967028be6fd8f526121",
        "graph_labels": "2b3239fb66f16604ca875660d5a9e28ebf5b4a1744134414f2be680f7fc156d7",
        "node_labels": "58810e93acb03f309aff5366849f77006262944d54cb8c0d08c086f0c3c44051",
    },
}
NAMES = {"proteins": "PROTEINS", "msrc-21": "MSRC_21"}


def raw_files(name: str) -> dict[str, RawFile]:
    """List the files that a collection is read from."""
    title = NAMES[name]
    archive = RawFile(f"tu/{title}.zip", url=f"https://www.chrsmrrs.com/graphkerneldatasets/{title}.zip")
    return {part: RawFile(f"tu/{title}/raw/{title}_{part}.txt", digest, archive=archive,
                          member=f"{title}/{title}_{part}.txt") for part, digest in CHECKSUMS[title].items()}


def load(name: str, licence: str, progress: Progress | None = None) -> Iterator[Graph]:
    """Yield the graphs of a collection; labels are those of the nodes.

    In memory are the flat arrays of the whole collection (a few megabytes) and the current graph.
    """
    files = raw_files(name)
    found = fetch(tuple(files.values()), progress)
    origin = Origin(source=name, kind="public", sha256=found.sha256, licence=licence, url=URL)
    yield from read_tu(name, {part: found.paths[file.path] for part, file in files.items()}, origin)


def read_tu(name: str, parts: dict[str, Path], origin: Origin) -> Iterator[Graph]:
    """Yield the graphs of a collection in the TU format, named ``name/0``, ``name/1`` and so on.

    Labels are numbered from 0 without gaps, in the order of the publisher's.
    """
    graph_of_node = _table(parts["graph_indicator"], np.int64)[:, 0] - 1
    edges = _table(parts["A"], np.int64) - 1
    labels = np.unique(_table(parts["node_labels"], np.int64)[:, 0], return_inverse=True)[1]
    features = _table(parts["node_attributes"], np.float64) if "node_attributes" in parts else None
    n_graphs = len(_table(parts["graph_labels"], np.float64))
    _check(name, graph_of_node, edges, n_graphs, (len(labels), len(labels if features is None else features)))
    graph_of_edge = graph_of_node[edges[:, 0]]
    edges = edges[np.argsort(graph_of_edge, kind="stable")]
    node_ptr = pointer(np.bincount(graph_of_node, minlength=n_graphs))
    edge_ptr = pointer(np.bincount(graph_of_edge, minlength=n_graphs))
    for i in range(n_graphs):
        first, last = int(node_ptr[i]), int(node_ptr[i + 1])
        yield Graph.from_edges(f"{name}/{i}", last - first, edges[edge_ptr[i] : edge_ptr[i + 1]] - first,
                               labels=labels[first:last], origin=origin,
                               features=None if features is None else features[first:last])


def _table(path: Path, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    try:
        return np.loadtxt(path, dtype=dtype, delimiter=",", ndmin=2)
    except ValueError as error:
        raise LograbError(f"{path.name} must hold numbers separated by commas; got: {error}") from error


def _check(name: str, graph_of_node: Ints, edges: Ints, n_graphs: int, n_rows: tuple[int, int]) -> None:
    n_nodes = len(graph_of_node)
    if n_rows != (n_nodes, n_nodes):
        raise LograbError(f"{name}: {n_nodes} nodes need as many labels and attributes, got {n_rows}")
    rises = (np.diff(graph_of_node, prepend=0) >= 0).all()
    if not rises or (graph_of_node >= n_graphs).any():
        raise LograbError(f"{name}: the graph indicator must rise from 1 to the number of graphs, {n_graphs}")
    if edges.shape[1] != 2 or (len(edges) and not 0 <= edges.min() <= edges.max() < n_nodes):
        raise LograbError(f"{name}: edges must be pairs of node ids from 1 to {n_nodes}")
    if (graph_of_node[edges[:, 0]] != graph_of_node[edges[:, 1]]).any():
        raise LograbError(f"{name}: both ends of an edge must lie in the same graph")


def _dataset(name: str, description: str, n_graphs: int, n_nodes: int, n_edges: int, n_classes: int,
             n_features: int | None, licence: str) -> Dataset:
    return Dataset(name, NAMES[name], "public", description, n_graphs, n_nodes, n_edges, n_classes, n_features,
                   licence, URL, partial(load, name, licence), lambda: locate(raw_files(name).values()))


DATASETS = (
    _dataset("proteins", "proteins: secondary-structure elements near each other", 1113, 43471, 81044, 3, 1,
             UNSTATED),
    _dataset("msrc-21", "photographs: superpixels that touch, labelled by what they show", 563, 43644, 111656, 22,
             None, "MSR-DILA (of the photographs)"),
)
