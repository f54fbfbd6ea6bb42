"""Eigen-sync and Local2Global: exact where overlaps determine the frames, and what holds Eigen-sync back."""

import numpy as np
import pytest
from tests.attacks.clouds import (
    by_pair,
    cut_cloud,
    distances,
    gram,
    odd_inputs,
    orthogonal,
    pack,
    rng,
    same_answer,
    unpack,
)

import lograb
from lograb.attacks.alignment.partners import choose_pairs, number_components
from lograb.attacks.alignment.synchronisation import PatchGraph, round_blocks, synchronise
from lograb.attacks.baselines import eigen_sync, local2global
from lograb.attacks.baselines.eigen_sync import EigenSync
from lograb.attacks.baselines.local2global import Local2Global
from lograb.attacks.baselines.nearest import NeighbourRule, join_neighbours, nearest
from lograb.errors import LograbError


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("rounding", ["qr", "polar"])
def test_eigen_sync_recovers_a_cloud(sparse, rounding):
    cloud = rng(1).standard_normal((60, 4))
    seen = cut_cloud([cloud], 15, 14)
    below = 0 if sparse else 600
    settings = EigenSync(min_overlap=4, rounding=rounding, dense_below=below, tolerance=1e-13)
    rows, component, report = eigen_sync.align(seen, rng(), settings)
    assert np.abs(gram(rows) - gram(cloud[seen.nodes])).max() < 1e-8
    assert (component == 0).all()
    assert report["top_eigenvalue"] == pytest.approx(1)
    assert report["last_eigenvalue"] == pytest.approx(1)


@pytest.mark.parametrize("weights", ["overlap", "residual", "equal"])
def test_local2global_recovers_a_shifted_cloud(weights):
    cloud = rng(1).standard_normal((60, 4))
    seen = cut_cloud([cloud], 15, 14, shift=True)
    rows, _, report = local2global.align(seen, rng(), Local2Global(weights=weights, tolerance=1e-12))
    assert np.abs(distances(rows) - distances(cloud[seen.nodes])).max() < 1e-8
    assert report["mean_relative_residual"] < 1e-10
    assert report["shift_residual_after"] < 1e-8 < report["shift_residual_before"]
    unshifted = local2global.align(seen, rng(), Local2Global(weights=weights, translate=False))[0]
    assert np.abs(distances(unshifted) - distances(cloud[seen.nodes])).max() > 0.1


@pytest.mark.parametrize("module", [eigen_sync, local2global])
def test_components_are_aligned_by_themselves(module):
    clouds = [rng(s).standard_normal((n, 3)) for s, n in ((1, 40), (2, 50), (3, 30))]
    seen = cut_cloud(clouds, 10, 15)
    settings = {eigen_sync: EigenSync, local2global: Local2Global}[module](min_overlap=5)
    rows, component, report = module.align(seen, rng(), settings)
    assert report["components"] == 3
    assert component.tolist() == [0] * 10 + [1] * 10 + [2] * 10
    truth, owner = np.concatenate(clouds), np.repeat(component, seen.sizes)
    for c in range(3):
        mine = owner == c
        assert np.abs(distances(rows[mine]) - distances(truth[seen.nodes[mine]])).max() < 1e-7
    answer = settings(seen, rng())
    island = answer.islands[answer.edges]
    assert (island[:, 0] == island[:, 1]).all()
    assert set(answer.islands) == {0, 1, 2}


def plain_eigen_sync(seen, k, at_least):
    """The pseudo-code, literally: dense matrix, full SVDs, QR with positive diagonal, for one component."""
    members, blocks = unpack(seen)
    m = len(members)
    big, degree = np.zeros((m * k, m * k)), np.zeros(m)
    for i in range(m):
        for j in range(i + 1, m):
            shared, at_i, at_j = np.intersect1d(members[i], members[j], return_indices=True)
            if len(shared) >= at_least:
                u, _, vt = np.linalg.svd(blocks[j][at_j].T @ blocks[i][at_i])
                turn = vt.T @ u.T * len(shared)
                big[i * k : (i + 1) * k, j * k : (j + 1) * k] = turn
                big[j * k : (j + 1) * k, i * k : (i + 1) * k] = turn.T
                degree[[i, j]] += len(shared)
    scale = np.repeat(1 / np.sqrt(degree), k)
    values, vectors = np.linalg.eigh(scale[:, None] * big * scale)
    top = vectors[:, ::-1][:, :k]
    rows = []
    for i in range(m):
        q, r = np.linalg.qr(top[i * k : (i + 1) * k])
        rows.append(blocks[i] @ (q * np.sign(np.diag(r))))
    return np.concatenate(rows), values[::-1]


