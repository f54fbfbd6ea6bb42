"""Certificates: right whenever they fire, and they do fire."""

import json
from dataclasses import asdict

import numpy as np
import pytest

import lograb
from lograb.errors import LograbError
from lograb.theory import certify, certify_patch
from lograb.theory.certificate import OBSERVED, STATEMENTS
from lograb.theory.elimination import eliminate, entry_bounds, possible_degrees
from lograb.theory.exactness import check_spectrum, complete_adjacency, truncated_twins
from lograb.theory.heat import normalized_laplacian
from lograb.types import Graph

from .graphs import SHAPES, connected_adjacency, cycle, edge_list, random_adjacency, star


def spectrum(adjacency):
    return np.linalg.eigh(normalized_laplacian(adjacency))


def test_complete_spectra_give_every_graph_exactly():
    rng = np.random.default_rng(0)
    cases = [shape(q) for shape in SHAPES.values() for q in (2, 5, 30)]
    cases += [random_adjacency(rng, int(rng.integers(2, 40)), rng.random()) for _ in range(60)]
    for adjacency in cases:
        values, vectors = spectrum(adjacency)
        found, certain = complete_adjacency(vectors, values)
        assert certain
        assert np.array_equal(found, adjacency)


def test_noise_and_rotations_void_the_certificate():
    rng = np.random.default_rng(1)
    values, vectors = spectrum(connected_adjacency(rng, 8, 0.3))
    turn, _ = np.linalg.qr(rng.standard_normal((8, 8)))
    assert not complete_adjacency(vectors + 1e-4 * rng.standard_normal((8, 8)), values)[1]
    assert not complete_adjacency(vectors @ turn, values)[1]


def test_checking_an_estimate_accepts_the_truth_only_when_the_spectrum_is_complete():
    rng = np.random.default_rng(2)
    for _ in range(30):
        q = int(rng.integers(3, 12))
        adjacency = connected_adjacency(rng, q, 0.2)
        values, vectors = spectrum(adjacency)
        assert check_spectrum(adjacency, vectors, values).proves_equality
        other = adjacency.copy()
        i, j = rng.choice(q, 2, replace=False)
        other[i, j] = other[j, i] = not other[i, j]
        assert not check_spectrum(other, vectors, values).consistent
        k = q // 2
        partial = check_spectrum(adjacency, vectors[:, :k], values[:k], values[k])
        assert partial.consistent
        assert not partial.proves_equality


def test_consistency_does_not_prove_equality_of_truncated_patches():
    first, second = truncated_twins()
    assert not np.array_equal(first, second)
    values, vectors = spectrum(first)
    assert values[2] - values[1] > 0.1  # the kept subspace is well defined
    check = check_spectrum(second, vectors[:, :2], values[:2], values[2])
    assert check.consistent
    assert not check.proves_equality
    assert eliminate(vectors[:, :2], values[:2], values[2]) is None  # and nothing else claims to know


def test_a_degenerate_cut_is_no_obstacle_to_the_check():
    values, vectors = spectrum(star(8))
    assert values[3] == pytest.approx(values[2])
    assert check_spectrum(star(8), vectors[:, :3], values[:3], values[3]).consistent


def test_bounds_on_entries_hold_for_every_truncation():
    rng = np.random.default_rng(3)
    for _ in range(40):
        q = int(rng.integers(3, 20))
        laplacian = normalized_laplacian(connected_adjacency(rng, q, rng.uniform(0, 0.5)))
        values, vectors = np.linalg.eigh(laplacian)
        off = ~np.eye(q, dtype=bool)
        for k in range(1, q):
            low, high = entry_bounds(vectors[:, :k], values[:k], values[k])
            assert (low <= -laplacian)[off].all()
            assert (high >= -laplacian)[off].all()


def test_degrees_are_among_the_possible_ones():
    rng = np.random.default_rng(4)
    for _ in range(40):
        adjacency = connected_adjacency(rng, int(rng.integers(2, 25)), 0.1)
        degrees = adjacency.sum(axis=0)
        found = possible_degrees(spectrum(adjacency)[1][:, 0])
        assert any(np.array_equal(degrees, candidate) for candidate in found)
    several = possible_degrees(spectrum(cycle(9))[1][:, 0])
    assert [d[0] for d in several] == [2, 4, 6, 8]
    assert len(possible_degrees(spectrum(star(9))[1][:, 0], centre=0)) == 1


