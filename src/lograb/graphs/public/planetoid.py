"""Cora, CiteSeer and PubMed as Yang, Cohen and Salakhutdinov released them with Planetoid (2016).

Each dataset is a set of pickles: features and labels of the nodes that are not tested on
(``allx``, ``ally``) and of those that are (``tx``, ``ty``), the node ids of the latter in the
order of their rows (``test.index``), and the neighbours of every node (``graph``).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from lograb.arrays import read_arrays
from lograb.errors import LograbError
from lograb.graphs.dataset import Dataset
from lograb.graphs.fetch import Place, RawFile, fetch, in_mirror, locate
from lograb.graphs.public.unpickle import read_pickle
from lograb.progress import Progress
from lograb.spec import Origin
from lograb.types import Graph, Ints

URL = "https://github.com/kimiyoung/planetoid"
LICENCE = "MIT (of the planetoid repository)"
REVISION = "planetoid 2016, branch master"
FOLDERS = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}
PARTS = ("allx", "ally", "tx", "ty", "graph", "test.index")
CHECKSUMS = {
    "cora.allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
    "cora.ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
    "cora.graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
    "cora.test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    "cora.tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
    "cora.ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
    "citeseer.allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
    "citeseer.ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
    "citeseer.graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
    "citeseer.test.index": "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
    "citeseer.tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
    "citeseer.ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
    "pubmed.allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
    "pubmed.ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
    "pubmed.graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
    "pubmed.test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
    "pubmed.tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
    "pubmed.ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
}
STRUCTURE = RawFile("pubmed-structure/pubmed.npz",
                    "be24a63058f8eb16a40891616f52761509541dd9ab6469786e8cc1862aff7d39")
NO_FEATURES = ("PubMed's features are missing: the mirror has its structure and labels only; "
               "for the features, add the publisher's files under planetoid/PubMed/raw")


def raw_files(name: str) -> tuple[RawFile, ...]:
    """List the six files that a dataset is read from."""
    return tuple(RawFile(f"planetoid/{FOLDERS[name]}/raw/ind.{name}.{part}",
                         CHECKSUMS.get(f"{name}.{part}", ""),
                         f"{URL}/raw/master/data/ind.{name}.{part}") for part in PARTS)


def load(name: str, progress: Progress | None = None) -> Iterator[Graph]:
    """Yield one of the three graphs, features as published (a csr_array of float32, not normalized)."""
    if _only_structure(name):
        yield _load_structure()
        return
    found = fetch(raw_files(name), progress)
    origin = Origin(source=name, kind="public", revision=REVISION, sha256=found.sha256,
                    licence=LICENCE, url=URL)
    parts = {part: found.paths[file.path] for part, file in zip(PARTS, raw_files(name), strict=True)}
    yield read_planetoid(name, parts, origin)


def place(name: str) -> Place:
    """Tell where a dataset would come from."""
    return "mirror" if _only_structure(name) else locate(raw_files(name))


def read_planetoid(name: str, parts: dict[str, Path], origin: Origin) -> Graph:
    """Put the six files of a dataset together.

    Row i of ``tx`` belongs to the node in line i of ``test.index``. CiteSeer's test range contains
    nodes without a row: they get zero features and the label -1.
    """
    allx, ally, tx, ty, neighbours = (read_pickle(parts[part]) for part in PARTS[:5])
    test = np.loadtxt(parts["test.index"], dtype=np.int64, ndmin=1)
    order = _row_of_node(name, allx.shape[0], tx.shape[0], test)
    rows = sp.vstack([allx, tx, sp.csr_array((1, allx.shape[1]), dtype=allx.dtype)], format="csr")
    features = sp.csr_array(rows[order], dtype=np.float32)
    features.sort_indices()
    onehot = np.concatenate([ally, ty, np.zeros((1, ally.shape[1]), dtype=ally.dtype)])[order]
    labels = np.where(onehot.any(axis=1), onehot.argmax(axis=1), -1).astype(np.int64)
    return Graph.from_edges(name, len(order), _edges(neighbours), features=features, labels=labels,
                            origin=origin)


def _row_of_node(name: str, n_known: int, n_tested: int, test: Ints) -> Ints:
    """Return the row of every node in allx, tx and one empty row, stacked."""
    if len(test) != n_tested or len(np.unique(test)) != len(test) or test.min(initial=n_known) < n_known:
        raise LograbError(f"{name}: test.index must list a distinct node after the first {n_known} for each "
                          f"of the {n_tested} rows of tx; get the files again from {URL}")
    n_nodes = max(n_known, int(test.max(initial=-1)) + 1)
    order = np.full(n_nodes, n_known + n_tested, dtype=np.int64)
    order[:n_known] = np.arange(n_known)
    order[test] = n_known + np.arange(n_tested)
    return order


def _edges(neighbours: dict[int, Any]) -> Ints:
    lengths = [len(ids) for ids in neighbours.values()]
    sources = np.repeat(np.fromiter(neighbours, dtype=np.int64, count=len(neighbours)), lengths)
    targets = np.fromiter((i for ids in neighbours.values() for i in ids), dtype=np.int64, count=sum(lengths))
    return np.stack([sources, targets], axis=1)


def _only_structure(name: str) -> bool:
    return name == "pubmed" and locate(raw_files(name)) == "download" and in_mirror(STRUCTURE)


def _load_structure() -> Graph:
    found = fetch((STRUCTURE,))
    arrays = read_arrays(found.paths[STRUCTURE.path], ("edges", "y", "num_nodes"), STRUCTURE.max_bytes)
    origin = Origin(source="pubmed", kind="public", revision=f"{REVISION}; structure and labels only",
                    sha256=found.sha256, licence=LICENCE, url=URL)
    return Graph.from_edges("pubmed", int(arrays["num_nodes"]), arrays["edges"], notices=(NO_FEATURES,),
                            labels=arrays["y"].astype(np.int64), origin=origin)


def _dataset(name: str, title: str, topic: str, n_nodes: int, n_edges: int, n_classes: int,
             n_features: int) -> Dataset:
    return Dataset(name, title, "public", f"citations between {topic}, with words as features", 1, n_nodes,
                   n_edges, n_classes, n_features, LICENCE, URL, partial(load, name), partial(place, name))


DATASETS = (
    _dataset("cora", "Cora", "machine-learning papers", 2708, 5278, 7, 1433),
    _dataset("citeseer", "CiteSeer", "computer-science papers", 3327, 4552, 6, 3703),
    _dataset("pubmed", "PubMed", "papers on diabetes", 19717, 44324, 3, 500),
)
