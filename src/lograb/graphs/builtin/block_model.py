"""A degree-corrected block model with topics and triadic closure: the skeleton of citation graphs.

A pure block model has almost no triangles, so its ego networks are stars; development on such a
graph would mislead, because citation graphs are clustered. Three stages give the right picture:

1. a random tree, so that no node is isolated and the main part is connected;
2. block-model edges: a source drawn by activity cites a target drawn by popularity, inside its
   own topic, inside its own class, or anywhere;
3. closure: two neighbours of a random node become neighbours, until the edge count is reached.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from lograb.pairs import distinct, unpair
from lograb.types import Floats, Ints


@dataclass(frozen=True)
class BlockModel:
    """The numbers that shape a graph."""

    class_sizes: tuple[int, ...]  # nodes per class; their sum is the number of nodes
    n_edges: int  # exact number of unique edges
    topic_size: int  # nodes per topic, the small groups that a class consists of
    same_topic: float  # probability that a drawn edge stays in the topic
    same_class: float  # in the class (at least)
    popularity_tail: float  # exponent of the power law of being cited
    popularity_cap: float  # and its upper end
    activity_tail: float  # the same of citing
    activity_cap: float
    hub: float  # popularity of the one most cited node; 0 for no such node
    closure: float  # share of the edges that close a triangle
    rounds: int  # in which they are drawn
    islands: tuple[int, ...] = ()  # sizes of the small components beside the main one

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return sum(self.class_sizes)


@dataclass(frozen=True, eq=False)
class _Layout:
    """Nodes of the main part sorted by class and topic, so that every group is a range of ids."""

    model: BlockModel
    n_main: int
    labels: Ints
    class_start: Ints
    class_stop: Ints
    topic_start: Ints
    topic_stop: Ints
    popularity: Floats
    activity: Floats


def draw_block_graph(model: BlockModel, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw the unique edges (n_edges, 2) and the class labels (n_nodes,) of one graph."""
    layout = _lay_out(model, rng)
    keys = _add_block_edges(layout, _tree_keys(layout, rng), rng)
    keys = _close_triangles(model, keys, rng)
    # Ids must tell nothing about class, topic or age.
    new_id = np.argsort(rng.random(model.n_nodes), kind="stable")
    labels = np.empty(model.n_nodes, dtype=np.int64)
    labels[new_id] = layout.labels
    return new_id[unpair(keys, model.n_nodes)], labels


def apportion(total: int, shares: Floats) -> tuple[int, ...]:
    """Split a total in proportion to the shares, at least 1 each, largest part taking the remainder."""
    parts = np.maximum(1, np.floor(total * shares / shares.sum()).astype(np.int64))
    parts[np.argmax(shares)] += total - parts.sum()
    return tuple(int(part) for part in parts)


