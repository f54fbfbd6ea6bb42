"""AFR does many things at once; here they are done one by one, and must come out the same."""

from unittest import mock

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lograb
from lograb import parallel
from lograb.attacks.afr import AfrSettings, afr, bundle, islands
from lograb.attacks.afr.bundle import adjust, eligible_pairs
from lograb.attacks.afr.core import fidelity
from lograb.attacks.afr.islands import Assembler
from lograb.attacks.afr.kernel import local_graphs
from lograb.attacks.afr.trials import Island, dimension, try_pairs
from lograb.attacks.alignment import hypotheses
from lograb.attacks.alignment.hypotheses import LEVELS, best_sample, bracket, contenders
from lograb.attacks.alignment.overlaps import padded_coordinates
from lograb.attacks.alignment.procrustes import nearest_orthogonal, procrustes
from lograb.attacks.alignment.ransac import ransac_align


def rotation(rng, k):
    q, r = np.linalg.qr(rng.standard_normal((k, k)))
    return q * np.sign(np.diag(r))


def polar(matrix):
    left, _, right = np.linalg.svd(matrix)
    return left @ right


def overlap(rng, m, r, inliers, rank=None):
    """Two views of m points, the given share of which correspond; the points may span fewer dimensions."""
    second = rng.standard_normal((m, r))
    if rank is not None:
        second[:, rank:] = 0
    first = second @ rotation(rng, r) + 0.1 * rng.standard_normal((m, r))
    wrong = rng.random(m) > inliers
    first[wrong] = rng.standard_normal((wrong.sum(), r))
    return first, second, 0.5 * float(np.sqrt(r))


def counts(first, second, sample, tolerance):
    """How many points agree with each sample, decomposing all."""
    turns = procrustes(second[sample].swapaxes(1, 2) @ first[sample])
    return np.array([(np.linalg.norm(first - second @ turn, axis=1) <= tolerance).sum() for turn in turns])


def plain_ransac(first, second, tolerance, iterations, rng):
    """Align sample after sample."""
    m, r = first.shape
    most = -1
    for rows in np.argsort(rng.random((iterations, m)), axis=1)[:, : r + 1]:
        turn = polar(second[rows].T @ first[rows])
        agree = np.linalg.norm(first - second @ turn, axis=1) <= tolerance
        if agree.sum() > most:
            most, best, inliers = agree.sum(), turn, agree
    if most > 0:
        refined = polar(second[inliers].T @ first[inliers])
        again = np.linalg.norm(first - second @ refined, axis=1) <= tolerance
        if again.sum() >= most:
            return refined, again
    return best, inliers


overlaps = st.tuples(
    st.integers(0, 2**32), st.integers(1, 12), st.integers(2, 25), st.sampled_from([0.0, 0.3, 0.7, 0.9, 1.0])
)


@given(overlaps)
@settings(max_examples=60, deadline=None)
def test_ransac_is_what_a_loop_over_its_samples_finds(case):
    seed, r, more, share = case
    first, second, tolerance = overlap(np.random.default_rng(seed), r + more, r, share)
    with mock.patch.object(hypotheses, "DECOMPOSED", 0):  # bracket, however few they are
        found = ransac_align(first, second, tolerance, 100, np.random.default_rng(seed))
    turn, inliers = plain_ransac(first, second, tolerance, 100, np.random.default_rng(seed))
    assert np.array_equal(found.inliers, inliers)
    assert np.allclose(found.turn, turn, atol=1e-12)


@pytest.mark.parametrize("r", [1, 3, 8, 16, 32])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
def test_ransac_at_the_papers_size_is_what_a_loop_finds(r, share):
    first, second, tolerance = overlap(np.random.default_rng(r), r + 9, r, share)
    found = ransac_align(first, second, tolerance, 300, np.random.default_rng(1))
    turn, inliers = plain_ransac(first, second, tolerance, 300, np.random.default_rng(1))
    assert np.array_equal(found.inliers, inliers)
    assert np.allclose(found.turn, turn, atol=1e-12)


