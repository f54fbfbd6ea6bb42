"""Spectra checked by what defines them: L U = U Λ, orthonormality, and independence of any basis."""

import tracemalloc

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import graphs

from lograb import parallel
from lograb.observations import embedding, observe, spectra
from lograb.observations.gauges import choose_basis, orthonormalise, rotate
from lograb.observations.laplacian import Laplacians
from lograb.observations.spectra import largest, zero_space
from lograb.patches import decompose, induced_edges
from lograb.spec import InstanceSpec
from lograb.types import Graph, Patches


def share(graph, patches=None, **parameters):
    spec = InstanceSpec(**parameters)
    patches = patches or decompose(graph, spec, np.random.default_rng(0))
    return observe(patches, induced_edges(patches, graph), spec, *map(np.random.default_rng, (1, 2, 3)))


def laplacian(graph, nodes):
    """The textbook matrix of one patch, zero rows for isolated nodes."""
    inner = graph.adjacency[nodes][:, nodes].toarray().astype(float)
    degree = inner.sum(axis=1)
    scale = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    return np.diag((degree > 0).astype(float)) - scale[:, None] * inner * scale


def star(leaves):
    return Graph.from_edges("star", leaves + 1, [(0, i) for i in range(1, leaves + 1)])


@settings(max_examples=60)
@given(graphs(), st.integers(1, 9), st.integers(0, 2), st.sampled_from(["sign", "none"]))
def test_columns_are_eigenvectors_of_the_patch_laplacian(graph, k, d, gauge):
    seen = share(graph, d=d, k=k, gauge=gauge)
    for i in range(seen.n_patches):
        matrix = laplacian(graph, seen.members(i))
        spectrum = np.linalg.eigvalsh(matrix)
        vectors, values = seen.block(i), seen.spectrum(i)
        assert vectors.shape[1] == min(k, len(matrix))
        assert np.allclose(values, spectrum[: len(values)], atol=1e-10)
        assert np.allclose(matrix @ vectors, vectors * values, atol=1e-10)
        assert np.allclose(vectors.T @ vectors, np.eye(len(values)), atol=1e-10)
        if len(values) == len(matrix):
            assert np.isnan(seen.next_values[i])
        else:
            assert np.isclose(seen.next_values[i], spectrum[len(values)], atol=1e-10)


@settings(max_examples=30)
@given(graphs(), st.integers(1, 9))
def test_rotation_keeps_the_span_and_nothing_else(graph, k):
    signs, rotated = share(graph, k=k, gauge="sign"), share(graph, k=k, gauge="rotation")
    for i in range(signs.n_patches):
        block, spectrum = rotated.block(i), np.linalg.eigvalsh(laplacian(graph, signs.members(i)))
        rank = block.shape[1]
        assert np.allclose(block.T @ block, np.eye(rank), atol=1e-10)
        if rank == len(spectrum) or spectrum[rank] - spectrum[rank - 1] > 1e-6:
            expected = signs.block(i) @ signs.block(i).T
            assert np.allclose(block @ block.T, expected, atol=1e-9)


def test_known_spectra():
    seen = share(star(6), d=1, p=1.0, k=32)
    assert np.allclose(seen.spectrum(0), [0, 1, 1, 1, 1, 1, 2], atol=1e-12)
    clique = Graph.from_edges("clique", 5, [(i, j) for i in range(5) for j in range(i)])
    assert np.allclose(share(clique, k=32).spectrum(0), [0] + [1.25] * 4, atol=1e-12)
    alone = Graph.from_edges("alone", 2, np.empty((0, 2)))
    seen = share(alone, k=3)
    assert seen.sizes.tolist() == [1, 1]
    assert seen.values.tolist() == [0, 0]
    assert np.allclose(np.abs(seen.vectors), 1)


def test_disconnected_patch_has_one_zero_per_component():
    graph = Graph.from_edges("two", 6, [(0, 1), (2, 3), (3, 4)])
    seen = share(graph, Patches.from_lists(6, [range(6)]), strategy="custom", k=6)
    assert (seen.spectrum(0) < 1e-12).sum() == 3  # two components and the isolated node


def random_rotation_inside(values, vectors, rng):
    """Another orthonormal eigenbasis of the same matrix: what another LAPACK might return."""
    turned = vectors.copy()
    for value in np.unique(values.round(8)):
        same = np.flatnonzero(np.abs(values - value) < 1e-7)
        turn, _ = np.linalg.qr(rng.standard_normal((len(same), len(same))))
        turned[:, same] = vectors[:, same] @ turn
    return turned


