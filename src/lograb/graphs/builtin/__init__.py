"""Built-in graphs: generated on the spot, no files, the same on every machine.

All but `karate` are stand-ins: they have the size and statistics of a public dataset, and are never
presented as the real data. Random numbers come from fixed seeds inside each generator.
"""

from lograb.graphs.builtin.citations import citation, citation_170k
from lograb.graphs.builtin.karate import karate
from lograb.graphs.builtin.molecules import MOLECULES_COUNT, molecule_graph, molecules
from lograb.graphs.builtin.superpixels import SUPERPIXELS_COUNT, superpixel_graph, superpixels

__all__ = ["MOLECULES_COUNT", "SUPERPIXELS_COUNT", "citation", "citation_170k", "karate", "molecule_graph",
           "molecules", "superpixel_graph", "superpixels"]  # fmt: skip
