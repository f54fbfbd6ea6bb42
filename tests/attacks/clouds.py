"""Made observations and comparisons that the tests of the rivals share."""

import numpy as np

import lograb
from lograb.types import Graph, Observations, Protocol


def rng(seed=0):
    return np.random.default_rng(seed)


def orthogonal(k, rng):
    q, r = np.linalg.qr(rng.standard_normal((k, k)))
    return q * np.sign(np.diag(r))


def pack(n_nodes, members, blocks, **rest):
    """Observations from one member list and one embedding per patch, sorted by node."""
    orders = [np.argsort(m) for m in members]
    sizes = np.array([len(m) for m in members], dtype=np.int64)
    ranks = np.array([b.shape[1] for b in blocks], dtype=np.int64)
    flat = [np.asarray(m)[o] for m, o in zip(members, orders)]
    return Observations(
        Protocol(k=max(1, int(ranks.max(initial=1)))), n_nodes,
        np.concatenate([np.empty(0, np.int64), *flat]), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        ranks, np.concatenate([np.empty(0), *(b[o].ravel() for b, o in zip(blocks, orders))]), **rest,
    )  # fmt: skip


def unpack(seen):
    return [seen.members(i) for i in range(seen.n_patches)], [seen.block(i) for i in range(seen.n_patches)]


def cut_cloud(clouds, n_patches, size, seed=0, shift=False, noise=0.0):
    """Cut each cloud into random overlapping patches, every patch in a frame of its own."""
    draw = rng(seed)
    members, blocks, start = [], [], 0
    for cloud in clouds:
        n, k = cloud.shape
        for i in range(n_patches):
            inside = np.unique((i * n // n_patches + np.arange(size)) % n)
            block = cloud[inside] @ orthogonal(k, draw) + shift * draw.standard_normal(k)
            members.append(inside + start)
            blocks.append(block + noise * draw.standard_normal(block.shape))
        start += n
    return pack(start, members, blocks)


def gram(rows):
    return rows @ rows.T


def distances(rows):
    return np.linalg.norm(rows[:, None] - rows[None], axis=2)


def by_pair(answer):
    return {tuple(e): s for e, s in zip(answer.edges.tolist(), answer.scores)}


def same_answer(one, other, tolerance=1e-5):
    a, b = by_pair(one), by_pair(other)
    assert a.keys() == b.keys()
    assert max((abs(a[e] - b[e]) for e in a), default=0) < tolerance


def odd_inputs():
    draw = rng(8)
    block = draw.standard_normal
    yield "nothing", pack(3, [], [])
    yield "no nodes", pack(0, [], [])
    yield "single nodes", pack(4, [[0], [1], [0]], [np.ones((1, 1))] * 3)
    yield "no overlap", pack(9, [[0, 1, 2], [3, 4, 5], [6, 7, 8]], [block((3, 3)) for _ in range(3)])
    yield "one shared node", pack(5, [[0, 1, 2], [2, 3, 4]], [block((3, 2)) for _ in range(2)])
    yield "rank 0", pack(5, [[0, 1, 2], [1, 2, 3]], [np.empty((3, 0)), block((3, 2))])
    yield "all rank 0", pack(5, [[0, 1, 2], [1, 2, 3]], [np.empty((3, 0))] * 2)
    yield "empty patch", pack(5, [np.empty(0, np.int64), [1, 2, 3]], [np.empty((0, 0)), block((3, 2))])
    yield "zeros", pack(5, [[0, 1, 2, 3], [1, 2, 3, 4]], [np.zeros((4, 3))] * 2)
    yield "copies", pack(5, [[0, 1, 2, 3, 4]] * 6, [np.eye(5)] * 6)
    yield "huge and tiny", pack(5, [[0, 1, 2, 3], [1, 2, 3, 4]], [1e8 * block((4, 3)), 1e-8 * block((4, 3))])
    yield "withheld", lograb.generate("karate", eigenvalues=False).observe(features=False)
    yield "k above n", lograb.generate("karate", k=100).observe(features=False)
    yield "no edges", lograb.generate(Graph.from_edges("alone", 3, np.empty((0, 2)))).observe(features=False)
