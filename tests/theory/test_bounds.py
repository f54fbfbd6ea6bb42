"""Fidelity, RANSAC, alignment, accumulation, voting, posteriors: what holds, and what is printed but false."""

import numpy as np
import pytest
from scipy.stats import binom

from lograb.errors import LograbError
from lograb.theory import fidelity, inliers, stitching, voting
from lograb.theory.belief import edge_posterior
from lograb.theory.heat import normalized_laplacian, truncation_residual
from lograb.theory.perturbation import best_rotation, procrustes_distance

from .graphs import path, random_adjacency, star


def ratio(low, high, t=0.8):
    return float(fidelity.gap_to_truncation(high - low, truncation_residual(high, t)))


def test_the_ratio_rises_with_the_gap_and_falls_with_the_residual():
    gaps, residuals = np.linspace(0, 2, 30), np.linspace(0.01, 1, 30)
    assert (np.diff(fidelity.gap_to_truncation(gaps, 0.3)) > 0).all()
    assert (np.diff(fidelity.gap_to_truncation(0.3, residuals)) < 0).all()
    for low in (0.0, 0.5, 1.0):  # λ_k fixed: the residual changes with the gap
        found = [ratio(low, low + gap) for gap in np.linspace(0, 2 - low, 30)]
        assert (np.diff(found) > 0).all()
        scores = fidelity.fidelity(found, 0.4)
        assert (np.diff(scores) > 0).all()
        assert ((scores >= 0) & (scores <= 1)).all()


def test_a_larger_gap_elsewhere_may_mean_a_lower_ratio():
    assert ratio(0.0, 0.11) < ratio(1.9, 2.0)


def test_complete_spectra_have_ratio_one():
    eta = truncation_residual(np.nan, 0.8)
    assert eta == 0
    assert fidelity.gap_to_truncation(np.inf, eta) == 1
    assert fidelity.gap_to_truncation(0.0, 0.0) == 1
    with pytest.raises(LograbError):
        fidelity.gap_to_truncation(-0.1, 0.5)


def test_entropy_stays_below_its_ceiling():
    rng = np.random.default_rng(0)
    for _ in range(200):
        degrees = random_adjacency(rng, int(rng.integers(2, 12)), rng.random()).sum(axis=0)
        entropy = fidelity.structural_entropy(degrees[None])[0]
        assert 0 <= entropy <= fidelity.entropy_ceiling(len(degrees)) + 1e-12 < 1
    assert fidelity.structural_entropy(np.array([[0]])).tolist() == [0]
    assert fidelity.structural_entropy(star(4).sum(axis=0)[None])[0] == pytest.approx(
        -(0.25 * np.log(0.25) + 0.75 * np.log(0.75)) / np.log(4))


def test_entropy_by_hand():
    degrees = np.array([[1, 1, 1, 3], [2, 2, 2, 2]])
    expected = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25)) / np.log(4)
    assert np.allclose(fidelity.structural_entropy(degrees), [expected, 0])


# RANSAC


def test_samples_probability_and_inlier_share_are_inverse_to_each_other():
    for share in (0.3, 0.6, 0.9):
        for sample in (3, 9):
            needed = inliers.samples_needed(share, sample)
            assert inliers.success_probability(share, sample, int(needed)) >= 0.95
            assert inliers.success_probability(share, sample, int(needed) - 1) < 0.95
            assert inliers.survivable_inliers(sample, int(needed)) <= share + 1e-9


def test_300_samples_do_not_suffice_as_printed():
    assert inliers.samples_needed(0.3, 17) == pytest.approx(2.3e9, rel=0.02)
    assert inliers.success_probability(0.3, 17, 300) < 1e-6
    assert inliers.survivable_inliers(33, 300) == pytest.approx(0.87, abs=0.005)


