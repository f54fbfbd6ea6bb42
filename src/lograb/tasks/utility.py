"""What shared embeddings are good for: the other side of every defence (§6.2).

*Node classification* by one global classifier, multinomial logistic regression. A patch's embedding Y means
nothing by itself (its gauge is arbitrary); what it offers is a way to smooth: H = Y e^(-tΛ) Yᵀ, or Y Yᵀ where
eigenvalues are withheld or columns rotated. A node's inputs are its own features, the features smoothed by H, and
the training labels smoothed by H without its diagonal, averaged over its patches. Beside it stands the score
without embeddings.

*Subspace*: mean squared cosine of the principal angles between the true eigenvectors' span and the shared one,
over truncated patches; chance is r/q. *Clustering*: adjusted Rand index of k-means on the true and on the shared
rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.cluster.vq import kmeans2
from scipy.optimize import minimize
from scipy.sparse.linalg import svds
from scipy.special import logsumexp

from lograb.eigen import eigh
from lograb.errors import LograbError
from lograb.instance import Instance
from lograb.observations.spectra import REPEAT_TOLERANCE
from lograb.parallel import one_blas_thread
from lograb.progress import Progress, ignore
from lograb.theory.heat import normalized_laplacian
from lograb.theory.stacks import adjacency_of
from lograb.types import Floats, Ints, Matrix, Observations

TRAIN = 0.6
WIDTH = 64
"""Features beyond this many are replaced by their leading singular directions."""
RIDGE = 1e-3
HEAT = 1.0
CLUSTERS, SMALLEST = 4, 20
"""Clusters per patch, and members of the smallest patch that is clustered."""
EFFORT = 2e9
"""Cubed sizes of patches whose true subspace is computed; a random part of them beyond."""


def utility(
    instance: Instance, *, seed: int = 0, repeats: int = 3, progress: Progress | None = None
) -> dict[str, Any]:
    """Measure what the embeddings of an instance are good for.

    Parameters
    ----------
    instance : Instance
        With labels for classification, with its truth for subspace and clustering; what is missing is None.
    seed, repeats : int
        Of the splits, 60 % for training.

    Returns
    -------
    dict, ready for JSON
        ``accuracy`` (F1-micro where nodes have several labels), ``accuracy_sd``, ``without_embeddings``,
        ``majority``, ``subspace``, ``subspace_chance``, ``clustering``.
    """
    if not isinstance(instance, Instance):
        raise LograbError(f"utility needs an instance (generate, load), got {type(instance).__name__}")
    tell = progress or ignore
    told: dict[str, Any] = {"classifier": "logistic regression on smoothed features and labels", "accuracy": None,
                            "accuracy_sd": None, "without_embeddings": None, "majority": None}  # fmt: skip
    if instance[0].labels is not None:
        with one_blas_thread():  # many small steps: threads would wait for each other
            runs = [_classify(instance, np.random.default_rng((seed, i)), tell) for i in range(repeats)]
        mean, spread = np.mean(runs, axis=0), np.std(runs, axis=0, ddof=1 if repeats > 1 else 0)
        told |= {"accuracy": float(mean[0]), "accuracy_sd": float(spread[0]), "without_embeddings": float(mean[1]),
                 "majority": float(mean[2])}  # fmt: skip
    told |= _subspaces(instance, np.random.default_rng(seed), tell)
    return told | {"sentence": _sentence(told)}


def _sentence(told: dict[str, Any]) -> str:
    if told["accuracy"] is None:
        if told["subspace"] is None:
            return ("The graph has no labels, and there is no subspace to compare: that takes the true graph, and "
                    "patches of which only part of the spectrum is shared.")  # fmt: skip
        return "The graph has no labels: only the subspace is compared."
    return (f"Nodes are classified with accuracy {told['accuracy']:.3f} ± {told['accuracy_sd']:.3f} with these "
            f"embeddings, {told['without_embeddings']:.3f} without any.")  # fmt: skip


def _classify(instance: Instance, rng: np.random.Generator, tell: Progress) -> tuple[float, float, float]:
    """Train and test once: with embeddings, without, and always the most frequent class."""
    graphs = list(instance)
    labels = _indicators([graph.labels for graph in graphs])
    offsets = np.cumsum([0, *(graph.n_nodes for graph in graphs)])
    seen = [graph.observations for graph in graphs]
    features = _reduced([graph.features for graph in graphs], len(labels))
    known = labels.any(axis=1)
    shown = np.zeros(len(labels), dtype=bool)
    for one, start in zip(seen, offsets):
        shown[start + one.nodes] = True
    # Pseudonyms of one node stand on one side of the split.
    who = np.concatenate([(graph.key if graph.key is not None else np.arange(graph.n_nodes)) + start
                          for graph, start in zip(graphs, offsets)])  # fmt: skip
    train = (rng.random(who.max() + 1) < TRAIN)[who]
    tell("smoothing", 0, None)
    given = np.where((train & known)[:, None], labels, 0.0)
    smooth = [_smooth(one, [part[a:b] for part in (features, given)])
              for one, a, b in zip(seen, offsets, offsets[1:])]  # fmt: skip
    inputs = np.concatenate([features, *(np.concatenate(parts) for parts in zip(*smooth))], axis=1)
    fit, test = train & known & shown, ~train & known & shown
    if not fit.any() or not test.any():
        raise LograbError("utility needs labelled nodes in patches, some to train with and some to test")
    scores: list[float] = []
    for part in (inputs, features):
        tell("training", len(scores), 2)
        weights = logistic_regression(_scaled(part, fit)[fit], labels[fit])
        scores.append(_accuracy(_scaled(part, fit)[test] @ weights, labels[test]))
    usual = np.tile(labels[fit].sum(axis=0), (int(test.sum()), 1))
    return scores[0], scores[1], _accuracy(usual, labels[test])


def logistic_regression(inputs: Floats, labels: Floats) -> Floats:
    """Fit multinomial logistic regression with an L2 penalty; (n, f) and (n, c) -> (f, c)."""
    target = labels / np.maximum(labels.sum(axis=1, keepdims=True), 1.0)
    shape = inputs.shape[1], labels.shape[1]

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(shape)
        logits = inputs @ weights
        log_p = logits - logsumexp(logits, axis=1, keepdims=True)
        slope = inputs.T @ (np.exp(log_p) - target) / len(inputs) + RIDGE * weights
        value = -float((target * log_p).sum()) / len(inputs) + RIDGE * float(np.square(weights).sum()) / 2
        return value, slope.ravel()

    found = minimize(loss, np.zeros(shape[0] * shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return np.asarray(found.x).reshape(shape)


def _accuracy(scores: Floats, labels: Floats) -> float:
    """Share of labels among the best-scored classes, as many as a node has: accuracy, or F1-micro for several."""
    ranks = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1, kind="stable")
    return float(((ranks < labels.sum(axis=1, keepdims=True)) & (labels > 0)).sum() / labels.sum())


def _indicators(parts: list[Any]) -> Floats:
    labels = np.concatenate(parts)
    if labels.ndim == 2:
        return np.asarray(labels, dtype=float)
    return np.asarray(labels[:, None] == np.arange(labels.max(initial=0) + 1), dtype=float)


def _reduced(parts: list[Matrix | None], n_nodes: int) -> Floats:
    """Take features as they are, or their leading singular directions; a column of ones where there are none."""
    if parts[0] is None:
        return np.ones((n_nodes, 1))
    whole: Matrix = sp.vstack(parts).tocsr() if sp.issparse(parts[0]) else np.vstack([*map(np.asarray, parts)])
    whole = whole.astype(float)
    if whole.shape[1] > WIDTH:
        start = np.ones(min(whole.shape))
        _, _, directions = svds(whole, k=min(WIDTH, min(whole.shape) - 1), v0=start)
        whole = whole @ directions.T
    return np.asarray(whole.toarray() if sp.issparse(whole) else whole)


def _scaled(inputs: Floats, fit: Any) -> Floats:
    """Centre and scale columns by the training nodes; add a constant."""
    mean, spread = inputs[fit].mean(axis=0), inputs[fit].std(axis=0)
    scaled = (inputs - mean) / np.where(spread > 1e-12, spread, 1.0)
    return np.concatenate([scaled, np.ones((len(inputs), 1))], axis=1)


def _stacks(seen: Observations, which: Ints) -> Iterator[tuple[Ints, int, int]]:
    """Yield patches of one size q and rank r, of about a million entries at a time."""
    for q, r in np.unique(np.stack([seen.sizes[which], seen.ranks[which]], axis=1), axis=0).tolist():
        group = which[(seen.sizes[which] == q) & (seen.ranks[which] == r)]
        at_once = max(1, (1 << 20) // (q * max(r, WIDTH)))
        for start in range(0, len(group), at_once):
            yield group[start : start + at_once], q, r


def _smooth(seen: Observations, columns: list[Floats]) -> list[Floats]:
    """Average H f over the patches of each node: of features with, of labels without the diagonal of H."""
    n = seen.n_nodes
    sums = [np.zeros((n, part.shape[1])) for part in columns]
    heat = seen.values is not None and seen.protocol.gauge != "rotation"
    for which, q, r in _stacks(seen, np.flatnonzero(seen.ranks > 0)):
        block = seen.vectors[seen.vector_ptr[which][:, None] + np.arange(q * r)].reshape(-1, q, r)
        members = seen.nodes[seen.ptr[which][:, None] + np.arange(q)]
        weights = np.ones((len(which), r))
        if heat and seen.values is not None:
            weights = np.exp(-HEAT * seen.values[seen.value_ptr[which][:, None] + np.arange(r)])
        warm = block * weights[:, None, :]
        diagonal = (block * warm).sum(axis=2, keepdims=True)
        add = sp.csr_array((np.ones(members.size), (members.ravel(), np.arange(members.size))), (n, members.size))
        for i, part in enumerate(columns):
            given = part[members]
            found = warm @ (block.swapaxes(1, 2) @ given) - (diagonal * given if i else 0.0)
            sums[i] += add @ found.reshape(members.size, -1)
    counts = np.maximum(np.bincount(seen.nodes, minlength=n), 1)[:, None]
    return [part / counts for part in sums]


def _subspaces(instance: Instance, rng: np.random.Generator, tell: Progress) -> dict[str, Any]:
    """Compare the shared subspaces with the true ones."""
    cosines: list[float] = []
    chances: list[float] = []
    rand: list[float] = []
    for number, graph in enumerate(instance if instance.has_truth else []):
        tell("comparing subspaces", number, len(instance))
        seen = graph.observations
        order = rng.permutation(np.flatnonzero((seen.ranks > 0) & ~seen.complete))
        cost = np.cumsum(seen.sizes[order].astype(float) ** 3)
        kept = np.sort(order[: int(np.searchsorted(cost, EFFORT / len(instance), side="right"))])
        for which, q, r in _stacks(seen, kept):
            shared = seen.vectors[seen.vector_ptr[which][:, None] + np.arange(q * r)].reshape(-1, q, r)
            frames = np.linalg.svd(shared, full_matrices=False)[0]
            values, vectors = eigh(normalized_laplacian(adjacency_of(graph.patch_edges, which, q)))
            for i in range(len(which)):
                # Whatever part of a repeated eigenvalue the cut kept is a true one.
                true = vectors[i][:, values[i] <= values[i, r - 1] + REPEAT_TOLERANCE]
                cosines.append(float(np.square(true.T @ frames[i]).sum() / r))
                chances.append(true.shape[1] / q)
                if q >= SMALLEST:
                    rand.append(same_clusters(vectors[i][:, :r], shared[i], int(which[i])))
    return {"subspace": float(np.mean(cosines)) if cosines else None,
            "subspace_chance": float(np.mean(chances)) if chances else None,
            "clustering": float(np.mean(rand)) if rand else None}  # fmt: skip


def same_clusters(true: Floats, shared: Floats, seed: int) -> float:
    """Cluster the rows of both, of length one, with the same draws, and compare: adjusted Rand index."""
    parts = []
    for rows in (true, shared):
        unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        # An empty cluster is as good as any; and there may be fewer different rows than clusters.
        with warnings.catch_warnings(), np.errstate(invalid="ignore"):
            warnings.simplefilter("ignore", UserWarning)
            parts.append(kmeans2(unit, CLUSTERS, minit="++", rng=np.random.default_rng(seed))[1])
    table = np.zeros((CLUSTERS, CLUSTERS))
    np.add.at(table, tuple(parts), 1)
    sums = table, table.sum(axis=1), table.sum(axis=0)
    together, first, second = (float((x * (x - 1) / 2).sum()) for x in sums)
    expected = first * second / (len(true) * (len(true) - 1) / 2)
    most = (first + second) / 2
    return 1.0 if most == expected else (together - expected) / (most - expected)
