"""Each mistake that people make with Laplacians is named; what is right passes in silence."""

import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.sparse.csgraph as csgraph
from hypothesis import given
from hypothesis import strategies as st

from lograb.conventions import Block, check
from lograb.conversions import convert
from lograb.errors import LograbError, LograbNotice

KARATE = nx.to_numpy_array(nx.karate_club_graph(), weight=None)
GROUPS = [sorted(group) for group in nx.community.greedy_modularity_communities(nx.karate_club_graph())]


def spectrum(adjacency):
    return np.linalg.eigh(csgraph.laplacian(adjacency, normed=True))


def unnormalised(adjacency):
    return np.linalg.eigh(csgraph.laplacian(adjacency))


def silos(solve=spectrum, rank=6, values=True, groups=GROUPS, adjacency=KARATE):
    blocks = []
    for i, group in enumerate(groups):
        w, u = solve(adjacency[np.ix_(group, group)])
        blocks.append(Block(f"patch {i}", u[:, :rank], w[:rank] if values else None))
    return blocks


def changed(blocks, change):
    return [Block(b.label, change(b.vectors), b.values) for b in blocks]


def silently(blocks, sigma=None, gauge="sign"):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(blocks, sigma, gauge)


@pytest.mark.parametrize("groups", [GROUPS, [range(34)]], ids=["silos", "whole"])
@pytest.mark.parametrize("rank", [1, 3, 6, 34])
@pytest.mark.parametrize("values", [True, False])
def test_what_is_right_passes_in_silence(groups, rank, values):
    silently(silos(rank=rank, values=values, groups=groups))
    silently(changed(silos(rank=rank, values=values, groups=groups), lambda v: v.astype(np.float32).astype(float)))


