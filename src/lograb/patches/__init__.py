"""Stage 2: cut a graph into overlapping patches (§4.1), and describe how they overlap."""

from lograb.patches.catalog import decompose
from lograb.patches.custom import read_node_lists
from lograb.patches.overlap import PatchEdges, induced_edges

__all__ = ["PatchEdges", "decompose", "induced_edges", "read_node_lists"]