@settings(max_examples=60)
@given(graphs(), st.integers(1, 12), st.integers(0, 9))
def test_published_basis_does_not_depend_on_the_solvers_basis(graph, k, seed):
    rng = np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(laplacian(graph, np.arange(graph.n_nodes)))
    other = random_rotation_inside(values, vectors, rng)
    reference = rng.standard_normal((1, graph.n_nodes, min(k, graph.n_nodes)))
    chosen = [choose_basis(values[None], basis[None], reference) for basis in (vectors, other)]
    assert np.allclose(*chosen, atol=1e-8)
    assert np.allclose(*(rotate(basis, reference[:, ::-1]) for basis in chosen), atol=1e-7)


def test_published_basis_is_uniform_inside_a_repeated_eigenvalue():
    """A star's leaves are alike: whatever is published must treat them alike, on average."""
    values, vectors = np.linalg.eigh(laplacian(star(5), np.arange(6)))
    reference = np.random.default_rng(0).standard_normal((4000, 6, 2))
    stack = np.broadcast_to(vectors, (4000, 6, 6))
    chosen = choose_basis(np.broadcast_to(values, (4000, 6)), stack, reference)[:, :, 1]
    assert np.abs(chosen.mean(axis=0)).max() < 0.05
    assert np.allclose((chosen**2).mean(axis=0), [0] + [0.2] * 5, atol=0.02)


def test_orthonormalise_is_the_qr_with_positive_diagonal():
    columns = np.random.default_rng(0).standard_normal((3, 7, 4))
    q = orthonormalise(columns)
    r = q.swapaxes(1, 2) @ columns
    assert np.allclose(np.tril(r, -1), 0, atol=1e-12)
    assert (np.diagonal(r, axis1=1, axis2=2) > 0).all()


def test_gauge_none_is_the_same_for_every_seed_and_positive_first():
    graph = star(5)
    spec = InstanceSpec(gauge="none", k=3)
    patches = decompose(graph, spec, np.random.default_rng(0))
    edges = induced_edges(patches, graph)
    one, two = (observe(patches, edges, spec, *map(np.random.default_rng, (s, s, s))) for s in (1, 2))
    assert np.allclose(one.vectors, two.vectors, atol=1e-12)
    assert (one.block(0)[:, 0] > 0).all()


def test_noise_has_the_stated_size_and_spares_the_eigenvalues():
    graph = Graph.from_edges("ring", 900, [(i, (i + 1) % 900) for i in range(900)])
    clean, noisy = share(graph, d=2, k=4), share(graph, d=2, k=4, sigma=0.1)
    difference = noisy.vectors - clean.vectors
    assert abs(difference.std() - 0.1) < 0.003
    assert abs(difference.mean()) < 0.003
    assert np.array_equal(noisy.values, clean.values)


def test_withheld_eigenvalues_are_absent():
    seen = share(star(4), eigenvalues=False)
    assert seen.values is None
    assert seen.next_values is None


def hub(q, triangles=0, pairs=0, random_edges=0):
    """An ego network of q nodes with the given structure among the neighbours."""
    edges = [(0, i) for i in range(1, q)]
    for i in range(triangles):
        a = 1 + 3 * i
        edges += [(a, a + 1), (a + 1, a + 2), (a, a + 2)]
    edges += [(1 + 2 * i, 2 + 2 * i) for i in range(pairs)]
    edges += np.random.default_rng(0).integers(1, q, (random_edges, 2)).tolist()
    return Graph.from_edges("hub", q, edges)


HUBS = [
    {}, {"triangles": 30}, {"triangles": 200}, {"pairs": 3}, {"pairs": 150},
    {"random_edges": 300}, {"random_edges": 3000},
]  # fmt: skip


@pytest.mark.parametrize("structure", HUBS)
def test_sparse_solver_finds_what_the_dense_one_finds(structure):
    graph = hub(700, **structure)
    matrix = np.eye(700) - laplacian(graph, np.arange(700))
    values, vectors = largest(sp.csr_array(matrix), 33)
    assert np.allclose(values, np.linalg.eigvalsh(matrix)[::-1][:33], atol=1e-9)
    assert np.allclose(matrix @ vectors, vectors * values, atol=1e-9)
    assert np.allclose(vectors.T @ vectors, np.eye(33), atol=1e-9)


