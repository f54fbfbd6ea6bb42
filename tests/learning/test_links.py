"""The methods of Task 3 from the inside: formulas by hand, and that they learn what there is to learn."""

from dataclasses import replace
from itertools import chain, pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from lograb.errors import LograbError
from lograb.learning.links.catalog import LINKS
from lograb.learning.links.fragmented import FragmentedGraph, Pools, Strangers, cosines, symmetric, unlinked_pairs
from lograb.learning.patchset import PatchSet
from lograb.metrics.ranking import Ranking
from lograb.ragged import pointer


def fragmented(n_nodes, patches, edges, features=None, labels=None, fragment=None):
    """Patches as node lists, each with those of the edges whose ends it contains; fragments are the patches."""
    lists = [sorted(patch) for patch in patches]
    inside = [[(lists[i].index(u), lists[i].index(w)) for u, w in edges if u in patch and w in patch]
              for i, patch in enumerate(lists)]  # fmt: skip
    if fragment is None:
        fragment = np.full(n_nodes, -1)
        for i, patch in enumerate(lists):
            fragment[patch] = i
    found = PatchSet("made", pointer([len(p) for p in lists]), np.concatenate(lists), n_nodes,
                     np.zeros((sum(map(len, lists)), 2), np.float32), pointer([len(e) for e in inside]),
                     np.array(list(chain(*inside)), dtype=np.int64).reshape(-1, 2), None, features,
                     labels)  # fmt: skip
    return FragmentedGraph(found, fragment, np.zeros(n_nodes, dtype=bool), np.zeros(n_nodes, dtype=np.int64))


def groups(n_groups=6, size=20, seed=0):
    """Two fragments, each with all groups; nodes of one group are linked often, others hardly ever."""
    rng = np.random.default_rng(seed)
    n = n_groups * size
    group, half = np.arange(n) % n_groups, np.arange(n) // (n // 2)
    chance = np.where(group[:, None] == group, 0.4, 0.01) * (half[:, None] == half)
    edges = np.argwhere(np.triu(rng.random((n, n)) < chance, 1)).tolist()
    features = np.eye(n_groups)[group] + 0.2 * rng.standard_normal((n, n_groups))
    patches = [np.flatnonzero(half == h).tolist() for h in (0, 1)]
    return fragmented(n, patches, edges, features, group % 3), group


def area(scores, true):
    return Ranking.of(np.asarray(scores), np.asarray(true), int(np.sum(true)), len(true)).auroc()


def test_known_edges_and_co_occurrence():
    graph = fragmented(7, [[0, 1, 2, 3], [4, 5]], [(0, 1), (2, 1), (4, 5)])
    assert graph.edges.tolist() == [[0, 1], [1, 2], [4, 5]]
    assert graph.co_occurrence.nnz == 12 + 2
    assert graph.adjacency.sum() == 6
    assert (graph.adjacency != symmetric(graph.edges, 7)).nnz == 0


