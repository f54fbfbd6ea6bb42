"""Zachary's karate club: the small graph that everybody knows.

W. W. Zachary, "An information flow model for conflict and fission in small groups", Journal of
Anthropological Research 33 (1977): who met whom outside the club, and which of the two clubs each
member joined after the split. Nodes are counted from 0 here, from 1 there.
"""

from __future__ import annotations

import numpy as np

from lograb.spec import Origin
from lograb.types import Graph

# Later acquaintances (ids above the member's own) of every member who has any.
_LATER = {
    0: (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31),
    1: (2, 3, 7, 13, 17, 19, 21, 30),
    2: (3, 7, 8, 9, 13, 27, 28, 32),
    3: (7, 12, 13), 4: (6, 10), 5: (6, 10, 16), 6: (16,), 8: (30, 32, 33), 9: (33,), 13: (33,),
    14: (32, 33), 15: (32, 33), 18: (32, 33), 19: (33,), 20: (32, 33), 22: (32, 33),
    23: (25, 27, 29, 32, 33), 24: (25, 27, 31), 25: (31,), 26: (29, 33), 27: (33,), 28: (31, 33),
    29: (32, 33), 30: (32, 33), 31: (32, 33), 32: (33,),
}
_WITH_THE_INSTRUCTOR = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21)
_N_MEMBERS = 34


def karate() -> Graph:
    """Return the club: 34 nodes, 78 edges, label 0 for the instructor's side, 1 for the president's."""
    labels = np.ones(_N_MEMBERS, dtype=np.int64)
    labels[list(_WITH_THE_INSTRUCTOR)] = 0
    edges = [(member, friend) for member, friends in _LATER.items() for friend in friends]
    return Graph.from_edges("karate", _N_MEMBERS, edges, labels=labels,
                            origin=Origin(source="karate", kind="built-in", revision="1", licence="MIT"))