@pytest.mark.parametrize("count", [4, 12, 33])
def test_sparse_solver_takes_components_together(count):
    """One large component, a ring, a pair and an isolated node: 4 zeros, then the merged rest."""
    ring = [(700 + i, 700 + (i + 1) % 40) for i in range(40)]
    edges = np.concatenate([hub(700, random_edges=300).edges, ring, [(740, 741)]])
    matrix = np.eye(743) - laplacian(Graph.from_edges("parts", 743, edges), np.arange(743))
    values, vectors = largest(sp.csr_array(matrix), count)
    assert np.allclose(values, np.linalg.eigvalsh(matrix)[::-1][:count], atol=1e-9)
    assert np.allclose(matrix @ vectors, vectors * values, atol=1e-9)
    assert np.allclose(vectors.T @ vectors, np.eye(count), atol=1e-9)


def test_plain_lanczos_would_miss_multiplicities():
    """The reason for deflation: if this ever fails, the deflation loop could be dropped."""
    graph = hub(1500, triangles=30)
    matrix = sp.csr_array(np.eye(1500) - laplacian(graph, np.arange(1500)))
    start = np.random.default_rng(1).standard_normal(1500)
    found = sp.linalg.eigsh(matrix, k=33, which="LA", v0=start, return_eigenvectors=False)
    assert found.min() < -0.3
    values, _ = largest(matrix, 33)
    assert values.min() > -1e-9


