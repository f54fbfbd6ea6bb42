"""The posterior attack: each part against what proves it right, then the whole."""

import dataclasses
import itertools
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import norm

import lograb
from lograb.attacks.catalog import ATTACKS
from lograb.attacks.cut import best_expected_f1
from lograb.attacks.posterior import PosteriorSettings, fusion, posterior
from lograb.attacks.posterior.batches import Batch, readable, stack
from lograb.attacks.posterior.beliefs import Status, survey
from lograb.attacks.posterior.degrees import Degrees, count_degrees, degrees_left, infer_degrees
from lograb.attacks.posterior.evidence import pair_evidence
from lograb.attacks.posterior.fusion import (
    LEAST_FACTOR,
    SHARED,
    _dispersion,
    _fuse,
    _judge,
    _over_factor,
    _parts,
    _weigh,
    hubs,
    iterate,
    prepare,
)
from lograb.attacks.posterior.isolated import drop_isolated
from lograb.attacks.posterior.leading import Leading, leading
from lograb.attacks.posterior.noise import departure, nearest_frame, noise_levels, patch_noise
from lograb.attacks.posterior.rules import ball_keys, known_centres, verdicts
from lograb.attacks.posterior.temper import temper
from lograb.attacks.posterior.volumes import Usual, inverse_volume, usual_degrees, volumes
from lograb.metrics import calibration, calibration_error, count_edges
from lograb.pairs import edge_keys
from lograb.tasks import evaluate
from lograb.tasks.reconstruction import floor_and_ceiling

NOTHING_USUAL = Usual(0.5, 2.8)


def normalised(adjacency):
    degrees = adjacency.sum(axis=1)
    root = 1.0 / np.sqrt(np.maximum(degrees, 1))
    return adjacency * root[:, None] * root[None, :] + np.diag((degrees == 0).astype(float))


