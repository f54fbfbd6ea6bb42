"""The paper's bounds and certificates as functions."""
