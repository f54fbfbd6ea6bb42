"""The built-in graphs have the statistics that their descriptions promise."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from lograb.graphs.builtin import (
    MOLECULES_COUNT,
    SUPERPIXELS_COUNT,
    citation,
    citation_170k,
    karate,
    molecule_graph,
    molecules,
    superpixel_graph,
    superpixels,
)
from lograb.types import Graph


def degrees(graph: Graph) -> np.ndarray:
    return np.diff(graph.adjacency.indptr)


def homophily(graph: Graph) -> float:
    u, w = graph.edges.T
    return float((graph.labels[u] == graph.labels[w]).mean())


def clustering(graph: Graph, nodes: np.ndarray) -> float:
    """Average local clustering coefficient of some nodes."""
    adjacency = graph.adjacency.astype(np.float32)
    rows = adjacency[nodes]
    triangles = np.asarray((rows @ adjacency).multiply(rows).sum(axis=1)).ravel() / 2
    degree = degrees(graph)[nodes]
    return float((triangles / np.maximum(degree * (degree - 1) / 2, 1)).mean())


def components(graph: Graph) -> np.ndarray:
    return np.sort(np.bincount(sp.csgraph.connected_components(graph.adjacency)[1]))[::-1]


def nearest_centre_accuracy(graph: Graph, n_train: int) -> float:
    """Accuracy on the other nodes of the nearest class mean, learnt on the first n_train nodes."""
    x = graph.features.toarray() if sp.issparse(graph.features) else graph.features
    known, labels = x[:n_train], graph.labels[:n_train]
    centres = np.stack([known[labels == c].mean(axis=0) for c in range(labels.max() + 1)])
    scores = x[n_train:] @ centres.T - (centres**2).sum(axis=1) / 2
    return float((scores.argmax(axis=1) == graph.labels[n_train:]).mean())


def test_karate_is_the_karate_club() -> None:
    graph, club = karate(), nx.karate_club_graph()
    assert {tuple(edge) for edge in graph.edges.tolist()} == {tuple(sorted(edge)) for edge in club.edges}
    assert graph.labels.tolist() == [int(club.nodes[i]["club"] != "Mr. Hi") for i in range(34)]
    assert (graph.n_nodes, graph.n_edges) == (34, 78)


@pytest.fixture(scope="module")
def small() -> Graph:
    return citation()


def test_citation_has_coras_structure(small: Graph) -> None:
    degree = degrees(small)
    assert small.n_nodes == 2708
    assert small.n_edges == pytest.approx(5300, rel=0.01)
    assert homophily(small) == pytest.approx(0.81, abs=0.02)
    assert 0.20 <= clustering(small, np.arange(small.n_nodes)) <= 0.25
    assert degree.min() == 1
    assert 100 <= degree.max() <= 170
    assert np.median(degree) == 3
    assert (degree <= 3).mean() > 0.5
    assert np.bincount(small.labels, minlength=7).min() >= 150
    assert np.ptp(np.bincount(small.labels)) > 400


def test_citation_has_small_components(small: Graph) -> None:
    sizes = components(small)
    assert 0.88 <= sizes[0] / small.n_nodes <= 0.94
    assert 50 <= len(sizes) <= 100
    assert sizes[1] < 30
    assert sizes[-1] >= 2


def test_citation_words_follow_the_classes(small: Graph) -> None:
    assert isinstance(small.features, sp.csr_array)
    assert small.features.shape == (2708, 1433)
    assert small.features.dtype == np.float32
    assert set(small.features.data.tolist()) == {1.0}
    assert small.features.sum(axis=1).mean() == pytest.approx(18, abs=0.5)
    assert 0.6 < nearest_centre_accuracy(small, 1000) < 0.95


def test_citation_is_the_same_every_time(small: Graph) -> None:
    again = citation()
    assert np.array_equal(small.edges, again.edges)
    assert np.array_equal(small.labels, again.labels)
    assert (small.features != again.features).nnz == 0


def test_citation_170k_has_arxivs_statistics() -> None:
    graph = citation_170k()
    degree = np.sort(degrees(graph))[::-1]
    assert graph.n_nodes == 169_343
    assert 1_150_000 <= graph.n_edges <= 1_180_000
    assert 10_000 < degree[0] < 16_000
    assert degree[1] < 10_000
    assert 20 <= (degree > 1000).sum() <= 100
    assert 150 <= (degree > 500).sum() <= 200
    assert degree[-1] >= 1
    assert homophily(graph) == pytest.approx(0.65, abs=0.02)
    some = np.random.default_rng(0).integers(0, graph.n_nodes, size=5000)
    assert clustering(graph, some) == pytest.approx(0.2, abs=0.03)
    counts = np.bincount(graph.labels)
    assert len(counts) == 40
    assert counts.max() > 10 * counts.min()
    assert graph.features.shape == (169_343, 128)
    assert graph.features.dtype == np.float32
    assert 0.4 < nearest_centre_accuracy(graph, 100_000) < 0.9


def test_superpixels_have_pascalvocs_statistics() -> None:
    graphs = list(superpixels())
    assert len(graphs) == SUPERPIXELS_COUNT == 100
    assert np.mean([g.n_nodes for g in graphs]) == pytest.approx(479, abs=5)
    assert np.mean([g.n_edges for g in graphs]) == pytest.approx(1355, abs=15)
    labels = np.concatenate([g.labels for g in graphs])
    assert set(labels.tolist()) == set(range(21))
    assert 0.6 < (labels == 0).mean() < 0.9
    assert min(homophily(g) for g in graphs) > 0.8
    assert all(len(components(g)) == 1 for g in graphs)
    assert all(g.features.shape == (g.n_nodes, 14) for g in graphs)
    assert all(nx.check_planarity(nx.from_edgelist(g.edges.tolist()))[0] for g in graphs[:10])


def test_molecules_have_pcqms_statistics() -> None:
    graphs = list(molecules())
    assert len(graphs) == MOLECULES_COUNT == 1000
    assert np.mean([g.n_nodes for g in graphs]) == pytest.approx(30.1, abs=0.5)
    assert np.mean([g.n_edges for g in graphs]) == pytest.approx(30.5, abs=0.5)
    assert max(degrees(g).max() for g in graphs) == 4
    assert all(len(components(g)) == 1 for g in graphs)
    assert all(g.labels is None and g.features.shape == (g.n_nodes, 9) for g in graphs)
    rings = {len(cycle) for g in graphs[:50] for cycle in nx.cycle_basis(nx.from_edgelist(g.edges.tolist()))}
    assert rings == {5, 6}


def test_molecule_features_describe_the_graph() -> None:
    for graph in (molecule_graph(i) for i in range(50)):
        assert np.array_equal(graph.features, np.rint(graph.features))
        assert np.array_equal(graph.features[:, 2], degrees(graph))
        valence = np.select([graph.features[:, 0] == z for z in (1, 6, 7, 8, 9)], [1, 4, 3, 2, 1])
        assert (degrees(graph) <= valence).all()
        is_hydrogen = (graph.features[:, 0] == 1).astype(np.int64)
        assert np.array_equal((graph.adjacency.astype(np.int64) @ is_hydrogen)[is_hydrogen == 0],
                              graph.features[is_hydrogen == 0, 4])


@pytest.mark.parametrize(("make", "name"), [(superpixel_graph, "superpixels"), (molecule_graph, "molecules")])
def test_a_graph_depends_on_its_number_only(make, name) -> None:
    graph, again, other = make(17), make(17), make(18)
    assert graph.name == f"{name}/17"
    assert np.array_equal(graph.edges, again.edges)
    assert np.array_equal(graph.features, again.features)
    assert not np.array_equal(graph.edges, other.edges)


def test_many_graphs_come_one_at_a_time() -> None:
    stream = molecules()
    assert next(stream).name == "molecules/0"
    assert next(stream).name == "molecules/1"


@pytest.mark.parametrize("make", [karate, citation, lambda: superpixel_graph(0), lambda: molecule_graph(0)])
def test_origin_says_built_in(make) -> None:
    graph = make()
    assert graph.origin.kind == "built-in"
    assert graph.origin.source == graph.name.split("/")[0]
    assert graph.origin.revision == "1"
    assert graph.origin.licence == "MIT"
