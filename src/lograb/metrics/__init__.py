"""Stage 6: pure functions from a truth and an estimate to a number."""

from lograb.metrics.calibration import calibration, calibration_error, reliability
from lograb.metrics.edges import EdgeCounts, bootstrap_interval, count_edges, list_f1
from lograb.metrics.ranking import Ranking

__all__ = ["EdgeCounts", "Ranking", "bootstrap_interval", "calibration", "calibration_error", "count_edges",
           "list_f1", "reliability"]  # fmt: skip