def batch_of(adjacency, rank, sigma=0.0, copies=1, seed=0):
    """Observe one patch `copies` times with fresh noise."""
    rng = np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(normalised(adjacency))
    mu, frame = values[::-1][:rank], vectors[:, ::-1][:, :rank]
    noisy = frame + sigma * rng.standard_normal((copies, *frame.shape))
    q = len(adjacency)
    return Batch(np.arange(copies), np.tile(np.arange(q), (copies, 1)), nearest_frame(noisy),
                 np.tile(mu, (copies, 1)), np.full(copies, sigma**2), slice(0, copies * q * (q - 1) // 2),
                 True, True, np.zeros(copies, dtype=bool))  # fmt: skip


def graph(n=24, seed=1):
    return nx.to_numpy_array(nx.powerlaw_cluster_graph(n, 2, 0.4, seed=seed))


def attacked(instance, **settings):
    answer = posterior(instance.observations, np.random.default_rng(0), PosteriorSettings(**settings))
    return answer, evaluate(instance, answer)["f1"]["global"]


def test_nearest_frame_is_the_polar_factor():
    matrices = np.random.default_rng(0).standard_normal((5, 9, 4))
    left, _, right = np.linalg.svd(matrices, full_matrices=False)
    np.testing.assert_allclose(nearest_frame(matrices), left @ right, atol=1e-10)


@pytest.mark.parametrize("sigma", [0.02, 0.1, 0.4])
def test_noise_is_estimated_from_the_departure_from_orthonormality(sigma):
    rng = np.random.default_rng(0)
    frames = np.linalg.qr(rng.standard_normal((200, 30, 12)))[0] + sigma * rng.standard_normal((200, 30, 12))
    found = noise_levels(departure(frames), np.full(200, 66.0), np.full(200, 30.0))
    assert np.sqrt(found.mean()) == pytest.approx(sigma, rel=0.04)


def test_patches_of_mixed_quality_get_their_own_noise():
    rng = np.random.default_rng(0)
    sigmas = np.repeat([0.0, 0.1], 50)
    frames = np.linalg.qr(rng.standard_normal((100, 30, 20)))[0]
    frames += sigmas[:, None, None] * rng.standard_normal(frames.shape)
    found = noise_levels(departure(frames), np.full(100, 190.0), np.full(100, 30.0))
    assert (found[:50] == 0).all()
    assert (np.abs(np.sqrt(found[50:]) / 0.1 - 1) < 0.3).all()


@pytest.mark.parametrize(("rank", "sigma"), [(24, 0.03), (24, 0.1), (12, 0.03), (12, 0.08)])
def test_at_the_truth_evidence_is_centred_with_the_variance_it_claims(rank, sigma):
    adjacency = graph()
    batch = batch_of(adjacency, rank, sigma, copies=800)
    means = np.tile(adjacency, (800, 1, 1))
    found = pair_evidence(batch, means, means.sum(axis=2), np.zeros((800, 24), dtype=bool))
    score = (found.estimate - adjacency) / np.sqrt(found.variance)
    edges, others = adjacency > 0, (adjacency == 0) & ~np.eye(24, dtype=bool)
    for kind in (edges, others):
        assert abs(score[:, kind].mean()) < 0.3
        assert 0.3 < score[:, kind].std() < 1.4


def test_evidence_without_noise_is_exact_when_all_other_pairs_are_known():
    adjacency = graph()
    batch = batch_of(adjacency, 12)
    means = adjacency[None].copy()
    for i, j in ((0, 1), (3, 20), (5, 9)):
        means[0, i, j] = means[0, j, i] = 0.5
        found = pair_evidence(batch, means, adjacency.sum(axis=1)[None], np.zeros((1, 24), dtype=bool))
        assert found.estimate[0, i, j] == pytest.approx(adjacency[i, j], abs=1e-6)
        means[0] = adjacency


@pytest.mark.parametrize(("n", "rank"), [(60, 60), (60, 32), (120, 32), (200, 32)])
def test_a_pair_reads_the_same_whether_it_is_believed_or_not(n, rank):
    """Noise shrinks frames several times over in large patches; what was thought of a pair must still cancel."""
    adjacency = nx.to_numpy_array(nx.powerlaw_cluster_graph(n, 2, 0.4, seed=1))
    batch, degrees = batch_of(adjacency, rank, 0.1, copies=15), np.tile(adjacency.sum(axis=1), (15, 1))
    rng, isolated = np.random.default_rng(0), np.zeros((15, n), dtype=bool)
    for true in (1, 0):
        one, two = rng.permutation(np.argwhere(np.triu(adjacency == true, k=1)))[:6].T
        readings = []
        for believed in (0, 1):
            means = adjacency.copy()
            means[one, two] = means[two, one] = believed
            found = pair_evidence(batch, np.tile(means, (15, 1, 1)), degrees, isolated)
            precision = 1.0 / (found.variance[:, one, two] + 0.1)
            readings.append(np.average(found.estimate[:, one, two], weights=precision))
        assert readings[0] == pytest.approx(readings[1], abs=0.1)
        assert readings == pytest.approx([true, true], abs=0.25)


def test_degrees_of_a_noiseless_patch_are_exact():
    adjacency = graph()
    batch = batch_of(adjacency, 12)
    first = leading(batch)
    found = infer_degrees(first, volumes(batch, batch, first, NOTHING_USUAL), 0.5)
    np.testing.assert_allclose(found.mean[0], adjacency.sum(axis=1), atol=0.05)


def wheel(q, every=1):
    """A hub with q - 1 neighbours on a ring, of which every n-th is joined to the next."""
    ring = nx.star_graph(q - 1)
    ring.add_edges_from((n, n % (q - 1) + 1) for n in range(1, q, every))
    return nx.to_numpy_array(ring)


@pytest.mark.parametrize("sigma", [0.0, 0.1])
def test_hubs_and_eigenvalues_tell_volumes(sigma):
    """Rings around a hub: 4 (q - 1) is the volume of all."""
    for q in (12, 24, 48):
        batch = batch_of(wheel(q), q, sigma, 20, q)
        first = leading(batch, np.zeros(20, np.int64))
        found = volumes(batch, batch, first, NOTHING_USUAL)[:, 0]
        assert np.median(found) == pytest.approx(4 * (q - 1), rel=1e-6 if sigma == 0 else 0.2)
        usual = usual_degrees([batch], [first])
        degrees = infer_degrees(first, volumes(batch, batch, first, usual), usual.spread)
        assert (degrees.mean[:, 0] == q - 1).all()
        assert (degrees.variance[:, 0] == 0).all()
        assert usual.spread < (0.2)  # with the hub it would be above 1


@pytest.mark.parametrize("adjacency", [graph(20), nx.to_numpy_array(nx.connected_caveman_graph(3, 7)), wheel(18)])
def test_volume_of_a_complete_patch_is_read_without_bias(adjacency):
    batch = batch_of(adjacency, len(adjacency), 0.08, 4000)
    found = inverse_volume(batch, leading(batch))[:, 0] * adjacency.sum() / len(adjacency)
    assert found.mean() == pytest.approx(1.0, abs=0.06)
    exact = batch_of(adjacency, len(adjacency))
    assert inverse_volume(exact, leading(exact))[0, 0] * adjacency.sum() == pytest.approx(len(adjacency))


@pytest.mark.parametrize("sigma", [0.0, 0.05, 0.1])
@pytest.mark.parametrize("seed", [1, 2])
def test_volumes_of_truncated_patches_are_known(sigma, seed):
    """Sparse and dense, regular and not, half of the spectrum hidden: S² has the diagonal that edges give it."""
    graphs = [nx.gnp_random_graph(80, 0.3, seed=seed), nx.powerlaw_cluster_graph(80, 3, 0.4, seed=seed),
              nx.connected_caveman_graph(8, 10), nx.barabasi_albert_graph(80, 5, seed=seed)]  # fmt: skip
    for given in graphs:
        adjacency = nx.to_numpy_array(given)
        batch = batch_of(adjacency, 40, sigma, 10, seed)
        found = volumes(batch, batch, leading(batch), NOTHING_USUAL)[:, 0]
        assert np.median(found) == pytest.approx(adjacency.sum(), rel=0.1 if sigma < 0.1 else 0.2)


def test_spread_of_degrees_leaves_hubs_out():
    """A hub in the middle of the numbering, and a rim of unequal degrees, known without noise."""
    adjacency = wheel(12, every=3)
    order = np.r_[1:6, 0, 6:12]
    adjacency = adjacency[np.ix_(order, order)]
    batch = batch_of(adjacency, 12, 0.0, 2)
    rim = np.delete(adjacency.sum(axis=1), 5)
    hubs = usual_degrees([batch], [leading(batch, np.full(2, 5))]).spread
    assert hubs == pytest.approx(rim.var() / rim.mean() ** 2, rel=1e-6)
    all_of_them = adjacency.sum(axis=1)
    none = usual_degrees([batch], [leading(batch)]).spread
    assert none == pytest.approx(all_of_them.var() / all_of_them.mean() ** 2, rel=1e-6)
    # A patch without a known hub in the same batch changes nothing for its neighbour.
    noisy = batch_of(adjacency, 12, 0.1, 2)
    mixed = leading(noisy, np.array([5, -1]))
    found = infer_degrees(mixed, volumes(noisy, noisy, mixed, NOTHING_USUAL), 0.5)
    assert found.mean[0, 5] == 11
    assert found.variance[0, 5] == 0
    assert found.variance[1, 5] > 0


@pytest.mark.parametrize("variance", [0.0, 2.0, 6.0])
def test_the_edge_to_a_hub_is_not_left_for_open_pairs(variance):
    """What remains on the rim when hub and spokes are taken away is 2, whatever is unsure about degrees."""
    batch = batch_of(wheel(12), 12, 0.05)
    first = leading(batch, np.array([0]))
    mean, zero = np.r_[11.0, np.full(11, 3.0)][None], np.zeros((1, 12))
    degrees = Degrees(mean, np.full((1, 12), variance), np.full((1, 12), 44.0), zero)
    known = np.zeros((12, 12))
    known[0, 1:] = known[1:, 0] = 1.0
    left = degrees_left(first, degrees, known.sum(axis=1)[None], (1.0 - known - np.eye(12))[None])
    np.testing.assert_allclose(left[0, 1:], 2.0)
    assert left[0, 0] < 0.2


def test_counts_do_not_drag_the_volume_down():
    """Missed edges would lower degrees, lower degrees raise what an edge must read, and so miss more."""
    dense = nx.to_numpy_array(nx.circulant_graph(24, range(1, 7)))
    batch, truth = batch_of(dense, 24, 0.05), dense.sum(axis=1)[None]
    first, start = leading(batch), Degrees(truth, truth, np.full((1, 24), truth.sum()), truth)
    found = count_degrees(0.4 * dense[None], first, start, NOTHING_USUAL, None)
    assert found.mean.sum() > 0.8 * truth.sum()  # 0.4 by count


def test_centres_are_found_as_hubs_whatever_their_position():
    """The volume of a noisy star rests on its hub: with the wrong one the attack would know far less."""
    instance = lograb.generate("citation", d=1, p=0.3, k=8, sigma=0.1, seed=4)
    seen = instance.observations
    which = np.flatnonzero(seen.sizes == 5)
    batch = stack(seen, which, patch_noise(seen), np.zeros(seen.n_patches))[0]
    hub = hubs(batch, known_centres(seen))
    assert (batch.members[np.arange(len(hub)), hub] == seen.centres[batch.which]).all()
    assert len(set(hub.tolist())) > 1
    assert (hubs(batch, np.full(seen.n_patches, -1)) == -1).all()


def test_a_disconnected_patch_changes_nothing_for_the_others_in_its_batch():
    whole = nx.to_numpy_array(nx.connected_caveman_graph(3, 8))
    apart = nx.to_numpy_array(nx.disjoint_union(nx.path_graph(12), nx.cycle_graph(12)))
    one, other = batch_of(whole, 24, 0.05), batch_of(apart, 24, 0.05, 1, 5)
    both = Batch(np.arange(2), np.tile(np.arange(24), (2, 1)), np.concatenate([one.frame, other.frame]),
                 np.concatenate([one.mu, other.mu]), np.full(2, 0.0025), slice(0, 552), True, True,
                 np.zeros(2, dtype=bool))  # fmt: skip
    alone, beside = (volumes(batch, batch, leading(batch), NOTHING_USUAL) for batch in (one, both))
    np.testing.assert_allclose(beside[0], alone[0])
    assert usual_degrees([both], [leading(both)]) == usual_degrees([one], [leading(one)])


@pytest.mark.parametrize("regular", [nx.complete_graph(12), nx.complete_bipartite_graph(5, 5), nx.cycle_graph(8)])
@pytest.mark.parametrize("sigma", [0.0, 0.01])
def test_regular_graphs_are_rebuilt(regular, sigma):
    """Their first eigenvector is constant: only the entries tell a cycle from a clique."""
    instance = lograb.generate(regular, d=2, p=1.0, k=32, sigma=sigma)
    assert attacked(instance)[1] == 1.0


def alone(sigma, **settings):
    """One noisy patch of 40 nodes with its pairs, settled, and the truth."""
    instance = lograb.generate(nx.powerlaw_cluster_graph(40, 3, 0.3, seed=1), strategy="global", k=40, sigma=sigma)
    seen, variance, blur = instance.observations, np.array([sigma**2]), np.zeros(1)
    scene, beliefs = survey(seen, seen, stack(seen, np.array([0]), variance, blur), variance, blur,
                            {}, np.random.default_rng(0), PosteriorSettings(**settings))  # fmt: skip
    return scene, beliefs, np.isin(beliefs.keys, edge_keys(instance.truth.edges, 40))


def test_evidence_comes_from_the_patch_if_it_is_alone():
    scene, beliefs, _ = alone(0.05, damping=0.0)
    evidence, _, _, own, _ = iterate(prepare(scene), scene, beliefs.keys, beliefs.known)
    np.testing.assert_allclose(evidence, own, atol=1e-9)


def test_the_estimate_moves_only_part_of_the_way_in_a_round(monkeypatch):
    """All pairs are judged at once, each given all others: whole steps would overshoot, and back again."""
    met = []

    def watch(work, means, *rest):
        met.append(None if means is None else work.batch.pairs(means))
        return _judge(work, means, *rest)

    monkeypatch.setattr(fusion, "_judge", watch)
    monkeypatch.setattr(fusion, "LEAST_DISPERSION", 1.0)  # so that a last round judges as all others do

    def judged(rounds):
        scene, beliefs, _ = alone(0.05, iterations=rounds)
        known = beliefs.known.copy()
        known[:5] = 1, -1, 1, -1, 1
        evidence, prior, *_ = iterate(prepare(scene), scene, beliefs.keys, known)
        return np.where(known == 0, expit(evidence + prior), known > 0)

    before, found = judged(1), judged(2)
    met.clear()
    judged(3)
    assert np.abs(found - before).max() > 0.1
    np.testing.assert_allclose(met[-1], 0.3 * before + 0.7 * found, atol=1e-9)
    np.testing.assert_array_equal(met[-1][:5], [1, 0, 1, 0, 1])


def test_the_last_judgement_believes_the_noise_it_sees():
    scene, beliefs, true = alone(0.05)
    work = prepare(scene)[0]
    means = work.batch.matrix(0.8 * true + 0.1)  # so much doubt that the claimed variance is far too large
    before, after = (_judge(work, means, beliefs.known, scene.counts, None, last)[0] for last in (False, True))
    assert np.median(after[0] / before[0]) > 1.5  # information
    exact, beliefs, _ = alone(0.0)
    work = prepare(exact)[0]
    before, after = (_judge(work, means, beliefs.known, exact.counts, None, last)[0] for last in (False, True))
    np.testing.assert_array_equal(before, after)


def test_readings_are_fused_as_their_joint_density_has_it():
    """Doubt about the factor is common to all patches; each has its own beside it."""
    rng, n = np.random.default_rng(0), 5
    estimate, value = rng.normal(0.6, 0.4, n), rng.uniform(0.7, 1.0, n)
    variance, doubt = rng.uniform(0.02, 0.3, n), np.array([0.01, 0.05, 0.2, 0.03, 0.4])
    works = [SimpleNamespace(batch=SimpleNamespace(entries=slice(0, n)))]
    read, pair = _weigh(estimate, variance, value, doubt, np.full(n, n)), np.zeros(n, np.int32)
    fused = _fuse(read, pair, 1)
    shared = np.minimum(doubt, SHARED)
    wide = variance + value**2 * (doubt - shared)
    spread = np.average(shared, weights=value**2 / wide)
    factors = np.linspace(LEAST_FACTOR, 3, 20_001)

    def density(which):
        x, v, t = estimate[which], variance[which], value[which]
        each = norm.logpdf(x, factors[:, None] * t, np.sqrt(wide[which])).sum(axis=1)
        weight = norm.logpdf(factors, 1.0, np.sqrt(spread))
        return logsumexp(each + weight) - logsumexp(weight) - norm.logpdf(x, 0.0, np.sqrt(v)).sum()

    ratio = _over_factor(*fused[:3]) + fused[3]
    assert ratio[0] == pytest.approx(density(np.arange(n)), rel=1e-3)
    own = _parts(read, pair, works, fused)
    for one in range(n):
        assert own[one] == pytest.approx(ratio[0] - density(np.delete(np.arange(n), one)), rel=1e-3)


@pytest.mark.parametrize(
    ("reading", "low", "high"), [(-0.5, -1e4, -50), (0.1, -1e4, -50), (0.4, 30, 200), (1.0, 100, 2000)]
)
def test_an_error_that_patches_share_is_not_added_up(reading, low, high):
    """If fifty patches read 0.4, the degrees are underrated, and it is an edge; 0.1 or less is none."""
    many = np.ones(50)
    read = _weigh(reading * many, 0.02 * many, many, 0.04 * many, np.full(50, 50))
    fused = _fuse(read, np.zeros(50, np.int32), 1)
    assert low < _over_factor(*fused[:3])[0] + fused[3, 0] < high


@pytest.mark.parametrize("sigma", [0.0, 0.02, 0.1])
def test_the_residual_tells_how_many_edges_are_wrong(sigma):
    """Probabilities of 0.99 and 0.01 of which a part is wrong are tempered to about what they are worth."""
    rng = np.random.default_rng(0)
    for share in (0.0, 0.3):
        scene, beliefs, true = alone(sigma)
        edges, others = np.flatnonzero(true), np.flatnonzero(~true)
        moved = int(share * len(edges))
        guess = true.copy()
        guess[rng.permutation(edges)[:moved]] = False
        guess[rng.permutation(others)[:moved]] = True
        judged = fusion.judge(scene, beliefs)
        sure = judged.settle(judged.open, np.where(guess, 4.6, -4.6), Status.OPEN)
        promised = temper(scene, sure).probability[guess].mean()
        assert promised == pytest.approx(true[guess].mean(), abs=0.15)


def test_a_stage_that_is_left_out_is_left_out():
    instance = lograb.generate("karate", d=2, p=0.6, k=16, sigma=0.1)
    assert not attacked(instance, stages="judge,paths")[0].diagnostics["passed"]
    assert attacked(instance, stages=("judge", "check"))[0].diagnostics["passed"]
    with pytest.raises(ValueError, match="stages"):
        PosteriorSettings(stages="judge,guess")


def test_cliques_are_rebuilt_where_each_edge_alone_is_hard_to_read():
    """In a clique of 13 an entry of S is 1/12, as large as the noise; only all patches together tell."""
    rng, cliques = np.random.default_rng(0), nx.empty_graph(120)
    for _ in range(14):
        members = np.unique((rng.integers(120) + rng.normal(0, 30, rng.integers(3, 14)).astype(int)) % 120)
        cliques.add_edges_from(itertools.combinations(members.tolist(), 2))
    instance = lograb.generate(cliques, d=2, p=0.3, k=32, sigma=0.1, seed=1)
    assert attacked(instance)[1] > 0.97 * floor_and_ceiling(instance)["ceiling"]


@pytest.mark.parametrize("variance", [0.0, 2.0, 6.0, 18.0])
def test_degrees_left_are_the_conditional_means_of_thinned_degrees(variance):
    rng, mean, share, q = np.random.default_rng(0), 6.0, 0.4, 11
    if variance == 0:
        drawn = np.full(400_000, 6)
    elif variance < mean:
        drawn = rng.binomial(9, 2 / 3, 400_000)
    elif variance == mean:
        drawn = rng.poisson(mean, 400_000)
    else:
        drawn = rng.poisson(rng.gamma(mean**2 / (variance - mean), (variance - mean) / mean, 400_000))
    known = rng.binomial(drawn, share)
    first = Leading(np.zeros((1, q)), np.zeros((1, q)), None, np.array([-1]))
    degrees = Degrees(np.full((1, q), mean), np.full((1, q), variance), np.zeros((1, q)), np.zeros((1, q)))
    can = np.zeros((1, q, q))
    can[0, 0, 5:] = 1.0  # six of ten partners are open
    for count in (1, 2, 4):
        found = degrees_left(first, degrees, np.full((1, q), float(count)), can)[0, 0]
        assert found == pytest.approx((drawn - known)[known == count].mean(), rel=0.02, abs=0.02)


def test_errors_smaller_than_claimed_are_believed_and_larger_ones_not():
    batch = batch_of(graph(24), 12, 0.1, 4)
    normal = np.random.default_rng(0).standard_normal((4, 276))
    scales = np.array([0.25, 0.5, 1.0, 4.0])
    found = _dispersion(batch, (normal**2 * scales[:, None]).ravel()).reshape(4, -1)
    np.testing.assert_allclose(found, np.repeat([[0.25], [0.5], [1.0], [1.0]], 276, axis=1), rtol=0.25)
    assert found.max() <= 1.0
    exact = batch_of(graph(24), 12, 0.0, 4)
    assert (_dispersion(exact, normal.ravel() ** 2 / 9) == 1.0).all()


def test_components_of_a_disconnected_patch_are_told_apart():
    parts = nx.disjoint_union_all([nx.path_graph(4), nx.cycle_graph(5), nx.complete_graph(4)])
    adjacency = nx.to_numpy_array(parts)
    batch = batch_of(adjacency, 13)
    first = leading(batch)
    np.testing.assert_allclose(first.sizes[0], [4] * 4 + [5] * 5 + [4] * 4, atol=1e-6)
    found = infer_degrees(first, volumes(batch, batch, first, NOTHING_USUAL), 0.5)
    # A cycle and a clique have equal degrees: only their ratio shows, and the least whole numbers are taken.
    np.testing.assert_allclose(found.mean[0][:4], [1, 2, 2, 1], atol=0.05)


def test_isolated_members_are_left_out_and_nobody_else():
    giant = nx.powerlaw_cluster_graph(30, 2, 0.3, seed=1)
    parts = nx.disjoint_union_all([giant, nx.empty_graph(5), nx.path_graph(2)])
    instance = lograb.generate(parts, strategy="cluster", clusters=1, k=32, sigma=0.03)
    seen = instance.observations
    smaller = drop_isolated(seen, patch_noise(seen), np.ones(seen.n_patches, dtype=bool))
    assert sorted(set(seen.nodes) - set(smaller.nodes)) == list(range(30, 35))
    assert attacked(instance)[1] > 0.9 * floor_and_ceiling(instance)["ceiling"]


def test_membership_verdicts_are_true():
    instance = lograb.generate("citation", d=2, p=0.1, k=8, seed=3)
    seen, n = instance.observations, instance.observations.n_nodes
    centres = known_centres(seen)
    pairs = np.stack(np.triu_indices(400, k=1), axis=1)
    for radius, edges in ((2, instance.truth.edges),):
        verdict = verdicts(pairs, ball_keys(seen, centres), centres, n, radius)
        true = {tuple(edge) for edge in edges.tolist()}
        assert not any(tuple(pair) in true for pair in pairs[verdict < 0].tolist())
        assert not (verdict > 0).any()
    one = lograb.generate("citation", d=1, p=0.3, k=8, seed=3)
    centres = known_centres(one.observations)
    verdict = verdicts(pairs, ball_keys(one.observations, centres), centres, n, 1)
    truth = np.array([tuple(pair) in true for pair in pairs.tolist()])
    assert truth[verdict > 0].all()
    assert not truth[verdict < 0].any()
    assert (verdict > 0).any()


def test_what_membership_decides_no_check_makes_less_certain():
    instance = lograb.generate(nx.powerlaw_cluster_graph(200, 3, 0.5, seed=1), d=1, p=0.6, k=32, sigma=0.05)
    seen, (answer, _) = instance.observations, attacked(instance)
    assert sum(answer.diagnostics["passed"]) > 0
    ball = ball_keys(seen, known_centres(seen))
    centre, member = ball // seen.n_nodes, ball % seen.n_nodes
    stars = np.stack([np.minimum(centre, member), np.maximum(centre, member)], axis=1)
    keys = edge_keys(answer.judged, seen.n_nodes)
    certain = np.isin(keys, edge_keys(stars, seen.n_nodes))
    assert certain.sum() == len(np.unique(stars, axis=0))
    assert (answer.judged_scores[certain] > 1 - 2e-6).all()


def test_calibration_error_stands_beside_what_chance_alone_makes_of_it():
    rng = np.random.default_rng(3)
    given = rng.uniform(0.05, 0.95, 100)
    right = [calibration_error(given, rng.random(100) < given) for _ in range(50)]
    assert np.mean([told["error"] for told in right]) == pytest.approx(right[0]["by_chance"], rel=0.1)
    sure = calibration_error(given, rng.random(100) < 0.5)
    assert sure["error"] > 2 * sure["by_chance"]
    assert sure["undecided"] == 100


def test_the_cut_maximises_expected_f1():
    rng = np.random.default_rng(0)
    probabilities = rng.random(60) ** 3
    cut, expected = best_expected_f1(probabilities)
    tries = [2 * probabilities[probabilities >= c].sum() / ((probabilities >= c).sum() + probabilities.sum())
             for c in probabilities]  # fmt: skip
    assert expected["f1"] == pytest.approx(max(tries))
    assert 2 * probabilities[probabilities >= cut].sum() / (
        (probabilities >= cut).sum() + probabilities.sum()
    ) == pytest.approx(max(tries))
    assert best_expected_f1(np.empty(0))[0] == np.inf


@pytest.mark.parametrize(("d", "k"), [(1, 8), (1, 64), (2, 32)])
def test_without_noise_the_ceiling_is_reached(d, k):
    instance = lograb.generate(nx.powerlaw_cluster_graph(200, 2, 0.4, seed=3), d=d, p=0.6, k=k)
    assert attacked(instance)[1] >= 0.995 * floor_and_ceiling(instance)["ceiling"]


def test_with_noise_it_beats_every_other_attack_and_is_calibrated():
    instance = lograb.generate(nx.powerlaw_cluster_graph(300, 2, 0.4, seed=3), d=2, p=0.4, k=32, sigma=0.1)
    answer, f1 = attacked(instance)
    for name in ("membership", "heat-kernel", "afr"):
        rival = ATTACKS[name]().reconstruct(instance.observations, np.random.default_rng(0))
        assert f1 > evaluate(instance, rival)["f1"]["global"] + 0.1
    n = answer.n_nodes
    keys, edges = answer.judged[:, 0] * n + answer.judged[:, 1], instance.truth.edges
    true = np.isin(keys, edges[:, 0] * n + edges[:, 1])
    told = calibration(answer.judged_scores, true, int(instance.co_observed.sum()), answer.diagnostics["judged"],
                       answer.diagnostics["unlisted"])  # fmt: skip
    assert told["skill"] > 0.6
    assert told["error"] < 0.12
    expected = answer.diagnostics["expected"]
    hit = count_edges(edges, answer.edges, n).hits / len(answer.edges)
    assert expected["precision"] == pytest.approx(hit, abs=0.06)


@pytest.mark.parametrize("hidden", [{"eigenvalues": False}, {"gauge": "rotation"}, {"gauge": "none"}])
def test_other_gauges_and_withheld_eigenvalues_still_leak(hidden):
    instance = lograb.generate(nx.powerlaw_cluster_graph(200, 2, 0.4, seed=3), d=2, p=0.4, k=16, **hidden)
    members = ATTACKS["membership"]().reconstruct(instance.observations, np.random.default_rng(0))
    assert attacked(instance)[1] > evaluate(instance, members)["f1"]["global"] + 0.1


def test_channels_add_up():
    instance = lograb.generate("citation", d=1, p=0.4, k=8, sigma=0.05)
    members = ATTACKS["membership"]().reconstruct(instance.observations, np.random.default_rng(0))
    answer, floor = attacked(instance, channels="membership")
    np.testing.assert_array_equal(answer.edges, members.edges)
    _, vectors = attacked(instance, channels="membership,eigenvectors")
    _, everything = attacked(instance)
    assert floor <= vectors <= everything
    assert floor < everything
    nothing, zero = attacked(instance, channels=())
    assert zero == 0
    assert len(nothing.edges) == 0


def test_noise_that_drowns_the_spectrum_leaves_membership():
    instance = lograb.generate("citation", d=1, p=0.2, k=16, sigma=20.0)
    answer, f1 = attacked(instance)
    assert answer.diagnostics["patches"]["read"] == 0
    members = ATTACKS["membership"]().reconstruct(instance.observations, np.random.default_rng(0))
    assert f1 >= evaluate(instance, members)["f1"]["global"]  # eigenvalues are there still


def test_large_patches_do_not_make_pairs_beyond_the_budget():
    instance = lograb.generate(nx.star_graph(300), d=1, p=1.0, k=4, sigma=0.01)
    seen = instance.observations
    kept, counts = readable(seen, patch_noise(seen), 1000)
    assert counts["over_budget"] == 1
    assert (seen.sizes[kept] < 300).all()
    assert attacked(instance, max_entries=1000)[1] == 1.0


def test_eigenvectors_of_components_alone_say_nothing_of_pairs():
    """Where only eigenvalues 0 are shown, the attack expects no more than it reaches."""
    parts = nx.disjoint_union_all([nx.barabasi_albert_graph(40, 2, seed=i) for i in range(12)])
    instance = lograb.generate(parts, strategy="global", k=8)
    guess = lograb.attack(instance, "posterior")
    assert guess.diagnostics["expected"]["f1"] < lograb.evaluate(instance, guess).f1 + 0.05


def test_rows_are_solved_where_every_patch_is_over_the_budget():
    instance = lograb.generate("karate", strategy="global", k=34)
    large = lograb.generate(nx.barabasi_albert_graph(300, 2, seed=0), strategy="global", k=12)
    guess = lograb.attack(large, lograb.attacks.Posterior(max_entries=1000))
    assert guess.diagnostics["patches"]["over_budget"] == 1
    assert lograb.evaluate(large, guess).f1 > 0.9
    # A whole spectrum leaves no row to solve: then nobody says more than membership does.
    small = lograb.attack(instance, lograb.attacks.Posterior(max_entries=10))
    assert (small.diagnostics["rule"], len(small.edges)) == ("none", 0)


def test_patches_without_edges_hold_no_claim():
    """Eigenvalues that are all 0 say that there is no edge, though membership looks like that of balls."""
    graph = lograb.Graph.from_edges("g", 9, [(0, 5), (5, 6), (6, 7), (7, 8), (5, 8)])
    lists = [[0, 1, 2], [0, 1], [0, 2]]
    alone = lograb.generate(graph, strategy="custom", patches=lists, k=4).observations
    assert len(lograb.attack(alone, "membership").edges)
    assert len(lograb.attack(alone, "posterior").edges) == 0
    both = lograb.generate(graph, strategy="custom", patches=[*lists, [5, 6, 7, 8]], k=4).observations
    answer = lograb.attack(both, "posterior")
    assert answer.edges.tolist() == [[5, 6], [5, 8], [6, 7], [7, 8]]
    assert answer.nodes.tolist() == [0, 1, 2, 5, 6, 7, 8]
    drowned = lograb.generate(graph, strategy="custom", patches=[*lists, [5, 6, 7, 8]], k=4, sigma=30.0)
    assert not {(0, 1), (0, 2)} & set(map(tuple, lograb.attack(drowned, "posterior").edges.tolist()))


def test_pairs_that_rows_leave_open_in_large_patches_are_left_to_chance():
    """Nearly all pairs of a large patch are settled, and it is not judged: the rest is open, not impossible."""
    trees = nx.disjoint_union_all([nx.random_labeled_tree(5, seed=seed) for seed in range(120)])
    instance = lograb.generate(trees, strategy="global", k=160, seed=1)
    guess = lograb.attack(instance, "posterior")
    assert guess.diagnostics["rows"]["solved"] < len(trees)
    score = lograb.evaluate(instance, guess)
    assert guess.diagnostics["expected"]["f1"] == pytest.approx(score.f1, abs=0.1)


@pytest.mark.parametrize("k", [2, 4, 64])
def test_stars_are_rebuilt_from_few_columns(k):
    """Of all graphs a star has the smallest volume for its eigenvalues: a bound on that hid all its edges."""
    instance = lograb.generate(nx.star_graph(60), strategy="global", k=k, seed=1)
    guess = lograb.attack(instance, "posterior")
    assert lograb.evaluate(instance, guess).f1 == 1.0
    assert guess.diagnostics["expected"]["f1"] > 0.95


@pytest.mark.parametrize(("d", "max_entries"), [(0, 500), (0, 2000), (1, 4000)])
def test_edges_in_patches_beyond_the_budget_are_expected_to_be_missed(d, max_entries):
    graph = nx.planted_partition_graph(20, 20, 0.3, 0.005, seed=1)
    instance = lograb.generate(graph, strategy="cluster", cluster_size=20, d=d, k=32, sigma=0.0, seed=1)
    answer = lograb.attack(instance, lograb.attacks.Posterior(max_entries=max_entries))
    true = edge_keys(instance.truth.edges[instance.co_observed], instance.n_nodes)
    right = np.isin(edge_keys(answer.edges, instance.n_nodes), true).sum()
    assert answer.diagnostics["patches"]["over_budget"] > 5
    assert abs(answer.diagnostics["expected"]["f1"] - 2 * right / (len(answer.edges) + len(true))) < 0.1


def test_a_patch_is_whole_if_its_first_hidden_eigenvalue_says_so():
    """One column, of eigenvalue 0: the patch may have many components, unless the next eigenvalue is known."""
    instance = lograb.generate(nx.complete_graph(12), strategy="global", k=1, sigma=0.0)
    seen = instance.observations
    assert attacked(instance)[0].diagnostics["expected"]["f1"] > 0.6
    hidden = dataclasses.replace(seen, next_values=np.full(1, np.nan))
    unknown = posterior(hidden, np.random.default_rng(0), PosteriorSettings())
    assert unknown.diagnostics["expected"]["f1"] < 0.3
