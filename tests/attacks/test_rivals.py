"""Eigen-sync, Local2Global and PointNetLK: exact where alignment is possible, honest where it is not."""

import json

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.linalg import expm

import lograb
from lograb.attacks import eigen_sync, local2global, pointnetlk
from lograb.attacks.eigen_sync import EigenSyncSettings, PatchGraph, round_blocks, synchronise
from lograb.attacks.local2global import Local2GlobalSettings
from lograb.attacks.nearest import choose_pairs, nearest, number_components
from lograb.attacks.pointnetlk import Network, PointNetLKSettings, exponential, generators, move, register
from lograb.types import Graph, Observations, Protocol

RIVALS = {
    "eigen-sync": eigen_sync.eigen_sync,
    "local2global": local2global.local2global,
    "pointnetlk": pointnetlk.pointnetlk,
}
SETTINGS = {
    "eigen-sync": EigenSyncSettings,
    "local2global": Local2GlobalSettings,
    "pointnetlk": PointNetLKSettings,
}


def rng(seed=0):
    return np.random.default_rng(seed)


def orthogonal(k, rng):
    q, r = np.linalg.qr(rng.standard_normal((k, k)))
    return q * np.sign(np.diag(r))


def pack(n_nodes, members, blocks, **rest):
    """Observations from one member list and one embedding per patch, sorted by node."""
    orders = [np.argsort(m) for m in members]
    sizes = np.array([len(m) for m in members], dtype=np.int64)
    ranks = np.array([b.shape[1] for b in blocks], dtype=np.int64)
    flat = [np.asarray(m)[o] for m, o in zip(members, orders)]
    return Observations(
        Protocol(k=max(1, int(ranks.max(initial=1)))), n_nodes,
        np.concatenate([np.empty(0, np.int64), *flat]), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        ranks, np.concatenate([np.empty(0), *(b[o].ravel() for b, o in zip(blocks, orders))]), **rest,
    )  # fmt: skip


def unpack(seen):
    return [seen.members(i) for i in range(seen.n_patches)], [seen.block(i) for i in range(seen.n_patches)]


