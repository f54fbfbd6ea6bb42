"""Embeddings that lograb did not make: from arrays to an answer and its score."""

import warnings
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse.csgraph as csgraph
from hypothesis import given
from hypothesis import strategies as st

import lograb
from lograb import Graph, Instance, Observations
from lograb.errors import ArchiveError, LograbError, LograbNotice

GRAPH = lograb.load_graph("karate")
ADJACENCY = GRAPH.adjacency.toarray().astype(float)
DEPARTMENTS = {
    name: sorted(group)
    for name, group in zip(
        ("sales", "research", "support", "board"),
        nx.community.greedy_modularity_communities(nx.from_numpy_array(ADJACENCY), cutoff=4, best_n=4),
    )
}


def embed(groups, k, adjacency=ADJACENCY):
    """Embed each group as a user would: scipy and numpy."""
    vectors, values, next_values = [], [], []
    for group in groups:
        w, u = np.linalg.eigh(csgraph.laplacian(adjacency[np.ix_(group, group)], normed=True))
        vectors.append(u[:, :k])
        values.append(w[:k])
        next_values.append(w[k] if k < len(w) else None)
    return vectors, values, next_values


def departments(k=6, **options):
    return Observations.from_arrays(list(DEPARTMENTS.values()), *embed(DEPARTMENTS.values(), k),
                                    names=list(DEPARTMENTS), **options)  # fmt: skip


def blocks_of(seen):
    return [(seen.members(i), seen.block(i), None if seen.values is None else seen.spectrum(i))
            for i in range(seen.n_patches)]  # fmt: skip


def same(one, other):
    for (a, u, w), (b, v, x) in zip(blocks_of(one), blocks_of(other), strict=True):
        assert np.array_equal(a, b)
        assert np.array_equal(u, v)
        assert (w is None and x is None) or np.array_equal(w, x)


@pytest.mark.parametrize("k", [4, 6, 34])
def test_own_embeddings_get_the_answer_of_an_instance(k):
    own = Instance.from_observations(departments(k, sigma=0.0), truth=GRAPH)
    made = lograb.generate("karate", patches=DEPARTMENTS, strategy="custom", d=0, k=k, sigma=0.0)
    assert own.observations.patch_names == tuple(DEPARTMENTS)
    answers = [lograb.attack(instance, "posterior") for instance in (own, made)]
    assert np.array_equal(answers[0].edges, answers[1].edges)
    assert np.array_equal(answers[0].judged, answers[1].judged)
    assert np.abs(answers[0].judged_scores - answers[1].judged_scores).max() < 1e-6
    assert lograb.evaluate(own, answers[0]).f1 == lograb.evaluate(made, answers[1]).f1
    assert lograb.evaluate(own, answers[0]).precision == 1


def test_every_way_to_give_patches_is_the_same():
    vectors, values, after = embed(DEPARTMENTS.values(), 6)
    keyed = [dict(zip(DEPARTMENTS, items)) for items in (vectors, values, after)]
    same(departments(), Observations.from_arrays(DEPARTMENTS, *keyed))
    assert Observations.from_arrays(DEPARTMENTS, *keyed).patch_names == tuple(DEPARTMENTS)
    arrays = [np.array(group) for group in DEPARTMENTS.values()]
    same(departments(), Observations.from_arrays(iter(arrays), vectors, values, after))
    one, u, w = arrays[0], vectors[0], values[0]
    alone = Observations.from_arrays(one, u, w, after[0], one[0])
    same(alone, Observations.from_arrays([one], [u], [w], [after[0]], [one[0]]))
    assert alone.n_patches == 1
    assert alone.next_values.tolist() == [after[0]]
    assert alone.centres.tolist() == [one[0]]