@pytest.mark.parametrize("where", ["inside", "anywhere"])
def test_unlinked_pairs_are_uniform(where):
    graph = fragmented(9, [[0, 1, 2, 3], [4, 5, 6]], [(0, 1), (4, 5)])
    possible = {(0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (4, 6), (5, 6)}
    if where == "anywhere":
        possible |= {(u, w) for u in range(4) for w in range(4, 7)}
    counts = dict.fromkeys(possible, 0)
    rng = np.random.default_rng(0)
    for _ in range(4000):
        for pair in unlinked_pairs(graph, 2, rng, where).tolist():
            counts[tuple(pair)] += 1
    assert min(counts.values()) > 0.85 * 8000 / len(possible)
    assert max(counts.values()) < 1.15 * 8000 / len(possible)
    assert {tuple(p) for p in unlinked_pairs(graph, 99, rng, where).tolist()} == possible


def test_companions_come_from_the_same_pool():
    label = np.array([0, 1, 0, -1, 1, 0])
    pools, nodes = Pools(label), np.repeat([0, 1, 2, 4, 5], 50)
    others = pools.companions(nodes, np.random.default_rng(0))
    assert (label[others] == label[nodes]).all()
    assert (others != nodes).all()
    assert set(others[nodes == 0]) == {2, 5}


def test_strangers_are_all_of_the_fragment_but_neighbours():
    edges = [(0, 2), (0, 5), (2, 5), (2, 7), (1, 4), (1, 6), (4, 6)]
    graph = fragmented(9, [[0, 2, 5, 7, 8], [1, 4, 6]], edges)
    assert Strangers(graph, "anywhere").counts.tolist() == [5, 5, 4, 0, 5, 5, 5, 6, 7]
    strangers = Strangers(graph, "inside")
    assert strangers.counts.tolist() == [2, 0, 1, 0, 0, 2, 0, 3, 4]  # 3 is in no fragment, {1, 4, 6} is complete
    nodes = np.repeat(np.flatnonzero(strangers.counts), 3000)
    drawn = strangers.draw(nodes, np.random.default_rng(0))
    expected = {0: [7, 8], 2: [8], 5: [7, 8], 7: [0, 5, 8], 8: [0, 2, 5, 7]}
    for node, others in expected.items():
        found, counts = np.unique(drawn[nodes == node], return_counts=True)
        assert found.tolist() == others
        assert counts.min() > 0.9 * 3000 / len(others)


def test_scores_that_are_no_numbers_are_refused():
    features = np.eye(6)
    features[2, 2] = np.nan
    graph = fragmented(6, [[0, 1, 2], [3, 4, 5]], [(0, 1), (3, 4)], features=features)
    with pytest.raises(LograbError, match="features: 1 of 2 scores are not finite"):
        LINKS["features"].score(graph, np.array([[0, 3], [2, 4]]), np.random.default_rng(0))


def test_cosines_sparse_and_dense_agree():
    points = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    pairs = np.array([[0, 1], [0, 2], [1, 1]])
    for form in (points, sp.csr_array(points)):
        assert cosines(form, pairs) == pytest.approx([1 / np.sqrt(2), 0, 1])
    points[0, 0] = np.nan
    for form in (points, sp.csr_array(points)):
        assert np.isnan(cosines(form, pairs)).tolist() == [True, True, False]


def test_trivial_methods_by_hand():
    graph = fragmented(6, [[0, 1, 2], [3, 4, 5]], [(0, 1), (1, 2), (3, 4)], features=np.eye(6)[[0, 1, 2, 0, 1, 5]])
    settled = np.array([False, True, False, False, False, False])
    graph = replace(graph, settled=settled)
    pairs, rng = np.array([[0, 3], [1, 3], [1, 4], [2, 5]]), np.random.default_rng(0)
    assert LINKS["features"].score(graph, pairs, rng).tolist() == [1, 0, 1, 0]
    assert LINKS["degree"].score(graph, pairs, rng).tolist() == [1, 2, 2, 0]
    assert LINKS["centres"].score(graph, pairs, rng).tolist() == [1, 0, 0, 1]
    haloed = fragmented(6, [[0, 1, 2, 3], [2, 3, 4, 5]], [], fragment=np.array([0, 0, 0, 1, 1, 1]))
    pairs = np.array([[0, 3], [1, 3], [0, 4], [2, 3]])
    assert LINKS["co-occurrence"].score(haloed, pairs, rng).tolist() == [1, 1, 0, 2]


torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

CPU = torch.device("cpu")


def test_neo_gnn_by_its_formulas():
    from torch_geometric.nn import GCNConv

    from lograb.learning.links.neo_gnn import NeoGnn, neighbourhoods
    from lograb.learning.links.settings import NeoGnnSettings

    graph, _ = groups(3, 8)
    dense = graph.adjacency.toarray().astype(float)
    near = neighbourhoods(graph.adjacency, 3, 0.1).toarray()
    assert near == pytest.approx(dense + 0.1 * dense @ dense + 0.01 * dense @ dense @ dense)
    settings = NeoGnnSettings(hidden=5, layers=3, power=3)
    network = NeoGnn(graph.adjacency, graph.patches.features, settings, CPU)
    pairs = np.array([[0, 6], [3, 9], [0, 23], [1, 2]])
    with torch.no_grad():
        through_edges = network.f_edge(torch.tensor(near).float()[:, :, None]).squeeze(2) * torch.tensor(near != 0)
        worth = network.f_node(through_edges.sum(dim=0)[:, None]).squeeze(1).numpy()
        assert network.structural_features().numpy() == pytest.approx(worth, abs=1e-4)
        expected = [(near[u] * near[w] * worth**2).sum() for u, w in pairs]
        assert network.overlaps(pairs).numpy() == pytest.approx(expected, rel=1e-4)
        assert expected[2] == 0  # different fragments share no neighbour
        both = torch.from_numpy(np.concatenate([graph.edges, graph.edges[:, ::-1]]).T.copy())
        x = torch.from_numpy(graph.patches.features).float()
        for number, (matrix, shift) in enumerate(zip(network.matrices, network.shifts)):
            layer = GCNConv(*matrix.shape)
            layer.lin.weight.copy_(matrix.T)
            layer.bias.copy_(shift)
            x = layer(x, both)
            x = x if number == 2 else x.relu()
        assert torch.allclose(network.embed(), x, atol=1e-5)
        for one, two in zip(network(pairs), network(pairs[:, ::-1].copy())):
            assert torch.allclose(one, two)


def test_neo_gnn_can_look_at_another_graph():
    from lograb.learning.links.neo_gnn import NeoGnn
    from lograb.learning.links.settings import NeoGnnSettings

    graph, _ = groups(3, 8)
    fewer = symmetric(graph.edges[::2], graph.n_nodes)
    made = []
    for adjacency in (graph.adjacency, fewer):
        torch.manual_seed(0)
        made.append(NeoGnn(adjacency, graph.patches.features, NeoGnnSettings(hidden=5), CPU))
    pairs = np.array([[0, 6], [3, 9], [1, 2]])
    whole, part = (network(pairs) for network in made)
    assert not torch.equal(whole[0], part[0])
    made[1].look_at(graph.adjacency)
    assert all(torch.equal(one, two) for one, two in zip(whole, made[1](pairs)))


@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
def test_neo_gnn_can_hide_the_edges_it_learns_from(share, monkeypatch):
    """With a share below 1 no pair that is learned from is an edge of the graph that is looked at meanwhile."""
    from lograb.learning.links.neo_gnn import NeoGnn

    graph, _ = groups(3, 8)
    looked, asked = [], []
    look_at, forward = NeoGnn.look_at, NeoGnn.forward
    monkeypatch.setattr(NeoGnn, "look_at", lambda self, a: looked.append(a) or look_at(self, a))
    monkeypatch.setattr(NeoGnn, "forward", lambda self, p: asked.append((len(looked), p)) or forward(self, p))
    between = np.array([[0, 23], [1, 22]])
    LINKS["neo-gnn"].score(graph, between, np.random.default_rng(0), {"epochs": 1, "message_share": share})
    seen, whole = looked
    assert (whole != graph.adjacency).nnz == 0
    assert seen.nnz == 2 * int(share * len(graph.edges))
    learned = np.concatenate([pairs for number, pairs in asked if number == 1])
    edges = graph.adjacency[learned[:, 0], learned[:, 1]] > 0
    hidden = len(graph.edges) - seen.nnz // 2
    assert edges.sum() == (hidden if share < 1 else len(graph.edges))
    if share < 1:
        assert not seen[learned[:, 0], learned[:, 1]].any()
    assert [number for number, pairs in asked if pairs is not learned][-1] == 2


@pytest.mark.parametrize("name", ["neo-gnn", "seal", "lightgcn", "cosine"])
def test_training_that_goes_astray_is_told(name):
    graph = split_patches(groups()[0])
    graph.patches.features[0] = np.nan
    settings = {"neo-gnn": {"epochs": 2}, "cosine": {"epochs": 2}, "seal": {"epochs": 2, "features": True},
                "lightgcn": {"epochs": 9, "learning_rate": 1e30}}[name]  # fmt: skip
    with pytest.raises(LograbError, match=f"{name}: .* scores are not finite"):
        LINKS[name].score(graph, np.array([[0, 23], [1, 22]]), np.random.default_rng(0), settings)


@pytest.mark.parametrize("name", ["seal", "neo-gnn", "lightgcn"])
@pytest.mark.parametrize("edges", [[], [(0, 1), (0, 2), (1, 2), (3, 4)]])
def test_nothing_to_learn_from(name, edges):
    graph = fragmented(5, [[0, 1, 2], [3, 4]], edges)
    others = 4 - len(edges)
    with pytest.raises(LograbError, match=f"nothing to learn from: .* {len(edges)} edges, and {others} other"):
        LINKS[name].score(graph, np.array([[0, 3]]), np.random.default_rng(0), {"train_negatives": "inside"})


def test_lightgcn_learns_where_some_fragments_are_complete():
    graph = fragmented(8, [[0, 1, 2], [3, 4, 5, 6, 7]], [(0, 1), (0, 2), (1, 2), (3, 4), (4, 5), (5, 6)])
    settings = {"epochs": 3, "train_negatives": "inside"}
    scores = LINKS["lightgcn"].score(graph, np.array([[0, 3], [1, 7]]), np.random.default_rng(0), settings)
    assert np.isfinite(scores).all()


def test_a_dgcnn_batch_propagates_like_pyg():
    from torch_geometric.nn.conv.gcn_conv import gcn_norm
    from torch_geometric.utils import to_dense_adj

    from lograb.learning.links.drnl import enclosing_subgraph
    from lograb.learning.links.seal import Batch

    graph, _ = groups(3, 8)
    rng = np.random.default_rng(0)
    items = [enclosing_subgraph(graph.adjacency, u, w, 1, None, rng) for u, w in ((0, 3), (1, 2))]
    batch = Batch(items, 6, graph.patches.features, CPU)
    edges, shift = [], 0
    for item in items:
        edges += [(i + shift, j + shift) for i, (a, b) in enumerate(pairwise(item.ptr)) for j in item.columns[a:b]]
        shift += len(item.nodes)
    index, weight = gcn_norm(torch.tensor(edges).T, num_nodes=shift)
    dense = to_dense_adj(index, edge_attr=weight, max_num_nodes=shift)[0]
    assert torch.allclose(batch.propagate(torch.eye(shift)), dense, atol=1e-6)
    assert batch.inputs.shape == (shift, 7 + 3)
    assert batch.owner.tolist() == [0] * len(items[0].nodes) + [1] * len(items[1].nodes)


def test_a_dgcnn_does_not_depend_on_the_order_of_a_pair():
    from lograb.learning.links.drnl import enclosing_subgraph
    from lograb.learning.links.seal import Batch, Dgcnn
    from lograb.learning.links.settings import SealSettings

    graph, _ = groups(3, 8)
    torch.manual_seed(0)
    network = Dgcnn(7, 12, SealSettings()).eval()
    rng = np.random.default_rng(0)
    for u, w in graph.edges[:10].tolist():
        one, two = (Batch([enclosing_subgraph(graph.adjacency, *pair, 1, None, rng)], 6, None, CPU)
                    for pair in ((u, w), (w, u)))  # fmt: skip
        assert torch.allclose(network(one), network(two), atol=1e-5)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("seal", {"epochs": 8, "learning_rate": 0.01}),
        ("neo-gnn", {"epochs": 30, "hidden": 32, "learning_rate": 0.01}),
        ("lightgcn", {"epochs": 100}),
        ("cosine", {"epochs": 20}),
    ],
)
def test_methods_rank_pairs_inside_the_fragments_they_learned_from(name, settings):
    """SEAL reads who shares a patch, so its patches are the neighbourhoods here."""
    graph, _ = groups()
    if name == "seal":
        rows = [sorted({u, *graph.adjacency[[u]].indices.tolist()}) for u in range(0, graph.n_nodes, 2)]
        graph = fragmented(graph.n_nodes, rows, graph.edges.tolist(), fragment=graph.fragment)
    rng = np.random.default_rng(0)
    others = unlinked_pairs(graph, len(graph.edges), rng, "inside")
    pairs = np.concatenate([graph.edges, others])
    true = np.arange(len(pairs)) < len(graph.edges)
    if name == "cosine":
        graph = split_patches(graph)
    scores = LINKS[name].score(graph, pairs, rng, settings)
    assert area(scores, true) > 0.75


def split_patches(graph):
    """Cut the two large patches into smaller ones, so that a split of patches has something to divide."""
    lists = [list(range(start, start + 12)) for start in range(0, graph.n_nodes, 6) if start + 12 <= graph.n_nodes]
    lists = [p for p in lists if (graph.fragment[p] == graph.fragment[p[0]]).all()]
    return fragmented(graph.n_nodes, lists, graph.edges.tolist(), graph.patches.features, graph.patches.labels,
                      graph.fragment)  # fmt: skip
