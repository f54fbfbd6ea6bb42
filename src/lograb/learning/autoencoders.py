"""Graph autoencoders (Kipf and Welling): embed the nodes of a graph so that inner products predict its edges.

The encoder has two graph convolutions, Z = P ReLU(P X W0) W1 with P = D^(-1/2) (A + I) D^(-1/2); the
decoder is σ(z_uᵀ z_w). The variational one has two heads, mean and log standard deviation, and the
divergence from a standard normal in its loss.

Part of the attack side: what comes in is the attacker's own graph and what the attacker knows of its
nodes. Everything large stays sparse, and at most `MAX_PAIRS` edges and as many non-edges enter the loss of
one epoch, so memory grows with nodes and edges, never with pairs of nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lograb.learning.randomness import pick_device
from lograb.learning.sparse import propagation_matrix, sparse_product, to_torch
from lograb.parallel import threads_for
from lograb.types import Floats, Matrix

MAX_PAIRS = 1 << 18
MAX_LISTED = 1 << 20
# exp(log standard deviation) must not overflow; the same limit as in PyTorch Geometric.
MAX_LOG_STD = 10.0


@dataclass(frozen=True, eq=False)
class Embedding:
    """What training left behind."""

    points: Floats  # Z, shape (n_nodes, out); for the variational autoencoder its mean
    losses: list[float]  # one per epoch
    device: str


def train_autoencoder(
    adjacency: sp.csr_array,
    inputs: Matrix | None,
    rng: np.random.Generator,
    *,
    variational: bool,
    hidden: int,
    out: int,
    epochs: int,
    learning_rate: float,
) -> Embedding:
    """Train one autoencoder on one graph (symmetric, no diagonal) with Adam, on the GPU where there is one.

    `inputs` are X, (n, f); None for the identity, which gives every node 'hidden' free numbers of its own.
    Weights, negative pairs and (variational) noise follow from `rng`.
    """
    n = adjacency.shape[0]
    device = pick_device()
    draw = torch.Generator().manual_seed(int(rng.integers(2**63)))
    width = n if inputs is None else inputs.shape[1]
    shapes = [(width, hidden), (hidden, out)] + [(hidden, out)] * variational
    model = _Encoder(adjacency, inputs, [_glorot(shape, draw) for shape in shapes], device)
    optimizer = torch.optim.Adam(model.weights, lr=learning_rate)
    pairs = _Pairs(adjacency, draw, device)
    losses = []
    with threads_for(n):
        for _ in range(epochs):
            optimizer.zero_grad()
            mean, log_std = model.encode()
            points, extra = mean, torch.zeros((), device=device)
            if log_std is not None:
                noise = torch.randn(mean.shape, generator=draw).to(device)
                points, extra = mean + noise * log_std.exp(), divergence(mean, log_std) / n
            loss = reconstruction_loss(points, *pairs.draw()) + extra
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses.append(float(loss.detach()))
        with torch.no_grad():
            points = model.encode()[0]
    return Embedding(points.cpu().numpy().astype(np.float64), losses, device.type)


def reconstruction_loss(points: Tensor, edges: Tensor, others: Tensor) -> Tensor:
    """Cross-entropy of the inner-product decoder; edges (2, m) and other pairs (2, m) weigh the same."""
    log_sigmoid = torch.nn.functional.logsigmoid
    loss = torch.zeros((), device=points.device)
    for pairs, sign in ((edges, 1.0), (others, -1.0)):
        if pairs.shape[1]:  # a complete graph has no other pairs
            loss = loss - log_sigmoid(sign * (points[pairs[0]] * points[pairs[1]]).sum(dim=1)).mean()
    return loss


def divergence(mean: Tensor, log_std: Tensor) -> Tensor:
    """Kullback-Leibler divergence of N(mean, std²) from N(0, 1), summed over columns, mean over nodes."""
    return -0.5 * (1 + 2 * log_std - mean**2 - (2 * log_std).exp()).sum(dim=1).mean()


class _Encoder:
    """Two graph convolutions without bias, and a second head where there is a third matrix of weights."""

    def __init__(
        self, adjacency: sp.csr_array, inputs: Matrix | None, weights: list[Tensor], device: torch.device
    ) -> None:
        self.propagation = to_torch(propagation_matrix(adjacency), device)
        self.weights = [matrix.to(device).requires_grad_() for matrix in weights]
        self.inputs: tuple[Tensor, Tensor] | Tensor | None = None
        if inputs is not None and sp.issparse(inputs):
            self.inputs = to_torch(inputs, device), to_torch(inputs.T, device)
        elif inputs is not None:
            self.inputs = torch.from_numpy(np.ascontiguousarray(inputs, dtype=np.float32)).to(device)

    def encode(self) -> tuple[Tensor, Tensor | None]:
        """Compute Z, or the means and log standard deviations of Z."""
        first = self.weights[0]
        if isinstance(self.inputs, tuple):
            first = sparse_product(*self.inputs, first)
        elif self.inputs is not None:
            first = self.inputs @ first
        hidden = torch.relu(self._propagate(first))
        mean = self._propagate(hidden @ self.weights[1])
        if len(self.weights) == 2:
            return mean, None
        return mean, self._propagate(hidden @ self.weights[2]).clamp(max=MAX_LOG_STD)

    def _propagate(self, dense: Tensor) -> Tensor:
        return sparse_product(self.propagation, self.propagation, dense)  # symmetric


class _Pairs:
    """Draws edges and, as many, pairs that are no edges."""

    def __init__(self, adjacency: sp.csr_array, draw: torch.Generator, device: torch.device) -> None:
        upper = sp.triu(adjacency, k=1, format="coo")
        self.n, self.rng, self.device = int(adjacency.shape[0]), draw, device
        edges = np.sort(upper.row.astype(np.int64) * self.n + upper.col)
        self.edges = torch.from_numpy(edges)
        self.others: Tensor | None = None
        if self.n * self.n <= MAX_LISTED:  # small graphs may be dense: drawing anew would take long
            rows, columns = np.triu_indices(self.n, k=1)
            self.others = torch.from_numpy(np.setdiff1d(rows * self.n + columns, edges))

    def draw(self) -> tuple[Tensor, Tensor]:
        """Give the edges of one epoch (all, or `MAX_PAIRS` drawn) and as many other pairs, (2, m) each."""
        chosen = self.edges
        if len(chosen) > MAX_PAIRS:
            chosen = chosen[torch.randint(len(chosen), (MAX_PAIRS,), generator=self.rng)]
        return self._ends(chosen), self._ends(self._draw_others(len(chosen)))

    def _draw_others(self, count: int) -> Tensor:
        """Draw pairs u < w that are no edges, with repetition; none where the graph is complete."""
        if self.others is not None:
            count *= bool(len(self.others))
            return self.others[torch.randint(max(len(self.others), 1), (count,), generator=self.rng)]
        found = torch.empty(0, dtype=torch.int64)
        while len(found) < count:
            ends = torch.randint(self.n, (2, count), generator=self.rng)
            keys = torch.minimum(*ends) * self.n + torch.maximum(*ends)
            place = torch.searchsorted(self.edges, keys).clamp(max=len(self.edges) - 1)
            found = torch.cat([found, keys[(ends[0] != ends[1]) & (self.edges[place] != keys)]])
        return found[:count]

    def _ends(self, keys: Tensor) -> Tensor:
        return torch.stack([keys // self.n, keys % self.n]).to(self.device)


def _glorot(shape: tuple[int, int], draw: torch.Generator) -> Tensor:
    """Draw uniform weights with variance 2 / (rows + columns)."""
    limit = float(np.sqrt(6.0 / max(sum(shape), 1)))
    return (2 * torch.rand(shape, generator=draw) - 1) * limit

