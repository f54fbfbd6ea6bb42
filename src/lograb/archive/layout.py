"""From observations, and the graph behind them where it is known, to the columns of one graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from lograb.archive import schema
from lograb.archive.tables import Array, canonical
from lograb.ragged import pack_names
from lograb.types import Bools, Graph, Ints, Matrix, Observations

if TYPE_CHECKING:
    from lograb.patches import PatchEdges


def lay_out(
    seen: Observations, graph: Graph | None = None, edges: PatchEdges | None = None, core: Bools | None = None,
    key: Ints | None = None,
) -> dict[str, Array]:
    """Lay out what is shown and, for whoever scores, the truth: columns in the order and types of the format.

    `key` says which node each pseudonym stands for.
    """
    columns: dict[str, Array | None] = {
        schema.GRAPH_NODES: np.array([0, seen.n_nodes]),
        schema.GRAPH_PATCHES: np.array([0, seen.n_patches]),
        schema.PTR: seen.ptr,
        schema.MEMBERS: seen.nodes,
        schema.VALUE_PTR: seen.value_ptr,
        schema.VALUES: seen.values,
        schema.VECTOR_PTR: seen.vector_ptr,
        schema.VECTORS: seen.vectors,
        schema.NEXT_VALUES: seen.next_values,
        schema.CENTRES: seen.centres,
        schema.CORE: core,
        schema.KEY: key,
    }
    if seen.node_names is not None:
        columns[schema.NAME_PTR], columns[schema.NAMES] = pack_names(seen.node_names)
    if seen.patch_names is not None:
        columns[schema.PATCH_NAME_PTR], columns[schema.PATCH_NAMES] = pack_names(seen.patch_names)
    if graph is not None and edges is not None:
        columns[schema.EDGE_PTR] = edges.ptr
        columns[schema.EDGE_ENDS] = edges.entries - np.repeat(seen.ptr[:-1], np.diff(edges.ptr))[:, None]
        columns[schema.TRUTH_PTR] = np.array([0, graph.n_edges])
        columns[schema.TRUTH], columns[schema.CO_OBSERVED] = graph.edges, edges.co_observed
    if graph is not None and graph.labels is not None:
        columns[schema.CLASSES if graph.labels.ndim == 1 else schema.INDICATORS] = graph.labels
    columns |= _feature_columns(seen.features if graph is None else graph.features)
    return canonical({name: column for name, column in columns.items() if column is not None})


def _feature_columns(features: Matrix | None) -> dict[str, Array | None]:
    if not sp.issparse(features):
        return {schema.FEATURES: features}
    rows = sp.csr_array(features)
    return {schema.FEATURE_PTR: rows.indptr, schema.FEATURE_COLUMNS: rows.indices,
            schema.FEATURE_WEIGHTS: rows.data}  # fmt: skip
