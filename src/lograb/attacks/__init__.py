"""Stage 5: from what an eavesdropper sees to the graph it claims.

An attack gets `Observations` and nothing else: this room may not import `lograb.graphs`,
`lograb.patches`, `lograb.instance` or `lograb.tasks`, and a test enforces it.
"""

from lograb.attacks.catalog import ATTACKS, Attack, find_attack

__all__ = ["ATTACKS", "Attack", "find_attack"]
