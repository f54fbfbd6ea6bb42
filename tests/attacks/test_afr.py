"""AFR, stage by stage, by the properties that define each."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lograb
from lograb.attacks.afr import AfrSettings, afr
from lograb.attacks.afr.afr import assign_nodes
from lograb.attacks.afr.bundle import adjust
from lograb.attacks.afr.core import fidelity
from lograb.attacks.afr.cross_votes import cross_votes
from lograb.attacks.afr.islands import dimension
from lograb.attacks.afr.kernel import damping, feature_map, local_graphs
from lograb.attacks.alignment.ransac import align, ransac_align
from lograb.attacks.thresholds import among_best
from lograb.errors import LograbError
from lograb.tasks import evaluate
from lograb.types import Graph


def rotation(rng, k):
    q, r = np.linalg.qr(rng.standard_normal((k, k)))
    return q * np.sign(np.diag(r))


def run(instance, **settings):
    return afr(instance.observations, np.random.default_rng(0), AfrSettings(**settings))


def test_feature_map_is_the_square_root_of_the_heat_kernel():
    seen = lograb.generate("karate", k=40).observations
    features = feature_map(seen, damping(seen, 0.8, drop_last=False))
    for i in range(seen.n_patches):
        phi = features[seen.vector_ptr[i] : seen.vector_ptr[i + 1]].reshape(-1, seen.ranks[i])
        vectors, values = seen.block(i), seen.spectrum(i)
        assert np.allclose(phi @ phi.T, vectors @ np.diag(np.exp(-0.8 * values)) @ vectors.T)


def test_local_graphs_are_exact_on_complete_noiseless_stars_and_cliques():
    star = Graph.from_edges("star", 7, [(0, i) for i in range(1, 7)])
    clique = Graph.from_edges("clique", 5, [(i, j) for i in range(5) for j in range(i)])
    for graph in (star, clique):
        instance = lograb.generate(graph, strategy="custom", patches=[range(graph.n_nodes)], k=10)
        local = local_graphs(instance.observations, AfrSettings())
        assert np.array_equal(np.unique(local.ends, axis=0), graph.edges)


def test_complete_patches_are_core_and_truncated_ones_practically_never():
    seen = lograb.generate("citation", d=2, p=0.6, k=32).observations
    trust = fidelity(seen, np.zeros(seen.n_patches), AfrSettings())
    assert trust.core[seen.complete].all()
    assert trust.core[~seen.complete].mean() < 0.01
    assert (trust.ratio[seen.complete] == 1).all()
    assert ((trust.score >= 0) & (trust.score <= 1)).all()


def test_with_the_papers_defaults_nothing_is_ever_stitched():
    for d in (1, 2):
        told = run(lograb.generate("citation", d=d, p=0.6, k=32, sigma=0.05)).diagnostics
        assert told["stitches_tried"] == told["stitches_accepted"] == 0
        assert told["islands"] == told["core_patches"]


def test_needed_overlap_follows_the_printed_rule():
    settings = AfrSettings()
    assert settings.needed_overlap(32, 32, 0.9) == 33
    assert settings.needed_overlap(32, 32, 0.5) == 5 + 70 * 0.5
    assert AfrSettings(adaptive=False).needed_overlap(32, 32, 0.1) == 33
    auto = AfrSettings(align_dim="auto")
    assert auto.needed_overlap(9, 32, 0.6) == pytest.approx(10)
    assert auto.needed_overlap(9, 32, 1.0) == 10
    assert dimension(10, 32, 32, auto) == 4
    assert dimension(5, 32, 32, settings) == 32


@given(st.integers(0, 50))
def test_ransac_finds_the_rotation_behind_outliers(seed):
    rng = np.random.default_rng(seed)
    turn, second = rotation(rng, 3), rng.standard_normal((20, 3))
    first = second @ turn
    first[:6] += rng.standard_normal((6, 3)) * 5
    found = ransac_align(first, second, 1e-6, 300, rng)
    assert np.allclose(found.turn, turn, atol=1e-8)
    assert found.inliers[6:].all()
    assert not np.allclose(align(first, second, 1e-6).turn, turn, atol=1e-3)


def test_ransac_on_a_minimal_overlap_is_procrustes():
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((2, 4, 3))
    assert np.allclose(ransac_align(first, second, 1, 300, rng).turn, align(first, second, 1).turn)


def ring_of_patches(rng, n, k, m, noise, close=True):
    """Noisy views of one cloud of points, consecutive ones overlapping in m points, around a ring."""
    count = n if close else n - 1
    true = np.stack([rotation(rng, k) for _ in range(n)])
    first, second = np.arange(count), (np.arange(count) + 1) % n
    points = rng.standard_normal((count, m, k))
    a = points @ true[first].swapaxes(1, 2) + noise * rng.standard_normal(points.shape)
    b = points @ true[second].swapaxes(1, 2) + noise * rng.standard_normal(points.shape)
    cross = a.swapaxes(1, 2) @ b
    constant = float((a**2).sum() + (b**2).sum())
    frames = np.zeros((n, k, k))
    frames[0] = true[0]
    for i in range(n - 1):  # sequential stitching: each patch onto the one before
        left, _, right = np.linalg.svd(cross[i].T @ frames[i])
        frames[i + 1] = left @ right
    return true, first, second, cross, constant, frames


def errors(frames, true):
    """Error of each frame after the best common rotation."""
    left, _, right = np.linalg.svd((frames.swapaxes(1, 2) @ true).sum(axis=0))
    return np.linalg.norm(frames @ (left @ right) - true, axis=(1, 2))


@pytest.mark.parametrize("seed", range(5))
def test_bundle_adjustment_is_monotone_and_lowers_the_drift_on_a_ring(seed):
    rng = np.random.default_rng(seed)
    true, first, second, cross, constant, frames = ring_of_patches(rng, 24, 3, 12, 0.15)
    result = adjust(frames, first, second, cross, constant, 500)
    assert (np.diff(result.objective) <= 0).all()
    assert result.objective[-1] < result.objective[0]
    assert np.allclose(result.frames.swapaxes(1, 2) @ result.frames, np.eye(3), atol=1e-10)
    before, after = errors(frames, true), errors(result.frames, true)
    assert (after**2).mean() < (before**2).mean()


def test_drift_grows_with_depth_and_less_so_after_adjustment():
    slopes = []
    for seed in range(30):
        true, *pairs, frames = ring_of_patches(np.random.default_rng(seed), 24, 3, 12, 0.15)
        result = adjust(frames, *pairs, 500)
        anchored = [np.linalg.norm(f @ f[0].T @ true[0] - true, axis=(1, 2)) for f in (frames, result.frames)]
        slopes.append([a[:].mean() for a in anchored])
    before, after = np.mean(slopes, axis=0)
    assert after < 0.95 * before


def test_on_a_tree_there_is_nothing_to_adjust():
    _, *pairs, frames = ring_of_patches(np.random.default_rng(1), 12, 3, 8, 0.2, close=False)
    result = adjust(frames, *pairs, 200)
    assert result.objective[-1] == pytest.approx(result.objective[0], rel=1e-9)
    assert np.allclose(result.frames, frames, atol=1e-5)


def test_votes_count_shared_patches_between_islands():
    seen = lograb.generate("karate").observations
    island = np.arange(34)
    pairs, chance = cross_votes(seen, island, c0=2, kappa=1.0)
    together = [sum({u, w} <= set(seen.members(i).tolist()) for i in range(34)) for u, w in pairs.tolist()]
    assert min(together) == 3
    assert np.allclose(chance, 1 / (1 + np.exp(-(np.array(together) - 2))))
    assert len(cross_votes(seen, np.zeros(34, dtype=np.int64), 2, 1.0)[0]) == 0


def test_output_filter_keeps_the_best_of_either_endpoint():
    edges = np.array([[0, 1], [0, 2], [0, 3], [3, 4]])
    assert among_best(edges, np.array([0.9, 0.8, 0.7, 0.6]), 1, 5).tolist() == [True, True, True, True]
    assert among_best(edges, np.array([0.7, 0.8, 0.9, 0.95]), 1, 5).tolist() == [True, True, True, True]
    crowded = np.array([[0, 1], [0, 2], [1, 2]])
    assert among_best(crowded, np.array([0.9, 0.5, 0.8]), 1, 3).tolist() == [True, False, True]


def test_nodes_belong_to_the_island_with_most_of_their_patches():
    graph = Graph.from_edges("path", 4, [(0, 1), (1, 2), (2, 3)])
    seen = lograb.generate(graph).observations  # patches {0,1} {0,1,2} {1,2,3} {2,3}
    assert assign_nodes(seen, np.array([0, 0, 2, 2])).tolist() == [0, 0, 2, 2]
    assert assign_nodes(seen, np.array([-1, 1, -1, -1])).tolist() == [1, 1, 1, -1]


def test_exact_without_noise_on_complete_one_hop_patches():
    instance = lograb.generate("citation", d=1, k=200)
    scores = evaluate(instance, run(instance, drop_last="no", top_k=None))
    assert scores["precision"] > 0.98
    assert scores["recall"] > 0.999


ABLATIONS = [
    {}, {"ransac": False}, {"order": "random"}, {"bundle": "off"}, {"bundle": "literal"}, {"alpha": 1.0},
    {"alpha": 0.0}, {"adaptive": False}, {"connected": "diameter"}, {"connected": "any"}, {"q_max": 15},
    {"threshold": "fixed"}, {"threshold": "half-edge"}, {"drop_last": "no"}, {"top_k": None}, {"output": "fill"},
    {"cross_voting": "off"}, {"cross_voting": "merged"}, {"score": "local"},
]  # fmt: skip
# Complete patches, all of them core, for `auto`; `full` needs truncated ones, and rules that let them in.
PLACES = {
    "full": ({"d": 2, "k": 4}, {"s_min": 0.2, "delta_min": 0.0, "gamma": 2.0}),
    "auto": ({"d": 1, "k": 40}, {}),
}


@pytest.mark.parametrize("switch", ABLATIONS, ids=str)
@pytest.mark.parametrize("align_dim", ["full", "auto"])
def test_every_switch_runs(switch, align_dim):
    parameters, rules = PLACES[align_dim]
    answer = run(lograb.generate("karate", sigma=0.02, **parameters), align_dim=align_dim, **rules | switch)
    told = answer.diagnostics
    assert told["core_patches"] > 2
    assert told["stitches_accepted"] > 0
    assert len(answer.edges) > 0
    objective = told["bundle_objective"]
    assert (objective is None) == (switch == {"bundle": "off"})
    assert objective is None or objective["after"] <= objective["before"] + 1e-9
    assert answer.islands.shape == (34,)


def test_switches_change_the_answer():
    instance = lograb.generate("karate", d=1, k=40, sigma=0.02)
    plain = {tuple(e) for e in run(instance, align_dim="auto").edges.tolist()}
    for switch in ({"score": "local"}, {"drop_last": "no"}, {"top_k": None}, {"threshold": "half-edge"}):
        assert {tuple(e) for e in run(instance, align_dim="auto", **switch).edges.tolist()} != plain


def test_the_local_score_is_the_mean_of_the_patches_weighted_by_fidelity():
    instance = lograb.generate("karate", d=1, k=40, sigma=0.02)
    seen, chosen = instance.observations, AfrSettings(score="local", drop_last="no", threshold="fixed", tau=0.2)
    local = local_graphs(seen, chosen)
    trust = fidelity(seen, local.entropy, chosen)
    total, weight = np.zeros((34, 34)), np.zeros((34, 34))
    for i in range(seen.n_patches):
        vectors, values, members = seen.block(i)[None], seen.spectrum(i)[None], seen.members(i)
        kernel = (vectors * np.exp(-0.8 * values)[:, None, :]) @ vectors.swapaxes(1, 2)
        total[np.ix_(members, members)] += trust.score[i] * kernel[0] / 0.2
        weight[np.ix_(members, members)] += trust.score[i]
    answer = afr(seen, np.random.default_rng(0), chosen)
    u, w = answer.judged.T
    margin = np.maximum(total[u, w] / weight[u, w], 0)
    assert np.allclose(answer.judged_scores, margin / (1 + margin))


def test_votes_stand_beside_the_islands_edges_and_never_displace_one():
    seen = lograb.generate("citation", d=2, p=0.3, k=32, sigma=0.05).observations
    beside, merged, off = (afr(seen, np.random.default_rng(0), AfrSettings(cross_voting=how))
                           for how in ("beside", "merged", "off"))  # fmt: skip
    edges = {tuple(e) for e in off.edges.tolist()}
    assert {tuple(e) for e in beside.edges.tolist()} == edges
    assert len(beside.cross) == beside.diagnostics["cross_edges"] > 0
    assert edges.isdisjoint(map(tuple, beside.cross.tolist()))
    assert edges < {tuple(e) for e in merged.edges.tolist()}
    island = np.array([tuple(e) in edges for e in merged.edges.tolist()])
    assert merged.scores[island].min() >= 0.5 >= merged.scores[~island].max()
    assert off.cross is merged.cross is None


def test_pairs_that_share_too_few_nodes_explain_why_nothing_is_stitched():
    instance = lograb.generate("karate", d=1, k=40)
    seen = instance.observations
    shared = [len(np.intersect1d(seen.members(i), seen.members(j))) for i in range(34) for j in range(i)]
    told = run(instance).diagnostics
    assert told["stitches_rejected"] == {"overlap too small": sum(m >= 2 for m in shared)}


def test_overlaps_without_a_direction_are_no_division_by_zero():
    seen = lograb.generate("karate", d=1, k=40).observations
    zero = dataclasses.replace(seen, vectors=np.zeros_like(seen.vectors))
    answer = afr(zero, np.random.default_rng(0), AfrSettings(align_dim="auto", connected="any"))
    assert answer.diagnostics["stitches_accepted"] > 0
    assert answer.diagnostics["bundle_objective"] is None


def test_memory_follows_the_ranks_and_not_the_protocols_k():
    seen = lograb.generate("karate", d=1, k=10**6).observations
    told = afr(seen, np.random.default_rng(0), AfrSettings(align_dim="auto")).diagnostics
    assert told["stitches_accepted"] > 0
    assert afr(seen, np.random.default_rng(0)).diagnostics["stitches_tried"] == 0


def test_auto_stitches_and_merges():
    told = run(lograb.generate("karate", d=1, p=1.0, k=40), align_dim="auto", connected="any").diagnostics
    assert told["stitches_accepted"] > 0
    assert told["islands"] == told["core_patches"] - told["stitches_accepted"]
    consistency = told["cycle_consistency"]
    assert 0 < consistency["before"] <= consistency["after"] + 1e-9 <= 1 + 2e-9
    assert told["stitches_tried"] == told["stitches_accepted"] + sum(told["stitches_rejected"].values())


def test_withheld_eigenvalues_are_a_clear_error():
    with pytest.raises(LograbError, match="withhold"):
        run(lograb.generate("karate", eigenvalues=False))


@pytest.mark.parametrize("bad", [{"t": 0}, {"t": np.inf}, {"gamma": np.nan}, {"output": "fill", "top_k": None},
                                 {"alpha": 2}, {"align_dim": "half"}, {"unknown": 1}])
def test_settings_refuse(bad):
    with pytest.raises(ValueError):  # noqa: PT011
        AfrSettings(**bad)


def test_noised_eigenvalues_leave_patches_of_two():
    # Two members have one pair: their zero eigenvalue must not be looked for among noised ones.
    instance = lograb.generate("citation", p=0.3, k=8, defences=["gaussian:epsilon=10,eigenvalues=noised"])
    assert lograb.attack(instance, "afr").n_nodes == instance.observations.n_nodes
