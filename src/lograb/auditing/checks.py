"""What proves an answer: claims that reproduce the published eigenvalues, and patches with one possible graph."""

from __future__ import annotations

import numpy as np

from lograb.attacks.known_defences import EXACT, value_noise
from lograb.patches import induced_edges
from lograb.theory.certificate import unreadable, without_truth
from lograb.theory.heat import normalized_laplacian
from lograb.theory.stacks import adjacency_of, stacks_of
from lograb.types import Bools, Graph, Ints, Observations, Patches

LARGEST = 400
"""Members of the largest patch that is checked and certified."""
SAME = 1e-6
"""Distance up to which eigenvalues are the same."""


def check_patches(seen: Observations, claims: Ints) -> Bools | None:
    """Tell where the claims reproduce a patch's published eigenvalues; None where nothing exact is published."""
    if unreadable(seen) or value_noise(seen) > EXACT:
        return None
    graph = induced_edges(Patches(seen.n_nodes, seen.nodes, seen.ptr),
                          Graph.from_edges("claims", seen.n_nodes, claims))  # fmt: skip
    ends = graph.entries - seen.ptr[np.repeat(np.arange(seen.n_patches), np.diff(graph.ptr))][:, None]
    passed = seen.sizes == 1
    for stack in stacks_of(seen, LARGEST):
        laplacians = normalized_laplacian(adjacency_of((graph.ptr, ends), stack.which, stack.vectors.shape[1]))
        values = np.linalg.eigvalsh(laplacians)[:, : stack.values.shape[1]]
        passed[stack.which] = (np.abs(values - stack.values) < SAME).all(axis=1)
    return np.asarray(passed)


def certify_patches(seen: Observations) -> Bools | None:
    """Tell whose edges are all proved by the observation alone; None where no statement can apply."""
    if unreadable(seen) or (seen.protocol.sigma or 0.0) > 0 or value_noise(seen) > EXACT:
        return None
    proved = seen.sizes <= 1
    for stack in stacks_of(seen, LARGEST):
        verdicts, _ = without_truth(stack)
        proved[stack.which] = np.any([verdict.holds for verdict in verdicts.values()], axis=0)
    return np.asarray(proved)
