"""Random inputs for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from lograb.types import Graph


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 14) -> Graph:
    """Any simple graph: sparse, dense, disconnected, without edges."""
    n = draw(st.integers(1, max_nodes))
    nodes = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(nodes, nodes), max_size=3 * n))
    return Graph.from_edges("drawn", n, np.array(edges, dtype=np.int64).reshape(-1, 2))
