"""Links by similarity: the cosine of learned representations (Appendix A.3), and what takes no learning at all."""

from __future__ import annotations

import numpy as np

from lograb.learning.links.fragmented import FragmentedGraph, cosines
from lograb.learning.links.settings import CosineSettings, NoSettings
from lograb.progress import Progress
from lograb.types import Floats, Ints


def cosine(
    graph: FragmentedGraph, pairs: Ints, rng: np.random.Generator, settings: CosineSettings, progress: Progress
) -> Floats:
    """Train a model of Task 2 on the patches, average a node's representations, compare by cosine.

    The model learns classes, not links: it is trained as in Task 2 under the split ``patch``, and stops by
    its validation patches. It sees features, spectral coordinates, labels of training patches and the
    patches' edges inside fragments.
    """
    from lograb.learning.nodes.catalog import find_model
    from lograb.learning.nodes.encodings import encode
    from lograb.learning.nodes.splits import make_split
    from lograb.learning.nodes.training import TrainingSettings, node_embeddings, train

    model = find_model(settings.model)
    patches = encode(graph.patches, model.encodings, rng)
    split = make_split(patches, "patch", rng)
    training = TrainingSettings(epochs=settings.epochs)
    trained = train(model, patches, split, rng, training, progress=progress)
    return cosines(node_embeddings(trained.network, patches).astype(np.float64), pairs)


def feature_similarity(
    graph: FragmentedGraph, pairs: Ints, rng: np.random.Generator, settings: NoSettings, progress: Progress
) -> Floats:
    """Compare both nodes' features by cosine."""
    return cosines(graph.patches.require_features("their similarity"), pairs)


def degree_product(
    graph: FragmentedGraph, pairs: Ints, rng: np.random.Generator, settings: NoSettings, progress: Progress
) -> Floats:
    """Multiply both nodes' numbers of known neighbours."""
    degrees = np.asarray(graph.adjacency.sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(degrees[pairs[:, 0]] * degrees[pairs[:, 1]])


def co_occurrence(
    graph: FragmentedGraph, pairs: Ints, rng: np.random.Generator, settings: NoSettings, progress: Progress
) -> Floats:
    """Count the patches that both nodes share: none between fragments, unless their patches have halos."""
    inside = graph.membership.T.tocsr()
    return np.asarray(inside[pairs[:, 0]].multiply(inside[pairs[:, 1]]).sum(axis=1), dtype=np.float64).ravel()


def centres(
    graph: FragmentedGraph, pairs: Ints, rng: np.random.Generator, settings: NoSettings, progress: Progress
) -> Floats:
    """Tell whether a link is possible at all: all neighbours of a ball's centre are in its patch.

    So no edge between fragments touches a centre, and a pair with one is ruled out without looking further.
    """
    return np.asarray(~graph.settled[pairs].any(axis=1), dtype=np.float64)