@given(overlaps, st.sampled_from(LEVELS), st.floats(0.05, 2), st.sampled_from([1e-9, 1.0, 1e9]))
@settings(max_examples=60, deadline=None)
def test_brackets_hold_the_count(case, level, factor, scale):
    seed, r, more, share = case
    rng = np.random.default_rng(seed)
    first, second, tolerance = overlap(rng, r + more, r, share)
    sample = np.argsort(rng.random((40, r + more)), axis=1)[:, : r + 1]
    low, high = bracket(scale * first, scale * second, sample, scale * factor * tolerance, level)
    exact = counts(first, second, sample, factor * tolerance)
    assert (low <= exact).all()
    assert (exact <= high).all()


def test_brackets_are_narrow_where_samples_are_well_conditioned():
    rng = np.random.default_rng(0)
    first, second, tolerance = overlap(rng, 60, 4, 0.8)
    sample = np.argsort(rng.random((200, 60)), axis=1)[:, :30]
    for level in LEVELS:
        low, high = bracket(first, second, sample, tolerance, level)
        assert (high - low).mean() < 1


@pytest.mark.parametrize("cores", [1, 3])
def test_brackets_are_the_same_in_blocks_and_in_threads(monkeypatch, cores):
    rng = np.random.default_rng(0)
    first, second, tolerance = overlap(rng, 30, 9, 0.6)
    sample = np.argsort(rng.random((50, 30)), axis=1)[:, :10]
    for level in LEVELS:
        at_once = bracket(first, second, sample, tolerance, level)
        with monkeypatch.context() as patched:
            patched.setattr(hypotheses, "AT_ONCE", 7 * 9 * 30)
            patched.setattr(hypotheses, "WORTH", 1)
            patched.setattr(parallel, "n_cores", lambda: cores)
            in_blocks = bracket(first, second, sample, tolerance, level)
        np.testing.assert_array_equal(at_once, in_blocks)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_samples_of_too_low_rank_have_open_brackets_and_the_same_winner(monkeypatch, rank):
    """The rotation of a singular cross product is whatever the decomposition says, so that must decide."""
    rng = np.random.default_rng(0)
    first, second, tolerance = overlap(rng, 20, 5, 0.7, rank=rank)
    sample = np.argsort(rng.random((100, 20)), axis=1)[:, :6]
    exact = counts(first, second, sample, tolerance)
    for level in LEVELS:
        low, high = bracket(first, second, sample, tolerance, level)
        assert (low <= exact).all()
        assert (exact <= high).all()
    monkeypatch.setattr(hypotheses, "DECOMPOSED", 0)  # bracket, however few they are
    assert best_sample(first, second, sample, tolerance)[0] == np.argmax(exact)


def test_cross_products_that_cancel_are_left_to_the_decomposition(monkeypatch):
    """Partners whose products cancel leave rounding errors, from which no bracket may conclude anything."""
    rng = np.random.default_rng(0)
    half = rng.standard_normal((2, 12, 4))
    first, second = np.concatenate([half[0], -half[0]]), np.concatenate([half[1], half[1]])
    pairs = np.array([rng.permutation(12)[:3] for _ in range(50)])
    sample = np.concatenate([pairs, pairs + 12], axis=1)
    for level in LEVELS:
        low, high = bracket(first, second, sample, 1.5, level)
        assert (high - low).mean() > 12
    monkeypatch.setattr(hypotheses, "DECOMPOSED", 0)
    assert best_sample(first, second, sample, 1.5)[0] == np.argmax(counts(first, second, sample, 1.5))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=6))
@settings(max_examples=500, deadline=None)
def test_settling_all_contenders_finds_the_first_with_the_largest_count(cases):
    exact, below, above = np.array(cases).T
    low, high = exact - np.minimum(below, exact), exact + above
    while len(some := contenders(low, high)):
        assert (low[some] < high[some]).all()
        low[some] = high[some] = exact[some]
    assert np.argmax(low) == np.argmax(exact)


