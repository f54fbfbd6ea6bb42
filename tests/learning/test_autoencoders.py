"""The autoencoders behind the neural attacks: against PyTorch Geometric, and what must hold for any of them."""

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch_geometric.nn import GAE, VGAE, GCNConv  # noqa: E402

import lograb  # noqa: E402
from lograb.learning import autoencoders  # noqa: E402
from lograb.learning.autoencoders import (  # noqa: E402
    _Encoder,
    _Pairs,
    divergence,
    reconstruction_loss,
    train_autoencoder,
    train_autoencoders,
)
from lograb.learning.sparse import propagation_matrix  # noqa: E402

CPU = torch.device("cpu")
SIZES = {"hidden": 16, "out": 8, "epochs": 60, "learning_rate": 0.02}


def karate():
    return lograb.load_graph("karate").adjacency


def edge_index(adjacency):
    return torch.from_numpy(np.stack(adjacency.nonzero()).astype(np.int64))


def matrices(*shapes):
    draw = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=draw) for shape in shapes]


@pytest.mark.parametrize("kind", ["identity", "dense", "sparse"])
def test_the_encoder_is_two_of_pygs_graph_convolutions(kind):
    adjacency = karate()
    rng = np.random.default_rng(0)
    dense = np.eye(34) if kind == "identity" else rng.random((34, 5)) * (rng.random((34, 5)) < 0.5)
    inputs = {"identity": None, "dense": dense, "sparse": sp.csr_array(dense)}[kind]
    ours = _Encoder(adjacency, inputs, matrices((dense.shape[1], 7), (7, 3), (7, 3)), CPU)
    first, mean, spread = (GCNConv(*weight.shape, bias=False) for weight in ours.weights)
    for layer, weight in zip((first, mean, spread), ours.weights):
        layer.lin.weight = torch.nn.Parameter(weight.detach().T.clone())
    hidden = first(torch.from_numpy(dense).float(), edge_index(adjacency)).relu()
    for got, layer in zip(ours.encode(), (mean, spread)):
        assert torch.allclose(got, layer(hidden, edge_index(adjacency)), atol=1e-6)


def test_gradients_of_the_sparse_encoder_are_those_of_a_dense_one():
    adjacency, rng = karate(), np.random.default_rng(1)
    features = sp.csr_array(rng.random((34, 6)) * (rng.random((34, 6)) < 0.4))
    ours = _Encoder(adjacency, features, matrices((6, 5), (5, 2)), CPU)
    (ours.encode()[0] ** 2).sum().backward()
    weights = [w.detach().clone().requires_grad_() for w in ours.weights]
    p = torch.from_numpy(propagation_matrix(adjacency).toarray())
    x = torch.from_numpy(features.toarray()).float()
    ((p @ (p @ x @ weights[0]).relu() @ weights[1]) ** 2).sum().backward()
    for ours_weight, weight in zip(ours.weights, weights):
        assert torch.allclose(ours_weight.grad, weight.grad, atol=1e-4)


