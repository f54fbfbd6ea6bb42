"""A list of graphs is a source of several graphs."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import lograb
from lograb.errors import LograbError
from lograb.graphs import count_graphs


def test_a_list_of_objects_of_other_libraries():
    objects = [nx.path_graph(4), sp.csr_array(np.ones((3, 3))), lograb.Graph.from_edges("mine", 2, [(0, 1)]),
               np.array([[0, 1], [1, 0]])]  # fmt: skip
    assert count_graphs(objects) == 4
    graphs = list(lograb.load_graphs(tuple(objects)))
    assert [graph.n_edges for graph in graphs] == [3, 3, 1, 1]
    assert lograb.load_graph(objects, graph=1).n_edges == 3
    assert {graph.origin.source for graph in graphs} == {"graphs"}


def test_numbers_become_names_beside_names():
    graphs = list(lograb.load_graphs([nx.path_graph(2), nx.Graph([("b", "a")])]))
    assert [graph.node_names for graph in graphs] == [("0", "1"), ("a", "b")]


def test_graphs_of_one_dataset_keep_their_origin():
    some = list(lograb.load_graphs("molecules"))[:3]
    assert [graph.origin.source for graph in lograb.load_graphs(some)] == ["molecules"] * 3


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "at least one graph"),
        ([nx.path_graph(3), 7], "graph 1 of the list: a graph must be one of"),
        (["karate", "cora"], "got 'karate' in place 0: load it with lograb.load_graph"),
        ([(0, 1), (1, 2)], "Graph.from_edges"),
        ([nx.path_graph(2)] * 2, "holds 2 graphs: choose one"),
    ],
)
def test_lists_that_are_refused(source, message):
    with pytest.raises(LograbError, match=message):
        lograb.load_graph(source, graph=None if len(source) == 2 and source[0] is source[1] else 0)


@pytest.mark.parametrize(
    ("what", "one", "other", "message"),
    [
        ("features", np.ones((2, 3)), None, "graph 0 has 3 per node .dense., graph 1 has none"),
        ("features", np.ones((2, 3)), np.ones((2, 4)), "graph 1 has 4 per node"),
        ("features", np.ones((2, 3)), sp.csr_array(np.ones((2, 3))), "sparse"),
        ("labels", np.zeros(2, dtype=int), np.zeros((2, 1), dtype=int), "same labels"),
    ],
)
def test_graphs_of_a_list_have_the_same_columns(what, one, other, message):
    pair = [lograb.Graph.from_edges("g", 2, [(0, 1)], **{what: value}) for value in (one, other)]
    with pytest.raises(LograbError, match=message):
        next(lograb.load_graphs(pair))
    with pytest.raises(LograbError, match="same|differ"):
        lograb.generate(pair)
