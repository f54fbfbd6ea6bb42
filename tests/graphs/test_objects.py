"""Graphs from other libraries' objects follow the rules of files."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from lograb.errors import LograbError
from lograb.graphs.builtin import karate
from lograb.graphs.objects import graph_from_object

PAIRS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=25)


def edges_of(graph) -> set[tuple[int, int]]:
    return {tuple(edge) for edge in graph.edges.tolist()}


def simple(pairs) -> set[tuple[int, int]]:
    return {(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]}


@given(PAIRS, st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]), st.permutations(range(8)))
def test_networkx_in_alphabetical_order(pairs, kind, order) -> None:
    source = kind()
    source.add_nodes_from(f"n{i}" for i in order)
    source.add_edges_from((f"n{u}", f"n{w}") for u, w in pairs)
    graph = graph_from_object(source, name="mine")
    assert graph.node_names == tuple(f"n{i}" for i in range(8))
    assert {frozenset(graph.node_names[i] for i in edge) for edge in graph.edges} == {
        frozenset((f"n{u}", f"n{w}")) for u, w in simple(pairs)}
    assert graph.origin.source == "mine"
    assert graph.origin.kind == "memory"
    assert any("directed" in notice for notice in graph.notices) == (source.is_directed() and bool(simple(pairs)))
    loops = nx.number_of_selfloops(source)
    assert any(f"self-loops dropped: {loops} " in notice for notice in graph.notices) == (loops > 0)
    extra = len([p for p in pairs if p[0] != p[1]]) - len(
        {p for p in pairs if p[0] != p[1]} if source.is_directed() else simple(pairs))
    merged = source.is_multigraph() and extra > 0
    assert any(f"merged: {extra} extra" in notice for notice in graph.notices) == merged


def test_networkx_names() -> None:
    assert graph_from_object(nx.path_graph(4)).node_names is None
    assert graph_from_object(nx.Graph([(1, 0)])).node_names is None
    assert graph_from_object(nx.Graph([(10, 9), (9, 2)])).node_names == ("2", "9", "10")
    assert graph_from_object(nx.karate_club_graph()).name == "Zachary's Karate Club"
    with pytest.raises(LograbError, match="distinct as text, got '1'"):
        graph_from_object(nx.Graph([(1, "1")]))
    with pytest.raises(LograbError, match="at least one node"):
        graph_from_object(nx.Graph())


def test_networkx_weights_are_dropped_with_a_notice() -> None:
    source = nx.Graph()
    source.add_edge(0, 1, weight=0.0)
    graph = graph_from_object(source)
    assert graph.n_edges == 1
    assert graph.notices == ("edge weights dropped",)


@given(PAIRS, st.sampled_from([np.array, sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_array, sp.dok_array]),
       st.sampled_from([1, 2.5, True]), st.booleans())
def test_matrices(pairs, kind, value, symmetric) -> None:
    dense = np.zeros((8, 8), dtype=type(value))
    for u, w in pairs:
        dense[u, w] = value
        if symmetric:
            dense[w, u] = value
    source = kind(dense)
    graph = graph_from_object(source)
    assert edges_of(graph) == simple(pairs)
    assert graph.n_nodes == 8
    assert graph.node_names is None
    assert any("weights" in notice for notice in graph.notices) == (value == 2.5 and bool(pairs))
    assert any("one direction" in notice for notice in graph.notices) == bool((dense != dense.T).any())
    assert np.array_equal(source.toarray() if sp.issparse(source) else source, dense)


def test_a_stored_zero_is_no_edge() -> None:
    matrix = sp.coo_array(([0.0, 1.0], ([0, 1], [1, 2])), shape=(3, 3))
    assert edges_of(graph_from_object(matrix)) == {(1, 2)}


@given(PAIRS)
def test_pyg_like_objects(pairs) -> None:
    data = SimpleNamespace(edge_index=np.array(pairs, dtype=np.int64).reshape(-1, 2).T, num_nodes=8,
                           x=np.eye(8, dtype=np.float32), y=np.arange(8), edge_attr=None)
    graph = graph_from_object(data)
    assert edges_of(graph) == simple(pairs)
    assert np.array_equal(graph.features, data.x)
    assert np.array_equal(graph.labels, data.y)


def test_pyg_data() -> None:
    torch = pytest.importorskip("torch", reason="the extra 'gnn' is not installed")
    data = pytest.importorskip("torch_geometric.data", reason="the extra 'gnn' is not installed").Data
    source = data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 2]]), x=torch.eye(4, requires_grad=True),
                  y=torch.tensor([0, 1, 2, -1]), edge_attr=torch.ones(4, 1))
    graph = graph_from_object(source)
    assert edges_of(graph) == {(0, 1), (1, 2)}
    assert graph.n_nodes == 4
    assert graph.labels.tolist() == [0, 1, 2, -1]
    assert graph.features.shape == (4, 4)
    assert any("edge_attr" in notice for notice in graph.notices)
    assert any("1 of 2 edges had one direction" in notice for notice in graph.notices)


@pytest.mark.parametrize(("obj", "message"), [
    ({0: [1]}, "networkx.*scipy.*numpy.*torch_geometric.*list of these; got builtins.dict"),
    ([(0, 1)], r"a list of pairs: .*Graph.from_edges\(name, n_nodes, edges\)"),
    ([[0, 1], [1, 2]], "a list of pairs"),
    (np.array([[0, 1], [1, 2], [2, 3]]), r"shape \(3, 2\): .*n_nodes, edges\)"),
    (np.array([[0, 1]]), r"shape \(1, 2\)"),
    (np.array([[0, 1, 2], [1, 2, 3]]), r"shape \(2, 3\): .*n_nodes, edges.T\)"),
    ("graph.csv", "its path"),
    (np.ones((2, 3)), r"square, got shape \(2, 3\)"),
    (np.ones(4), "square"),
    (np.array([[np.nan]]), "finite"),
    (np.array([["a"]]), "numbers"),
    (np.zeros((0, 0)), "at least one node"),
    (SimpleNamespace(edge_index=np.array([[0], [9]]), num_nodes=3), "0 .. 2"),
    (SimpleNamespace(edge_index=np.array([[0.5], [1]]), num_nodes=3), "whole numbers"),
    (SimpleNamespace(edge_index=np.array([[0], [1]]), num_nodes=3, y=np.ones(2)), "3 rows"),
])
def test_errors(obj, message: str) -> None:
    with pytest.raises(LograbError, match=message):
        graph_from_object(obj)


def test_two_rows_of_two_are_an_adjacency_matrix() -> None:
    assert graph_from_object(np.array([[0, 1], [1, 0]])).n_edges == 1


def test_node_attributes_of_networkx() -> None:
    source = nx.Graph()
    source.add_node("z", team="b", level=3, friends={"a"}, note=None)
    source.add_node("a", team=float("nan"), level=np.float32(1.5))
    source.add_edge("a", "z", team="edge")
    graph = graph_from_object(source)
    assert graph.attributes == {"team": (None, "b"), "level": ("1.5", "3")}
    assert any("neither text nor number dropped: friends" in notice for notice in graph.notices)
    assert any("not used as features: level, team" in notice for notice in graph.notices)


def test_node_attributes_of_networkx_are_bounded(monkeypatch) -> None:
    monkeypatch.setattr("lograb.graphs.objects.MAX_ATTRIBUTE_CHARS", 10)
    graph = graph_from_object(nx.karate_club_graph())
    assert graph.attributes == {}
    assert any("not kept: more than 10 characters" in notice for notice in graph.notices)


def test_a_graph_is_returned_as_it_is() -> None:
    graph = karate()
    assert graph_from_object(graph) is graph


def test_no_other_library_is_imported() -> None:
    code = ("import sys, lograb.graphs.objects, lograb.graphs.files; "
            "sys.exit(any(m in sys.modules for m in ('networkx', 'torch')))")
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