def test_names_are_numbered_in_their_order():
    vectors, values, _ = embed(DEPARTMENTS.values(), 6)
    named = [[f"p{i:02}" for i in group] for group in DEPARTMENTS.values()]
    seen = Observations.from_arrays(named, vectors, values)
    assert seen.node_names == tuple(f"p{i:02}" for i in range(34))
    same(seen, departments())
    numbers = Observations.from_arrays([list(map(str, group)) for group in DEPARTMENTS.values()], vectors, values)
    assert numbers.node_names is None
    same(numbers, departments())
    assert Observations.from_arrays([[3, 900]], [np.eye(2)]).n_nodes == 901
    assert Observations.from_arrays([[3, 9]], [np.eye(2)], n_nodes=50).n_nodes == 50


@given(st.integers(0, 10**6))
def test_order_does_not_matter(seed):
    """Rows with their members, columns with their values, patches: all may come in any order."""
    rng = np.random.default_rng(seed)
    groups = list(DEPARTMENTS.values())
    vectors, values, after = embed(groups, 6)
    members = []
    for i, group in enumerate(groups):
        rows, columns = rng.permutation(len(group)), rng.permutation(vectors[i].shape[1])
        members.append(np.array(group)[rows])
        vectors[i], values[i] = vectors[i][rows][:, columns], values[i][columns]
    order = rng.permutation(len(groups))
    seen = Observations.from_arrays(*([items[i] for i in order] for items in (members, vectors, values, after)))
    straight = departments()
    for place, i in enumerate(order):
        assert np.array_equal(seen.members(place), straight.members(i))
        assert np.array_equal(seen.spectrum(place), straight.spectrum(i))
        apart = np.diff(straight.spectrum(i), prepend=-1, append=3) > 1e-9
        simple = apart[1:] & apart[:-1]  # inside a repeated eigenvalue columns have no order
        assert np.array_equal(seen.block(place)[:, simple], straight.block(i)[:, simple])


def test_single_precision_is_kept_as_it_is():
    vectors, values, _ = embed(DEPARTMENTS.values(), 6)
    rounded = [v.astype(np.float32) for v in vectors]
    seen = Observations.from_arrays(list(DEPARTMENTS.values()), rounded, [w.astype(np.float32) for w in values])
    assert np.array_equal(seen.block(0).astype(np.float32), rounded[0])
    assert seen.vectors.dtype == np.float64


def test_next_values_are_known_for_all_or_for_none():
    groups = list(DEPARTMENTS.values())
    vectors, values, after = embed(groups, 34)
    assert np.isnan(Observations.from_arrays(groups, vectors, values).next_values).all()
    vectors, values, after = embed(groups, 4)
    assert Observations.from_arrays(groups, vectors, values).next_values is None
    with pytest.warns(LograbNotice, match="left out"):
        assert Observations.from_arrays(groups, vectors, values, [after[0], *[None] * 3]).next_values is None
    with pytest.raises(LograbError, match="between its last one"):
        Observations.from_arrays(groups, vectors, values, [0.1, *after[1:]])
    with pytest.raises(LograbError, match="whole spectrum"):
        Observations.from_arrays([[0, 1]], *embed([[0, 1]], 2)[:2], [1.5])


def test_next_values_are_withheld_with_the_eigenvalues(tmp_path):
    groups = list(DEPARTMENTS.values())
    vectors, values, after = embed(groups, 4)
    with pytest.warns(LograbNotice, match="left out"):
        assert Observations.from_arrays(groups, vectors, None, after).next_values is None
    seen = Observations.from_arrays(groups, vectors, values, after)
    assert replace(seen, values=None).next_values is None
    own = Instance.from_observations(seen, GRAPH)
    manifest = own.manifest.model_copy(update={"spec": own.spec.model_copy(update={"eigenvalues": False})})
    tables = {name: column for name, column in own.tables.items() if name != "observations/values"}
    Instance(manifest, tables).save(tmp_path / "x.lograb")  # the numbers would stay in the file
    with pytest.raises(ArchiveError, match="withheld"):
        _ = lograb.load(tmp_path / "x.lograb").observations


@pytest.mark.parametrize("name", ["membership", "heat-kernel", "eigen-sync", "local2global", "posterior"])
@pytest.mark.parametrize("values", [True, False])
def test_attacks_do_without_next_values_and_most_without_values(name, values):
    vectors, spectra, _ = embed(DEPARTMENTS.values(), 6)
    seen = Observations.from_arrays(list(DEPARTMENTS.values()), vectors, spectra if values else None)
    if name == "heat-kernel" and not values:
        with pytest.raises(LograbError, match="eigenvalues"):
            lograb.attack(seen, name)
    else:
        assert lograb.attack(seen, name).n_nodes == 34


