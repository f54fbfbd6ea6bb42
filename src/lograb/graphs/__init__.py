"""Stage 1: where true graphs come from: built in, public datasets, the user's own."""

from lograb.graphs.catalog import DATASETS, find_dataset, is_dataset
from lograb.graphs.sources import count_graphs, load_graph, load_graphs

__all__ = ["DATASETS", "count_graphs", "find_dataset", "is_dataset", "load_graph", "load_graphs"]
