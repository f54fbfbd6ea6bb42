"""Small patch sets with known content, for all tests of learning."""

import numpy as np

from lograb.learning.patchset import PatchSet
from lograb.ragged import pointer, ranges


def make_patches(edge_lists, sizes, *, seed=0, n_features=6, k=3, labels=None, features=None):
    """Patches of disjoint nodes with random features and coordinates; row i is node i."""
    rng = np.random.default_rng(seed)
    n = int(sum(sizes))
    ptr = pointer(sizes)
    edges = [np.array(edges, dtype=np.int64).reshape(-1, 2) for edges in edge_lists]
    return PatchSet(
        name="tiny",
        ptr=ptr,
        nodes=np.arange(n),
        n_nodes=n,
        spectral=rng.standard_normal((n, k)).astype(np.float32),
        edge_ptr=pointer([len(e) for e in edges]),
        edges=np.concatenate(edges),
        centres=ptr[:-1].copy(),
        features=rng.standard_normal((n, n_features)).astype(np.float32) if features is None else features,
        labels=rng.integers(3, size=n) if labels is None else labels,
    )


def reorder(patches, rng):
    """Shuffle the members inside every patch; returns the patches and, for each new row, the old one."""
    order = np.concatenate(
        [start + rng.permutation(size) for start, size in zip(patches.ptr[:-1], patches.sizes)]
    )
    position = np.empty_like(order)
    position[order] = ranges(np.zeros(patches.n_patches, dtype=np.int64), patches.sizes)
    start = np.repeat(patches.ptr[:-1], np.diff(patches.edge_ptr))[:, None]
    hops = patches.distances
    if hops is not None:
        tables = []
        for i, at in enumerate(pointer(patches.sizes**2)[:-1]):
            q, first = int(patches.sizes[i]), patches.ptr[i]
            inside = order[first : first + q] - first
            tables.append(hops[at : at + q * q].reshape(q, q)[np.ix_(inside, inside)].ravel())
        hops = np.concatenate(tables)
    shuffled = PatchSet(
        name=patches.name, ptr=patches.ptr, nodes=patches.nodes[order], n_nodes=patches.n_nodes,
        spectral=patches.spectral[order], edge_ptr=patches.edge_ptr, edges=position[patches.edges + start],
        features=patches.features, labels=patches.labels,
        row_encodings={name: table[order] for name, table in patches.row_encodings.items()},
        patch_encodings=patches.patch_encodings, distances=hops,
    )  # fmt: skip
    return shuffled, order


STAR, PATH, TRIANGLE = [(0, 1), (0, 2), (0, 3)], [(0, 1), (1, 2), (2, 3), (3, 4)], [(0, 1), (0, 2), (1, 2)]


def four_patches(**rest):
    """A star, a path, a triangle with an isolated node, and a single node."""
    return make_patches([STAR, PATH, TRIANGLE, []], [4, 5, 4, 1], **rest)
