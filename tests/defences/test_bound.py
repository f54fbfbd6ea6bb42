"""What nobody can exceed."""

import numpy as np
import pytest
from scipy.special import ndtri

import lograb
from lograb.defences.bound import Bound, bound

PATCH = [list(range(12))]


def small(seed=0, n=12, **parameters):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < 0.4, 1)
    upper[np.arange(n - 1), np.arange(1, n)] = True
    graph = lograb.Graph.from_edges("small", n, np.argwhere(upper))
    return lograb.generate(graph, patches=PATCH, k=5, **parameters)


def bound_of(instance, **settings) -> Bound:
    return bound(instance.observations, instance.patch_edges, np.random.default_rng(0), **settings)


def test_it_is_the_distance_over_the_noise():
    one, two = (bound_of(small(sigma=s, eigenvalues=False)) for s in (0.5, 1.0))
    assert np.allclose(one.mu, 2 * two.mu)
    assert np.allclose(one.mu, one.distance / 0.5)
    assert (one.mu > 0).all()
    again = bound_of(small(sigma=1.0, eigenvalues=False, releases=4))
    assert np.allclose(again.mu, one.mu)


def test_a_wider_gauge_helps():
    mu = {gauge: bound_of(small(sigma=0.3, gauge=gauge, eigenvalues=False)).mu
          for gauge in ("none", "sign", "rotation")}  # fmt: skip
    assert (mu["sign"] <= mu["none"] + 1e-9).all()
    assert (mu["rotation"] <= mu["sign"] + 1e-9).all()


def test_what_is_exact_bounds_nothing():
    for parameters in ({"sigma": 0.3}, {"sigma": 0.0, "eigenvalues": False},
                       {"eigenvalues": False, "defences": ["round:bits=3"]}):  # fmt: skip
        assert np.isinf(bound_of(small(**parameters)).mu).all()
    noised = bound_of(small(sigma=0.3, defences=["eigenvalue-noise:sigma=0.1"]))
    assert (noised.mu > bound_of(small(sigma=0.3, eigenvalues=False)).mu).all()
    assert np.isfinite(noised.mu).all()


def test_exact_eigenvalues_that_differ_a_little_bound_nothing():
    clique = [(i, j) for i in range(12) for j in range(i)]
    path = [(i, i + 1) for i in range(11, 22)]
    edges = [*clique, *path, *((22 + i, 22 + j) for i, j in clique)]
    parameters = {"strategy": "global", "k": 2, "sigma": 1.0}
    instance = lograb.generate(lograb.Graph.from_edges("barbell", 34, edges), **parameters)
    found = bound_of(instance)
    some = found.edges[::10]
    for u, w in some.tolist():  # the differences are published, and small
        kept = instance.truth.edges[~(instance.truth.edges == (u, w)).all(axis=1)]
        other = lograb.generate(lograb.Graph.from_edges("less", 34, kept), **parameters).observations
        assert np.abs(other.values - instance.observations.values).max() > 1e-9
    assert np.isinf(found.mu).all()


def test_rounding_errors_are_no_difference():
    graph = lograb.generate("karate", d=1, k=34, gauge="rotation", sigma=0, eigenvalues=False)
    assert (bound_of(graph).mu == 0).all()


def test_a_complete_subspace_says_nothing():
    graph = lograb.generate("karate", d=1, k=64, sigma=0.1, gauge="rotation", eigenvalues=False)
    assert np.allclose(bound_of(graph).mu, 0.0, atol=1e-5)


def test_repeated_eigenvalues_that_an_edge_breaks_count():
    # A star's eigenvalue 1 repeats; with an edge between two leaves less often. Its random basis and that of the
    # smaller eigenspace differ although one space holds the other: taking the best basis would say they need not.
    edges = [(0, i) for i in range(1, 8)] + [(1, 2)]
    graph = lograb.Graph.from_edges("star", 8, edges)
    instance = lograb.generate(graph, patches=[list(range(8))], k=8, sigma=0.1, eigenvalues=False)
    found = bound_of(instance)
    at = np.flatnonzero((found.edges == (1, 2)).all(axis=1))[0]
    plain = lograb.generate(lograb.Graph.from_edges("star", 8, edges[:-1]), patches=[list(range(8))], k=8, sigma=0,
                            eigenvalues=False)  # fmt: skip
    closest = []
    for seed in range(20):  # whatever frames are drawn, they can be brought at least as close as the bound says
        with_edge, without = (lograb.generate(g, patches=[list(range(8))], k=8, seed=seed).observations
                              for g in (graph, plain.truth))  # fmt: skip
        one, other = with_edge.block(0), without.block(0)
        groups = [(np.flatnonzero(np.abs(with_edge.spectrum(0) - a) < 1e-8),
                   np.flatnonzero(np.abs(without.spectrum(0) - b) < 1e-8))
                  for a in np.unique(with_edge.spectrum(0).round(6))
                  for b in np.unique(without.spectrum(0).round(6))]  # fmt: skip
        total = 0.0
        for mine, yours in groups:
            both = np.intersect1d(mine, yours)
            if len(both):
                s = np.linalg.svd(one[:, both].T @ other[:, both], compute_uv=False)
                total += 2 * len(both) - 2 * s.sum()
        closest.append(np.sqrt(total))
    assert max(closest) <= found.distance[at] + 1e-6
    assert min(closest) > 0.3  # which a best basis would not have shown


