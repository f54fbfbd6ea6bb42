"""LightGCN (He et al.) on the known edges: free vectors, smoothed over the graph, no features.

Every node has a vector of its own; a pair is scored by the inner product of the vectors' means over some
rounds of smoothing. Trained to rank a node's neighbours above other random nodes (BPR); a node that is joined to
all it is compared with teaches nothing by itself. Between fragments no edge ties one node's vector to the other's,
so only how popular both are can show.
"""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.nn import LightGCN

from lograb.learning.links.fragmented import FragmentedGraph, Strangers, nothing_to_learn_from
from lograb.learning.links.settings import LightGcnSettings
from lograb.learning.randomness import pick_device, seeded
from lograb.parallel import threads_for
from lograb.progress import Progress
from lograb.types import Floats, Ints


def lightgcn(
    graph: FragmentedGraph, pairs: Ints, rng: np.random.Generator, settings: LightGcnSettings, progress: Progress
) -> Floats:
    """Train on the edges inside fragments and score the given pairs."""
    strangers = Strangers(graph, settings.train_negatives)
    both = np.concatenate([graph.edges, graph.edges[:, ::-1]])
    known = both[strangers.counts[both[:, 0]] > 0]
    if not len(known):
        raise nothing_to_learn_from(graph, settings.train_negatives)
    device = pick_device()
    edge_index, neighbours = (torch.from_numpy(part.T.copy()).to(device) for part in (both, known))
    touched = torch.from_numpy(np.unique(both)).to(device)
    with threads_for(graph.n_nodes), seeded(rng):
        network = LightGCN(graph.n_nodes, settings.width, settings.layers).to(device)
        optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
        for epoch in range(settings.epochs):
            progress("LightGCN: training", epoch, settings.epochs)
            others = np.stack([known[:, 0], strangers.draw(known[:, 0], rng)])
            optimizer.zero_grad()
            asked = torch.cat([neighbours, torch.from_numpy(others).to(device)], dim=1)
            close, apart = network(edge_index, asked).chunk(2)
            loss = network.recommendation_loss(close, apart, touched, lambda_reg=settings.decay)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            scores = network(edge_index, torch.from_numpy(pairs.T.copy()).to(device))
    return np.asarray(scores.cpu().numpy(), dtype=np.float64)