@given(st.integers(0, 1000), st.integers(1, 9), st.floats(0, 2))
@settings(deadline=None)
def test_nearest_orthogonal_is_the_polar_factor(seed, k, size):
    rng = np.random.default_rng(seed)
    skew = rng.standard_normal((5, k, k))
    frames = np.stack([rotation(rng, k) for _ in range(5)])
    matrices = frames @ (np.eye(k) + size * (skew - skew.swapaxes(1, 2)) / k)
    found = nearest_orthogonal(matrices)
    assert np.allclose(found, [polar(matrix) for matrix in matrices], atol=1e-12)
    assert np.allclose(found.swapaxes(1, 2) @ found, np.eye(k), atol=1e-14 * (k + 1))


def random_islands(rng, n_nodes, k):
    """Islands that share nodes, with local graphs of their own."""
    out = []
    for i in range(12):
        nodes = np.sort(rng.choice(n_nodes, rng.integers(8, n_nodes), replace=False))
        pairs = np.array([(u, w) for u in nodes for w in nodes if u < w and rng.random() < 0.15]).reshape(-1, 2)
        sums, counts = rng.standard_normal((len(nodes), k)), rng.integers(1, 4, len(nodes))
        edges = pairs[:, 0] * n_nodes + pairs[:, 1]
        rank = int(rng.integers(2, k + 1))
        aligned = int(rng.integers(1, rank + 1))
        out.append(Island([i], nodes, sums, counts, edges, rng.uniform(0.6, 1), rank, aligned))
    return out


@pytest.mark.parametrize("demand", ["connected", "diameter", "any"])
def test_pairs_are_judged_alike_together_and_alone(demand):
    rng = np.random.default_rng(3)
    some = random_islands(rng, 24, 6)
    pairs = [(a, b) for a in some for b in some if a is not b and len(np.intersect1d(a.nodes, b.nodes)) >= 2]
    chosen = AfrSettings(align_dim="auto", connected=demand, inlier_tolerance=1.5)
    together = try_pairs(pairs, 24, 6, chosen)
    verdicts = set()
    for (a, b), trial in zip(pairs, together):
        alone = try_pairs([(a, b)], 24, 6, chosen)[0]
        assert trial.turn is None or len(trial.turn) <= min(a.aligned, b.aligned)
        assert (alone.connected, alone.needed, alone.sample) == (trial.connected, trial.needed, trial.sample)
        assert trial.turn is None if alone.turn is None else np.allclose(alone.turn, trial.turn, atol=1e-12)
        assert (alone.points is None) == (trial.points is None)
        graph = nx.Graph([divmod(e, 24) for e in [*a.edges.tolist(), *b.edges.tolist()]])
        graph.add_nodes_from(range(24))
        graph = graph.subgraph(np.intersect1d(a.nodes, b.nodes).tolist())
        connected = nx.is_connected(graph)
        demanded = {"connected": connected, "diameter": connected and nx.diameter(graph) <= 2, "any": True}
        assert trial.connected == demanded[demand]
        verdicts.add((trial.connected, trial.turn is None, trial.points is None))
    assert len(verdicts) > 1


def test_an_accepted_turn_carries_the_second_island_onto_the_first():
    rng = np.random.default_rng(0)
    nodes, turn = np.arange(10), rotation(rng, 4)
    sums = rng.standard_normal((10, 4))
    edges = 11 * nodes[:-1] + 1  # a path, in pairs u * 10 + w
    one = Island([0], nodes, sums @ turn, np.ones(10, dtype=np.int64), edges, 1.0, 4, 4)
    two = Island([1], nodes, 2 * sums, np.full(10, 2), edges, 1.0, 4, 4)
    trial = try_pairs([(one, two)], 10, 4, AfrSettings(align_dim="auto", ransac=False))[0]
    assert trial.sample == 5
    assert np.allclose(trial.turn, turn)


