"""Stage 7: pure functions from a truth and an estimate to a number."""

from lograb.metrics.edges import EdgeCounts, count_edges

__all__ = ["EdgeCounts", "count_edges"]
