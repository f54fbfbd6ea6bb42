"""LightGCN (He et al.) on the known edges: free vectors, smoothed over the graph, no features.

Every node has a vector of its own; a pair is scored by the inner product of the vectors' means over some
rounds of smoothing. Trained to rank a node's neighbours above random nodes of its fragment (BPR). Between
fragments nothing ties one node's vector to the other's, so only how popular both are can show.
"""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.nn import LightGCN

from lograb.learning.links import FragmentedGraph, Insides, Progress
from lograb.learning.links_settings import LightGcnSettings
from lograb.learning.randomness import pick_device, seeded
from lograb.types import Floats, Ints


def lightgcn(
    graph: FragmentedGraph, pairs: Ints, rng: np.random.Generator, settings: LightGcnSettings, progress: Progress
) -> Floats:
    """Train on the edges inside fragments and score the given pairs."""
    device = pick_device()
    both = np.concatenate([graph.edges, graph.edges[:, ::-1]])
    edge_index = torch.from_numpy(both.T.copy()).to(device)
    insides = Insides(graph.fragment)
    touched = torch.from_numpy(np.unique(both)).to(device)
    with seeded(rng):
        network = LightGCN(graph.n_nodes, settings.width, settings.layers).to(device)
        optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
        for epoch in range(settings.epochs):
            progress("LightGCN: training", epoch, settings.epochs)
            others = np.stack([both[:, 0], insides.companions(both[:, 0], rng)])
            optimizer.zero_grad()
            asked = torch.cat([edge_index, torch.from_numpy(others).to(device)], dim=1)
            close, apart = network(edge_index, asked).chunk(2)
            loss = network.recommendation_loss(close, apart, touched, lambda_reg=settings.decay)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            scores = network(edge_index, torch.from_numpy(pairs.T.copy()).to(device))
    return np.asarray(scores.cpu().numpy(), dtype=np.float64)