def test_losses_are_pygs():
    draw = torch.Generator().manual_seed(3)
    z, log_std = torch.randn((34, 4), generator=draw), torch.randn((34, 4), generator=draw)
    edges, others = edge_index(karate()), torch.randint(34, (2, 50), generator=draw)
    expected = float(GAE(torch.nn.Identity()).recon_loss(z, edges, others))
    assert float(reconstruction_loss(z, edges, others)) == pytest.approx(expected, rel=1e-5)
    expected = float(VGAE(torch.nn.Identity()).kl_loss(z, log_std))
    assert float(divergence(z, log_std)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("listed", [True, False])
def test_negative_pairs_are_no_edges(listed, monkeypatch):
    if not listed:
        monkeypatch.setattr(autoencoders, "MAX_LISTED", 0)
    adjacency = karate()
    pairs = _Pairs(adjacency, torch.Generator().manual_seed(0), CPU)
    for _ in range(20):
        edges, others = (part.numpy() for part in pairs.draw())
        assert edges.shape == others.shape == (2, 78)
        assert adjacency[edges[0], edges[1]].all()
        assert not adjacency[others[0], others[1]].any()
        assert (others[0] < others[1]).all()


def test_at_most_so_many_pairs_enter_one_epoch(monkeypatch):
    monkeypatch.setattr(autoencoders, "MAX_PAIRS", 10)
    pairs = _Pairs(karate(), torch.Generator().manual_seed(0), CPU)
    edges, others = pairs.draw()
    assert edges.shape == others.shape == (2, 10)
    assert not torch.equal(edges, pairs.draw()[0])


@pytest.mark.parametrize("variational", [False, True])
def test_training_learns_two_cliques(variational):
    block = np.ones((8, 8)) - np.eye(8)
    adjacency = sp.csr_array(sp.block_diag([block, block]).astype(bool))
    trained = train_autoencoder(adjacency, None, np.random.default_rng(0), variational=variational, **SIZES)
    scores = trained.points @ trained.points.T
    inside = np.kron(np.eye(2), np.ones((8, 8))).astype(bool)
    assert trained.losses[-1] < trained.losses[0]
    assert scores[inside].min() > scores[~inside].max()


def test_a_complete_graph_has_no_negative_pairs():
    complete = sp.csr_array((np.ones((5, 5)) - np.eye(5)).astype(bool))
    trained = train_autoencoder(complete, None, np.random.default_rng(0), variational=False, **SIZES)
    assert np.isfinite(trained.points).all()


def test_one_seed_one_result_and_no_trace_in_torchs_stream():
    state = torch.random.get_rng_state()
    one, two, other = (
        train_autoencoder(karate(), None, np.random.default_rng(seed), variational=True, **SIZES)
        for seed in (0, 0, 1)
    )
    assert np.array_equal(one.points, two.points)
    assert not np.array_equal(one.points, other.points)
    assert torch.equal(state, torch.random.get_rng_state())


def small_graphs(kind):
    """Graphs of 2 to 40 nodes, some complete, with inputs of the kind."""
    rng, graphs = np.random.default_rng(4), []
    for n in (2, 3, 7, 8, 9, 20, 21, 22, 33, 34, 40, 300):
        full = np.triu(rng.random((n, n)) < (1.0 if n in (2, 7) else 0.2), 1)
        full[0, 1] = True
        dense = rng.standard_normal((n, 5))
        inputs = {"identity": None, "dense": dense, "sparse": sp.csr_array(dense * (dense > 0))}[kind]
        graphs.append((sp.csr_array(full | full.T), inputs))
    return graphs


@pytest.mark.parametrize("kind", ["identity", "dense", "sparse"])
@pytest.mark.parametrize("variational", [False, True])
def test_graphs_trained_side_by_side_are_as_if_each_were_alone(kind, variational):
    graphs, settings = small_graphs(kind), SIZES | {"variational": variational, "epochs": 25}
    rngs = [np.random.default_rng(i) for i in range(len(graphs))]
    together = train_autoencoders(graphs, rngs, **settings)
    for i, ((adjacency, inputs), found) in enumerate(zip(graphs, together)):
        rng = np.random.default_rng(i)
        alone = train_autoencoder(adjacency, inputs, rng, **settings)
        assert found.points.shape == alone.points.shape
        assert np.allclose(found.points, alone.points, atol=1e-3 * np.abs(alone.points).max())
        assert np.allclose(found.losses, alone.losses, rtol=1e-4)
        assert rngs[i].random() == rng.random()  # drew as much


def test_which_graphs_are_trained_beside_one_makes_no_difference(monkeypatch):
    graphs, settings = small_graphs("dense"), SIZES | {"variational": True}

    def run(which):
        rngs = [np.random.default_rng(i) for i in which]
        return dict(zip(which, train_autoencoders([graphs[i] for i in which], rngs, **settings)))

    every, some = run(range(12)), run([10, 6, 1, 7])
    assert all(np.array_equal(found.points, every[i].points) for i, found in some.items())
    monkeypatch.setattr(autoencoders, "GRAPHS_AT_ONCE", 2)
    assert all(np.array_equal(found.points, every[i].points) for i, found in run(range(12)).items())