def test_a_sample_is_part_of_the_whole():
    instance = small(sigma=0.3, eigenvalues=False)
    whole, some = bound_of(instance), bound_of(instance, effort=5 * 12**3)
    assert len(some.edges) == 5
    assert some.n_edges == len(whole.edges)
    at = [np.flatnonzero((whole.edges == edge).all(axis=1))[0] for edge in some.edges]
    assert np.allclose(whole.mu[at], some.mu)
    assert whole.per_node().max() == whole.mu.max()


def test_sanitised_graphs_are_bounded_by_their_epsilon():
    found = bound_of(lograb.generate("karate", defences=["edge-rand:epsilon=2"]))
    assert np.allclose(found.tpr(0.001), np.exp(2.0) * 0.001)


def test_bound_and_ledger_say_the_same_about_membership():
    for parameters, public in (({"patches": [list(range(17)), list(range(17, 34))]}, True), ({"d": 1}, False)):
        instance = lograb.generate("karate", defences=["edge-rand:epsilon=2"], **parameters)
        for sentence in (lograb.ledger(instance)["sentence"], lograb.bound(instance)[0]["sentence"]):
            assert ("treated as public" in sentence) == public


@pytest.mark.parametrize("gauge", ["none", "sign", "rotation"])
def test_no_test_beats_it_and_the_best_one_reaches_it(gauge):
    """Draw the release many times with and without an edge; the likelihood ratio is the best test there is."""
    sigma, repeats, fpr = 0.4, 2000, 0.05
    instance = small(sigma=sigma, gauge=gauge, eigenvalues=False)
    found = bound_of(instance)
    at = int(np.argsort(found.mu)[len(found.mu) // 2])
    missing = found.edges[at]
    kept = instance.truth.edges[~(instance.truth.edges == missing).all(axis=1)]
    graphs = instance.truth, lograb.Graph.from_edges("less", 12, kept)
    true, false = (_releases(graph, gauge, sigma, repeats) for graph in graphs)
    centres = [_releases(graph, gauge, 0.0, 1 if gauge == "none" else 200, seed=7) for graph in graphs]

    def ratio(seen):
        likely = [np.exp(-np.square(seen[:, None] - c[None]).sum(axis=2) / (2 * sigma**2) + 20).mean(axis=1)
                  for c in centres]  # fmt: skip
        return np.log(likely[0]) - np.log(likely[1])

    cut = np.quantile(ratio(false), 1 - fpr)
    tpr = float((ratio(true) > cut).mean())
    error = 3 * np.sqrt(0.25 / repeats) + 0.02
    assert tpr <= found.tpr(fpr)[at] + error
    if gauge == "none":  # nothing is drawn but noise: the bound is sharp, and half the noise would break it
        assert tpr >= found.tpr(fpr)[at] - error
        assert ndtri(tpr) - ndtri(fpr) < 1.5 * found.mu[at]


def _releases(graph, gauge, sigma, repeats, seed=1):
    """Embeddings of the one patch with fresh gauges and noise, flat."""
    from lograb.archive import schema
    from lograb.fragment import fragment
    from lograb.spec import InstanceSpec
    from lograb.types import Patches

    spec = InstanceSpec(strategy="custom", k=5, sigma=sigma, gauge=gauge, eigenvalues=False)
    patch = Patches.from_lists(12, PATCH)
    return np.stack([fragment(graph, spec, np.random.SeedSequence((seed, i)), patch)[schema.VECTORS]
                     for i in range(repeats)])  # fmt: skip


def test_noise_before_a_subspace_is_all_that_counts_against_true_columns():
    """Making noisy columns orthonormal may take them further apart than the true ones are."""
    how = {"strategy": "cluster", "clusters": 2, "k": 4, "eigenvalues": False}
    before = lograb.bound(lograb.generate("karate", sigma=0.05, gauge="rotation", **how))[1][0]
    both = lograb.bound(lograb.generate("karate", sigma=0.05, defences=["subspace:sigma=0.3"], **how))[1][0]
    after = lograb.bound(lograb.generate("karate", defences=["subspace:sigma=0.3"], **how))[1][0]
    np.testing.assert_allclose(both.mu, before.mu, rtol=1e-6)
    assert (after.mu < before.mu).all()
