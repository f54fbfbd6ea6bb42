"""Graph autoencoders (Kipf and Welling): embed the nodes of a graph so that inner products predict its edges.

The encoder has two graph convolutions, Z = P ReLU(P X W0) W1 with P = D^(-1/2) (A + I) D^(-1/2); the
decoder is σ(z_uᵀ z_w). The variational one has two heads, mean and log standard deviation, and the
divergence from a standard normal in its loss.

Part of the attack side: what comes in is the attacker's own graph and what the attacker knows of its
nodes. Everything large stays sparse, and at most `MAX_PAIRS` edges and as many non-edges enter the loss of
one epoch, so memory grows with nodes and edges, never with pairs of nodes.

An epoch on a small graph is mostly overhead, so many small graphs are trained side by side. Each has weights, a
loss and random draws of its own: their sum has the gradients of all, and Adam treats every number by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lograb.learning.randomness import pick_device
from lograb.learning.sparse import propagation_matrix, sparse_product, to_torch
from lograb.parallel import threads_for
from lograb.ragged import ranges
from lograb.types import Floats, Matrix

MAX_PAIRS = 1 << 18
MAX_LISTED = 1 << 20
# exp(log standard deviation) must not overflow; the same limit as in PyTorch Geometric.
MAX_LOG_STD = 10.0
# Graphs of more nodes are trained one by one; of the others so many (padded) rows at once, and so many graphs.
SMALL, ROWS_AT_ONCE, GRAPHS_AT_ONCE = 256, 2048, 32


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


def train_autoencoders(
    graphs: Sequence[tuple[sp.csr_array, Matrix | None]],
    rngs: Sequence[np.random.Generator],
    *,
    variational: bool,
    hidden: int,
    out: int,
    epochs: int,
    learning_rate: float,
) -> list[Embedding]:
    """Train one autoencoder on each graph, given with its inputs: what `train_autoencoder` gives, up to rounding.

    Small graphs go side by side with others that are padded to the same shape: which others makes no difference.
    """
    sizes = {"hidden": hidden, "out": out, "epochs": epochs}
    found: dict[int, Embedding] = {}
    for part in _alike(graphs):
        chosen = [(graphs[i], rngs[i]) for i in part]
        if graphs[part[0]][0].shape[0] > SMALL:
            ((adjacency, inputs), rng), *_ = chosen
            several = [train_autoencoder(adjacency, inputs, rng, variational=variational,
                                         learning_rate=learning_rate, **sizes)]  # fmt: skip
        else:
            several = _train_together(chosen, variational, learning_rate, **sizes)
        found |= dict(zip(part, several))
    return [found[i] for i in range(len(graphs))]


def _alike(graphs: Sequence[tuple[sp.csr_array, Matrix | None]]) -> Iterator[list[int]]:
    """Yield the numbers of graphs to train together; large ones alone."""
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for i, (adjacency, inputs) in enumerate(graphs):
        n = int(adjacency.shape[0])
        groups[(n, i) if n > SMALL else _padded(n, inputs)].append(i)
    for (n, _), group in groups.items():
        at_once = min(max(ROWS_AT_ONCE // n, 1), GRAPHS_AT_ONCE)
        yield from (group[start : start + at_once] for start in range(0, len(group), at_once))


def _padded(n: int, inputs: Matrix | None) -> tuple[int, int]:
    """Round rows and input columns up, by a quarter at most or to 8: a graph's shape depends on it alone."""
    rows, columns = (
        -(-number // step) * step
        for number in (n, n if inputs is None else int(inputs.shape[1]))
        for step in (max(8, 1 << max(number.bit_length() - 3, 0)),)
    )
    return rows, columns


def _train_together(
    chosen: list[tuple[tuple[sp.csr_array, Matrix | None], np.random.Generator]],
    variational: bool, learning_rate: float, hidden: int, out: int, epochs: int,
) -> list[Embedding]:  # fmt: skip
    """Train on small graphs of one padded shape: products with weights in stacks, propagation in one matrix."""
    device = pick_device()
    graphs = [graph for graph, _ in chosen]
    draws = [torch.Generator().manual_seed(int(rng.integers(2**63))) for _, rng in chosen]
    rows, columns = _padded(graphs[0][0].shape[0], graphs[0][1])
    sizes = np.array([adjacency.shape[0] for adjacency, _ in graphs])
    shapes = [(columns, hidden), (hidden, out)] + [(hidden, out)] * variational
    weights = [torch.zeros((len(graphs), *shape)) for shape in shapes]
    stacked = None if graphs[0][1] is None else torch.zeros((len(graphs), rows, columns))
    for i, ((_, inputs), draw) in enumerate(zip(graphs, draws)):
        width = int(sizes[i]) if inputs is None else int(inputs.shape[1])
        weights[0][i, :width] = _glorot((width, hidden), draw)
        for head in weights[1:]:
            head[i] = _glorot((hidden, out), draw)
        if stacked is not None and inputs is not None:
            dense = inputs.toarray() if sp.issparse(inputs) else inputs
            stacked[i, : sizes[i], :width] = torch.from_numpy(np.asarray(dense, dtype=np.float32))
    model = _Encoders([adjacency for adjacency, _ in graphs], stacked, weights, rows, device)
    optimizer = torch.optim.Adam(model.weights, lr=learning_rate)
    pairs = _ManyPairs([_Pairs(adjacency, draw, device) for (adjacency, _), draw in zip(graphs, draws)], device)
    owner = torch.from_numpy(np.repeat(np.arange(len(graphs)), sizes)).to(device)
    count = torch.from_numpy(sizes.astype(np.float32)).to(device)
    history = []
    with threads_for(sizes.sum()):
        for _ in range(epochs):
            optimizer.zero_grad()
            mean, log_std = model.encode()
            points, losses = mean, torch.zeros(len(graphs), device=device)
            if log_std is not None:
                noise = torch.cat([torch.randn((int(n), out), generator=draw) for n, draw in zip(sizes, draws)])
                points = mean + noise.to(device) * log_std.exp()
                losses = losses.index_add(0, owner, _divergences(mean, log_std)) / count**2
            losses = losses + pairs.losses(points)
            losses.sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            history.append(losses.detach().cpu())
        with torch.no_grad():
            points = model.encode()[0]
    parts = np.split(points.cpu().numpy().astype(np.float64), np.cumsum(sizes)[:-1])
    told = torch.stack(history, dim=1).tolist() if history else [[] for _ in graphs]
    return [Embedding(part, losses, device.type) for part, losses in zip(parts, told)]


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
    return _divergences(mean, log_std).mean()


def _divergences(mean: Tensor, log_std: Tensor) -> Tensor:
    return -0.5 * (1 + 2 * log_std - mean**2 - (2 * log_std).exp()).sum(dim=1)


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


class _Encoders:
    """The same for many graphs of `rows` padded rows each: inputs (b, rows, columns), stacks of weights."""

    def __init__(
        self, adjacencies: list[sp.csr_array], inputs: Tensor | None, weights: list[Tensor], rows: int,
        device: torch.device,
    ) -> None:  # fmt: skip
        blocks = sp.block_diag([propagation_matrix(adjacency) for adjacency in adjacencies], format="csr")
        self.propagation = to_torch(blocks, device)
        self.weights = [matrix.to(device).requires_grad_() for matrix in weights]
        self.inputs = None if inputs is None else inputs.to(device)
        starts = np.arange(len(adjacencies)) * rows
        self.places = torch.from_numpy(ranges(starts, np.array([a.shape[0] for a in adjacencies]))).to(device)
        self.shape = (len(adjacencies), rows)

    def encode(self) -> tuple[Tensor, Tensor | None]:
        """Compute Z of all graphs, one after the other, or the means and log standard deviations of Z."""
        first, *heads = self.weights
        hidden = torch.relu(self._propagate(first if self.inputs is None else self.inputs @ first))
        stack = hidden.new_zeros((self.shape[0] * self.shape[1], hidden.shape[1]))
        hidden = stack.index_copy(0, self.places, hidden).view(*self.shape, -1)
        mean, *spread = (self._propagate(hidden @ head) for head in heads)
        return mean, spread[0].clamp(max=MAX_LOG_STD) if spread else None

    def _propagate(self, stacked: Tensor) -> Tensor:
        flat = stacked.flatten(0, 1).index_select(0, self.places)
        return sparse_product(self.propagation, self.propagation, flat)


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


class _ManyPairs:
    """Draws pairs of many small graphs, for each as `_Pairs` does, and sums up the loss of each."""

    def __init__(self, each: list[_Pairs], device: torch.device) -> None:
        self.each, self.device = each, device
        n = torch.tensor([pairs.n for pairs in each])
        edges = torch.tensor([len(pairs.edges) for pairs in each])
        complete = torch.tensor([pairs.others is not None and not len(pairs.others) for pairs in each])
        others = torch.where(complete, 0, edges)
        self.owner = torch.repeat_interleave(torch.arange(len(each)).repeat(2), torch.cat([edges, others]))
        self.n, self.start = n[self.owner], (n.cumsum(0) - n)[self.owner]
        self.sign = torch.repeat_interleave(torch.tensor([1.0, -1.0]), torch.stack([edges.sum(), others.sum()]))
        self.share = 1 / torch.where(self.sign > 0, edges[self.owner], others[self.owner])
        self.owner, self.sign, self.share = (x.to(device) for x in (self.owner, self.sign, self.share))
        self.edges = torch.cat([pairs.edges for pairs in each])

    def losses(self, points: Tensor) -> Tensor:
        """Draw other pairs for one epoch, and give the loss of each graph: see `reconstruction_loss`."""
        keys = torch.cat([self.edges, *(pairs._draw_others(len(pairs.edges)) for pairs in self.each)])
        first, second = ((self.start + end).to(self.device) for end in (keys // self.n, keys % self.n))
        logits = (points.index_select(0, first) * points.index_select(0, second)).sum(dim=1)
        terms = -self.share * torch.nn.functional.logsigmoid(self.sign * logits)
        return terms.new_zeros(len(self.each)).index_add(0, self.owner, terms)


def _glorot(shape: tuple[int, int], draw: torch.Generator) -> Tensor:
    """Draw uniform weights with variance 2 / (rows + columns)."""
    limit = float(np.sqrt(6.0 / max(sum(shape), 1)))
    return (2 * torch.rand(shape, generator=draw) - 1) * limit

