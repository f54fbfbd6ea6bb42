"""Withheld eigenvalues: whoever shares exact eigenvectors has shared them too, and none are made up."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest

import lograb
from lograb.attacks.posterior.noise import patch_noise
from lograb.attacks.posterior.precision import rounding_error
from lograb.attacks.posterior.row_degrees import kernel_of
from lograb.attacks.posterior.withheld import fill_in, find_values
from lograb.types import Floats


def spectrum(graph: nx.Graph, k: int) -> tuple[Floats, Floats]:
    values, vectors = np.linalg.eigh(nx.normalized_laplacian_matrix(graph).toarray())
    return vectors[:, :k], values[:k]


TREE = nx.random_labeled_tree(150, seed=1)
CLUSTERED = nx.powerlaw_cluster_graph(200, 2, 0.3, seed=2)
BOTH = nx.disjoint_union(TREE, CLUSTERED)


@pytest.mark.parametrize(("digits", "error"), [(np.float64, 1e-9), (np.float32, 1e-4)])
@pytest.mark.parametrize(("graph", "k"), [(TREE, 6), (CLUSTERED, 6), (CLUSTERED, 24), (BOTH, 24)])
def test_they_follow_from_exact_eigenvectors(graph: nx.Graph, k: int, digits: type, error: float) -> None:
    vectors, values = spectrum(graph, k)
    signs = np.random.default_rng(3).choice([-1.0, 1.0], k)
    shared = (vectors * signs).astype(digits).astype(float)
    found = find_values(shared, rounding_error(shared))
    assert found is not None
    assert found.error < error
    assert len(found.columns) > 0.9 * k
    np.testing.assert_allclose(found.values, values[found.columns], atol=6.0 * found.error + 1e-12)


def noisy(vectors: Floats, rng: np.random.Generator) -> Floats:
    return vectors + 0.05 / np.sqrt(len(vectors)) * rng.standard_normal(vectors.shape)


def shuffled(vectors: Floats, rng: np.random.Generator) -> Floats:
    """The columns after the first, each with its entries in another order."""
    return np.column_stack([vectors[:, :1], rng.permuted(vectors[:, 1:], axis=0)])


def turned(vectors: Floats, rng: np.random.Generator) -> Floats:
    """The columns after the first in another basis."""
    turn = np.linalg.qr(rng.standard_normal((vectors.shape[1] - 1,) * 2))[0]
    return np.column_stack([vectors[:, :1], vectors[:, 1:] @ turn])


@pytest.mark.parametrize("spoilt", [noisy, shuffled, turned])
def test_nothing_is_made_up(spoilt: Callable[[Floats, np.random.Generator], Floats]) -> None:
    vectors, _ = spectrum(CLUSTERED, 12)
    shared = spoilt(vectors, np.random.default_rng(4))
    noise = 0.05 / np.sqrt(len(shared)) if spoilt is noisy else 0.0
    assert find_values(shared, np.maximum(rounding_error(shared), noise)) is None


SYMMETRIC = {
    "equal leaves": (nx.balanced_tree(2, 6), 8),
    "leaves of hubs": (nx.barabasi_albert_graph(150, 1, seed=0), 16),
    "circulant": (nx.circulant_graph(100, [1, 2]), 16),
    "solid": (nx.dodecahedral_graph(), 8),
    "few columns": (nx.tutte_graph(), 3),
    "cube": (nx.hypercube_graph(6), 3),
    "square": (nx.grid_2d_graph(8, 8), 3),
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetry_is_not_mistaken_for_agreement(name: str) -> None:
    """Rows that are alike agree on wrong sets too: the other leaf of a twin, every second node of a circle."""
    graph, k = SYMMETRIC[name]
    vectors, values = spectrum(graph, k)
    found = find_values(vectors, rounding_error(vectors))
    assert found is None or np.abs(found.values - values[found.columns]).max() < 1e-6


def test_many_components_take_no_time() -> None:
    graph = nx.disjoint_union_all([nx.random_labeled_tree(5, seed=seed) for seed in range(60)])
    kernel = kernel_of(spectrum(graph, 80)[0], np.full((300, 80), 1e-16))
    assert kernel is not None
    assert kernel.zeros == 60
    assert (kernel.degrees == [degree for _, degree in graph.degree()]).all()


def test_withholding_them_hides_nothing_of_an_exact_embedding() -> None:
    graph = nx.powerlaw_cluster_graph(400, 2, 0.3, seed=6)
    told = lograb.generate(graph, strategy="cluster", clusters=2, k=16, seed=5)
    hidden = lograb.generate(graph, strategy="cluster", clusters=2, k=16, seed=5, eigenvalues=False)
    assert hidden.observe().values is None
    scores = [lograb.evaluate(instance, lograb.attack(instance, "posterior")) for instance in (told, hidden)]
    assert scores[1].f1 > scores[0].f1 - 0.02 > 0.9


def test_exact_truncated_patches_are_checked_all_the_same() -> None:
    """Their eigenvalues are found, so that guesses can be held against them; noise leaves nothing to find."""
    graph = nx.powerlaw_cluster_graph(300, 2, 0.3, seed=6)
    given = {"d": 2, "k": 16, "seed": 3}
    told, hidden, noised = (lograb.generate(graph, **given, **more).observe() for more in (  # type: ignore[arg-type]
        {}, {"eigenvalues": False}, {"eigenvalues": False, "sigma": 1e-3}))  # fmt: skip
    unknown = np.full(hidden.n_patches, np.inf)
    filled, blur, _ = fill_in(hidden, patch_noise(hidden), unknown)
    found = np.flatnonzero(np.isfinite(blur))
    assert len(found) > 0.75 * (hidden.ranks < hidden.sizes).sum()
    for patch in found.tolist():
        close = max(6.0 * blur[patch], 1e-10)
        np.testing.assert_allclose(filled.spectrum(patch), told.spectrum(patch), atol=close)
    assert not fill_in(noised, patch_noise(noised), unknown)[2]
    answer = lograb.attack(hidden, "posterior")
    assert answer.diagnostics["passed"][0] > 0.5 * hidden.n_patches


def test_withheld_eigenvalues_of_complete_patches_in_pieces_are_found_too() -> None:
    """Several components, single nodes among them: as many columns have eigenvalue 0."""
    clustered = nx.powerlaw_cluster_graph(40, 2, 0.3, seed=6)
    graph = nx.disjoint_union_all([clustered, nx.cycle_graph(9), nx.star_graph(5), nx.empty_graph(3)])
    hidden = lograb.generate(graph, strategy="global", k=len(graph), eigenvalues=False)
    assert lograb.evaluate(hidden, lograb.attack(hidden, "posterior")).f1 > 0.97
