"""The methods of Task 3 from the inside: formulas by hand, and that they learn what there is to learn."""

from itertools import chain, pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from lograb.learning.links import FragmentedGraph, Insides, cosines, pairs_inside, symmetric
from lograb.learning.links_catalog import LINKS
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
    return FragmentedGraph(found, fragment, np.zeros(n_nodes, dtype=bool))


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


def test_pairs_inside_are_uniform():
    graph = fragmented(9, [[0, 1, 2, 3], [4, 5, 6]], [(0, 1), (4, 5)])
    possible = {(0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (4, 6), (5, 6)}
    counts = dict.fromkeys(possible, 0)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        for pair in pairs_inside(graph, 2, rng).tolist():
            counts[tuple(pair)] += 1
    assert min(counts.values()) > 0.85 * 4000 / 7
    assert max(counts.values()) < 1.15 * 4000 / 7
    assert {tuple(p) for p in pairs_inside(graph, 99, rng).tolist()} == possible


def test_companions_come_from_the_same_fragment():
    label = np.array([0, 1, 0, -1, 1, 0])
    insides, nodes = Insides(label), np.repeat([0, 1, 2, 4, 5], 50)
    others = insides.companions(nodes, np.random.default_rng(0))
    assert (label[others] == label[nodes]).all()
    assert (others != nodes).all()
    assert set(others[nodes == 0]) == {2, 5}


def test_cosines_sparse_and_dense_agree():
    points = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    pairs = np.array([[0, 1], [0, 2], [1, 1]])
    for form in (points, sp.csr_array(points)):
        assert cosines(form, pairs) == pytest.approx([1 / np.sqrt(2), 0, 1])


def test_trivial_methods_by_hand():
    graph = fragmented(6, [[0, 1, 2], [3, 4, 5]], [(0, 1), (1, 2), (3, 4)], features=np.eye(6)[[0, 1, 2, 0, 1, 5]])
    settled = np.array([False, True, False, False, False, False])
    graph = FragmentedGraph(graph.patches, graph.fragment, settled)
    pairs, rng = np.array([[0, 3], [1, 3], [1, 4], [2, 5]]), np.random.default_rng(0)
    assert LINKS["features"].score(graph, pairs, rng).tolist() == [1, 0, 1, 0]
    assert LINKS["degree"].score(graph, pairs, rng).tolist() == [1, 2, 2, 0]
    assert LINKS["membership"].score(graph, pairs, rng).tolist() == [0.5, 0, 0, 0.5]


torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

CPU = torch.device("cpu")


def test_neo_gnn_by_its_formulas():
    from torch_geometric.nn import GCNConv

    from lograb.learning.links_settings import NeoGnnSettings
    from lograb.learning.neo_gnn import NeoGnn, neighbourhoods

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


def test_a_dgcnn_batch_propagates_like_pyg():
    from torch_geometric.nn.conv.gcn_conv import gcn_norm
    from torch_geometric.utils import to_dense_adj

    from lograb.learning.drnl import enclosing_subgraph
    from lograb.learning.seal import Batch

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
    from lograb.learning.drnl import enclosing_subgraph
    from lograb.learning.links_settings import SealSettings
    from lograb.learning.seal import Batch, Dgcnn

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
    others = pairs_inside(graph, len(graph.edges), rng)
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
