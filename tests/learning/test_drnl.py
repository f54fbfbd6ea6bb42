"""Enclosing subgraphs and double-radius labels, against hand-computed ones."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from tests.strategies import graphs

from lograb.learning.links.drnl import double_radius_labels, enclosing_subgraph


def csr(n, edges):
    edges = np.array(edges).reshape(-1, 2)
    rows, columns = np.concatenate([edges, edges[:, ::-1]]).T
    return sp.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(n, n))


def labels_of(n, edges):
    graph = csr(n, edges)
    return double_radius_labels(graph.indptr.astype(np.int64), graph.indices.astype(np.int64)).tolist()


def test_labels_by_hand():
    """Nodes 0 and 1 are the pair. Distances (x, y) of the others, each avoiding the other end:

    2: (1, 1), d = 2: 1 + 1 + 1 (1 + 0 - 1) = 2
    3: (1, 2), d = 3: 1 + 1 + 1 (1 + 1 - 1) = 3
    4: (1, 3) through 3 and 2, d = 4: 1 + 1 + 2 (2 + 0 - 1) = 4
    5: (2, 2) through 3 and 2, d = 4: 1 + 2 + 2 = 5
    6: reached from 0 only through 1: 0
    7: alone: 0
    """
    edges = [(0, 2), (1, 2), (0, 3), (3, 2), (0, 4), (4, 3), (5, 3), (5, 2), (1, 6)]
    assert labels_of(8, edges) == [1, 1, 2, 3, 4, 5, 0, 0]


def test_labels_enumerate_the_pairs_of_radii():
    """The formula numbers (1,1), (1,2), (1,3), (2,2), (1,4), (2,3) as 2 .. 7: paths of these lengths."""
    radii = [(1, 1), (1, 2), (1, 3), (2, 2), (1, 4), (2, 3)]
    for expected, (x, y) in enumerate(radii, start=2):
        # A path 0 - ... - node - ... - 1 whose node lies x hops from 0 and y from 1.
        inner = list(range(2, 2 + x + y - 1))
        path = [0, *inner, 1]
        assert labels_of(len(path), list(pairwise(path)))[inner[x - 1]] == expected


def test_two_separate_neighbourhoods_have_label_zero():
    assert labels_of(6, [(0, 2), (0, 3), (1, 4), (1, 5)]) == [1, 1, 0, 0, 0, 0]


@given(graphs())
def test_the_candidate_is_never_an_edge_of_its_own_subgraph(graph):
    adjacency = graph.adjacency.astype(np.float32)
    for u, w in graph.edges[:5]:
        found = enclosing_subgraph(adjacency, int(u), int(w), 1, None, np.random.default_rng(0))
        assert found.nodes[:2].tolist() == [u, w]
        assert 1 not in found.columns[found.ptr[0] : found.ptr[1]]
        assert 0 not in found.columns[found.ptr[1] : found.ptr[2]]


@given(graphs())
def test_subgraphs_and_labels_agree_with_networkx(graph):
    if graph.n_nodes < 2:
        return
    u, w = graph.n_nodes - 1, 0
    whole = nx.from_scipy_sparse_array(graph.adjacency.astype(int))
    inside = whole.subgraph({u, w} | set(whole[u]) | set(whole[w])).copy()
    inside.remove_edges_from([(u, w)])
    found = enclosing_subgraph(graph.adjacency.astype(np.float32), u, w, 1, None, np.random.default_rng(0))
    ours = {
        tuple(sorted((int(found.nodes[i]), int(found.nodes[j]))))
        for i in range(len(found.nodes))
        for j in found.columns[found.ptr[i] : found.ptr[i + 1]]
    }
    assert set(found.nodes.tolist()) == set(inside)
    assert ours == {tuple(sorted(edge)) for edge in inside.edges}
    x, y = (
        nx.single_source_shortest_path_length(inside.subgraph(set(inside) - {other}), source)
        for source, other in ((u, w), (w, u))
    )
    for node, label in zip(found.nodes.tolist(), found.labels):
        if node in (u, w):
            assert label == 1
        elif node in x and node in y:
            d = x[node] + y[node]
            assert label == 1 + min(x[node], y[node]) + (d // 2) * (d // 2 + d % 2 - 1)
        else:
            assert label == 0


def test_large_neighbourhoods_are_drawn_from():
    star = csr(50, [(0, i) for i in range(2, 50)])
    found = enclosing_subgraph(star, 0, 1, 1, 10, np.random.default_rng(0))
    assert len(found.nodes) == 12
    assert len(found.columns) == 20
    assert (found.labels[2:] == 0).all()


@pytest.mark.parametrize("hops", [1, 2])
def test_hops(hops):
    path = csr(9, [(i, i + 1) for i in range(8)])
    found = enclosing_subgraph(path, 4, 5, hops, None, np.random.default_rng(0))
    assert sorted(found.nodes.tolist()) == list(range(4 - hops, 6 + hops))
