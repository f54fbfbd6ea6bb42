"""Nothing that is shared tells more than theory says: no last bits, no order."""

from itertools import combinations, permutations

import numpy as np
import pytest

import lograb
from lograb.observations import observe
from lograb.observations.embedding import VALUE_DIGITS
from lograb.patches import induced_edges
from lograb.spec import InstanceSpec
from lograb.types import Graph, Patches

N = 5
PAIRS = list(combinations(range(N), 2))


def adjacencies():
    """All labelled graphs of N nodes, shape (2 ** 10, N, N)."""
    bits = (np.arange(2 ** len(PAIRS))[:, None] >> np.arange(len(PAIRS))) & 1
    stack = np.zeros((len(bits), N, N))
    for at, (u, w) in enumerate(PAIRS):
        stack[:, u, w] = stack[:, w, u] = bits[:, at]
    return stack


def laplacians(stack):
    degree = stack.sum(axis=2)
    scale = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    return (degree > 0)[:, None] * np.eye(N) - scale[:, :, None] * stack * scale[:, None, :]


def published(adjacency, seed=0, **parameters):
    graph = Graph.from_edges("g", N, np.argwhere(np.triu(adjacency)))
    return lograb.generate(graph, strategy="custom", patches=[range(N)], seed=seed, **parameters).observations


def test_bits_of_eigenvalues_leave_every_labelling_possible():
    """Who tries all labelled graphs finds the whole class of isomorphic ones, and cannot tell them apart."""
    stack = adjacencies()
    tried = np.linalg.eigvalsh(laplacians(stack)).clip(0, 2)
    bare = tried.round(VALUE_DIGITS)
    told_apart = 0
    for code in np.random.default_rng(0).choice(len(stack), 40, replace=False):
        seen = published(stack[code], k=N, sigma=0.1).values
        orders = list(permutations(range(N)))
        twins = {stack[code][np.ix_(order, order)].tobytes() for order in orders}
        fits = {stack[i].tobytes() for i in np.flatnonzero((bare == seen).all(axis=1))}
        assert twins <= fits
        told_apart += not twins <= {stack[i].tobytes() for i in np.flatnonzero((tried == tried[code]).all(axis=1))}
    assert told_apart > 10  # without rounding the bits would tell


@pytest.mark.parametrize("eigenvalues", ["values", "next_values"])
def test_eigenvalues_have_the_stated_precision(eigenvalues):
    shared = getattr(lograb.generate("karate", d=2, k=4).observations, eigenvalues)
    shared = shared[np.isfinite(shared)]
    assert np.array_equal(shared, shared.round(VALUE_DIGITS))


class Given:
    """A source of numbers that gives what it was given."""

    def __init__(self, normal=None, order=None):
        self.normal, self.order = normal, order

    def standard_normal(self, shape):
        return self.normal.reshape(shape)

    def permuted(self, array, axis):
        return self.order[None]


@pytest.mark.parametrize("k", [N, 3])
def test_twins_are_shared_alike_to_the_last_bit(k):
    """In a random order of the nodes: the same order of the same nodes gives the same bits, however numbered."""
    rng = np.random.default_rng(0)
    stack = adjacencies()
    for code in rng.choice(len(stack), 50, replace=False):
        number, order, normal = rng.permutation(N), rng.permutation(N), rng.standard_normal((N, k))
        spec, whole = InstanceSpec(strategy="custom", k=k), Patches.from_lists(N, [range(N)])
        seen = []
        for new, first in ((np.arange(N), order), (number, number[order])):
            graph = Graph.from_edges("g", N, new[np.argwhere(np.triu(stack[code]))])
            moved = np.empty_like(normal)
            moved[new] = normal
            shown = observe(whole, induced_edges(whole, graph), spec, Given(moved), rng, Given(order=first))
            seen.append((shown.values, shown.block(0)[new]))
        assert np.array_equal(seen[0][0], seen[1][0])
        assert np.array_equal(seen[0][1], seen[1][1])


def test_the_order_is_drawn_for_every_patch():
    one, two = (published(adjacencies()[700], seed, k=N, gauge="none") for seed in (0, 1))
    assert np.allclose(one.vectors, two.vectors, atol=1e-12)
    assert not np.array_equal(one.vectors, two.vectors)


def test_clusters_are_in_the_order_of_their_first_core_node():
    instance = lograb.generate("citation", strategy="cluster", p=0.5, k=4, clusters=20)
    seen, core = instance.observations, instance.core
    first = [seen.members(i)[core[seen.ptr[i] : seen.ptr[i + 1]]][0] for i in range(seen.n_patches)]
    assert first == sorted(first)
