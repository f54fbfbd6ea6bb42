"""The neural rivals GAE, VGAE and GCN-LE (Appendix "Implementation Details"): learn to predict a guessed graph.

The attacker has no true edge to learn from. He makes a graph of his own out of the observations, trains a
graph autoencoder on it, and joins every node to the nodes whose embeddings have the largest inner products
with its own.

**Input graph** (`graph`)
    ``local``: the union of the local reconstructions, that is of the thresholded heat kernels of the patches
    that AFR's Stage 1 trusts (its core patches and its threshold, both at their defaults).
    ``co-occurrence``: all pairs that share a patch. The embeddings then only serve to number the nodes.
**Node inputs**
    `gae`, `vgae`: the features, where the observations carry that channel (and `features` is on); otherwise
    the identity. `gcn-le`: Laplacian-eigenmap coordinates of the input graph, and the features beside them.

Nodes are renumbered first, by where they occur and what their rows look like, and all the work is done in
that numbering: node numbers cannot influence the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from lograb.attacks.afr.core import fidelity
from lograb.attacks.afr.kernel import local_graphs
from lograb.attacks.afr.settings import AfrSettings
from lograb.attacks.alignment.overlaps import membership_matrix, padded_coordinates
from lograb.attacks.attack import SPECTRAL, Attack
from lograb.attacks.baselines.eigenmaps import eigenmaps
from lograb.attacks.baselines.nearest import nearest
from lograb.attacks.thresholds import among_best
from lograb.errors import LograbError, MissingExtraError
from lograb.pairs import sharing, unpair
from lograb.progress import Progress, ignore
from lograb.ragged import owners, pointer, ranges
from lograb.types import Floats, Ints, Matrix, Observations, Reconstruction

if TYPE_CHECKING:
    from lograb.learning.autoencoders import Embedding


class _Ready(NamedTuple):
    """What a network is trained on, and what its answer is made with."""

    n_nodes: int
    seen: Observations  # under the new numbers
    nodes: Ints
    graph: sp.csr_array
    inputs: Matrix | None
    told: dict[str, Any]


class Gae(Attack):
    """Rebuild the graph with a graph autoencoder. What is marked * is not named in the paper; the default is ours.

    Attributes
    ----------
    graph : * the attacker's input graph: ``local`` or ``co-occurrence``; see the module.
    features : whether to use the features, where the observations carry them.
    hidden, out : widths of the two layers.
    epochs, learning_rate : of Adam.
    top_k : neighbours selected per node; a pair selected from either side is claimed.
    candidates : * ``all`` nodes may be selected, or only those that share a patch (``shared``).
    max_size : * larger patches contribute no pairs of co-occurring nodes; None for no limit.
    """

    name = "gae"
    uses = SPECTRAL
    scenario = "trains a graph autoencoder on a guessed graph, joins the nodes it embeds closest"
    cost = "edges of the guess, and pairs of nodes"
    optional = ("features",)
    extra = "gnn"
    together = True

    graph: Literal["local", "co-occurrence"] = "local"
    features: bool = True
    hidden: int = Field(default=128, ge=1)
    out: int = Field(default=64, ge=1)
    epochs: int = Field(default=200, ge=0)
    learning_rate: float = Field(default=0.01, gt=0)
    top_k: int = Field(default=15, ge=1)
    candidates: Literal["all", "shared"] = "all"
    max_size: int | None = Field(default=2000, ge=2)

    def reconstruct(
        self, seen: Observations, rng: np.random.Generator, progress: Progress = ignore
    ) -> Reconstruction:
        """Train and join."""
        train, _ = self._trainers()
        ready = self._prepare(seen, rng)
        if not ready.graph.nnz:
            return self._join(ready, None)
        return self._join(ready, train(ready.graph, ready.inputs, rng, **self._training()))

    def reconstruct_each(
        self, seen: Sequence[Observations], rngs: Sequence[np.random.Generator]
    ) -> list[Reconstruction]:
        """Train a network for each graph, those of small graphs side by side, and join."""
        _, train = self._trainers()
        ready = [self._prepare(one, rng) for one, rng in zip(seen, rngs, strict=True)]
        useful = [i for i, one in enumerate(ready) if one.graph.nnz]
        graphs = [(ready[i].graph, ready[i].inputs) for i in useful]
        found = dict(zip(useful, train(graphs, [rngs[i] for i in useful], **self._training())))
        return [self._join(one, found.get(i)) for i, one in enumerate(ready)]

    def _trainers(self) -> tuple[Any, Any]:
        """Give what trains on one graph, and on several."""
        try:
            from lograb.learning.autoencoders import train_autoencoder, train_autoencoders
        except ImportError:
            raise MissingExtraError(f"the attack '{self.name}'", "gnn") from None
        return train_autoencoder, train_autoencoders

    def _training(self) -> dict[str, Any]:
        return {"variational": isinstance(self, Vgae), "hidden": self.hidden, "out": self.out,
                "epochs": self.epochs, "learning_rate": self.learning_rate}  # fmt: skip

    def _prepare(self, seen: Observations, rng: np.random.Generator) -> _Ready:
        """Make the input graph, and the inputs where it has edges."""
        numbered, nodes = renumber(seen)
        graph = input_graph(numbered, self)
        told: dict[str, Any] = {"input_edges": int(graph.nnz) // 2}
        inputs = None
        if graph.nnz:
            inputs, told["inputs"] = self.inputs(numbered, graph, rng)
        return _Ready(seen.n_nodes, numbered, nodes, graph, inputs, told)

    def _join(self, ready: _Ready, trained: Embedding | None) -> Reconstruction:
        """Claim the pairs that the trained points put closest; none where there was nothing to train on."""
        nodes, told = ready.nodes, dict(ready.told)
        if trained is None:
            none = np.empty((0, 2), np.int64)
            return Reconstruction(ready.n_nodes, none, np.empty(0), np.sort(nodes), diagnostics=told)
        told |= {"first_loss": trained.losses[0], "last_loss": trained.losses[-1]} if trained.losses else {}
        told["device"] = trained.device
        pairs, logits = _select(ready.seen, trained.points, self)
        pairs = np.sort(nodes[pairs], axis=1)
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        scores = 1 / (1 + np.exp(-np.clip(logits[order], -500, 500)))
        return Reconstruction(ready.n_nodes, pairs[order], scores, np.sort(nodes), diagnostics=told)

    def inputs(
        self, seen: Observations, graph: sp.csr_array, rng: np.random.Generator
    ) -> tuple[Matrix | None, str]:
        """Collect what the network gets for each node, and say what it is."""
        features = seen.features if self.features else None
        return features, "identity" if features is None else "features"


class Vgae(Gae):
    """Rebuild the graph with a variational graph autoencoder."""

    name = "vgae"
    scenario = "the same with a variational autoencoder"


class GcnLe(Gae):
    """Rebuild the graph from Laplacian eigenmaps that a graph convolutional network propagates."""

    name = "gcn-le"
    scenario = "the same with Laplacian eigenmaps of the guess as inputs"

    coordinates: int = Field(default=32, ge=1)
    """* Eigenmap coordinates."""

    def inputs(
        self, seen: Observations, graph: sp.csr_array, rng: np.random.Generator
    ) -> tuple[Matrix | None, str]:
        """Put the features beside the eigenmaps."""
        maps, features = eigenmaps(graph, self.coordinates, rng), seen.features
        if features is None or not self.features:
            return maps, "eigenmaps"
        if sp.issparse(features):
            return sp.csr_array(sp.hstack([sp.csr_array(maps), features])), "eigenmaps and features"
        return np.concatenate([maps, features], axis=1), "eigenmaps and features"


def renumber(seen: Observations) -> tuple[Observations, Ints]:
    """Number the observed nodes by their first patch and, inside it, by the sizes of their entries there.

    Random draws and rounding then follow what was observed and not the numbers that nodes happen to have:
    another numbering of the same nodes gives the same observations here (unless two nodes have equal rows).
    Gives those of the observed nodes under their new numbers, and the old number of each.
    """
    old, first = np.unique(seen.nodes, return_index=True)
    owner = owners(seen.ptr)
    rows = np.abs(padded_coordinates(seen, seen.vectors, int(seen.ranks.max(initial=0))))[first]
    order = np.lexsort((*rows.T[::-1], owner[first]))
    nodes = old[order]
    number = np.zeros(seen.n_nodes, dtype=np.int64)
    number[nodes] = np.arange(len(nodes))
    entries = np.lexsort((number[seen.nodes], owner))
    ranks = np.repeat(seen.ranks, seen.sizes)
    starts = pointer(ranks)[:-1]
    return replace(
        seen,
        n_nodes=len(nodes),
        nodes=number[seen.nodes][entries],
        vectors=seen.vectors[ranges(starts[entries], ranks[entries])],
        centres=None,
        features=None if seen.features is None else seen.features[nodes],
    ), nodes


def input_graph(seen: Observations, settings: Gae) -> sp.csr_array:
    """Make the attacker's own graph: a symmetric boolean matrix, shape (n_nodes, n_nodes)."""
    if settings.graph == "co-occurrence":
        return co_occurrence(seen, settings.max_size)
    if seen.values is None or seen.next_values is None:
        raise LograbError("local reconstructions need the eigenvalues and the first one that was cut off, and "
                          "these observations withhold them: set graph=co-occurrence")  # fmt: skip
    rules = AfrSettings()
    local = local_graphs(seen, rules)
    trusted = fidelity(seen, local.entropy, rules).core[owners(local.ptr)]
    ends = seen.nodes[local.ends[trusted]]
    rows, columns = np.concatenate([ends, ends[:, ::-1]]).T
    return sp.csr_array((np.ones(len(rows), dtype=bool), (rows, columns)), shape=(seen.n_nodes, seen.n_nodes))


