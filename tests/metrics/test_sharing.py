import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import lograb
from lograb.pairs import shared_pairs
from lograb.ragged import pointer


@st.composite
def covers(draw):
    n = draw(st.integers(1, 150))
    return n, draw(st.lists(st.sets(st.integers(0, n - 1), max_size=20), max_size=8))


@settings(max_examples=80)
@given(covers(), st.integers(0, 1000))
def test_agrees_with_a_table_of_all_pairs(cover, seed):
    n, sets = cover
    together = np.zeros((n, n), dtype=bool)
    for members in sets:
        together[np.ix_(list(members), list(members))] = True
    upper = np.stack(np.triu_indices(n, k=1), axis=1)
    pairs = np.random.default_rng(seed).permutation(upper)[:40]
    nodes = np.array([u for members in sets for u in sorted(members)], dtype=np.int64)
    count, shared = shared_pairs(n, nodes, pointer([len(s) for s in sets]), pairs)
    assert count == together[upper[:, 0], upper[:, 1]].sum()
    assert np.array_equal(shared, together[pairs[:, 0], pairs[:, 1]])


def test_many_blocks():
    """More nodes than one block of bits holds; patches as products of a sparse matrix say the same."""
    seen = lograb.generate("citation", d=2, p=0.2, k=1).observations
    rows = np.repeat(np.arange(seen.n_patches), seen.sizes)
    inside = np.zeros((seen.n_patches, seen.n_nodes), dtype=np.float32)
    inside[rows, seen.nodes] = 1
    together = np.triu(inside.T @ inside, k=1) > 0
    pairs = np.sort(np.random.default_rng(0).integers(seen.n_nodes, size=(5000, 2)), axis=1)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    count, shared = shared_pairs(seen.n_nodes, seen.nodes, seen.ptr, pairs)
    assert count == together.sum()
    assert np.array_equal(shared, together[pairs[:, 0], pairs[:, 1]])