def test_in_fewer_dimensions_an_overlap_leaves_half_of_its_nodes_to_reject():
    auto, sizes = AfrSettings(align_dim="auto"), np.arange(4, 100)
    assert (2 * (dimension(sizes, 64, 64, auto) + 1) <= sizes).all()
    rng = np.random.default_rng(0)
    nodes, turn = np.arange(10), rotation(rng, 4)
    sums = rng.standard_normal((10, 4))
    wrong = sums @ turn
    wrong[:4] += 5 * rng.standard_normal((4, 4))  # four of ten correspondences are false
    one, two = (Island([i], nodes, x, np.ones(10, dtype=np.int64), 11 * nodes[:-1] + 1, 1.0, 4, 4)
                for i, x in enumerate((wrong, sums)))  # fmt: skip
    trial = try_pairs([(one, two)], 10, 4, auto)[0]
    assert np.allclose(ransac_align(*trial.points, 300, rng, trial.sample).turn, turn)


@pytest.fixture(scope="module")
def seen():
    """Two-hop patches that RANSAC, plain Procrustes and bundle adjustment all have something to do on."""
    return lograb.generate("citation", d=2, p=0.15, k=24, sigma=0.02).observations


@pytest.mark.parametrize("switch", [{"order": "random"}, {"connected": "any"}], ids=str)
def test_how_far_one_looks_ahead_does_not_matter(monkeypatch, seen, switch):
    chosen = AfrSettings(align_dim="auto", bundle="off", **switch)
    answers = []
    for ahead in (1, 256):
        monkeypatch.setattr(islands, "AHEAD", ahead)
        answers.append(afr(seen, np.random.default_rng(0), chosen))
    assert answers[0].diagnostics["stitches_accepted"] > 5
    for answer in answers[1:]:
        assert answer.diagnostics["stitches_tried"] == answers[0].diagnostics["stitches_tried"]
        assert answer.diagnostics["stitches_rejected"] == answers[0].diagnostics["stitches_rejected"]
        assert np.array_equal(answer.islands, answers[0].islands)
        assert np.array_equal(answer.edges, answers[0].edges)


@pytest.fixture(scope="module")
def assembled(seen):
    """The state between Stages 2 and 3."""
    chosen = AfrSettings(align_dim="auto", inlier_tolerance=0.8)
    local = local_graphs(seen, chosen)
    trust = fidelity(seen, local.entropy, chosen)
    coordinates = padded_coordinates(seen, local.features, 24)
    core = np.flatnonzero(trust.core)
    assembly = Assembler(seen, local, coordinates, trust.score, core, chosen, np.random.default_rng(0)).run()
    return local, trust.score, assembly, chosen


def test_frames_are_adjusted_alike_in_their_own_dimensions_and_in_all(monkeypatch, seen, assembled):
    *pairs, constant = eligible_pairs(seen, assembled[0], assembled[2], assembled[1], assembled[3])
    dims = pairs[2].shape[1]
    rng, frames = np.random.default_rng(0), np.tile(np.eye(dims), (seen.n_patches, 1, 1))
    for frame, r in zip(frames, np.minimum(assembled[2].aligned, dims)):  # what there is to adjust, in their own
        frame[:r, :r] = polar(np.eye(r) + 0.2 * rng.standard_normal((r, r)))
    monkeypatch.setattr(bundle, "ROUND", 1)
    parts = bundle.split(frames, *pairs)
    assert len({part.cross.shape[1] for part in parts}) > 1
    few = adjust(frames, *pairs, constant, 30)
    monkeypatch.setattr(bundle, "ROUND", 24)
    assert [part.cross.shape[1] for part in bundle.split(frames, *pairs)] == [dims]
    whole = adjust(frames, *pairs, constant, 30)
    assert few.objective[-1] < 0.99 * few.objective[0]
    assert np.allclose(few.objective, whole.objective, rtol=1e-12)
    assert np.allclose(few.frames, whole.frames, atol=1e-9)


