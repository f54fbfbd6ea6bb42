"""PascalVOC-SP, COCO-SP and PCQM-Contact of the Long Range Graph Benchmark (Dwivedi et al., 2022).

Each is a zip file of three splits. A split is one pickled list of tuples of tensors:
(x, edge_attr, edge_index, y) for the superpixels, in a plain pickle, and (x, edge_attr,
edge_index, contacts, contact labels) for PCQM-Contact, in torch's own format. The graphs of the
splits train, val and test follow each other in this order. Needs the extra ``gnn``.
"""

from __future__ import annotations

import io
import operator
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lograb.errors import LograbError, MissingExtraError
from lograb.graphs.dataset import Dataset
from lograb.graphs.fetch import Place, RawFile, fetch, locate
from lograb.graphs.public.unpickle import Callee, Names, read_pickle
from lograb.progress import Progress
from lograb.spec import Origin
from lograb.types import Graph, Ints

URL = "https://github.com/vijaydwivedi75/lrgb"
DROPBOX = "https://www.dropbox.com/s"
ARCHIVES = {
    "pascalvoc-sp": ("voc_superpixels_edge_wt_region_boundary",
                     f"{DROPBOX}/8x722ai272wqwl4/pascalvocsp.zip?dl=1"),
    "coco-sp": ("coco_superpixels_edge_wt_region_boundary", f"{DROPBOX}/r6ihg1f4pmyjjy0/cocosp.zip?dl=1"),
    "pcqm-contact": ("pcqmcontact", f"{DROPBOX}/qdag867u6h6i60y/pcqmcontact.zip?dl=1"),
}
LICENCES = {
    "pascalvoc-sp": "custom: that of Pascal VOC 2011, respecting Flickr's terms of use",
    "coco-sp": "CC BY 4.0",
    "pcqm-contact": "CC BY 4.0",
}
LIMIT = 1 << 36  # bytes; a split of COCO-SP is the largest at about ten gigabytes
UNUSED_COCO_IDS = (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)


def raw_files(name: str) -> tuple[RawFile, ...]:
    """List the three splits of a dataset."""
    folder, url = ARCHIVES[name]
    suffix = "pt" if name == "pcqm-contact" else "pickle"
    archive = RawFile(f"lrgb/{name}.zip", url=url, limit=LIMIT)
    return tuple(RawFile(f"lrgb/{name}/raw/{split}.{suffix}", archive=archive, limit=LIMIT,
                         member=f"{folder}/{split}.{suffix}") for split in ("train", "val", "test"))


def load(name: str, progress: Progress | None = None) -> Iterator[Graph]:
    """Yield the graphs of a dataset, split after split.

    A split is a single pickle, so the whole split has to be in memory when its first graph comes
    (the training split of COCO-SP takes some ten gigabytes); a graph's memory is given back once
    it has been yielded.
    """
    _torch()  # before anything is downloaded
    files = raw_files(name)
    found = fetch(files, progress)
    origin = Origin(source=name, kind="public", revision=f"{ARCHIVES[name][0]}; train, val, test", url=URL,
                    sha256=found.sha256, licence=LICENCES[name])
    index = 0
    for file in files:
        waiting = _read_split(found.paths[file.path])
        waiting.reverse()
        while waiting:
            yield _graph(name, index, waiting.pop(), origin)
            index += 1


def place(name: str) -> Place:
    """Tell where a dataset would come from."""
    return locate(raw_files(name))


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("reading the Long Range Graph Benchmark", "gnn") from error
    return torch


def _read_split(path: Path) -> list[Any]:
    items = read_pickle(path, _tensor_names()) if path.suffix == ".pickle" else _read_tensors(path)
    if not isinstance(items, list):
        raise LograbError(f"{path.name} must hold a list of graphs, got {type(items).__name__}")
    return items