@given(st.integers(0, 10**6), st.integers(2, 30), st.floats(0.5, 4))
def test_any_graph_passes_in_silence(seed, n, density):
    """Disconnected, edgeless and regular ones included; only a regular one may look like D - A."""
    graph = nx.gnm_random_graph(n, int(density * n), seed=seed)
    w, u = spectrum(nx.to_numpy_array(graph))
    for rank in (n, max(1, n // 2)):
        for values in (w[:rank].clip(0, 2), None):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                check([Block("patch 0", u[:, :rank], values)], None, "sign")
            parts = [graph.subgraph(part) for part in nx.connected_components(graph)]
            assert not caught or len(parts) > 1 or nx.is_regular(graph), str(caught[0].message)


def refused(blocks, *words, sigma=None):
    with pytest.raises(LograbError) as error:
        check(blocks, sigma, "sign")
    for word in words:
        assert word in str(error.value), str(error.value)


@pytest.mark.parametrize("rank", [4, 6, 17])
def test_the_unnormalised_laplacian_is_refused_by_name(rank):
    refused(silos(unnormalised, rank), "unnormalised Laplacian", "normed=True")


def test_the_unnormalised_laplacian_is_refused_though_its_eigenvalues_stay_below_2():
    blocks = silos(unnormalised, 4, groups=[range(34)])
    assert blocks[0].values.max() < 2
    refused(blocks, "unnormalised Laplacian")


@pytest.mark.parametrize("values", [True, False])
def test_few_columns_of_the_unnormalised_laplacian_are_noticed(values):
    with pytest.warns(LograbNotice, match="constant.*unnormalised Laplacian"):
        check(silos(unnormalised, 3, values, groups=[range(34)]), None, "sign")


APART = nx.to_numpy_array(nx.disjoint_union(nx.star_graph(6), nx.path_graph(5)))
"""Two parts, neither of them regular."""


@pytest.mark.parametrize("values", [True, False])
def test_the_unnormalised_laplacian_is_noticed_patch_by_patch(values):
    """Some silos are right, some not, and some of those fall apart: no column is constant then."""
    right = silos(rank=3, values=values, groups=[range(34)])
    wrong = silos(unnormalised, 3, values, groups=[range(34)])
    whole = silos(unnormalised, 3, values, groups=[range(12)], adjacency=APART)
    turn = np.array([[0.8, 0.6, 0], [-0.6, 0.8, 0], [0, 0, 1]])
    mixed = changed(whole, lambda v: v * np.sign(v.sum(axis=0) + 1e-9) @ turn)
    assert all(np.ptp(block.vectors[:, 0]) > 0.01 for block in whole + mixed)
    with pytest.warns(LograbNotice, match="in 3 of 5 patches.*unnormalised Laplacian"):
        check([*right, *wrong, *whole, *right, *mixed], None, "sign")
    silently(silos(rank=3, values=values, groups=[range(12)], adjacency=APART))


def test_a_small_regular_patch_among_others_is_no_news():
    clique = silos(rank=3, groups=[range(5)], adjacency=1 - np.eye(5))
    silently([*silos(rank=3), *clique])


def test_regular_graphs_are_legitimate():
    adjacency = nx.to_numpy_array(nx.circulant_graph(12, [1, 3]))
    with pytest.warns(LograbNotice, match="regular"):
        check(silos(rank=4, groups=[range(12)], adjacency=adjacency), None, "sign")


def backwards(solve):
    def largest(adjacency):
        w, u = solve(adjacency)
        return w[::-1][:3][::-1], u[:, ::-1][:, :3][:, ::-1]

    return largest


def test_the_largest_instead_of_the_smallest():
    refused(silos(backwards(spectrum), 3), "largest were kept", "SA")
    refused(silos(backwards(spectrum), 3, values=False), "largest")
    refused(silos(backwards(unnormalised), 3), "unnormalised Laplacian")
    refused(silos(backwards(np.linalg.eigh), 3), "adjacency matrix")


def without_first(adjacency):
    w, u = spectrum(adjacency)
    return w[1:], u[:, 1:]


@pytest.mark.parametrize("rank", [3, 6])
def test_a_dropped_first_eigenvector(rank):
    """As by AddLaplacianEigenvectorPE, dgl.lap_pe and sklearn's default."""
    refused(silos(without_first, rank), "was dropped", "first column")
    refused(silos(without_first, rank, values=False), "dropped", "first column")


def test_adjacency_and_similarity():
    refused(silos(lambda a: np.linalg.eigh(a)), "adjacency matrix")
    similarity = silos(lambda a: np.linalg.eigh(np.eye(len(a)) - csgraph.laplacian(a, normed=True)), 34)
    refused(similarity, "I - L", "similarity")
    top = [Block(b.label, b.vectors[:, -3:], b.values[-3:]) for b in similarity]
    assert all(b.values.min() > 0 for b in top)
    refused(top, "I - L", "similarity")
    silently(convert(top, "similarity"))


def test_normalised_rows_cannot_be_undone():
    rows = changed(silos(), lambda v: v / np.linalg.norm(v, axis=1, keepdims=True))
    refused(rows, "rows", "spectral clustering")


@pytest.mark.parametrize("scale", [3.0, 0.1, np.exp(-np.arange(6))])
def test_scaled_columns(scale):
    refused(changed(silos(), lambda v: v * scale), "length 1", "norm(V, axis=0)")


def random_walk(adjacency):
    w, u = spectrum(adjacency)
    return w, u / np.sqrt(adjacency.sum(axis=1))[:, None]


@pytest.mark.parametrize("rank", [3, 6, 17])
def test_eigenvectors_of_the_random_walk(rank):
    blocks = silos(random_walk, rank)
    refused(blocks, "random-walk")
    refused(changed(blocks, lambda v: v / np.linalg.norm(v, axis=0)), "random-walk")
    bare = [Block(b.label, b.vectors[:, 1:]) for b in blocks]
    refused(bare, "random-walk")


def test_values_and_columns_in_different_orders():
    blocks = silos()
    refused([Block(b.label, np.roll(b.vectors, 1, axis=1), b.values) for b in blocks], "do not belong together")


def test_loops_show_in_a_complete_spectrum():
    def looped(a):
        a = a + np.eye(len(a))
        d = a.sum(axis=1)
        return np.linalg.eigh(np.eye(len(a)) - a / np.sqrt(np.outer(d, d)))

    refused(silos(looped, 17), "loops")


def test_weights_are_noticed():
    weighted = nx.to_numpy_array(nx.karate_club_graph())
    with pytest.warns(LograbNotice, match="weights"):
        check(silos(adjacency=weighted), None, "sign")


@pytest.mark.parametrize("sigma", [0.02, 0.1, 0.3])
def test_noise_is_no_mistake(sigma):
    rng = np.random.default_rng(0)
    noisy = changed(silos(), lambda v: v + sigma * rng.standard_normal(v.shape))
    silently(noisy, sigma)
    with pytest.warns(LograbNotice, match="not announced"):
        check(noisy, None, "sign")
    with pytest.warns(LograbNotice, match="announced as 0"):
        check(noisy, 0.0, "sign")


def test_a_rotation_of_all_columns_is_judged_by_its_span():
    rng = np.random.default_rng(0)
    rotated = changed(silos(values=False), lambda v: v @ np.linalg.qr(rng.standard_normal((v.shape[1],) * 2))[0])
    silently(rotated, gauge="rotation")
    dropped = silos(without_first, 4, values=False)
    with pytest.raises(LograbError, match="dropped"):
        check(dropped, None, "rotation")


def connected(seed, n, density):
    graph = nx.gnm_random_graph(n, int(density * n), seed=seed)
    return nx.to_numpy_array(graph.subgraph(max(nx.connected_components(graph), key=len)))


SEEDS = st.integers(0, 10**6)


@given(SEEDS, st.integers(3, 40), st.floats(1, 3), st.booleans(), st.booleans(), st.integers(0, 10))
def test_random_walk_becomes_symmetric(seed, n, density, dropped, unit, more):
    adjacency = connected(seed, n, density)
    w, u = spectrum(adjacency)
    rank = min(len(w), int(np.sqrt(2 * len(w))) + 4 + more)
    v = (u / np.sqrt(np.maximum(adjacency.sum(axis=1), 1))[:, None])[:, int(dropped) : rank]
    if not v.size:
        return
    v = v / np.linalg.norm(v, axis=0) if unit else v
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LograbNotice)
        try:
            (found,) = convert([Block("patch 0", v)], "random-walk")
        except LograbError as error:  # the cut runs through an eigenvalue that twins repeat
            assert "degrees=" in str(error)  # noqa: PT017
            assert rank < len(w)
            return
    signs = np.sign((found.vectors * u[:, :rank]).sum(axis=0))
    assert np.abs(found.vectors * signs - u[:, :rank]).max() < 1e-8


def test_too_few_columns_of_the_random_walk_need_degrees():
    w, v = random_walk(KARATE)
    with pytest.raises(LograbError, match="degrees="):
        convert([Block("patch 0", v[:, :3], w[:3])], "random-walk")
    (found,) = convert([Block("patch 0", v[:, :3], w[:3], degrees=KARATE.sum(axis=1))], "random-walk")
    assert np.allclose(np.abs(found.vectors), np.abs(spectrum(KARATE)[1][:, :3]))


def test_what_is_no_random_walk_is_not_converted():
    _, u = unnormalised(KARATE)
    with pytest.raises(LograbError):
        convert([Block("patch 0", u[:, 1:20] + 0.01 * np.sin(np.arange(34 * 19).reshape(34, 19)))], "random-walk")


def test_complete_unnormalised_spectra_are_converted():
    adjacency = np.zeros((35, 35))
    adjacency[:34, :34] = KARATE  # and an isolated member
    (found,) = convert([Block("patch 0", *unnormalised(adjacency)[::-1])], "unnormalised")
    assert np.allclose((found.vectors * found.values) @ found.vectors.T, csgraph.laplacian(adjacency, normed=True))
    with pytest.raises(LograbError, match="unnormalised Laplacian.*complete"):
        convert(silos(unnormalised, 6), "unnormalised")


def test_unknown_laplacians_and_idle_degrees():
    with pytest.raises(LograbError, match="random-walk"):
        convert(silos(), "random walk")
    with pytest.raises(LograbError, match="degrees are for"):
        convert([Block("patch 0", np.eye(2), degrees=np.ones(2))], "symmetric")