@pytest.mark.parametrize("parts", [1, 3])
def test_rings_where_plain_lanczos_stalls(parts):
    """Eigenvalues 1e-7 apart, each twice (or six times): known in closed form, cos(2 pi j / n)."""
    n = 5000
    ring = sp.csr_array((np.full(n, 0.5), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    matrix = sp.block_diag([ring + ring.T] * parts, format="csr")
    expected = np.sort(np.repeat(np.cos(2 * np.pi * np.arange(n) / n), parts))[::-1][:33]
    values, vectors = largest(matrix, 33)
    assert np.allclose(values, expected, atol=1e-11)
    assert np.allclose(vectors.T @ vectors, np.eye(33), atol=1e-9)


def test_signs_are_random_and_fair():
    edges = [(3 * i + a, 3 * i + a + 1) for i in range(1000) for a in (0, 1)]
    graph = Graph.from_edges("paths", 3000, edges)
    patches = Patches.from_lists(3000, [[3 * i, 3 * i + 1, 3 * i + 2] for i in range(1000)])
    first = share(graph, patches, strategy="custom", k=2).vectors.reshape(1000, 3, 2)
    for column in (0, 1):
        positive = (first[:, 0, column] > 0).mean()
        assert 0.42 < positive < 0.58
    assert abs(np.corrcoef(first[:, 0, 0] > 0, first[:, 0, 1] > 0)[0, 1]) < 0.15


def test_a_rotated_complete_patch_does_not_depend_on_its_edges():
    """To the last bit: the rounding errors of V Vᵀ would tell edges."""
    path = [(i, i + 1) for i in range(39)]
    one, other = (share(Graph.from_edges("x", 40, edges), strategy="global", k=64, gauge="rotation")
                  for edges in (path, [*path, (0, 39)]))  # fmt: skip
    assert np.array_equal(one.vectors, other.vectors)


def test_rotations_are_uniform():
    """Each entry of a uniform rotation of r dimensions has mean 0 and mean square 1 / r."""
    patches = Patches.from_lists(4000, [range(4 * i, 4 * i + 4) for i in range(1000)])
    edges = [(4 * i + a, 4 * i + b) for i in range(1000) for a, b in ((0, 1), (1, 2), (2, 3))]
    rotated = share(Graph.from_edges("paths", 4000, edges), patches, strategy="custom", k=4, gauge="rotation")
    blocks = rotated.vectors.reshape(1000, 4, 4)
    assert np.abs(blocks.mean(axis=0)).max() < 0.07
    assert np.allclose((blocks**2).mean(axis=0), 0.25, atol=0.04)
    assert (np.linalg.det(blocks) > 0).mean() == pytest.approx(0.5, abs=0.08)


def test_gauge_none_is_the_same_for_every_k():
    graph = star(5)
    small, large = share(graph, k=2, gauge="none"), share(graph, k=3, gauge="none")
    assert np.allclose(small.block(0)[:, 0], large.block(0)[:, 0])


@pytest.mark.parametrize("gauge", ["sign", "rotation", "none"])
def test_large_patches_take_the_sparse_path_and_agree(monkeypatch, gauge):
    graph = hub(300, random_edges=900)
    dense = share(graph, Patches.from_lists(300, [range(300)]), strategy="custom", k=8, gauge=gauge)
    monkeypatch.setattr(embedding, "DENSE_LIMIT", 50)
    sparse = share(graph, Patches.from_lists(300, [range(300)]), strategy="custom", k=8, gauge=gauge)
    assert np.allclose(dense.values, sparse.values, atol=1e-9)
    assert np.allclose(dense.next_values, sparse.next_values, atol=1e-9)
    assert np.allclose(dense.vectors, sparse.vectors, atol=1e-6)


@settings(max_examples=60)
@given(graphs(max_nodes=30), st.integers(1, 9), st.sampled_from(["sign", "rotation", "none"]))
def test_whole_graphs_in_many_components_agree_on_both_paths(graph, k, gauge):
    """Drawn graphs fall apart; where the cut runs through the eigenvalue 0 even the kept part must agree."""
    dense = share(graph, strategy="global", k=k, gauge=gauge)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding, "DENSE_LIMIT", -1)
        patch.setattr(spectra, "DENSE_LIMIT", 9)
        sparse = share(graph, strategy="global", k=k, gauge=gauge)
    assert np.allclose(dense.values, sparse.values, atol=1e-9)
    assert np.allclose(dense.next_values, sparse.next_values, atol=1e-9, equal_nan=True)
    block, spectrum = sparse.block(0), np.linalg.eigvalsh(laplacian(graph, np.arange(graph.n_nodes)))
    assert np.allclose(block.T @ block, np.eye(block.shape[1]), atol=1e-9)
    rank = block.shape[1]
    if rank == len(spectrum) or spectrum[rank] - spectrum[rank - 1] > 1e-6 or spectrum[rank] < 1e-9:
        assert np.allclose(dense.vectors, block.ravel(), atol=1e-6)


@settings(max_examples=60)
@given(graphs())
def test_zero_space_is_the_kernel_of_the_laplacian(graph):
    matrix = laplacian(graph, np.arange(graph.n_nodes))
    patches = decompose(graph, InstanceSpec(strategy="global"), np.random.default_rng(0))
    kernel = zero_space(Laplacians.of(patches, induced_edges(patches, graph)).sparse(0))
    assert kernel.shape[1] == (np.linalg.eigvalsh(matrix) < 1e-9).sum()
    assert np.allclose(matrix @ kernel.toarray(), 0, atol=1e-12)
    assert np.allclose((kernel.T @ kernel).toarray(), np.eye(kernel.shape[1]), atol=1e-12)


def test_thousands_of_components_cost_no_square_of_anything():
    """20,000 nodes in 8,000 components: a dense matrix would take 3.2 GB, a search hours."""
    edges = [(5 * i + a, 5 * i + a + 1) for i in range(4000) for a in (0, 1, 2)]
    graph = Graph.from_edges("paths", 20_000, edges)
    tracemalloc.start()
    seen = share(graph, strategy="global", k=8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6
    assert np.allclose(seen.values, 0)
    assert seen.next_values.tolist() == [0.0]
    assert np.allclose(seen.block(0).T @ seen.block(0), np.eye(8), atol=1e-12)


def test_results_do_not_depend_on_stacks_and_not_by_a_bit_on_threads(monkeypatch):
    graph = Graph.from_edges("g", 400, nx.gnm_random_graph(400, 1200, seed=1).edges)
    plain = share(graph, d=2, sigma=0.1)
    monkeypatch.setattr(embedding, "THREADS_PAY", 0)
    for cores in (1, 2, 5):
        monkeypatch.setattr(parallel, "n_cores", lambda cores=cores: cores)
        assert np.array_equal(share(graph, d=2, sigma=0.1).vectors, plain.vectors)
    monkeypatch.setattr(embedding, "STACK_BYTES", 1)
    assert np.allclose(share(graph, d=2, sigma=0.1).vectors, plain.vectors, atol=1e-9)


def test_stacks_cover_every_small_patch_once():
    graph = Graph.from_edges("g", 60, nx.gnm_random_graph(60, 90, seed=1).edges)
    patches = decompose(graph, InstanceSpec(), np.random.default_rng(0))
    laplacians = Laplacians.of(patches, induced_edges(patches, graph))
    found = np.concatenate([which for which, _ in laplacians.stacks(5, 1 << 20)])
    assert sorted(found) == np.flatnonzero(patches.sizes <= 5).tolist()
    assert np.allclose(laplacians.sparse(7).toarray(), np.eye(patches.sizes[7]) - laplacian(graph, patches[7]))