def _read_tensors(path: Path) -> Any:
    try:
        return _torch().load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds of errors on a broken or refused file
        raise LograbError(f"{path.name} must be a torch file of tensors and containers only; "
                          f"got: {type(error).__name__}: {error}") from error


def _tensor_names() -> Names:
    """Admit tensors, as a plain pickle writes them: their storage is a torch file of its own."""
    torch = _torch()

    def storage(content: bytes) -> Any:
        value = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        if not isinstance(value, torch.storage.TypedStorage):
            raise LograbError(f"a tensor in a pickle needs a storage, got {type(value).__name__}")
        return value

    def tensor(store: Any, offset: Any, size: Any, stride: Any, *_: Any) -> Any:
        if not isinstance(store, torch.storage.TypedStorage):
            raise LograbError(f"a tensor in a pickle needs a storage, got {type(store).__name__}")
        sides, steps = (tuple(operator.index(n) for n in counts) for counts in (size, stride))
        return torch._utils._rebuild_tensor_v2(store, operator.index(offset), sides, steps, False, {})

    return {("torch.storage", "_load_from_bytes"): Callee(storage),
            ("torch._utils", "_rebuild_tensor_v2"): Callee(tensor)}


def _graph(name: str, index: int, item: Any, origin: Origin) -> Graph:
    size = 5 if name == "pcqm-contact" else 4
    if not isinstance(item, tuple | list) or len(item) != size:
        raise LograbError(f"{name}: graph {index} must be a tuple of {size} tensors; "
                          f"get the files again from {URL}")
    for part in item:  # steps of 0 repeat one number as often as they like
        if hasattr(part, "untyped_storage") and part.nbytes > part.untyped_storage().nbytes():
            raise LograbError(f"{name}: a tensor of graph {index} claims {part.nbytes} bytes and has fewer; "
                              f"get the files again from {URL}")
    features = np.asarray(item[0], dtype=np.float32)
    edges = np.asarray(item[2], dtype=np.int64)
    if features.ndim != 2 or edges.ndim != 2 or edges.shape[0] != 2:
        raise LograbError(f"{name}: graph {index} must have features (n, f) and edges (2, m), got shapes "
                          f"{features.shape} and {edges.shape}")
    labels = _labels(name, item[3]) if name != "pcqm-contact" else None
    return Graph.from_edges(f"{name}/{index}", len(features), edges.T, features=features, labels=labels,
                            origin=origin)


def _labels(name: str, values: npt.ArrayLike) -> Ints:
    labels = np.asarray(values, dtype=np.int64).reshape(-1)
    if name != "coco-sp":
        return labels
    # COCO numbers its categories from 0 to 90 with gaps; the benchmark closes them, and so do we.
    if np.isin(labels, UNUSED_COCO_IDS).any() or (labels < 0).any() or (labels > 90).any():
        raise LograbError(f"{name}: labels must be COCO's category ids from 0 to 90, got {np.unique(labels)}")
    return labels - np.searchsorted(UNUSED_COCO_IDS, labels)


def _dataset(name: str, title: str, description: str, n_graphs: int, n_nodes: int, n_edges: int,
             n_classes: int | None, n_features: int) -> Dataset:
    return Dataset(name, title, "public", description, n_graphs, n_nodes, n_edges, n_classes, n_features,
                   LICENCES[name], URL, partial(load, name), partial(place, name))


_HALVED = "about: half the published number of edges, which counts both directions"

DATASETS = (
    _dataset("pascalvoc-sp", "PascalVOC-SP", f"neighbouring superpixels of photographs; {_HALVED}",
             11355, 5443545, 15388722, 21, 14),
    _dataset("coco-sp", "COCO-SP", f"neighbouring superpixels of photographs; {_HALVED}",
             123286, 58793216, 166045951, 81, 14),
    _dataset("pcqm-contact", "PCQM-Contact", f"bonds between atoms of molecules; {_HALVED}",
             529434, 15955687, 16170822, None, 9),
)