def test_frames_that_reach_beyond_their_pairs_are_adjusted_alike(monkeypatch):
    """Pairs in 2 dimensions turn frames that mix 6 of 10."""
    rng = np.random.default_rng(0)
    frames, cross = np.tile(np.eye(10), (4, 1, 1)), np.zeros((4, 10, 10))
    frames[:, :6, :6] = [rotation(rng, 6) for _ in range(4)]
    cross[:, :2, :2] = rng.standard_normal((4, 2, 2))
    ends = np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0])
    answers = []
    for multiple in (1, 10):
        monkeypatch.setattr(bundle, "ROUND", multiple)
        answers.append(adjust(frames, *ends, cross, 50.0, 20))
    assert answers[0].objective[-1] < answers[0].objective[0] - 1
    assert np.allclose(answers[0].objective, answers[1].objective)
    assert np.allclose(answers[0].frames, answers[1].frames)


def test_eligible_pairs_are_those_found_one_by_one(seen, assembled):
    local, score, assembly, chosen = assembled
    *found, constant = eligible_pairs(seen, local, assembly, score, chosen)
    expected, total, unconnected = {}, 0.0, 0
    dims = found[2].shape[1]
    core = np.flatnonzero(assembly.island_of >= 0).tolist()
    edges = [seen.nodes[local.ends[local.ptr[i] : local.ptr[i + 1]]].tolist() for i in range(seen.n_patches)]
    for v, w in ((v, w) for v in core for w in core if v < w and assembly.island_of[v] == assembly.island_of[w]):
        shared = np.intersect1d(seen.members(v), seen.members(w))
        r = max(1, min(len(shared) - 1, seen.ranks[v], seen.ranks[w]))
        if len(shared) < max(2, chosen.needed_overlap(r, 24, min(score[v], score[w]))):
            continue
        graph = nx.Graph(edges[v] + edges[w])
        graph.add_nodes_from(shared.tolist())
        if not nx.is_connected(graph.subgraph(shared.tolist())):
            unconnected += 1
            continue
        rows = [seen.ptr[i] + np.searchsorted(seen.members(i), shared) for i in (v, w)]
        a, b = (assembly.positions[part, :dims] * (np.arange(dims) < min(r, assembly.aligned[v])) for part in rows)
        norm = 0.5 * sum(np.linalg.norm(side, axis=1).mean() for side in (a, b))
        agree = np.linalg.norm(a - b, axis=1) <= chosen.inlier_tolerance * norm
        expected[v, w] = a[agree].T @ b[agree]
        total += (a[agree] ** 2).sum() + (b[agree] ** 2).sum()
    assert list(expected) == list(zip(found[0].tolist(), found[1].tolist()))
    assert len(expected) > 10
    assert unconnected > 0
    assert np.allclose(found[2], list(expected.values()))
    assert constant == pytest.approx(total)


def test_no_pair_of_islands_is_tried_twice_in_the_same_state(monkeypatch, seen):
    states = []
    plain = Assembler._try

    def watched(self, a, b):
        states.append((a, b, len(self.islands[a].patches), len(self.islands[b].patches)))
        plain(self, a, b)

    monkeypatch.setattr(Assembler, "_try", watched)
    told = afr(seen, np.random.default_rng(0), AfrSettings(align_dim="auto")).diagnostics
    assert told["stitches_accepted"] > 5
    assert told["stitches_tried"] == len(states) == len(set(states))


def test_patches_share_a_frame_exactly_where_they_were_aligned(seen, assembled):
    """In the columns that two patches share their shared nodes agree; a stitched island has such columns."""
    *_, assembly, _ = assembled
    alone = np.arange(seen.n_patches)
    for column in range(assembly.group.shape[1]):
        shared = assembly.group[:, column]
        assert (assembly.island_of[shared != alone] == assembly.island_of[shared[shared != alone]]).all()
    common = (assembly.group == assembly.group[np.maximum(assembly.island_of, 0)]).sum(axis=1)
    stitched = np.bincount(assembly.island_of[assembly.island_of >= 0], minlength=seen.n_patches) > 1
    inside = np.flatnonzero((assembly.island_of >= 0) & stitched[assembly.island_of])
    assert len(inside) > 10
    assert (common[inside] >= assembly.aligned[inside]).all()
    assert (assembly.aligned[inside] >= 1).all()
    assert (assembly.group[inside, 0] != alone[inside]).sum() == len(assembly.stitches)
