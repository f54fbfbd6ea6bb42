"""From a source to an instance, as a user of the Python API sees it."""

import resource
import tracemalloc
from itertools import islice

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import lograb
from lograb import pipeline
from lograb.errors import LograbError


def test_seed_decides_everything():
    one, two, other = (lograb.generate("karate", p=0.5, sigma=0.1, seed=s).observations for s in (1, 1, 2))
    assert np.array_equal(one.vectors, two.vectors)
    assert not np.array_equal(one.centres, other.centres)


def test_parameters_draw_from_streams_of_their_own():
    """Adding noise must not change which nodes are observed, nor the gauge."""
    clean, noisy = (lograb.generate("karate", p=0.5, sigma=s).observations for s in (0.0, 1e-9))
    assert np.array_equal(clean.nodes, noisy.nodes)
    assert np.allclose(clean.vectors, noisy.vectors, atol=1e-7)


def test_one_graph_of_many_is_the_same_alone_and_in_company(tmp_path):
    path = tmp_path / "m.lograb"
    lograb.generate_file("molecules", path, p=0.6, sigma=0.05)
    together = lograb.load(path)
    alone = lograb.generate("molecules", graph=17, p=0.6, sigma=0.05)
    assert len(together) == 1000
    assert np.array_equal(together[17].observations.vectors, alone.observations.vectors)
    assert np.array_equal(together[17].truth.edges, alone.truth.edges)
    assert np.array_equal(together[17].features, alone.features)
    with pytest.raises(LograbError, match="1000 graphs"):
        _ = together.observations
    first = sum(together[i].n_patches for i in range(17))
    assert np.array_equal(together.patch(first).block(0), alone.observations.block(0))
    assert together.patch(first).n_nodes == alone.n_nodes


def test_streaming_memory_does_not_grow_with_the_number_of_graphs(tmp_path, monkeypatch):
    peaks = []
    everything = lograb.load_graphs
    for count in (20, 300, 1000):  # the first run pays for imports
        monkeypatch.setattr(pipeline, "count_graphs", lambda source, count=count: count)
        some = islice(everything("molecules"), count)
        monkeypatch.setattr(pipeline, "load_graphs", lambda source, some=some, **_: some)
        tracemalloc.start()
        lograb.generate_file("molecules", tmp_path / "x.lograb")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert lograb.load(tmp_path / "x.lograb").n_nodes > 10_000
    assert peaks[2] < 1.5 * peaks[1] + 200_000


def test_custom_patches_and_names_survive(tmp_path):
    (tmp_path / "g.csv").write_text("source,target\nann,bob\nbob,eve\n")
    instance = lograb.generate(tmp_path / "g.csv", strategy="custom", patches=[["ann", "bob"], ["eve", "bob"]])
    path = tmp_path / "x.lograb"
    instance.save(path)
    loaded = lograb.load(path)
    assert loaded.node_names == ("ann", "bob", "eve")
    assert loaded.origin.source == "g.csv"
    assert str(tmp_path).encode() not in path.read_bytes()
    assert loaded.observations.n_patches == 2


def test_patches_imply_the_strategy_custom(tmp_path):
    (tmp_path / "g.csv").write_text("ann,bob\nbob,eve\nann,eve\n")
    (tmp_path / "p.csv").write_text("node,group\nann,x\nbob,x\neve,y\n")
    instance = lograb.generate(tmp_path / "g.csv", patches=tmp_path / "p.csv")
    assert instance.spec.strategy == "custom"
    assert instance.patch_names == instance.observations.patch_names == ("x", "y")
    assert instance.observations.sizes.tolist() == [2, 1]
    assert lograb.generate("karate", patches_by="label").spec.strategy == "custom"
    assert lograb.generate("karate").spec.strategy == "d-hop"
    for brought in ({"patches": [[0, 1]]}, {"patches_by": "label"}):
        with pytest.raises(LograbError, match="got the strategy 'd-hop': leave one of the two out"):
            lograb.generate("karate", strategy="d-hop", **brought)