def cut_cloud(clouds, n_patches, size, seed=0, shift=False, noise=0.0):
    """Cut each cloud into random overlapping patches, every patch in a frame of its own."""
    draw = rng(seed)
    members, blocks, start = [], [], 0
    for cloud in clouds:
        n, k = cloud.shape
        for i in range(n_patches):
            inside = np.unique((i * n // n_patches + np.arange(size)) % n)
            block = cloud[inside] @ orthogonal(k, draw) + shift * draw.standard_normal(k)
            members.append(inside + start)
            blocks.append(block + noise * draw.standard_normal(block.shape))
        start += n
    return pack(start, members, blocks)


def gram(rows):
    return rows @ rows.T


def distances(rows):
    return np.linalg.norm(rows[:, None] - rows[None], axis=2)


def by_pair(answer):
    return {tuple(e): s for e, s in zip(answer.edges.tolist(), answer.scores)}


def same_answer(one, other, tolerance=1e-5):
    a, b = by_pair(one), by_pair(other)
    assert a.keys() == b.keys()
    assert max((abs(a[e] - b[e]) for e in a), default=0) < tolerance


@pytest.fixture(params=["d-hop 1", "d-hop 2", "random"])
def noisy(request):
    strategy, _, d = request.param.partition(" ")
    instance = lograb.generate("karate", strategy=strategy, d=int(d or 1), p=0.8, k=5, sigma=0.1)
    return instance.observe(features=False)


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("rounding", ["qr", "polar"])
def test_eigen_sync_recovers_a_cloud(sparse, rounding):
    cloud = rng(1).standard_normal((60, 4))
    seen = cut_cloud([cloud], 15, 14)
    below = 0 if sparse else 600
    settings = EigenSyncSettings(min_overlap=4, rounding=rounding, dense_below=below, tolerance=1e-13)
    rows, component, report = eigen_sync.align(seen, rng(), settings)
    assert np.abs(gram(rows) - gram(cloud[seen.nodes])).max() < 1e-8
    assert (component == 0).all()
    assert report["top_eigenvalue"] == pytest.approx(1)
    assert report["last_eigenvalue"] == pytest.approx(1)


@pytest.mark.parametrize("weights", ["overlap", "residual", "equal"])
def test_local2global_recovers_a_shifted_cloud(weights):
    cloud = rng(1).standard_normal((60, 4))
    seen = cut_cloud([cloud], 15, 14, shift=True)
    rows, _, report = local2global.align(seen, rng(), Local2GlobalSettings(weights=weights, tolerance=1e-12))
    assert np.abs(distances(rows) - distances(cloud[seen.nodes])).max() < 1e-8
    assert report["mean_relative_residual"] < 1e-10
    assert report["shift_residual_after"] < 1e-8 < report["shift_residual_before"]
    unshifted = local2global.align(seen, rng(), Local2GlobalSettings(weights=weights, translate=False))[0]
    assert np.abs(distances(unshifted) - distances(cloud[seen.nodes])).max() > 0.1


@pytest.mark.parametrize("module", [eigen_sync, local2global])
def test_components_are_aligned_by_themselves(module):
    clouds = [rng(s).standard_normal((n, 3)) for s, n in ((1, 40), (2, 50), (3, 30))]
    seen = cut_cloud(clouds, 10, 15)
    settings = SETTINGS[module.__name__.split(".")[-1].replace("_", "-")](min_overlap=5)
    rows, component, report = module.align(seen, rng(), settings)
    assert report["components"] == 3
    assert component.tolist() == [0] * 10 + [1] * 10 + [2] * 10
    truth, owner = np.concatenate(clouds), np.repeat(component, seen.sizes)
    for c in range(3):
        mine = owner == c
        assert np.abs(distances(rows[mine]) - distances(truth[seen.nodes[mine]])).max() < 1e-7
    answer = module.__dict__[module.__name__.split(".")[-1]](seen, rng(), settings)
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
        settings = EigenSyncSettings(min_overlap=4, max_partners=None, completion=completion,
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
    ours = eigen_sync.align(seen, rng(), EigenSyncSettings(min_overlap=3))[0]
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


def flip(seen, seed=5):
    members, blocks = unpack(seen)
    draw = rng(seed)
    return pack(seen.n_nodes, members, [b * draw.choice([-1.0, 1.0], b.shape[1]) for b in blocks])


@pytest.mark.parametrize("name", RIVALS)
def test_signs_do_not_matter(name, noisy):
    same_answer(RIVALS[name](noisy, rng()), RIVALS[name](flip(noisy), rng()))


@pytest.mark.parametrize("name", ["eigen-sync", "local2global"])
def test_rotations_do_not_matter_with_polar_rounding(name, noisy):
    members, blocks = unpack(noisy)
    draw = rng(6)
    turned = pack(noisy.n_nodes, members, [b @ orthogonal(b.shape[1], draw) for b in blocks])
    settings = SETTINGS[name](rounding="polar")
    same_answer(RIVALS[name](noisy, rng(), settings), RIVALS[name](turned, rng(), settings))


@pytest.mark.parametrize("name", RIVALS)
def test_names_of_nodes_do_not_matter(name, noisy):
    new = rng(7).permutation(noisy.n_nodes)
    members, blocks = unpack(noisy)
    one = RIVALS[name](noisy, rng())
    other = RIVALS[name](pack(noisy.n_nodes, [new[m] for m in members], blocks), rng())
    renamed = {tuple(sorted(new[list(e)].tolist())): s for e, s in by_pair(one).items()}
    found = by_pair(other)
    assert renamed.keys() == found.keys()
    assert max(abs(renamed[e] - found[e]) for e in found) < 1e-5
    assert (other.islands[new] == one.islands).all()


@pytest.mark.parametrize("name", RIVALS)
def test_the_same_seed_gives_the_same_answer(name, noisy):
    one, other = RIVALS[name](noisy, rng(3)), RIVALS[name](noisy, rng(3))
    assert (one.edges == other.edges).all()
    assert (one.scores == other.scores).all()
    assert one.diagnostics == other.diagnostics
    json.dumps(one.diagnostics, allow_nan=False)


def odd_inputs():
    draw = rng(8)
    block = draw.standard_normal
    yield "nothing", pack(3, [], [])
    yield "no nodes", pack(0, [], [])
    yield "single nodes", pack(4, [[0], [1], [0]], [np.ones((1, 1))] * 3)
    yield "no overlap", pack(9, [[0, 1, 2], [3, 4, 5], [6, 7, 8]], [block((3, 3)) for _ in range(3)])
    yield "one shared node", pack(5, [[0, 1, 2], [2, 3, 4]], [block((3, 2)) for _ in range(2)])
    yield "rank 0", pack(5, [[0, 1, 2], [1, 2, 3]], [np.empty((3, 0)), block((3, 2))])
    yield "all rank 0", pack(5, [[0, 1, 2], [1, 2, 3]], [np.empty((3, 0))] * 2)
    yield "empty patch", pack(5, [np.empty(0, np.int64), [1, 2, 3]], [np.empty((0, 0)), block((3, 2))])
    yield "zeros", pack(5, [[0, 1, 2, 3], [1, 2, 3, 4]], [np.zeros((4, 3))] * 2)
    yield "copies", pack(5, [[0, 1, 2, 3, 4]] * 6, [np.eye(5)] * 6)
    yield "huge and tiny", pack(5, [[0, 1, 2, 3], [1, 2, 3, 4]], [1e8 * block((4, 3)), 1e-8 * block((4, 3))])
    yield "withheld", lograb.generate("karate", eigenvalues=False).observe(features=False)
    yield "k above n", lograb.generate("karate", k=100).observe(features=False)
    yield "no edges", lograb.generate(Graph.from_edges("alone", 3, np.empty((0, 2)))).observe(features=False)


@pytest.mark.parametrize("name", RIVALS)
@pytest.mark.parametrize("seen", [pytest.param(s, id=what) for what, s in odd_inputs()])
def test_odd_inputs_give_valid_answers(name, seen):
    answer = RIVALS[name](seen, rng())
    assert answer.nodes.tolist() == sorted(set(seen.nodes.tolist()))
    assert np.isfinite(answer.scores).all()
    assert np.isin(answer.edges, answer.nodes).all()
    assert ((answer.islands >= 0) == np.isin(np.arange(seen.n_nodes), seen.nodes)).all()
    json.dumps(answer.diagnostics, allow_nan=False)
    if seen.n_patches == 0 or seen.sizes.max() <= 1:
        assert len(answer.edges) == 0


@pytest.mark.parametrize(("name", "bad"), [
    ("eigen-sync", {"neighbours": 0}), ("eigen-sync", {"rounding": "svd"}), ("eigen-sync", {"tolerance": 0}),
    ("local2global", {"min_overlap": 1}), ("local2global", {"unknown": 1}),
    ("pointnetlk", {"dim": 6}), ("pointnetlk", {"widths": ()}), ("pointnetlk", {"delta": 0}),
])  # fmt: skip
def test_settings_refuse_what_makes_no_sense(name, bad):
    with pytest.raises(ValidationError):
        SETTINGS[name](**bad)


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


def test_rounding_keeps_orthogonal_blocks_and_leaves_open_directions_open():
    turns = np.stack([orthogonal(4, rng(s)) for s in range(5)])
    for rounding in ("qr", "polar"):
        assert np.abs(round_blocks(0.3 * turns, rounding) - turns).max() < 1e-12
        flat = turns.copy()
        flat[:, 2:] = 0
        frames = round_blocks(flat, rounding)
        assert (frames[:, 2:] == 0).all()
        assert np.abs(frames[:, :2] @ frames[:, :2].swapaxes(1, 2) - np.eye(2)).max() < 1e-12


def test_exponential_and_generators():
    for dim in (1, 2, 3, 5):
        basis = generators(dim)
        assert len(basis) == dim * (dim + 1) // 2
        twists = np.tensordot(3 * rng(dim).standard_normal((7, len(basis))), basis, axes=1)
        assert np.abs(exponential(twists) - np.stack([expm(t) for t in twists])).max() < 1e-9


def test_point_network_ignores_order_and_repetition():
    network = Network.random(3, (16, 32), rng())
    cloud = rng(1).standard_normal((20, 3))
    again = np.concatenate([cloud[rng(2).permutation(20)], cloud[:3]])
    assert np.abs(network(cloud) - network(again)).max() < 1e-12


@pytest.mark.parametrize("reflected", [False, True])
def test_registration_finds_a_small_motion_without_correspondences(reflected):
    draw = rng(4)
    source = draw.standard_normal((8, 40, 3))
    motion = exponential(np.tensordot(0.15 * draw.standard_normal((8, 6)), generators(3), axes=1))
    if reflected:
        motion = motion @ np.diag([1.0, -1.0, 1.0, 1.0])
    template = move(motion, source)[:, draw.permutation(40)]
    settings = PointNetLKSettings(iterations=40, reflections=reflected)
    network = Network.random(3, settings.widths, rng())
    found, residual, before = register(template, source, (np.full(8, 40), np.full(8, 40)), network, settings)
    off = np.abs(move(found, source) - move(motion, source)).max(axis=(1, 2))
    assert np.median(off) < 1e-3
    assert (residual <= before + 1e-12).all()


def test_rigid_motions_cannot_undo_a_reflection():
    draw = rng(4)
    source = draw.standard_normal((8, 40, 3))
    template = source * np.array([1.0, -1.0, 1.0])
    network = Network.random(3, (64, 64, 128), rng())
    sizes = (np.full(8, 40), np.full(8, 40))
    mirrored, rigid = (register(template, source, sizes, network, PointNetLKSettings(reflections=r))[1]
                       for r in (True, False))  # fmt: skip
    assert (mirrored < 1e-9).all()
    assert (rigid > 1).all()


def test_pointnetlk_assembles_a_chain_of_identical_frames():
    cloud = rng(1).standard_normal((60, 3))
    seen = cut_cloud([cloud], 12, 55)
    rows, component, report = pointnetlk.align(seen, rng(), PointNetLKSettings(skip=0))
    assert rows.shape == (len(seen.nodes), 3)
    assert (component == 0).all()
    assert report["pairs_aligned"] == 11
    assert report["mean_feature_residual"] <= report["mean_feature_residual_before"]
