"""Stage 3: show each patch only through a truncated, noisy spectrum (§3.1 and §4.2)."""

from lograb.observations.embedding import observe

__all__ = ["observe"]
