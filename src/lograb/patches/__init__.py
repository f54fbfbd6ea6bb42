"""Stage 2: cut a graph into overlapping patches (§4.1), and describe how they overlap."""

from lograb.patches.catalog import choose, decompose, n_observed
from lograb.patches.custom import Bring, Given, bring
from lograb.patches.overlap import PatchEdges, induced_edges

__all__ = ["Bring", "Given", "PatchEdges", "bring", "choose", "decompose", "induced_edges", "n_observed"]
