"""Stage 7: pure functions from a truth and an estimate to a number."""

from lograb.metrics.edges import EdgeCounts, bootstrap_interval, count_edges, edge_keys
from lograb.metrics.ranking import Ranking

__all__ = ["EdgeCounts", "Ranking", "bootstrap_interval", "count_edges", "edge_keys"]
