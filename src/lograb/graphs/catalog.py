"""Every dataset that lograb knows by name. A new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from lograb.errors import unknown_name
from lograb.graphs.dataset import Dataset
from lograb.graphs.public import blogcatalog, lrgb, ogb, planetoid, tu
from lograb.plugins import find_plugin, plugins
from lograb.progress import Progress
from lograb.types import Graph

__all__ = ["DATASETS", "Dataset", "find_dataset", "is_dataset"]


def find_dataset(name: str) -> Dataset:
    """Return the dataset of that name, in upper or lower case."""
    key = name.strip().lower()
    found: Dataset | None = DATASETS.get(key) or find_plugin("datasets", key)
    if found is None:
        raise unknown_name("dataset", name, [*DATASETS, *plugins("datasets")])
    return found


def is_dataset(name: str) -> bool:
    """Say whether there is a dataset of that name."""
    return name.strip().lower() in (DATASETS.keys() | plugins("datasets").keys())


def _built_in(name: str, title: str, description: str, n_graphs: int, n_nodes: int, n_edges: int,
              n_classes: int | None, n_features: int | None) -> Dataset:
    def load(progress: Progress | None) -> Iterator[Graph]:
        # Imported when used: listing the catalog should not wait for the generators.
        made = getattr(import_module("lograb.graphs.builtin"), name.replace("-", "_"))()
        yield from (made,) if isinstance(made, Graph) else made

    return Dataset(name, title, "built-in", description, n_graphs, n_nodes, n_edges, n_classes, n_features,
                   "MIT", "", load, lambda: "built in")


_ALL = (
    _built_in("karate", "Zachary's karate club", "friendships in a karate club", 1, 34, 78, 2, None),
    _built_in("citation", "citation (stand-in)", "generated: a block model of Cora's size", 1,
              2708, 5300, 7, 1433),
    _built_in("citation-170k", "citation-170k (stand-in)", "generated: a block model of ogbn-arXiv's size", 1,
              169343, 1166243, 40, 128),
    _built_in("superpixels", "superpixels (stand-in)", "generated: statistics of PascalVOC-SP", 100,
              47961, 135550, 21, 14),
    _built_in("molecules", "molecules (stand-in)", "generated: statistics of PCQM-Contact", 1000,
              30084, 30443, None, 9),
    *planetoid.DATASETS,
    *ogb.DATASETS,
    *blogcatalog.DATASETS,
    *tu.DATASETS,
    *lrgb.DATASETS,
)

DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in _ALL}
"""All datasets by name, in the order in which they are listed."""