@pytest.mark.parametrize("dense_below", [0, 600])
def test_eigen_sync_is_the_pseudo_code_on_full_overlaps(dense_below):
    seen = cut_cloud([rng(1).standard_normal((60, 4))], 15, 14, noise=0.1)
    expected, values = plain_eigen_sync(seen, 4, 4)
    for completion in ("determined", "full"):
        settings = EigenSync(min_overlap=4, max_partners=None, completion=completion,
                                     dense_below=dense_below, tolerance=1e-12)  # fmt: skip
        rows, _, report = eigen_sync.align(seen, rng(), settings)
        assert report["last_eigenvalue"] == pytest.approx(values[3], abs=1e-9)
        assert report["eigenvalue_gap"] == pytest.approx(values[3] - values[4], abs=1e-9)
        assert np.abs(gram(rows) - gram(expected)).max() < 1e-7


def test_a_plain_dense_solver_fails_where_the_patch_graph_is_disconnected():
    clouds = [rng(s).standard_normal((40, 3)) for s in (1, 2)]
    seen = cut_cloud(clouds, 10, 15)
    truth = np.concatenate(clouds)[seen.nodes]
    owner = np.repeat(np.arange(20) // 10, seen.sizes)
    plain = plain_eigen_sync(seen, 3, 3)[0]
    ours = eigen_sync.align(seen, rng(), EigenSync(min_overlap=3))[0]
    errors = [max(np.abs(gram(rows[owner == c]) - gram(truth[owner == c])).max() for c in (0, 1))
              for rows in (plain, ours)]  # fmt: skip
    assert errors[1] < 1e-7 < 0.1 < errors[0]


def test_long_thin_patch_graphs_converge():
    m, k, draw = 600, 4, rng(2)
    frames = np.stack([orthogonal(k, draw) for _ in range(m)])
    first = np.concatenate([np.arange(m - 1), [0]])
    second = np.concatenate([np.arange(1, m), [m - 1]])
    maps = frames[second] @ frames[first].swapaxes(1, 2)
    graph = PatchGraph(first, second, maps, np.ones(m), np.full(m, k), np.zeros(m, np.int64))
    found, report = synchronise(graph, "polar", 1e-10, 0, rng())
    assert report["unconverged_components"] == 0
    gaps = found @ found[0].T - frames @ frames[0].T
    assert np.abs(gaps).max() < 1e-6


def test_orthonormal_rows_say_nothing_and_heat_kernel_features_do():
    """One complete patch without noise: all cosines of the embedding are 0, those of the kernel mark edges."""
    instance = lograb.generate("karate", strategy="custom", patches=[range(34)], k=34)
    seen, truth = instance.observe(features=False), {tuple(e) for e in instance.truth.edges.tolist()}
    assert len(EigenSync(top_k=3)(seen, rng()).edges) == 0
    answer = EigenSync(top_k=3, features="heat-kernel")(seen, rng())
    assert np.mean([tuple(e) in truth for e in answer.edges.tolist()]) > 0.7
    kernel = seen.block(0) @ np.diag(np.exp(-0.8 * seen.spectrum(0))) @ seen.block(0).T
    size = np.sqrt(np.diag(kernel))
    assert answer.scores == pytest.approx((kernel / size / size[:, None])[*answer.edges.T])


def test_heat_kernel_features_need_the_eigenvalues():
    seen = lograb.generate("karate", eigenvalues=False).observe(features=False)
    with pytest.raises(LograbError, match="withhold"):
        EigenSync(features="heat-kernel")(seen, rng())


def test_shared_candidates_share_a_patch(noisy):
    free, near = (EigenSync(top_k=4, candidates=which)(noisy, rng()) for which in ("all", "shared"))
    patches = [set(m.tolist()) for m in unpack(noisy)[0]]
    assert all(any({u, w} <= patch for patch in patches) for u, w in near.edges.tolist())
    assert by_pair(free) != by_pair(near)


def test_companions_choose_like_everybody_where_all_share_one_patch():
    instance = lograb.generate("karate", strategy="custom", patches=[range(34)], k=8, sigma=0.1)
    seen = instance.observe(features=False)
    for metric in ("cosine", "euclidean"):
        choices = (EigenSync(metric=metric, candidates=c) for c in ("all", "shared"))
        same_answer(*(s(seen, rng()) for s in choices))


def test_leading_eigenvectors_can_be_left_out(noisy):
    members, blocks = unpack(noisy)
    cut = pack(noisy.n_nodes, members, [b[:, 1:3] for b in blocks])
    settings = EigenSync(skip=1, dim=2)
    same_answer(settings(noisy, rng()), EigenSync()(cut, rng()))
    shifted = pack(noisy.n_nodes, members, [b - b.mean(axis=0) for b in blocks])
    centred = EigenSync(features="centred")
    same_answer(centred(noisy, rng()), EigenSync()(shifted, rng()))


@pytest.mark.parametrize("seen", [pytest.param(s, id=what) for what, s in odd_inputs()])
def test_odd_inputs_with_other_features_and_neighbours(seen):
    for more in ({"features": "centred"}, {"skip": 1, "dim": 2}, {"candidates": "shared"}):
        answer = EigenSync(**more)(seen, rng())
        assert np.isfinite(answer.scores).all()
        assert np.isin(answer.edges, answer.nodes).all()


def test_a_cap_on_partners_keeps_components_whole():
    seen = lograb.generate("citation", d=2, p=0.2, k=4).observe(features=False)
    everything = choose_pairs(seen, 2, None)
    count, component = number_components(seen.n_patches, *everything[:2])
    for cap in (0, 1, 5):
        first, second, overlap = choose_pairs(seen, 2, cap)
        assert len(first) < len(everything[0])
        assert (number_components(seen.n_patches, first, second)[1] == component).all()
        keys = dict(zip(zip(*everything[:2]), everything[2]))
        assert all(keys[pair] == o for pair, o in zip(zip(first, second), overlap))
    assert len(choose_pairs(seen, 2, 0)[0]) == seen.n_patches - count


def test_nearest_agrees_with_sorting_and_leaves_ties_out():
    points = rng(9).standard_normal((50, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    group = np.repeat([0, 1], [30, 20])
    source, target, scores = nearest(points, group, 4, "cosine")
    similarity = np.where(group[:, None] == group, gram(points), -np.inf) - 9 * np.eye(50)
    expected = {(i, j) for i in range(50) for j in np.argsort(-similarity[i])[:4]}
    assert set(zip(source.tolist(), target.tolist())) == expected
    assert scores == pytest.approx(similarity[source, target])
    source, target, scores = nearest(points, group, 4, "euclidean")
    assert set(zip(source.tolist(), target.tolist())) == expected
    assert len(nearest(np.eye(6), np.zeros(6, np.int64), 4, "cosine")[0]) == 0
    assert len(nearest(np.eye(6), np.zeros(6, np.int64), 5, "cosine")[0]) == 30


@pytest.mark.parametrize("candidates", ["all", "shared"])
@pytest.mark.parametrize(("top_k", "lost"), [(1, 6), (4, 24), (5, 0)])
def test_places_that_ties_leave_empty_are_counted(candidates, top_k, lost):
    """Six points at right angles: whoever wants fewer than all five others gets none."""
    seen = pack(6, [range(6)], [np.eye(6)])
    rule = NeighbourRule(top_k=top_k, candidates=candidates)
    answer = join_neighbours(seen, np.eye(6), np.zeros(1, np.int64), {}, rule)
    assert answer.diagnostics == {"places_lost_to_ties": lost}
    assert len(answer.edges) == (15 if lost == 0 else 0)


def test_rounding_keeps_orthogonal_blocks_and_leaves_open_directions_open():
    turns = np.stack([orthogonal(4, rng(s)) for s in range(5)])
    for rounding in ("qr", "polar"):
        assert np.abs(round_blocks(0.3 * turns, rounding) - turns).max() < 1e-12
        flat = turns.copy()
        flat[:, 2:] = 0
        frames = round_blocks(flat, rounding)
        assert (frames[:, 2:] == 0).all()
        assert np.abs(frames[:, :2] @ frames[:, :2].swapaxes(1, 2) - np.eye(2)).max() < 1e-12