def test_the_formula_matches_a_simulation_with_replacement_and_overstates_without():
    rng = np.random.default_rng(1)
    inlier = np.arange(10) < 6
    with_replacement = inlier[rng.integers(0, 10, (20000, 3))].all(axis=1).mean()
    distinct = inlier[rng.random((20000, 10)).argsort(axis=1)[:, :3]].all(axis=1).mean()
    assert with_replacement == pytest.approx(inliers.success_probability(0.6, 3, 1), abs=0.015)
    assert distinct == pytest.approx(inliers.drawn_without_replacement(10, 6, 3), abs=0.015)
    assert inliers.drawn_without_replacement(10, 6, 3) < 0.6**3
    assert inliers.drawn_without_replacement(7, 6, 7) == 0


def test_the_rejection_corollary_is_false_when_outliers_agree():
    """Nine of thirty points follow the true rotation, the others another one: consensus 21 >= 12."""
    rng = np.random.default_rng(2)
    source = rng.standard_normal((30, 3))
    true, other = (np.linalg.qr(rng.standard_normal((3, 3)))[0] for _ in range(2))
    target = np.where(np.arange(30)[:, None] < 9, source @ true, source @ other)
    assert inliers.printed_rejection(9 / 30, 30, 12)
    largest = 0
    for _ in range(300):
        sample = rng.choice(30, 4, replace=False)
        turn = best_rotation(target[sample], source[sample])
        largest = max(largest, int((np.linalg.norm(target - source @ turn, axis=1) < 1e-6).sum()))
    assert largest == 21


# Alignment and accumulation


def test_the_alignment_bound_holds_with_the_mismatch():
    rng = np.random.default_rng(3)
    for _ in range(50):
        first, second, e, f = rng.standard_normal((4, 9, 3))
        mismatch = procrustes_distance(first, second)
        residual = procrustes_distance(first + 0.1 * e, second + 0.1 * f)
        norms = 0.1 * np.linalg.norm(e), 0.1 * np.linalg.norm(f)
        assert residual <= stitching.alignment_bound(*norms, mismatch) + 1e-12


def test_lemma_4_is_false_without_noise_because_overlaps_differ():
    """Path 0-1-2-3, the 1-hop patches of 1 and 2, k = 1, overlap {1, 2} of k + 1 joined nodes."""
    first = np.linalg.eigh(normalized_laplacian(path(3)))[1][:, :1]
    residual = procrustes_distance(first[1:], first[:2])
    assert stitching.alignment_bound(0.0, 0.0) == 0.0
    assert residual == pytest.approx(0.293, abs=1e-3)


def test_a_small_residual_does_not_mean_a_small_rotation_error():
    flat = np.zeros((6, 3))
    flat[:, :2] = np.random.default_rng(4).standard_normal((6, 2))
    mirrored = np.diag([1.0, 1.0, -1.0])
    assert np.linalg.norm(flat - flat @ mirrored) == 0
    assert np.linalg.norm(mirrored - np.eye(3)) == 2
    assert stitching.rotation_bound(0.0, 0.0, 0.0) == np.inf


def test_the_rotation_bound_holds():
    rng = np.random.default_rng(5)
    for _ in range(50):
        block = rng.standard_normal((8, 3))
        true = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        target = block @ true + 0.1 * rng.standard_normal((8, 3))
        found = best_rotation(target, block)
        bound = stitching.rotation_bound(np.linalg.norm(target - block @ found),
                                         np.linalg.norm(target - block @ true),
                                         np.linalg.svd(block, compute_uv=False)[-1])
        assert np.linalg.norm(found - true) <= bound + 1e-12


def rotation_error(make_points, m, sigma=1e-3, k=3):
    rng, errors = np.random.default_rng(m), []
    for _ in range(40):
        points = make_points(rng, m, k)
        noisy = [points + sigma * rng.standard_normal((m, k)) for _ in range(2)]
        errors.append(np.linalg.norm(best_rotation(*noisy) - np.eye(k)))
    return float(np.mean(errors))