def test_elimination_is_right_whenever_it_fires_and_fires_often():
    rng, fired, tried = np.random.default_rng(5), 0, 0
    for _ in range(120):
        q = int(rng.integers(3, 22))
        adjacency = connected_adjacency(rng, q, rng.choice([0.0, 0.05, 0.2, 0.5]))
        values, vectors = spectrum(adjacency)
        signs = rng.choice([-1.0, 1.0], q)
        for k in {q // 3, q // 2, q - 1} - {0}:
            found = eliminate((vectors * signs)[:, :k], values[:k], values[k])
            tried += 1
            if found is not None:
                fired += 1
                assert np.array_equal(found, adjacency)
    assert fired > 0.4 * tried


def test_elimination_never_claims_what_brute_force_leaves_open():
    """All connected graphs on five nodes: a patch is certified only if its observation is unique."""
    upper = np.triu_indices(5, k=1)
    codes = (np.arange(1 << 10)[:, None] >> np.arange(10)) & 1
    stack = np.zeros((len(codes), 5, 5), dtype=bool)
    stack[:, upper[0], upper[1]] = codes
    stack |= stack.swapaxes(1, 2)
    values, vectors = np.linalg.eigh(normalized_laplacian(stack))
    fired = 0
    for k in (1, 2, 3):
        well = np.flatnonzero((values[:, 1] > 1e-6) & (values[:, k] - values[:, k - 1] > 1e-6))
        kept = vectors[well][:, :, :k]
        shown = (kept * (1 + values[well][:, None, :k])) @ kept.swapaxes(1, 2)
        key = np.round(np.hstack([shown.reshape(len(well), -1), values[well][:, : k + 1]]), 6) + 0.0
        _, index, counts = np.unique(key, axis=0, return_inverse=True, return_counts=True)
        unique = counts[index.ravel()] == 1
        for i in range(0, len(well), 7):
            patch = well[i]
            found = eliminate(vectors[patch][:, :k], values[patch][:k], values[patch][k])
            if found is not None:
                fired += 1
                assert unique[i]
                assert np.array_equal(found, stack[patch])
    assert fired > 30


def test_elimination_refuses_noise_and_disconnected_patches():
    values, vectors = spectrum(star(8))
    assert eliminate(vectors[:, :4] + 1e-5, values[:4], values[4]) is None
    two = np.zeros((6, 6), dtype=bool)
    two[:3, :3] = two[3:, 3:] = star(3)
    values, vectors = spectrum(two)
    assert eliminate(vectors[:, :4], values[:4], values[4]) is None


def graph_of(adjacency):
    return Graph.from_edges("drawn", len(adjacency), edge_list(adjacency))


@pytest.mark.parametrize(("d", "k"), [(1, 3), (1, 32), (2, 6), (2, 64)])
def test_counts_agree_with_single_patches_and_nothing_is_contradicted(d, k):
    rng = np.random.default_rng(d * 100 + k)
    instance = lograb.generate(graph_of(connected_adjacency(rng, 50, 0.02)), d=d, k=k)
    seen, (ptr, ends) = instance.observations, instance.patch_edges
    report = certify(seen, instance.patch_edges)
    json.dumps(report)
    assert report["contradicted"] == 0
    assert report["guaranteed"]["with_truth"] >= report["guaranteed"]["without_truth"] >= report["complete"]
    counts, proved = dict.fromkeys(STATEMENTS, 0), int((seen.sizes <= 1).sum())
    for i in range(seen.n_patches):
        truth = np.zeros((seen.sizes[i],) * 2, dtype=bool)
        rows, cols = ends[ptr[i] : ptr[i + 1]].T
        truth[rows, cols] = truth[cols, rows] = True
        hub = int(np.searchsorted(seen.members(i), seen.centres[i])) if d == 1 else -1
        found = certify_patch(seen.block(i), seen.spectrum(i), float(seen.next_values[i]), truth, hub)
        json.dumps(list(map(asdict, found)))
        for certificate in found:
            counts[certificate.name] += certificate.holds
        proved += any(certificate.holds for certificate in found if certificate.name not in OBSERVED)
    assert report["guaranteed"]["with_truth"] == proved
    assert {s["name"]: s["holds"] for s in report["statements"]} == counts
    at = {s["name"]: s for s in report["statements"]}
    assert at["complete-spectrum"]["holds"] == at["complete-heat-kernel"]["holds"] == report["complete"]
    assert at["separates-0.8"]["holds"] <= at["separates"]["holds"]
    assert at["edge-recovery"]["holds"] <= at["edge-recovery-by-pair"]["holds"] <= at["separates"]["holds"]


def test_without_the_truth_only_truth_free_statements_are_listed():
    seen = lograb.generate("karate", d=1, k=8).observations
    report = certify(seen)
    assert not any(s["needs_truth"] for s in report["statements"])
    assert report["guaranteed"]["with_truth"] is None
    assert report["guaranteed"]["without_truth"] > 0.9 * seen.n_patches


@pytest.mark.parametrize("change", [{"sigma": 0.05}, {"gauge": "rotation"}, {"eigenvalues": False}])
def test_nothing_is_certified_where_nothing_can_be(change):
    instance = lograb.generate("karate", d=1, k=8, **change)
    report = certify(instance.observations)
    assert report["guaranteed"]["without_truth"] == 0
    assert bool(report["reason"]) == ("sigma" not in change)


def test_large_patches_are_counted_as_unchecked_and_bad_truth_is_refused():
    instance = lograb.generate("karate", d=2, k=8)
    report = certify(instance.observations, max_size=5)
    assert report["unchecked"] > 0
    with pytest.raises(LograbError, match="edge lists"):
        certify(instance.observations, (np.zeros(3, np.int64), np.zeros((0, 2), np.int64)))


def test_certificates_on_cora_are_right(mirror):
    instance = lograb.generate("cora", d=2, p=0.1, k=16, seed=0)
    report = certify(instance.observations, instance.patch_edges, max_size=80)
    holds = {s["name"]: s["holds"] for s in report["statements"]}
    assert report["contradicted"] == 0
    assert holds["elimination"] > 60
    assert holds["edge-recovery-0.8"] <= report["complete"]  # never on a truncated patch
