"""Stand-ins for PascalVOC-SP: region-adjacency graphs of images that do not exist.

A picture is a jittered grid of region centres; neighbouring regions are the edges of the Delaunay
triangulation, thinned at its longest edges, where regions of a real picture would not touch. One
to three ellipses are the objects; all other regions are background. The features have PascalVOC-SP's
layout: mean, deviation, maximum and minimum of three colour channels, and the centre's two
coordinates. Averages, as in the real data: 479 nodes, 1,355 edges (LRGB counts both directions:
2,710), 21 classes of which the background is by far the largest.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.spatial import Delaunay

from lograb.spec import Origin
from lograb.types import Floats, Graph, Ints

SUPERPIXELS_COUNT = 100
N_CLASSES = 21

_SEED = 11_355
_LARGEST = 500
_EDGES_PER_NODE = 1355 / 479.4
_SIDES = np.array([500.0, 375.0])


def superpixels() -> Iterator[Graph]:
    """Generate the 100 graphs one after the other."""
    return map(superpixel_graph, range(SUPERPIXELS_COUNT))


def superpixel_graph(index: int) -> Graph:
    """Generate graph number `index`; it depends on nothing else."""
    rng = np.random.default_rng(np.random.SeedSequence(_SEED, spawn_key=(index,)))
    # Between 395 and 500 regions, mostly near the upper end.
    points = _draw_centres(_LARGEST - int(105 * rng.random() ** 4), rng)
    labels = _draw_objects(points, rng)
    return Graph.from_edges(f"superpixels/{index}", len(points), _touching(points), labels=labels,
                            features=_draw_colours(points, labels, rng),
                            origin=Origin(source="superpixels", kind="built-in", revision="1", licence="MIT"))


def _draw_centres(n_nodes: int, rng: np.random.Generator) -> Floats:
    """Place points on a grid of 20 rows, some cells left out at random, and move each a little."""
    n_rows, n_columns = 20, 25
    cells = np.sort(np.argsort(rng.random(n_rows * n_columns), kind="stable")[:n_nodes])
    grid = np.stack([cells % n_columns, cells // n_columns], axis=1) + 0.5
    jitter = 0.7 * (rng.random((n_nodes, 2)) - 0.5)
    return np.asarray((grid + jitter) / [n_columns, n_rows] * _SIDES)


def _touching(points: Floats) -> Ints:
    """Delaunay edges without the longest ones; a spanning tree of short edges always stays."""
    corners = np.sort(Delaunay(points).simplices.astype(np.int64), axis=1)
    edges = np.unique(np.concatenate([corners[:, [0, 1]], corners[:, [0, 2]], corners[:, [1, 2]]]), axis=0)
    length = np.sqrt(((points[edges[:, 0]] - points[edges[:, 1]]) ** 2).sum(axis=1))
    n = len(points)
    tree = sp.csgraph.minimum_spanning_tree(sp.csr_array((length, edges.T), shape=(n, n))).tocoo()
    rank = length.copy()
    rank[np.isin(edges[:, 0] * n + edges[:, 1], tree.row.astype(np.int64) * n + tree.col)] = 0.0
    keep = np.argsort(rank, kind="stable")[: round(_EDGES_PER_NODE * n)]
    return edges[np.sort(keep)]


def _draw_objects(points: Floats, rng: np.random.Generator) -> Ints:
    """Put one to three ellipses with a class each on a background of class 0."""
    labels = np.zeros(len(points), dtype=np.int64)
    for _ in range(int(rng.integers(1, 4))):
        centre, radius = rng.random(2) * _SIDES, (0.1 + 0.2 * rng.random(2)) * _SIDES
        inside = (((points - centre) / radius) ** 2).sum(axis=1) < 1.0
        labels[inside] = rng.integers(1, N_CLASSES)
    return labels


def _draw_colours(points: Floats, labels: Ints, rng: np.random.Generator) -> npt.NDArray[np.float32]:
    """Colours follow the class loosely: a fixed hue per class, shifted by the picture's light."""
    palette = np.random.default_rng(_SEED).random((N_CLASSES, 3))
    n = len(points)
    light = 0.3 * rng.standard_normal(3)
    mean = np.clip(0.2 + 0.6 * palette[labels] + light * 0.5 + 0.1 * rng.standard_normal((n, 3)), 0.0, 1.0)
    deviation = 0.02 + 0.1 * rng.random((n, 3))
    most, least = np.clip(mean + 2 * deviation, 0.0, 1.0), np.clip(mean - 2 * deviation, 0.0, 1.0)
    return np.concatenate([mean, deviation, most, least, points / _SIDES], axis=1).astype(np.float32)
