"""Neo-GNN (Yun et al.): learned overlap of neighbourhoods beside a graph network on features.

*Structure*: x_k = f_node(Σ_i f_edge(a_ik)) rates how much a shared neighbour k is worth, with
A' = A + β A² (+ ...) as neighbourhoods; the overlap of u and w is Σ_k a_uk a_wk x_k², made a probability by
g. *Features*: a graph convolutional network and a perceptron on the product of both ends. The answer is a
learned mixture of both probabilities; all three are trained at once. Between fragments no neighbour is
shared, so the structural part is the same for all questions and the features alone decide.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn import functional

from lograb.learning.links.fragmented import FragmentedGraph, draw_edges, symmetric, training_pairs
from lograb.learning.links.settings import NeoGnnSettings
from lograb.learning.randomness import pick_device, seeded
from lograb.learning.sparse import propagation_matrix, sparse_product, to_torch
from lograb.parallel import threads_for
from lograb.progress import Progress
from lograb.types import Bools, Floats, Ints, Matrix


def neo_gnn(
    graph: FragmentedGraph, pairs: Ints, rng: np.random.Generator, settings: NeoGnnSettings, progress: Progress
) -> Floats:
    """Train on the edges inside fragments and score the given pairs."""
    adjacency, learned = graph.adjacency, None
    if settings.message_share < 1:
        shown = draw_edges(graph, int(settings.message_share * len(graph.edges)), rng)
        adjacency, learned = symmetric(graph.edges[shown], graph.n_nodes), ~shown
    known, true = training_pairs(graph, rng, settings.train_negatives, learned)
    device = pick_device()
    with threads_for(graph.n_nodes), seeded(rng):
        features = graph.patches.features if settings.features else None
        network = NeoGnn(adjacency, features, settings, device).to(device)
        optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
        for epoch in range(settings.epochs):
            progress("Neo-GNN: training", epoch, settings.epochs)
            network.train()
            order = rng.permutation(len(known))
            for start in range(0, len(order), settings.batch_size):
                which = order[start : start + settings.batch_size]
                optimizer.zero_grad()
                answers = network(known[which])
                if not answers[0].isfinite().all():
                    return np.full(len(pairs), np.nan)  # which the caller reports
                loss = _loss(answers, true[which], device)
                loss.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                optimizer.step()
        network.eval()
        network.look_at(graph.adjacency)
        with torch.no_grad():
            parts = [pairs[i : i + settings.batch_size] for i in range(0, len(pairs), settings.batch_size)]
            scores = [network(part)[0].cpu().numpy() for part in parts]
    return np.concatenate(scores).astype(np.float64)


def _loss(answers: tuple[Tensor, Tensor, Tensor], true: Bools, device: torch.device) -> Tensor:
    """Add the cross-entropies of the mixture and of both of its parts."""
    wanted = torch.from_numpy(true).float().to(device)
    losses = [functional.binary_cross_entropy(p.clamp(1e-7, 1 - 1e-7), wanted) for p in answers]
    return losses[0] + losses[1] + losses[2]


def neighbourhoods(adjacency: sp.csr_array, power: int, beta: float) -> sp.csr_array:
    """Compute A + β A² + ... + β^(power - 1) A^power."""
    total = step = sp.csr_array(adjacency.astype(np.float64))
    for number in range(1, power):
        step = sp.csr_array(step @ adjacency)
        total = total + beta**number * step
    return sp.csr_array(total)


def _scalar_perceptron(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(1, width), nn.ReLU(), nn.Linear(width, 1))


class NeoGnn(nn.Module):
    """Both parts and their mixture, for one graph at a time."""

    def __init__(
        self, adjacency: sp.csr_array, features: Matrix | None, settings: NeoGnnSettings, device: torch.device
    ) -> None:
        super().__init__()
        self.device, self.dropout = device, settings.dropout
        self.power, self.beta = settings.power, settings.beta
        self.look_at(adjacency)
        self.f_edge = _scalar_perceptron(settings.edge_width)
        self.f_node = _scalar_perceptron(settings.node_width)
        self.g = _scalar_perceptron(settings.overlap_width)
        self.features: tuple[Tensor, Tensor] | None = None
        self.vectors: nn.Parameter | None = None
        if features is None:
            self.vectors = nn.Parameter(nn.init.xavier_uniform_(torch.empty(adjacency.shape[0], settings.hidden)))
        else:
            self.features = to_torch(features, device), to_torch(features.T, device)
        width = settings.hidden if features is None else features.shape[1]
        widths = [width] + [settings.hidden] * settings.layers
        shapes = list(pairwise(widths))
        self.matrices = nn.ParameterList(nn.init.xavier_uniform_(torch.empty(shape)) for shape in shapes)
        self.shifts = nn.ParameterList(torch.zeros(shape[1]) for shape in shapes)
        self.pairing = nn.ModuleList(
            [nn.Linear(settings.hidden, settings.hidden) for _ in range(settings.layers - 1)]
            + [nn.Linear(settings.hidden, 1)]
        )
        self.mixture = nn.Parameter(torch.zeros(2))

    def look_at(self, adjacency: sp.csr_array) -> None:
        """Take another graph of the same nodes; what was learned stays."""
        self.near = neighbourhoods(adjacency, self.power, self.beta)
        self.weights = torch.from_numpy(self.near.data).float()[:, None].to(self.device)
        self.targets = torch.from_numpy(self.near.indices.astype(np.int64)).to(self.device)
        self.propagation = to_torch(propagation_matrix(adjacency), self.device)

    def forward(self, pairs: Ints) -> tuple[Tensor, Tensor, Tensor]:
        """Give the probabilities of pairs: mixture, structure, features, shape (m,) each."""
        structure = torch.sigmoid(self.g(self.overlaps(pairs)[:, None])).squeeze(1)
        ends = torch.from_numpy(pairs).to(self.device)
        points = self.embed()
        x = points[ends[:, 0]] * points[ends[:, 1]]
        for layer in self.pairing[:-1]:
            x = functional.dropout(functional.relu(layer(x)), self.dropout, self.training)
        features = torch.sigmoid(self.pairing[-1](x)).squeeze(1)
        share = torch.softmax(self.mixture, dim=0)
        return share[0] * structure + share[1] * features, structure, features

    def overlaps(self, pairs: Ints) -> Tensor:
        """Weigh the neighbours that both ends share: Σ_k a_uk a_wk x_k², shape (m,)."""
        shared = sp.csr_array(self.near[pairs[:, 0]].multiply(self.near[pairs[:, 1]]))
        worth = self.structural_features()[:, None] ** 2
        both = to_torch(shared, self.device), to_torch(shared.T, self.device)
        return sparse_product(*both, worth).squeeze(1)

    def structural_features(self) -> Tensor:
        """Rate every node by its edges alone: x_k = f_node(Σ_i f_edge(a_ik)), shape (n_nodes,)."""
        total = torch.zeros((self.near.shape[0], 1), device=self.device)
        total = total.index_add(0, self.targets, self.f_edge(self.weights))
        rated: Tensor = self.f_node(total).squeeze(1)
        return rated

    def embed(self) -> Tensor:
        """Run the graph convolutional network, shape (n_nodes, hidden)."""
        x: Tensor | None = self.vectors
        for number, (matrix, shift) in enumerate(zip(self.matrices, self.shifts)):
            if number == 0 and self.features is not None:
                product = sparse_product(*self.features, matrix)
            else:
                assert x is not None
                product = x @ matrix
            x = sparse_product(self.propagation, self.propagation, product) + shift
            if number < len(self.matrices) - 1:
                x = functional.dropout(functional.relu(x), self.dropout, self.training)
        assert x is not None
        return x