def _lay_out(model: BlockModel, rng: np.random.Generator) -> _Layout:
    n_main = model.n_nodes - sum(model.islands)
    island_classes = _pick(np.cumsum([0.0, *model.class_sizes]), 0, len(model.class_sizes),
                           rng.random(len(model.islands)))
    island_labels = np.repeat(island_classes, np.asarray(model.islands, dtype=np.int64))
    main_sizes = np.asarray(model.class_sizes) - np.bincount(island_labels, minlength=len(model.class_sizes))
    main_labels = np.repeat(np.arange(len(main_sizes)), main_sizes)
    bounds = np.concatenate([[0], np.cumsum(main_sizes)])
    start, stop = bounds[main_labels], bounds[main_labels + 1]
    topic_start = start + (np.arange(n_main) - start) // model.topic_size * model.topic_size
    popularity = _power_law(rng.random(n_main), model.popularity_tail, model.popularity_cap)
    activity = _power_law(rng.random(n_main), model.activity_tail, model.activity_cap)
    if model.hub:
        popularity[n_main // 2] = model.hub
    return _Layout(
        model=model, n_main=n_main, labels=np.concatenate([main_labels, island_labels]),
        class_start=start, class_stop=stop, topic_start=topic_start,
        topic_stop=np.minimum(topic_start + model.topic_size, stop),
        popularity=np.concatenate([[0.0], np.cumsum(popularity)]),
        activity=np.concatenate([[0.0], np.cumsum(activity)]))


def _tree_keys(layout: _Layout, rng: np.random.Generator) -> Ints:
    """Join every node to an earlier one, of its own group where there is one; islands stay apart."""
    model, n_main = layout.model, layout.n_main
    node = np.arange(1, n_main)
    low, _ = _group_ranges(layout, node, rng)
    low = np.where(low < node, low, np.where(layout.class_start[node] < node, layout.class_start[node], 0))
    edges = [np.stack([node, _pick(layout.popularity, low, node, rng.random(len(node)))], axis=1)]
    first = n_main
    for size in model.islands:
        later = np.arange(first + 1, first + size)
        edges.append(np.stack([later, rng.integers(first, later)], axis=1))
        first += size
    return _unique_keys(np.concatenate(edges), model.n_nodes)


def _add_block_edges(layout: _Layout, tree: Ints, rng: np.random.Generator) -> Ints:
    model = layout.model
    wanted = round(model.n_edges * (1 - model.closure))
    keys = tree
    while len(keys) < wanted:
        n_draws = int(1.2 * (wanted - len(keys))) + 100
        source = _pick(layout.activity, 0, layout.n_main, rng.random(n_draws))
        low, high = _group_ranges(layout, source, rng)
        target = _pick(layout.popularity, low, high, rng.random(n_draws))
        keys = _extend(keys, np.stack([source, target], axis=1), wanted, model.n_nodes, rng)
    return keys


def _close_triangles(model: BlockModel, keys: Ints, rng: np.random.Generator) -> Ints:
    n, before = model.n_nodes, len(keys)
    for step in range(1, model.rounds + 1):
        wanted = before + round((model.n_edges - before) * step / model.rounds)
        while len(keys) < wanted:
            start, neighbours = _neighbour_lists(keys, n)
            degree = np.diff(start)
            centre = rng.integers(0, n, size=2 * (wanted - len(keys)) + 100)
            # The centre is uniform, not degree-biased: wedges at hubs would join unrelated nodes.
            ends = [neighbours[start[centre] + (rng.random(len(centre)) * degree[centre]).astype(np.int64)]
                    for _ in range(2)]
            keys = _extend(keys, np.stack(ends, axis=1), wanted, n, rng)
    return keys


def _group_ranges(layout: _Layout, node: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw for each node whether it looks in its topic, its class or everywhere; return id ranges."""
    where = rng.random(len(node))
    in_topic, in_class = where < layout.model.same_topic, where < layout.model.same_class
    low = np.where(in_topic, layout.topic_start[node], np.where(in_class, layout.class_start[node], 0))
    high = np.where(in_topic, layout.topic_stop[node],
                    np.where(in_class, layout.class_stop[node], layout.n_main))
    return low, high


def _power_law(uniform: Floats, exponent: float, cap: float) -> Floats:
    return np.asarray(np.minimum((1.0 - uniform) ** (-1.0 / exponent), cap))


def _pick(cumulative: Floats, low: Ints | int, high: Ints | int, uniform: Floats) -> Ints:
    """Draw ids from the ranges [low, high) in proportion to their weight (given as running totals)."""
    at = cumulative[low] + uniform * (cumulative[high] - cumulative[low])
    found = np.searchsorted(cumulative, at, side="right") - 1
    return np.clip(found, low, np.asarray(high) - 1).astype(np.int64)


def _unique_keys(pairs: Ints, n_nodes: int) -> Ints:
    """Code pairs as one number each, sorted, without loops and repetitions."""
    low, high = pairs.min(axis=1).astype(np.int64), pairs.max(axis=1)
    return distinct((low * n_nodes + high)[low != high])


def _extend(keys: Ints, pairs: Ints, wanted: int, n_nodes: int, rng: np.random.Generator) -> Ints:
    """Add new pairs to sorted keys; if there are too many, a random choice of the new ones."""
    new = _unique_keys(pairs, n_nodes)
    at = np.minimum(np.searchsorted(keys, new), len(keys) - 1)
    new = new[keys[at] != new]
    room = wanted - len(keys)
    if len(new) > room:
        new = new[np.argsort(rng.random(len(new)), kind="stable")[:room]]
    return np.sort(np.concatenate([keys, new]))


def _neighbour_lists(keys: Ints, n_nodes: int) -> tuple[Ints, Ints]:
    low, high = keys // n_nodes, keys % n_nodes
    ends = np.concatenate([low, high]), np.concatenate([high, low])
    adjacency = sp.csr_array((np.ones(2 * len(keys), dtype=bool), ends), shape=(n_nodes, n_nodes))
    return adjacency.indptr, adjacency.indices
