"""Stage 9: from results to pages; never recomputes."""

from lograb.report.comparison import write_comparison

__all__ = ["write_comparison"]
