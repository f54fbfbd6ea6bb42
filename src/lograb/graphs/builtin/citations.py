"""Stand-ins for citation graphs, at the sizes of Cora and ogbn-arXiv.

They are generated, contain no real paper, and are never to be reported as the real data. What they
share with it: number of nodes, edges and classes, unequal class sizes, homophily, heavy-tailed
degrees, average local clustering (a plain block model would have star-like ego networks, see
`lograb.graphs.builtin.block_model`), and features that follow the classes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from lograb.graphs.builtin.block_model import BlockModel, apportion, draw_block_graph
from lograb.spec import Origin
from lograb.types import Graph, Ints

N_WORDS = 1433
WORDS_PER_NODE = 18
FEATURE_DIM = 128

_CITATION = BlockModel(
    class_sizes=(818, 426, 418, 351, 298, 217, 180), n_edges=5_300, topic_size=2_708, same_topic=0.0,
    same_class=0.775, popularity_tail=1.5, popularity_cap=60.0, activity_tail=2.0, activity_cap=8.0,
    hub=250.0, closure=0.19, rounds=2, islands=(2,) * 40 + (3,) * 20 + (4,) * 10 + (6,) * 4 + (8,) * 2)

_CITATION_170K = BlockModel(
    class_sizes=apportion(169_343, 1.0 / np.arange(3.0, 43.0)), n_edges=1_166_243, topic_size=20,
    same_topic=0.32, same_class=0.715, popularity_tail=1.05, popularity_cap=1_800.0, activity_tail=0.8,
    activity_cap=40.0, hub=42_000.0, closure=0.20, rounds=3)


def citation() -> Graph:
    """Generate a stand-in of Cora's size: 2,708 nodes, 5,300 edges, 7 classes.

    Features are a sparse binary bag of 1,433 words with about 18 words per node. A main component of about nine
    tenths of the nodes, the others in small components; no isolated node.
    """
    rng = np.random.default_rng(20_708)
    edges, labels = draw_block_graph(_CITATION, rng)
    return Graph.from_edges("citation", _CITATION.n_nodes, edges, labels=labels,
                            features=_draw_words(labels, rng), origin=_origin("citation"))


def citation_170k() -> Graph:
    """Generate a stand-in of ogbn-arXiv's size: 169,343 nodes, 1,166,243 edges, 40 classes, connected.

    One hub has a degree over 10,000; the 128 features are dense float32.
    """
    rng = np.random.default_rng(169_343)
    edges, labels = draw_block_graph(_CITATION_170K, rng)
    return Graph.from_edges("citation-170k", _CITATION_170K.n_nodes, edges, labels=labels,
                            features=_draw_vectors(labels, rng), origin=_origin("citation-170k"))


def _origin(name: str) -> Origin:
    return Origin(source=name, kind="built-in", revision="1", licence="MIT")


def _draw_words(labels: Ints, rng: np.random.Generator) -> sp.csr_array:
    """Half of a node's words come from the words its class prefers, the others from all words."""
    n_nodes, n_classes = len(labels), int(labels.max()) + 1
    # A few drawn words coincide; one more than wanted makes up for them.
    counts = np.clip(np.rint(WORDS_PER_NODE + 1 + 5 * rng.standard_normal(n_nodes)), 3, 35).astype(np.int64)
    node = np.repeat(np.arange(n_nodes), counts)
    common = 1.0 / (np.arange(N_WORDS) + 20.0)
    preferred = np.stack([common * (rng.random(N_WORDS) < 1.5 / n_classes) for _ in range(n_classes)])
    tables = np.cumsum(np.concatenate([preferred, common[None]]), axis=1)
    table = np.where(rng.random(len(node)) < 0.5, labels[node], n_classes)
    at = rng.random(len(node))
    word = np.empty(len(node), dtype=np.int64)
    for row, running in enumerate(tables):
        chosen = table == row
        word[chosen] = np.searchsorted(running, at[chosen] * running[-1], side="right")
    words = sp.csr_array((np.ones(len(node), np.float32), (node, word)), shape=(n_nodes, N_WORDS))
    words.sum_duplicates()
    words.data[:] = 1.0
    return words


def _draw_vectors(labels: Ints, rng: np.random.Generator) -> npt.NDArray[np.float32]:
    """Class centre plus noise: near enough to overlap, far enough to learn."""
    centres = 0.2 * rng.standard_normal((int(labels.max()) + 1, FEATURE_DIM), dtype=np.float32)
    vectors = rng.standard_normal((len(labels), FEATURE_DIM), dtype=np.float32)
    vectors += centres[labels]
    return vectors
