"""The schema: which columns an instance has, and how they hang together. No other file knows their names.

An instance, in memory or in a file, is a set of columns. Every column runs along one axis; each
axis but the outermost is split by a pointer column that runs along its parent axis:

    graph ─┬─ node ─┬─ name byte
           │        └─ feature weight
           ├─ patch ─┬─ patch name byte
           │         ├─ entry (a member of a patch)
           │         ├─ value (an eigenvalue)
           │         ├─ vector (an entry of an eigenvector)
           │         └─ patch edge
           └─ true edge

This tree is all that is needed to cut out one graph or one patch without reading the rest, and
to append graph after graph without holding them all. Node ids count from 0 inside each graph.
"""

from __future__ import annotations

from dataclasses import dataclass

# The columns, part by part.
GRAPH_NODES = "graphs/nodes"
GRAPH_PATCHES = "graphs/patches"
NAME_PTR = "nodes/name_ptr"
NAMES = "nodes/names"
PATCH_NAME_PTR = "patches/name_ptr"
PATCH_NAMES = "patches/names"
PTR = "observations/ptr"
MEMBERS = "observations/nodes"
VALUE_PTR = "observations/value_ptr"
VALUES = "observations/values"
VECTOR_PTR = "observations/vector_ptr"
VECTORS = "observations/vectors"
NEXT_VALUES = "observations/next_values"
CENTRES = "observations/centres"
CORE = "fragments/core"
FEATURE_PTR = "features/ptr"
FEATURE_COLUMNS = "features/columns"
FEATURE_WEIGHTS = "features/weights"
FEATURES = "features/dense"
CLASSES = "labels/classes"
INDICATORS = "labels/indicators"
EDGE_PTR = "patch_edges/ptr"
EDGE_ENDS = "patch_edges/ends"
TRUTH_PTR = "truth/ptr"
TRUTH = "truth/edges"
CO_OBSERVED = "truth/co_observed"
KEY = "truth/key"


@dataclass(frozen=True)
class ColumnRule:
    """What a column of a given name must look like."""

    axis: str
    dtypes: tuple[str, ...]
    tail: tuple[int | None, ...] = ()
    """Extent of the further dimensions; None for any."""
    meaning: str = ""


# axis -> (parent axis, pointer column)
AXES: dict[str, tuple[str, str]] = {
    "node": ("graph", GRAPH_NODES),
    "patch": ("graph", GRAPH_PATCHES),
    "true edge": ("graph", TRUTH_PTR),
    "name byte": ("node", NAME_PTR),
    "feature weight": ("node", FEATURE_PTR),
    "entry": ("patch", PTR),
    "value": ("patch", VALUE_PTR),
    "vector": ("patch", VECTOR_PTR),
    "patch edge": ("patch", EDGE_PTR),
    "patch name byte": ("patch", PATCH_NAME_PTR),
}
POINTERS = {pointer: axis for axis, (_, pointer) in AXES.items()}

INT, FLOATS = ("<i8",), ("<f8", "<f4")
RULES: dict[str, ColumnRule] = {
    GRAPH_NODES: ColumnRule("graph", INT, meaning="where the nodes of each graph start"),
    GRAPH_PATCHES: ColumnRule("graph", INT, meaning="where the patches of each graph start"),
    NAME_PTR: ColumnRule("node", INT, meaning="where the name of each node starts"),
    NAMES: ColumnRule("name byte", ("|u1",), meaning="node names, UTF-8"),
    PATCH_NAME_PTR: ColumnRule("patch", INT, meaning="where the name of each patch starts"),
    PATCH_NAMES: ColumnRule("patch name byte", ("|u1",), meaning="patch names, UTF-8"),
    PTR: ColumnRule("patch", INT, meaning="where the members of each patch start"),
    MEMBERS: ColumnRule("entry", INT, meaning="members, increasing inside each patch"),
    VALUE_PTR: ColumnRule("patch", INT, meaning="where the eigenvalues of each patch start"),
    VALUES: ColumnRule("value", ("<f8",), meaning="eigenvalues, ascending inside each patch"),
    VECTOR_PTR: ColumnRule("patch", INT, meaning="where the embedding of each patch starts"),
    VECTORS: ColumnRule("vector", ("<f8",), meaning="embeddings, (size, rank) row by row"),
    NEXT_VALUES: ColumnRule("patch", ("<f8",), meaning="first eigenvalue cut off, or NaN"),
    CENTRES: ColumnRule("patch", INT, meaning="the node each patch was grown from"),
    CORE: ColumnRule("entry", ("|u1",), meaning="1 on a cluster's core, 0 on its halo"),
    FEATURE_PTR: ColumnRule("node", INT, meaning="where the nonzero features of each node start"),
    FEATURE_COLUMNS: ColumnRule("feature weight", INT, meaning="column of each nonzero feature"),
    FEATURE_WEIGHTS: ColumnRule("feature weight", FLOATS, meaning="value of each nonzero feature"),
    FEATURES: ColumnRule("node", FLOATS, (None,), "features as a full matrix"),
    CLASSES: ColumnRule("node", INT, meaning="class of each node, -1 where unknown"),
    INDICATORS: ColumnRule("node", ("|u1",), (None,), "1 where a node carries a label"),
    EDGE_PTR: ColumnRule("patch", INT, meaning="where the edges of each patch start"),
    EDGE_ENDS: ColumnRule("patch edge", INT, (2,), "endpoints as positions inside the patch"),
    TRUTH_PTR: ColumnRule("graph", INT, meaning="where the true edges of each graph start"),
    TRUTH: ColumnRule("true edge", INT, (2,), "all edges (u, w), u < w, sorted"),
    CO_OBSERVED: ColumnRule("true edge", ("|u1",), meaning="1 where some patch contains the edge"),
    KEY: ColumnRule("node", INT, meaning="the node that each pseudonym stands for"),
}
REQUIRED = (GRAPH_NODES, GRAPH_PATCHES, PTR, MEMBERS,
            VALUE_PTR, VECTOR_PTR, VECTORS)  # fmt: skip
# Columns that make sense only together.
TOGETHER = (
    (NAME_PTR, NAMES),
    (PATCH_NAME_PTR, PATCH_NAMES),
    (FEATURE_PTR, FEATURE_COLUMNS, FEATURE_WEIGHTS),
    (EDGE_PTR, EDGE_ENDS, TRUTH_PTR, TRUTH, CO_OBSERVED),
)
# A file may claim this many nodes (features), or so many for each member of a patch (entry), before it is refused.
FREE_NODES, NODES_PER_ENTRY = 10**7, 1000
FREE_FEATURES, FEATURES_PER_ENTRY = 10**6, 100
# Whatever would answer Task 1 or help with it, and so is left out of an archive without truth. Which members of a
# cluster are its core tells that each of the others has a neighbour there.
TRUTH_PARTS = ("truth", "patch_edges", "fragments")


def part(column: str) -> str:
    """Name the part a column belongs to: its folder in the archive."""
    return column.split("/", 1)[0]