def test_brought_patches_cut_one_graph():
    assert lograb.generate("molecules", graph=3, patches=[[0, 1]]).n_patches == 1
    for brought in ({"patches": [[0, 1]]}, {"patches_by": "label"}):
        with pytest.raises(LograbError, match="cuts one graph"):
            lograb.generate("molecules", **brought)


def test_bad_patches_fail_before_the_graph_is_loaded(tmp_path):
    for bad in (tmp_path / "none.csv", [1, 2, 3]):
        with pytest.raises(LograbError, match="patches"):
            lograb.generate(tmp_path / "no-such-graph.csv", patches=bad)


def test_several_graphs_in_a_list(tmp_path):
    graphs = [nx.path_graph(5), nx.Graph([("a", "b"), ("b", "c")]), lograb.Graph.from_edges("g", 2, [(0, 1)])]
    made = lograb.generate(graphs, d=1, p=0.8, sigma=0.1)
    lograb.generate_file(graphs, tmp_path / "x.lograb", d=1, p=0.8, sigma=0.1)
    lograb.verify(tmp_path / "x.lograb")
    loaded = lograb.load(tmp_path / "x.lograb")
    assert len(made) == len(loaded) == 3
    assert made.name == "graphs"
    assert [graph.truth.n_edges for graph in loaded] == [4, 2, 1]
    assert loaded[1].node_names == ("a", "b", "c")
    alone = lograb.generate(graphs, graph=1, d=1, p=0.8, sigma=0.1)
    assert np.array_equal(alone.observations.vectors, loaded[1].observations.vectors)


def test_global_instances_hold_one_embedding_per_graph(tmp_path):
    path = tmp_path / "g.lograb"
    lograb.generate_file("karate", path, strategy="global", k=10, sigma=0.05)
    lograb.verify(path)
    seen = lograb.load(path).observations
    assert seen.n_patches == 1
    assert seen.block(0).shape == (34, 10)
    assert seen.centres is None
    assert lograb.load(path).co_observed.all()
    half = lograb.generate("molecules", graph=3, strategy="global", p=0.5)
    assert half.observations.sizes.tolist() == [round(half.n_nodes / 2)]
    assert 0 < half.co_observed.sum() < len(half.co_observed)


def test_global_instances_of_large_graphs_stay_sparse(tmp_path):
    """25,000 nodes: everything that is linear takes a few MB, an n x n array of bits 78 MB."""
    n = 25_000
    ring = np.stack([np.arange(n), np.roll(np.arange(n), 1)], axis=1)
    chords = np.random.default_rng(0).integers(0, n, (n, 2))
    graph = lograb.Graph.from_edges("large", n, np.concatenate([ring, chords]))
    tracemalloc.start()
    lograb.generate_file(graph, tmp_path / "g.lograb", strategy="global", k=8, sigma=0.01)
    lograb.verify(tmp_path / "g.lograb")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 70e6


def test_features_channel_shows_observed_nodes_only():
    instance = lograb.generate("citation", p=0.01)
    seen = instance.observe(features=True)
    hidden = np.setdiff1d(np.arange(seen.n_nodes), seen.nodes)
    assert instance.observations.features is None
    assert len(hidden)
    assert seen.features[hidden].nnz == 0
    assert abs(seen.features[seen.nodes] - instance.features[seen.nodes]).nnz == 0


