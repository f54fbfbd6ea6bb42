"""Patches checked against networkx and by their defining properties."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import graphs

from lograb.errors import LograbError
from lograb.patches import bring, decompose, induced_edges, overlap
from lograb.patches.catalog import select
from lograb.spec import InstanceSpec
from lograb.types import Graph

specs = st.builds(
    InstanceSpec,
    strategy=st.sampled_from(["d-hop", "cluster", "random", "global"]),
    d=st.integers(0, 3),
    p=st.floats(0.05, 1.0),
)


def as_networkx(graph):
    other = nx.empty_graph(graph.n_nodes)
    other.add_edges_from(graph.edges.tolist())
    return other


@settings(max_examples=60)
@given(graphs(), st.integers(0, 3))
def test_balls_are_the_nodes_within_d_hops(graph, radius):
    patches = decompose(graph, InstanceSpec(d=radius), np.random.default_rng(0))
    other = as_networkx(graph)
    assert patches.centres.tolist() == list(range(graph.n_nodes))
    for i in range(len(patches)):
        assert patches[i].tolist() == sorted(nx.ego_graph(other, i, radius=radius))


@settings(max_examples=60)
@given(graphs(), specs, st.integers(0, 5))
def test_every_strategy_keeps_its_promises(graph, spec, seed):
    patches = decompose(graph, spec, np.random.default_rng(seed))
    n_observed = min(graph.n_nodes, max(1, round(spec.p * graph.n_nodes)))
    again = decompose(graph, spec, np.random.default_rng(seed))
    assert np.array_equal(patches.nodes, again.nodes)
    if spec.strategy == "cluster":
        cores = patches.nodes[patches.core]
        assert len(np.unique(cores)) == len(cores) == n_observed  # disjoint, and nobody is left out
        assert np.isin(patches.nodes, cores).all()  # the halo stays among the observed nodes
    elif spec.strategy == "global":
        assert len(patches) == 1
        assert len(patches[0]) == n_observed
        assert patches.centres is None
    else:
        expected = n_observed if spec.strategy == "d-hop" else max(1, round(n_observed / 2))
        assert len(patches) == len(np.unique(patches.centres)) == expected
        assert all(patches.centres[i] in patches[i] for i in range(len(patches)))


@settings(max_examples=60)
@given(graphs(), specs)
def test_halo_is_d_hops_in_the_observed_subgraph(graph, spec):
    n_observed = max(1, round(spec.p * graph.n_nodes))
    spec = InstanceSpec(strategy="cluster", d=spec.d, p=spec.p, clusters=min(3, n_observed))
    patches = decompose(graph, spec, np.random.default_rng(1))
    observed = as_networkx(graph).subgraph(np.unique(patches.nodes).tolist())
    for i in range(len(patches)):
        core = patches[i][patches.core[patches.ptr[i] : patches.ptr[i + 1]]].tolist()
        reach = set().union(*(nx.ego_graph(observed, v, radius=spec.d) for v in core))
        assert set(patches[i].tolist()) == reach


@settings(max_examples=80)
@given(graphs(), specs, st.sampled_from([1, 7, 1 << 22]))
def test_induced_edges_are_those_of_the_subgraphs(graph, spec, chunk):
    patches = decompose(graph, spec, np.random.default_rng(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlap, "CHUNK", chunk)
        edges = induced_edges(patches, graph)
    seen = set()
    for i in range(len(patches)):
        ends = patches.nodes[edges.entries[edges.ptr[i] : edges.ptr[i + 1]]]
        expected = sorted(tuple(sorted(e)) for e in as_networkx(graph).subgraph(patches[i].tolist()).edges)
        assert [tuple(e) for e in ends.tolist()] == expected
        seen |= set(expected)
    assert edges.co_observed.tolist() == [tuple(e) in seen for e in graph.edges.tolist()]


def test_coverage_is_rounded_and_never_empty():
    assert len(select(2708, 0.6, np.random.default_rng(0))) == 1625
    assert len(select(3, 0.01, np.random.default_rng(0))) == 1


def test_cluster_default_is_about_one_per_fifty_nodes():
    graph = Graph.from_edges("ring", 1000, [(i, (i + 1) % 1000) for i in range(1000)])
    patches = decompose(graph, InstanceSpec(strategy="cluster"), np.random.default_rng(0))
    assert len(patches) == 20
    assert patches.core.sum() == 1000
    assert len(patches.nodes) > 1000


def test_clusters_can_be_asked_for_by_their_size():
    graph = Graph.from_edges("ring", 1000, [(i, (i + 1) % 1000) for i in range(1000)])
    by_size, by_number, one = (
        decompose(graph, InstanceSpec(strategy="cluster", p=0.6, **how), np.random.default_rng(0))
        for how in ({"cluster_size": 20}, {"clusters": 30}, {"cluster_size": 5000}))  # fmt: skip
    assert (len(by_size), len(one)) == (30, 1)
    assert np.array_equal(by_size.nodes, by_number.nodes)
    with pytest.raises(LograbError, match="leave one out"):
        InstanceSpec.of(strategy="cluster", cluster_size=20, clusters=3)
    with pytest.raises(LograbError, match="cluster_size belongs"):
        InstanceSpec.of(cluster_size=20)


def test_global_is_one_patch_of_all_nodes_whatever_d():
    graph = Graph.from_edges("ring", 50, [(i, (i + 1) % 50) for i in range(50)])
    for d in (0, 1, 7):
        patches = decompose(graph, InstanceSpec(strategy="global", d=d), np.random.default_rng(0))
        assert patches[0].tolist() == list(range(50))
        assert induced_edges(patches, graph).co_observed.all()


def test_global_with_partial_coverage_keeps_the_edges_among_the_observed():
    graph = Graph.from_edges("ring", 50, [(i, (i + 1) % 50) for i in range(50)])
    patches = decompose(graph, InstanceSpec(strategy="global", p=0.4), np.random.default_rng(0))
    inside = np.isin(graph.edges, patches[0]).all(axis=1)
    assert 0 < inside.sum() < len(inside)
    assert np.array_equal(induced_edges(patches, graph).co_observed, inside)


def test_patches_that_are_brought_and_the_strategy_custom_belong_together():
    graph = Graph.from_edges("path", 3, [(0, 1), (1, 2)])
    patches, _ = bring([[0, 1], [2]], None)(graph)
    rng = np.random.default_rng(0)
    assert decompose(graph, InstanceSpec(strategy="custom"), rng, patches).nodes.tolist() == [0, 1, 2]
    with pytest.raises(LograbError, match="needs patches, got none"):
        decompose(graph, InstanceSpec(strategy="custom"), rng)
    with pytest.raises(LograbError, match="strategy 'd-hop'"):
        decompose(graph, InstanceSpec(), rng, patches)


def test_too_many_seed_nodes():
    graph = Graph.from_edges("path", 3, [(0, 1), (1, 2)])
    with pytest.raises(LograbError, match="3 observed nodes"):
        decompose(graph, InstanceSpec(strategy="random", seed_nodes=9), np.random.default_rng(0))