def test_more_points_help_only_if_their_length_stays():
    def normal(rng, m, k):
        return rng.standard_normal((m, k))

    def orthonormal(rng, m, k):
        return np.linalg.qr(rng.standard_normal((m, k)))[0]

    gain = rotation_error(normal, 20) / rotation_error(normal, 320)
    assert gain == pytest.approx(stitching.stitch_bound(1, 20) / stitching.stitch_bound(1, 320), rel=0.3)
    # Stitch soundness is false for eigenvectors: sixteen times the overlap, the same error.
    assert rotation_error(orthonormal, 20) / rotation_error(orthonormal, 320) == pytest.approx(1.0, rel=0.3)


def plane(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def chain_error(angles):
    product = np.eye(2)
    for angle in angles:
        product = plane(angle) @ product
    return float(np.linalg.norm(product - np.eye(2)))


def test_errors_grow_linearly_at_worst_and_like_the_root_at_random():
    step = 1e-3
    one = np.linalg.norm(plane(step) - np.eye(2))
    worst = [chain_error([step] * depth) for depth in (10, 40, 160)]
    assert worst == pytest.approx([stitching.accumulation_bound(d, one) for d in (10, 40, 160)], rel=0.01)
    rng = np.random.default_rng(6)
    spread = [np.sqrt(np.mean([chain_error(step * rng.choice([-1, 1], depth)) ** 2 for _ in range(300)]))
              for depth in (10, 160)]  # fmt: skip
    assert spread[1] / spread[0] == pytest.approx(4.0, rel=0.2)
    assert spread[1] == pytest.approx(stitching.random_accumulation(160, one), rel=0.15)


def test_the_accumulated_error_needs_no_approximation():
    rng = np.random.default_rng(7)
    for _ in range(20):
        true, found, steps = np.eye(3), np.eye(3), []
        for _ in range(12):
            turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
            guess = best_rotation(turn + rng.uniform(0, 0.5) * rng.standard_normal((3, 3)), np.eye(3))
            true, found = turn @ true, guess @ found
            steps.append(np.linalg.norm(guess - turn))
            bound = stitching.accumulated_rotation_error(np.array(steps), 3)
            assert np.linalg.norm(found - true) <= bound + 1e-12


# Voting and posteriors


def test_chernoff_bounds_hold_against_exact_binomial_tails():
    for trials in (3, 10, 50, 200):
        for rate in (0.05, 0.3, 0.7):
            for threshold in range(trials + 1):
                above, below = binom.sf(threshold - 1, trials, rate), binom.cdf(threshold, trials, rate)
                assert above <= voting.false_positive_bound(trials, threshold, rate) + 1e-12
                assert below <= voting.false_negative_bound(trials, threshold, rate) + 1e-12
    assert voting.false_positive_bound(200, 60, 0.1) < 1e-8


def test_with_a_fixed_threshold_false_positives_do_not_vanish_as_printed():
    rates = [binom.sf(2, m, 0.1) for m in (10, 100, 1000)]
    assert rates[0] < rates[1] < rates[2]
    assert rates[1] > 0.99
    assert voting.printed_error_bound(100, 2, 0.1) < 0.02
    assert voting.false_positive_bound(100, 2, 0.1) == 1.0


def test_votes_become_probabilities():
    found = voting.vote_probability(np.arange(6))
    assert (np.diff(found) > 0).all()
    assert found[2] == 0.5
    assert voting.vote_probability(3, steepness=100.0) == pytest.approx(1.0)
    assert np.isfinite(voting.vote_probability([-1e6, 1e6])).all()


@pytest.mark.parametrize("prior", [0.5, 0.02])
def test_noise_drives_posteriors_to_the_prior_which_need_not_be_a_half(prior):
    rng = np.random.default_rng(8)
    truth = rng.random(4000) < prior
    distance = []
    for sigma in (0.01, 0.3, 3.0, 300.0):
        seen = 0.25 * truth + sigma * rng.standard_normal(4000)
        distance.append(np.abs(edge_posterior(seen, 0.25, sigma, prior) - prior).mean())
    assert distance[0] > distance[1] > distance[2] > distance[3]
    assert distance[3] < 1e-3
    assert edge_posterior(0.25, 0.25, 0.01, prior) > 0.999
    assert edge_posterior(0.25, 0.25, np.inf, prior) == pytest.approx(prior)