def test_afr_says_that_it_needs_the_next_value():
    vectors, values, _ = embed(DEPARTMENTS.values(), 6)
    with pytest.raises(LograbError, match="next_values"):
        lograb.attack(Observations.from_arrays(list(DEPARTMENTS.values()), vectors, values), "afr")
    assert len(lograb.attack(departments(), "afr").edges)


def test_the_protocol_is_what_the_user_says():
    seen = departments(strategy="cluster", d=1, sigma=0.01, gauge="none")
    assert seen.protocol.model_dump() == {"strategy": "cluster", "d": 1, "k": 6, "sigma": 0.01, "gauge": "none",
                                          "defences": (), "releases": 1}  # fmt: skip
    for bad in ({"strategy": "clusters"}, {"sigma": -1}, {"gauge": "signs"}, {"laplacian": "rw"}):
        with pytest.raises(LograbError):
            departments(**bad)


BLOCK = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([], []), "at least one patch"),
        (([[]], [BLOCK]), "no members"),
        (([[0, 1, 1]], [BLOCK]), "1 twice"),
        (([[0, 1, "a"]], [BLOCK]), "all text"),
        (([[0, 1, 2.0]], [BLOCK]), "whole numbers"),
        (([{0, 1, 2}], [BLOCK]), "in the order of the rows"),
        (([[0, 1, -2]], [BLOCK]), "-2"),
        (([[0, 1, 10**12]], [BLOCK]), "as names"),
        (([0, 1, 2], [BLOCK]), "one list of nodes per patch"),
        (([[0, 1, 2]], BLOCK), "one item"),
        (([[0, 1, 2]], [BLOCK, BLOCK]), "one item for each"),
        (([[0, 1, 2]], [BLOCK[:, :2].T]), "transpose"),
        (([[0, 1]], [BLOCK]), "2 members"),
        (([[0, 1, 2]], [BLOCK[:, :0]]), "columns"),
        (([[0, 1, 2]], [BLOCK + 1j]), "complex"),
        (([[0, 1, 2]], [[["a"] * 3] * 3]), "array of numbers"),
        (([[0, 1, 2]], [BLOCK * np.nan]), "finite"),
        (([[0, 1, 2]], [BLOCK], [[0.0, 1.0]]), "3 columns"),
        (([[0, 1, 2], [3]], [BLOCK, np.eye(1)], [[0.0, 1.5, 1.5], None]), "withheld for all"),
        (([[0, 1, 2]], [BLOCK[:, :2]], None, ["x"]), "next value"),
        (([[0, 1, 2]], [BLOCK], None, None, [7]), "one of its members"),
        (([[0, 1, 2]], [BLOCK], None, None, None, ["a", "b"]), "names"),
        (({"a": [0, 1, 2]}, [BLOCK]), "same keys"),
        (({"a": [0, 1, 2]}, {"a": BLOCK}, None, None, None, ["a"]), "leave out names"),
    ],
)
def test_slips_get_a_sentence(arguments, words):
    with pytest.raises(LograbError, match=words):
        Observations.from_arrays(*arguments)


def test_the_unnormalised_laplacian_is_refused_by_name():
    """As from networkx.laplacian_matrix, whatever part of it was kept."""
    w, u = np.linalg.eigh(nx.laplacian_matrix(nx.from_numpy_array(ADJACENCY)).toarray().astype(float))
    for k in (4, 8, 34):
        with pytest.raises(LograbError, match="unnormalised Laplacian"):
            Observations.from_arrays(range(34), u[:, :k], w[:k])
    seen = Observations.from_arrays(range(34), u, w, laplacian="unnormalised")
    assert lograb.attack(seen, "posterior").edges.tolist() == GRAPH.edges.tolist()


