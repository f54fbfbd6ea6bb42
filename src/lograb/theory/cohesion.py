"""Island Cohesion and its tie to recall (the cohesion-recall proposition).

Edges are arrays of shape (m, 2) of unique pairs (u, w), u < w. Islands are numbers per node, -1 for a node in no
island. Recall and the boundary share are taken over true
edges between nodes that belong to some island. If the islands are the components of the estimate itself, no
claimed edge crosses them and the lower end of the interval is the recall: an identity, not a bound.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from lograb.errors import LograbError
from lograb.pairs import edge_keys
from lograb.types import Bools, Ints


def island_cohesion(truth_edges: Ints, claimed_edges: Ints, islands: Ints) -> float | None:
    """Compute the recall inside islands, each weighted by its number of true edges.

    The weights cancel the islands' own denominators: what remains is hits inside islands over true edges
    inside islands. Islands without a true edge have no part in it; None where there is no other.
    """
    inside_truth, inside_claim = inside(truth_edges, islands), inside(claimed_edges, islands)
    n_true = int(inside_truth.sum())
    if n_true == 0:
        return None
    return common_edges(truth_edges[inside_truth], claimed_edges[inside_claim], len(islands)) / n_true


def boundary_ratio(truth_edges: Ints, islands: Ints) -> float | None:
    """Compute ρ_B, the share of true edges among island nodes that join different islands; None for no edge."""
    n_true = int((islands[truth_edges] >= 0).all(axis=1).sum())
    return 1.0 - int(inside(truth_edges, islands).sum()) / n_true if n_true else None


def recall_within(truth_edges: Ints, claimed_edges: Ints, islands: Ints) -> float | None:
    """Compute the recall over true edges among island nodes (scope ``recovered``); None for no edge."""
    kept = truth_edges[(islands[truth_edges] >= 0).all(axis=1)]
    return common_edges(kept, claimed_edges, len(islands)) / len(kept) if len(kept) else None


def cohesion_recall_interval(cohesion: float, boundary: float) -> tuple[float, float]:
    """Give the interval that holds the recall: (1 - ρ_B) c and ρ_B + (1 - ρ_B) c."""
    if not 0 <= cohesion <= 1 or not 0 <= boundary <= 1:
        raise LograbError(f"cohesion and boundary share must lie in [0, 1], got {cohesion} and {boundary}")
    low = (1 - boundary) * cohesion
    return low, boundary + low


def estimate_components(edges: Ints, n_nodes: int) -> Ints:
    """Number the connected components of an estimate, shape (n_nodes,): the islands of the printed definition."""
    graph = sp.csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n_nodes, n_nodes))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def inside(edges: Ints, islands: Ints) -> Bools:
    """Mark the edges (m, 2) whose two ends lie in the same island."""
    first, second = islands[edges[:, 0]], islands[edges[:, 1]]
    return np.asarray((first == second) & (first >= 0))


def common_edges(first: Ints, second: Ints, n_nodes: int) -> int:
    """Count the pairs that two edge lists share."""
    return len(np.intersect1d(edge_keys(first, n_nodes), edge_keys(second, n_nodes), assume_unique=True))