def test_sources_as_python_objects():
    ring = sp.csr_array(np.roll(np.eye(6), 1, axis=1))
    assert lograb.generate(ring, k=3).truth.n_edges == 6
    assert lograb.generate(lograb.load_graph("karate"), k=3).truth.n_edges == 78


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"k": 0}, "k: .*got 0"),
        ({"gauge": "both"}, "gauge"),
        ({"clusters": 3}, "clusters belongs"),
        ({"seed": None}, "seed"),
        ({"strategy": "custom"}, "needs patches, got none"),
        ({"sigm": 0.1}, "unknown parameter 'sigm'. Did you mean 'sigma'"),
        ({"patchs": [[0]]}, "Did you mean 'patches'"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(LograbError, match=message):
        lograb.generate("karate", **parameters)


def test_co_observed_edges_at_full_coverage_are_all_edges():
    instance = lograb.generate("karate", d=1, p=1.0)
    assert instance.co_observed.all()
    ptr, ends = instance.patch_edges
    seen = instance.observations
    nodes = seen.nodes[ends + np.repeat(seen.ptr[:-1], np.diff(ptr))[:, None]]
    assert np.array_equal(np.unique(nodes, axis=0), instance.truth.edges)


def test_to_pyg(tmp_path):
    torch = pytest.importorskip("torch")
    instance = lograb.generate("citation", p=0.02, k=6, sigma=0.05)
    listed = lograb.to_pyg(instance)
    seen = instance.observations
    assert len(listed) == seen.n_patches
    for i, data in enumerate(listed):
        data.validate()
        nodes = seen.members(i)
        assert data.n_id.tolist() == nodes.tolist()
        assert data.x.shape == (len(nodes), 1433)
        assert data.spectral.shape == (len(nodes), 6)
        assert np.allclose(data.spectral[:, : seen.ranks[i]].numpy(), seen.block(i), atol=1e-6)
        assert data.y.tolist() == instance.labels[nodes].tolist()
        assert data.n_id[data.centre] == seen.centres[i]
        assert np.allclose(data.eigenvalues[0, : seen.ranks[i]].numpy(), seen.spectrum(i), atol=1e-6)
        assert data.eigenvalues[0, seen.ranks[i] :].isnan().all()
        inner = instance.truth.adjacency[nodes][:, nodes]
        assert data.edge_index.shape == (2, inner.nnz)
        assert all(inner[a, b] for a, b in data.edge_index.T.tolist())
    assert lograb.to_pyg(lograb.generate("karate"))[0].x.shape[1] == 0
    assert listed[0].x.dtype == torch.float32


def test_no_two_instances_share_their_noise():
    """Otherwise two noise levels, or a public instance made with the same seed, would give it away."""
    clean, low, high = (lograb.generate("karate", sigma=s).observations.vectors for s in (0.0, 0.05, 0.1))
    assert abs(np.corrcoef(low - clean, high - clean)[0, 1]) < 0.2
    one, two = (lograb.generate("molecules", graph=i, sigma=0.1) for i in (0, 1))
    plain = [lograb.generate("molecules", graph=i).observations.vectors for i in (0, 1)]
    first, second = (i.observations.vectors - p for i, p in zip((one, two), plain))
    n = min(len(first), len(second))
    assert abs(np.corrcoef(first[:n], second[:n])[0, 1]) < 0.2


def test_an_attack_cannot_alter_what_the_next_one_sees():
    instance = lograb.generate("karate")
    with pytest.raises(ValueError, match="read-only"):
        instance.observations.vectors[0] = 0


def test_seed_decides_clusters_too():
    one, two = (lograb.generate("citation", strategy="cluster", p=0.5, seed=s).core.sum() for s in (1, 1))
    assert one == two
    parts = [lograb.generate("citation", strategy="cluster", p=1.0, seed=s).observations.ptr for s in (1, 2)]
    assert not np.array_equal(*parts)


def test_instances_with_large_patches_are_reproducible():
    graph = lograb.load_graph("citation-170k")
    hub = int(np.argmax(np.diff(graph.adjacency.indptr)))
    ball = graph.adjacency[[hub]].indices[:900]
    one, two = (lograb.generate(graph, strategy="custom", patches=[np.append(ball, hub)], k=8) for _ in range(2))
    assert one.observations.sizes[0] > 640
    assert np.array_equal(one.observations.vectors, two.observations.vectors)


@pytest.mark.parametrize("name", ["a.npz", "a.csv", "t.html", "t.md", "t.tex", "k.lograb"])
def test_a_full_disk_leaves_the_earlier_file_whole(tmp_path, name):
    instance = lograb.generate("karate", k=4)
    answer, table = lograb.attack(instance, "membership"), lograb.compare(instance, ["membership", "random"])
    path = tmp_path / name
    writers = {".npz": answer.save, ".csv": answer.save, ".html": table.to_html, ".md": table.to_markdown,
               ".tex": table.to_latex, ".lograb": instance.save}  # fmt: skip
    write = writers[path.suffix]
    write(path)
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(LograbError, match=f"cannot write.*{name}"):
            write(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [name]