@pytest.mark.parametrize("dropped", [True, False])
@pytest.mark.filterwarnings("ignore::lograb.errors.LograbNotice")
def test_sklearn(dropped):
    manifold = pytest.importorskip("sklearn.manifold")
    embedding = manifold.spectral_embedding(ADJACENCY, n_components=10, drop_first=dropped, random_state=0)
    with pytest.raises(LograbError, match="random-walk"):
        Observations.from_arrays(range(34), embedding)
    seen = Observations.from_arrays(range(34), embedding, laplacian="random-walk")
    _, u = np.linalg.eigh(csgraph.laplacian(ADJACENCY, normed=True))
    assert seen.ranks.tolist() == [10 + dropped]
    assert np.allclose(np.abs(seen.block(0)), np.abs(u[:, : 10 + dropped]), atol=1e-8)
    claimed = set(map(tuple, lograb.attack(seen, "posterior").edges.tolist()))
    assert len(claimed & set(map(tuple, GRAPH.edges.tolist()))) > 0.6 * len(claimed) > 20


def test_pytorch_geometric_drops_the_first_eigenvector():
    data = pytest.importorskip("torch_geometric.data")
    transforms = pytest.importorskip("torch_geometric.transforms")
    import torch

    edges = torch.tensor(np.concatenate([GRAPH.edges, GRAPH.edges[:, ::-1]]).T.copy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        add = transforms.AddLaplacianEigenvectorPE(k=6, attr_name="pe", is_undirected=True)
        encoding = add(data.Data(edge_index=edges, num_nodes=34)).pe
    with pytest.raises(LograbError, match="dropped"):
        Observations.from_arrays(range(34), encoding)


def test_packed_instances_are_saved_verified_and_scored(tmp_path):
    path = tmp_path / "x.lograb"
    own = Instance.from_observations(departments(), truth=GRAPH, name="firm")
    own.save(path)
    manifest = lograb.verify(path)
    assert (manifest.name, manifest.origin.kind) == ("firm", "packed")
    assert manifest.spec.sigma is manifest.spec.seed is None
    loaded = lograb.load(path)
    same(loaded.observations, own.observations)
    assert loaded.truth.edges.tolist() == GRAPH.edges.tolist()
    assert loaded.patch_names == tuple(DEPARTMENTS)
    assert loaded.observations.protocol.sigma is None
    assert lograb.evaluate(loaded, lograb.attack(loaded, "posterior")).f1 > 0.8


def test_packed_instances_without_truth(tmp_path):
    vectors, values, _ = embed(DEPARTMENTS.values(), 5)
    ragged = [v[:, : 5 - i] for i, v in enumerate(vectors)]
    seen = Observations.from_arrays(list(DEPARTMENTS.values()), ragged, [w[: 5 - i] for i, w in enumerate(values)])
    path = tmp_path / "x.lograb"
    Instance.from_observations(seen).save(path)
    lograb.verify(path)
    loaded = lograb.load(path)
    same(loaded.observations, seen)
    assert not loaded.has_truth
    assert len(lograb.attack(loaded, "posterior").edges)
    with pytest.raises(LograbError, match="without its truth"):
        lograb.evaluate(loaded, lograb.attack(loaded, "posterior"))


def test_nodes_are_matched_with_the_truth_by_name():
    names = [f"n{i}" for i in range(34)]  # n10 comes before n2
    order = sorted(range(40), key=lambda i: f"n{i}")
    place = {old: new for new, old in enumerate(order)}
    edges = [[place[u], place[w]] for u, w in GRAPH.edges.tolist()]
    truth = Graph.from_edges("named", 40, edges, node_names=tuple(f"n{i}" for i in order))
    vectors, values, _ = embed(DEPARTMENTS.values(), 6)
    members = [[names[i] for i in group] for group in DEPARTMENTS.values()]
    own = Instance.from_observations(Observations.from_arrays(members, vectors, values), truth)
    straight = Instance.from_observations(departments(), GRAPH)
    assert own.n_nodes == 40
    assert own.co_observed.sum() == straight.co_observed.sum()
    for i, group in enumerate(DEPARTMENTS.values()):
        rows = np.argsort([place[node] for node in group])
        assert np.array_equal(own.observations.block(i), straight.observations.block(i)[rows])
        assert own.observations.members(i).tolist() == sorted(place[node] for node in group)
    score, other = (lograb.evaluate(x, lograb.attack(x, "posterior")) for x in (own, straight))
    assert score.f1 == other.f1


def test_numbers_match_names_that_are_numbers():
    truth = Graph.from_edges("g", 3, [[0, 1], [1, 2]], node_names=("5", "17", "1000"))
    seen = Observations.from_arrays([[17, 5]], [np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)], [[0.0, 2.0]])
    own = Instance.from_observations(seen, truth)
    assert own.observations.members(0).tolist() == [0, 1]
    assert own.co_observed.tolist() == [True, False]


