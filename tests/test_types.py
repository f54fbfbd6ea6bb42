import numpy as np
import pytest
import scipy.sparse as sp

from lograb.errors import LograbError
from lograb.ragged import check_ragged
from lograb.spec import InstanceSpec, Protocol
from lograb.types import Graph, Observations, Patches, Reconstruction


def test_from_edges_merges_directions_and_repetitions_and_drops_loops():
    graph = Graph.from_edges("g", 4, [(1, 0), (0, 1), (1, 0), (2, 2), (3, 1)])
    assert graph.edges.tolist() == [[0, 1], [1, 3]]
    assert graph.n_edges == 2
    assert graph.adjacency.dtype == bool


def test_graph_refuses_what_is_not_a_simple_undirected_graph():
    with pytest.raises(LograbError, match="symmetric"):
        Graph("g", sp.csr_array(np.array([[0, 1], [0, 0]], dtype=bool)))
    with pytest.raises(LograbError, match="symmetric"):
        Graph("g", sp.csr_array(np.eye(2, dtype=bool)))
    for adjacency in (np.zeros((2, 2)), sp.coo_array((2, 2), dtype=bool), sp.csr_array((2, 2))):
        with pytest.raises(LograbError, match="boolean CSR"):
            Graph("g", adjacency)
    for labels in (np.array([0.5, 1.0]), np.array([-2, 0]), np.array([[2], [0]])):
        with pytest.raises(LograbError, match="labels"):
            Graph.from_edges("g", 2, [(0, 1)], labels=labels)
    with pytest.raises(LograbError, match="nodes 0 .. 1"):
        Graph.from_edges("g", 2, [(0, 2)])
    with pytest.raises(LograbError, match="rows of labels"):
        Graph.from_edges("g", 2, [(0, 1)], labels=np.zeros(3))
    with pytest.raises(LograbError, match="distinct names"):
        Graph.from_edges("g", 2, [(0, 1)], node_names=("a", "a"))


@pytest.mark.parametrize(
    ("nodes", "ptr"),
    [([0, 1], [0, 1]), ([0, 1], [1, 2]), ([0, 1], [0, 2, 1]), ([1, 0], [0, 2]), ([1, 1], [0, 2]),
     ([0, 5], [0, 2])],
)
def test_ragged_lists_must_rise_and_stay_in_range(nodes, ptr):
    with pytest.raises(LograbError):
        check_ragged("x", 3, np.array(nodes), np.array(ptr))


def test_ragged_lists_may_fall_between_items_and_contain_empty_items():
    check_ragged("x", 3, np.array([2, 0, 1]), np.array([0, 0, 1, 1, 3, 3]))


def test_patches_from_lists_sort_and_merge():
    patches = Patches.from_lists(5, [[3, 1, 3], [4]])
    assert patches[0].tolist() == [1, 3]
    assert patches.sizes.tolist() == [2, 1]


def _seen(**changes):
    fields = {
        "protocol": Protocol(), "n_nodes": 3, "nodes": np.array([0, 2]), "ptr": np.array([0, 2]),
        "ranks": np.array([2]), "vectors": np.eye(2).ravel(), "values": np.array([0.0, 1.0]),
        "next_values": np.array([np.nan]), "centres": np.array([0]),
    }  # fmt: skip
    return Observations(**(fields | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"vectors": np.ones(3)},
        {"vectors": np.array([1, 0, np.nan, 1])},
        {"values": np.array([0.0, np.inf])},
        {"values": np.zeros(3)},
        {"next_values": np.array([np.inf])},
        {"ranks": np.array([3])},
        {"centres": np.array([3])},
        {"nodes": np.array([2, 2])},
        {"features": np.zeros((2, 1))},
    ],
)
def test_observations_refuse_what_does_not_fit(changes):
    assert _seen().block(0).shape == (2, 2)
    with pytest.raises(LograbError):
        _seen(**changes)


@pytest.mark.parametrize(
    ("edges", "scores"),
    [([[1, 0]], [1.0]), ([[0, 0]], [1.0]), ([[0, 1], [0, 1]], [1.0, 1.0]),
     ([[0, 3]], [1.0]), ([[0, 1]], [np.nan])],
)
def test_reconstruction_refuses_bad_edges(edges, scores):
    with pytest.raises(LograbError):
        Reconstruction(3, np.array(edges), np.array(scores), np.arange(3))
    with pytest.raises(LograbError):
        Reconstruction(3, edges, scores, [0, 1, 2])


@pytest.mark.parametrize(("edges", "said"), [([[0, 2], [2, 1]], r"got \(2, 1\) among 1 .*smaller node first"),
                                             ([[0, 3]], r"got \(0, 3\) among 1 that are not$"),
                                             ([[1, 2], [1, 2]], r"got \(1, 2\) again")])  # fmt: skip
def test_reconstruction_names_the_pair_that_is_wrong(edges, said):
    with pytest.raises(LograbError, match=said):
        Reconstruction(3, edges, np.ones(len(edges)), [0, 1, 2])


def test_reconstruction_takes_lists():
    made = Reconstruction(3, [[0, 1], [1, 2]], [1, 0], [0, 1, 2], judged=[[0, 2]], judged_scores=[0.1])
    assert made.edges.shape == (2, 2)
    assert made.scores.dtype == made.judged_scores.dtype == np.float64
    assert made.nodes.tolist() == [0, 1, 2]
    nothing = Reconstruction(3, [], [], [], judged=[], judged_scores=[])
    assert nothing.edges.shape == nothing.judged.shape == (0, 2)
    assert nothing.nodes.dtype.kind == "i"


@pytest.mark.parametrize(
    "bad", [{"edges": None}, {"edges": [[0, 1], [2]]}, {"edges": [[0.0, 1.0]]}, {"scores": ["a"]},
            {"scores": None}, {"nodes": [0, 1, np.nan]}, {"nodes": ["a"]}, {"islands": [0.5, 1.0, 2.0]}]
)  # fmt: skip
def test_reconstruction_refuses_what_is_no_array_of_numbers(bad):
    parts = {"edges": [[0, 1]], "scores": [1.0], "nodes": [0, 1, 2]}
    assert len(Reconstruction(3, **parts).edges) == 1
    with pytest.raises(LograbError):
        Reconstruction(3, **(parts | bad))


@pytest.mark.parametrize(
    "bad", [{"p": 0}, {"p": 1.5}, {"k": 0}, {"sigma": -1}, {"sigma": float("nan")}, {"d": -1}, {"gauge": "x"},
            {"clusters": 3}, {"seed_nodes": 3}, {"seed": -1}, {"unknown": 1}]
)  # fmt: skip
def test_spec_refuses(bad):
    with pytest.raises(ValueError):  # noqa: PT011
        InstanceSpec(**bad)