def co_occurrence(seen: Observations, max_size: int | None = None) -> sp.csr_array:
    """Join all nodes that share a patch (of at most `max_size` members), shape (n_nodes, n_nodes)."""
    small = None if max_size is None else np.flatnonzero(seen.sizes <= max_size)
    return sharing(membership_matrix(seen, small))


def _inner_products(points: Floats, pairs: Ints, at_once: int = 1 << 18) -> Floats:
    parts = [pairs[start : start + at_once] for start in range(0, len(pairs), at_once)]
    products = [np.einsum("ij,ij->i", points[part[:, 0]], points[part[:, 1]]) for part in parts]
    return np.concatenate([np.empty(0), *products])


def _select(seen: Observations, points: Floats, settings: Gae) -> tuple[Ints, Floats]:
    """Choose the claimed pairs (u, w), u < w, in the new numbering, and their inner products."""
    if settings.candidates == "shared":
        upper = sp.triu(co_occurrence(seen, settings.max_size), k=1, format="coo")
        pairs = np.stack([upper.row, upper.col], axis=1).astype(np.int64)
        scores = _inner_products(points, pairs)
        kept = among_best(pairs, scores, settings.top_k, seen.n_nodes)
        return pairs[kept], scores[kept]
    # With points of any length the "cosine" of `nearest` is the inner product.
    group = np.zeros(seen.n_nodes, dtype=np.int64)
    source, target, values = nearest(points, group, settings.top_k, "cosine")
    keys = np.minimum(source, target) * seen.n_nodes + np.maximum(source, target)
    keys, index = np.unique(keys, return_index=True)
    return unpair(keys, max(seen.n_nodes, 1)), values[index]