def test_what_does_not_fit_the_truth_is_counted_and_named():
    vectors, values, _ = embed(DEPARTMENTS.values(), 6)
    named = [[f"p{i:02}" for i in group] for group in DEPARTMENTS.values()]
    seen = Observations.from_arrays(named, vectors, values)
    with pytest.raises(LograbError, match="34 of 34 observed nodes.*p00"):
        Instance.from_observations(seen, GRAPH)
    with pytest.raises(LograbError, match="load_graph"):
        Instance.from_observations(seen, "karate")


def test_consistency_still_refuses_nonsense(tmp_path):
    path = tmp_path / "x.lograb"
    own = Instance.from_observations(departments(), GRAPH)
    bad = own.manifest.model_copy(update={"spec": own.spec.model_copy(update={"k": 7})})
    Instance(bad, own.tables).save(path)
    with pytest.raises(ArchiveError, match="ranks"):
        lograb.verify(path)
    as_made = own.manifest.model_copy(update={"origin": own.origin.model_copy(update={"kind": "memory"})})
    without = {name: column for name, column in own.tables.items() if "next_values" not in name}
    Instance(as_made, without).save(path)
    with pytest.raises(ArchiveError, match="next_values"):
        lograb.verify(path)


def test_generating_needs_a_noise_level():
    with pytest.raises(LograbError, match="sigma"):
        lograb.generate("karate", sigma=None)


def test_an_answer_about_fewer_nodes_is_matched_by_name(tmp_path):
    """Observations know the observed nodes only; the truth has more, in another order."""
    names = [f"p{i}" for i in range(34)][::-1]
    graph = Graph.from_edges("karate", 34, GRAPH.edges, node_names=names)
    groups = [group for name, group in DEPARTMENTS.items() if name != "board"]
    mine = Observations.from_arrays([[names[i] for i in group] for group in groups], *embed(groups, 6))
    instance = Instance.from_observations(mine, truth=graph)
    for attack in ("posterior", "afr"):
        guess = lograb.attack(mine, attack)
        assert guess.n_nodes < instance.n_nodes
        score = lograb.evaluate(instance, guess)
        guess.save(tmp_path / "guess.csv")
        assert score["hits"] == lograb.evaluate(instance, tmp_path / "guess.csv")["hits"] > 10
    with pytest.raises(LograbError, match="attack the instance itself"):
        lograb.evaluate(instance, replace(guess, node_names=None))
    with pytest.raises(LograbError, match="1 of the answer's nodes are not in the instance: zoe"):
        lograb.evaluate(instance, replace(guess, node_names=("zoe", *guess.node_names[1:])))


def test_observations_alone_are_not_scored():
    with pytest.raises(LograbError, match=r"no truth.*Instance.from_observations\(mine, truth=graph\)"):
        lograb.evaluate(departments(), lograb.attack(departments(), "membership"))


def test_members_of_two_kinds_are_told_the_remedy():
    mixed = np.array([1, "b", "c"], dtype=object)
    with pytest.raises(LograbError, match=r"got int, str.*members\.astype\(str\)"):
        Observations.from_arrays([mixed], [np.eye(3)[:, :2]])
    assert Observations.from_arrays([mixed.astype(str)], [np.eye(3)[:, :2]]).n_nodes == 3
