"""The attacks that exist so far, and what must hold for each of them."""

import dataclasses
import json
from importlib.util import find_spec

import numpy as np
import pytest
from tests.attacks.clouds import odd_inputs
from threadpoolctl import threadpool_limits

import lograb
from lograb.attacks import ATTACKS, find_attack
from lograb.errors import LograbError
from lograb.pairs import patches_by_size
from lograb.spec import Protocol
from lograb.tasks import evaluate
from lograb.types import Graph, Observations

WITH_TORCH = find_spec("torch") is not None
# Every attack of the catalog; those that learn only where there is something to learn with.
EACH = [
    pytest.param(name, marks=pytest.mark.skipif(attack.extra is not None and not WITH_TORCH, reason="needs torch"))
    for name, attack in ATTACKS.items()
]


# A few steps show all that these tests are about.
QUICK = {"variational": {"steps": 5, "learning_rate": 0.5}}


def each_but(*names):
    return [case for case in EACH if case.values[0] not in names]


def reconstruct(name, seen):
    return ATTACKS[name](**QUICK.get(name, {})).reconstruct(seen, np.random.default_rng(0))


def empty(n_nodes=3):
    none = np.empty(0, np.int64)
    return Observations(Protocol(), n_nodes, none, np.zeros(1, np.int64), none, np.empty(0), np.empty(0),
                        np.empty(0), none)  # fmt: skip


@pytest.mark.parametrize("name", EACH)
def test_nothing_seen_nothing_claimed(name):
    for seen in (empty(), lograb.generate(Graph.from_edges("alone", 3, np.empty((0, 2)))).observations):
        answer = reconstruct(name, seen)
        assert len(answer.edges) == 0


# Nearest neighbours in one common frame may lie in different patches: that is the method.
ANYWHERE = {"eigen-sync", "local2global", "pointnetlk", "gae", "vgae", "gcn-le"}


@pytest.mark.parametrize("name", each_but(*ANYWHERE))
@pytest.mark.parametrize("strategy", ["d-hop", "cluster", "random", "global"])
def test_claims_are_pairs_that_share_a_patch(name, strategy):
    clusters = 3 if strategy == "cluster" else None
    instance = lograb.generate("karate", strategy=strategy, d=1, p=0.7, k=40, sigma=0.1, clusters=clusters)
    seen = instance.observations
    answer = reconstruct(name, seen)
    together = {(u, w) for i in range(seen.n_patches) for u in seen.members(i) for w in seen.members(i) if u < w}
    assert len(answer.edges) or (name, strategy) == ("membership", "global")  # one patch says nothing
    assert {tuple(e) for e in answer.edges.tolist()} <= together


def test_membership_is_certain_about_one_hop_balls():
    instance = lograb.generate("citation", d=1, p=0.3)
    answer = lograb.attack(instance, "membership")
    scores = evaluate(instance, answer)
    assert scores["precision"] == 1.0
    incident = np.isin(instance.truth.edges, instance.observations.centres).any(axis=1)
    assert len(answer.edges) == incident.sum()


def test_heat_kernel_inverts_complete_noiseless_karate():
    instance = lograb.generate("karate", d=1, k=40)
    assert evaluate(instance, lograb.attack(instance, "heat-kernel")).f1 > 0.97


def test_heat_kernel_says_what_it_lacks():
    with pytest.raises(LograbError, match="withhold"):
        lograb.attack(lograb.generate("karate", eigenvalues=False), "heat-kernel")


@pytest.mark.parametrize("threshold", ["noise", "fixed", "half-edge", "certified"])
@pytest.mark.parametrize("joined", [1, 2, 6], ids=["none", "one edge", "clique"])
def test_heat_kernel_tells_cliques_from_patches_without_edges(threshold, joined):
    edges = [(u, w) for w in range(joined) for u in range(w)]
    graph = Graph.from_edges("g", 6, np.array(edges).reshape(-1, 2))
    seen = lograb.generate(graph, strategy="custom", patches=[range(6)], k=6).observations
    answer = ATTACKS["heat-kernel"](**{"threshold": threshold}).reconstruct(seen, np.random.default_rng(0))
    assert np.array_equal(answer.edges, graph.edges)


def test_heat_kernel_does_not_depend_on_the_number_of_cores():
    instance = lograb.generate("citation", d=2, p=0.05, sigma=0.05)  # without a hold it differs by 3e-17
    answers = []
    for cores in (1, 2):
        with threadpool_limits(limits=cores):
            answers.append(lograb.attack(instance, "heat-kernel"))
    assert np.array_equal(answers[0].judged_scores, answers[1].judged_scores)


def test_heat_kernel_scores_rank_pairs_and_claims_stay_few():
    for d in (1, 2):
        instance = lograb.generate("citation", d=d, p=0.6, k=32, sigma=0.05, seed=1)
        scores = evaluate(instance, lograb.attack(instance, "heat-kernel"))
        assert scores["average_precision"] > 0.85
        assert scores["f1"]["global"] > 0.6
        assert scores["claimed"] < 2 * len(instance.truth.edges)


def test_nothing_is_certified_in_a_rotated_gauge():
    instance = lograb.generate("karate", d=1, k=40, gauge="rotation")
    answer = lograb.attack(instance, find_attack("heat-kernel")(**{"threshold": "certified"}))
    assert answer.diagnostics["certified_patches"] == 0
    assert np.abs(answer.scores).max() < 1


@pytest.mark.parametrize("name", ["heat-kernel", "afr"])
def test_patches_that_are_too_large_are_said_to_be_left_out(name):
    seen = lograb.generate("karate", d=1, k=40).observations
    answer = ATTACKS[name](**{"max_size": 9}).reconstruct(seen, np.random.default_rng(0))
    judged = [set(seen.members(i).tolist()) for i in range(seen.n_patches) if seen.sizes[i] <= 9]
    assert answer.diagnostics["skipped_patches"] == (seen.sizes > 9).sum() > 0
    assert set(answer.nodes.tolist()) == set.union(*judged)
    larger = lograb.generate("karate", d=2, k=40).observations
    with pytest.raises(LograbError, match="raise max_size"):
        ATTACKS[name](**{"max_size": 2}).reconstruct(larger, np.random.default_rng(0))


@pytest.mark.parametrize(("name", "settings"), [("heat-kernel", {}), ("afr", {}), ("afr", {"align_dim": "auto"})])
def test_patches_of_one_size_may_differ_in_rank(name, settings):
    """Cutting columns off one patch must not change what is read from another of the same size."""
    seen = lograb.generate("karate", strategy="custom", patches=[range(8), range(20, 28)], k=8).observations
    keep = np.r_[np.ones(64, bool), np.tile(np.arange(8) < 5, 8)]
    cut = dataclasses.replace(
        seen, ranks=np.array([8, 5]), vectors=seen.vectors[keep], values=seen.values[:13],
        next_values=np.array([np.nan, seen.values[13]]),
    )  # fmt: skip
    assert len(list(patches_by_size(cut, 10))) == 2
    one, two = (ATTACKS[name](**settings).reconstruct(s, np.random.default_rng(0)) for s in (seen, cut))
    first = [{tuple(e): s for e, s in zip(a.edges.tolist(), a.scores) if e[1] < 8} for a in (one, two)]
    assert first[0]
    assert first[0] == pytest.approx(first[1])


def test_floor_and_ceiling_enclose():
    instance = lograb.generate("citation", d=1, p=0.6, sigma=0.05)
    rows = lograb.compare(instance).rows
    flags = instance.co_observed
    assert rows[0]["ceiling"] == pytest.approx(2 * flags.sum() / (flags.sum() + len(flags)))
    best = max(r["f1"] for r in rows if r["trivial"])
    assert lograb.compare(instance, ["heat-kernel"]).rows[0]["floor"] == best
    assert all(r["f1"] <= r["ceiling"] for r in rows)
    assert 0.9 < rows[0]["floor"] < rows[0]["ceiling"] < 1


def test_the_floor_is_at_least_that_of_claiming_every_pair():
    graph = Graph.from_edges("near clique", 8, [(u, w) for w in range(8) for u in range(w - 1)])
    instance = lograb.generate(graph, strategy="global", k=8, sigma=1.0)
    score = evaluate(instance, lograb.attack(instance, "membership"))
    assert score["claimed"] == 0
    assert score.floor == pytest.approx(2 * 21 / (21 + 28))


def test_unknown_attack_names_the_closest():
    with pytest.raises(LograbError, match="Did you mean 'membership'"):
        find_attack("membershop")


def test_scopes_differ_where_nodes_are_missing():
    instance = lograb.generate("karate")
    truth = instance.truth.edges
    half = np.arange(17)
    inside = truth[np.isin(truth, half).all(axis=1)]
    scores = evaluate(instance, lograb.Reconstruction(34, inside, np.ones(len(inside)), half))
    assert scores["f1"]["recovered"] == 1.0
    assert scores["f1"]["global"] == pytest.approx(2 * len(inside) / (len(inside) + len(truth)))
    assert scores["node_coverage"] == 0.5


def test_the_judge_does_not_trust_the_answer():
    none = np.empty((0, 2), np.int64)
    with pytest.raises(LograbError, match="distinct"):
        lograb.Reconstruction(34, none, np.empty(0), np.zeros(9, np.int64))
    with pytest.raises(LograbError, match="about 35 nodes"):
        evaluate(lograb.generate("karate"), lograb.Reconstruction(35, none, np.empty(0), np.arange(35)))


def instance_for_invariance(**changes):
    return lograb.generate("karate", **({"d": 1, "p": 0.7, "k": 40, "sigma": 0.05} | changes))


def same_answer(one, two):
    assert np.array_equal(one.edges, two.edges)
    assert np.allclose(one.scores, two.scores, atol=1e-6)


def replace_vectors(seen, change):
    vectors = np.concatenate([change(i, seen.block(i)).ravel() for i in range(seen.n_patches)])
    return dataclasses.replace(seen, vectors=vectors)


@pytest.mark.parametrize("name", EACH)
def test_answers_do_not_depend_on_column_signs(name):
    seen = instance_for_invariance().observations
    same_answer(*(reconstruct(name, s) for s in (seen, flip_signs(seen))))


def flip_signs(seen):
    rng = np.random.default_rng(7)
    return replace_vectors(seen, lambda i, block: block * rng.choice([-1.0, 1.0], size=block.shape[1]))


# Instances on which AFR has something to stitch, and the settings that let it.
STITCHED = {
    "auto 1-hop": ({}, {"align_dim": "auto"}),
    "auto 2-hop": ({"d": 2}, {"align_dim": "auto"}),
    "auto clusters": ({"strategy": "cluster", "d": 2, "clusters": 4},
                      {"align_dim": "auto", "inlier_tolerance": 0.9}),
    "auto truncated": ({"d": 2, "k": 8}, {"align_dim": "auto", "s_min": 0.2, "delta_min": 0.0}),
    "full truncated": ({"d": 2, "k": 4}, {"s_min": 0.2, "delta_min": 0.0, "gamma": 2.0}),
}  # fmt: skip


def stitch(seen, case, **settings):
    chosen = STITCHED[case][1] | {"cross_voting": "off", "top_k": None} | settings
    answer = ATTACKS["afr"](**chosen).reconstruct(seen, np.random.default_rng(0))
    assert answer.diagnostics["stitches_accepted"] > 2
    return answer


@pytest.mark.parametrize("case", STITCHED)
@pytest.mark.parametrize("bundle", ["joint", "off"])
def test_stitched_answers_do_not_depend_on_column_signs(case, bundle):
    seen = instance_for_invariance(**STITCHED[case][0]).observations
    same_answer(*(stitch(s, case, bundle=bundle) for s in (seen, flip_signs(seen))))


@pytest.mark.parametrize("case", ["auto 1-hop", "auto 2-hop"])
def test_stitched_answers_follow_a_relabelling_of_the_nodes(case):
    seen = instance_for_invariance(**STITCHED[case][0]).observations
    order = np.random.default_rng(3).permutation(seen.n_nodes)
    # RANSAC draws by position, so another numbering is another draw.
    plain, moved = (stitch(s, case, ransac=False) for s in (seen, relabel(seen, order)))
    back = {tuple(sorted(order[list(e)].tolist())) for e in plain.edges}
    assert back == {tuple(e) for e in moved.edges.tolist()}


@pytest.mark.parametrize("name", ["random", "membership", "heat-kernel", "afr"])
def test_local_attacks_do_not_depend_on_bases_inside_repeated_eigenvalues(name):
    """The others align coordinates, which a different basis changes; they claim signs only."""
    seen = instance_for_invariance().observations
    rng = np.random.default_rng(7)

    def turn(i, block):
        out = block.copy()
        values = seen.spectrum(i)
        for value in np.unique(values.round(8)):
            same = np.flatnonzero(np.abs(values - value) < 1e-7)
            q, _ = np.linalg.qr(rng.standard_normal((len(same), len(same))))
            out[:, same] = block[:, same] @ q
        return out

    same_answer(*(reconstruct(name, s) for s in (seen, replace_vectors(seen, turn))))


def relabel(seen, order):
    """Give node u the id order[u]; the patches keep their order, members are sorted anew."""
    nodes, vectors = [], []
    for i in range(seen.n_patches):
        new = order[seen.members(i)]
        nodes.append(np.sort(new))
        vectors.append(seen.block(i)[np.argsort(new)].ravel())
    return dataclasses.replace(
        seen, nodes=np.concatenate(nodes), vectors=np.concatenate(vectors), centres=order[seen.centres]
    )


# `random` draws by position, so another numbering is another draw.
@pytest.mark.parametrize("name", each_but("random"))
def test_answers_follow_a_relabelling_of_the_nodes(name):
    seen = instance_for_invariance().observations
    order = np.random.default_rng(3).permutation(seen.n_nodes)
    plain, moved = (reconstruct(name, s) for s in (seen, relabel(seen, order)))
    back = {tuple(sorted(order[list(e)].tolist())) for e in plain.edges}
    assert back == {tuple(e) for e in moved.edges.tolist()}


@pytest.mark.parametrize("name", EACH)
def test_answers_ignore_edges_that_no_patch_contains(name):
    """Of the altered pairs some have an unobserved node; of others both are observed, in different patches."""
    graph = lograb.load_graph("karate")
    patches = [range(17), range(10, 25), range(3)]  # nodes 25 .. 33 are in no patch
    shared = (graph.edges < 17).all(axis=1) | ((graph.edges >= 10) & (graph.edges < 25)).all(axis=1)
    apart = [[0, 33], *([u, w] for u in range(10) for w in range(17, 25) if (u + w) % 3 == 0)]
    hidden = Graph.from_edges("other", 34, np.concatenate([graph.edges[shared], apart]))
    answers = []
    for truth in (graph, hidden):
        seen = lograb.generate(truth, strategy="custom", patches=patches, k=20).observations
        answers.append(reconstruct(name, seen))
    same_answer(*answers)
    assert len(answers[0].edges)


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("patches", [[[0], [1], [2]], [[0, 1], [2, 3]], [[0, 1, 2]] * 3, [list(range(34))]])
def test_odd_patches_give_a_valid_answer(name, patches):
    seen = lograb.generate("karate", strategy="custom", patches=patches, k=3, sigma=0.1).observations
    answer = reconstruct(name, seen)
    assert answer.n_nodes == 34
    assert np.isin(answer.nodes, seen.nodes).all()


@pytest.mark.parametrize("seen", [pytest.param(s, id=what) for what, s in odd_inputs() if what != "withheld"])
@pytest.mark.parametrize(("name", "settings"), [
    ("heat-kernel", {}), ("heat-kernel", {"threshold": "half-edge"}), ("heat-kernel", {"threshold": "certified"}),
    ("afr", {}), ("afr", {"align_dim": "auto", "connected": "any", "s_min": 0.0, "delta_min": 0.0, "alpha": 0.0}),
    ("afr", {"score": "local", "s_min": 0.0, "delta_min": 0.0}),
], ids=str)  # fmt: skip
def test_odd_observations_give_a_valid_answer(name, settings, seen):
    if seen.values is None:
        values = np.sort(np.random.default_rng(0).uniform(0, 2, int(seen.ranks.sum())))
        seen = dataclasses.replace(seen, values=values, next_values=np.where(seen.complete, np.nan, 2.0))
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        answer = ATTACKS[name](**settings).reconstruct(seen, np.random.default_rng(0))
    assert np.isfinite(answer.scores).all()
    json.dumps(answer.diagnostics, allow_nan=False)


def test_nan_embeddings_and_duplicate_nodes_are_refused_before_any_attack():
    seen = instance_for_invariance().observations
    with pytest.raises(LograbError, match="finite"):
        replace_vectors(seen, lambda i, block: block * np.nan)
    with pytest.raises(LograbError, match="distinct"):
        dataclasses.replace(seen, nodes=np.zeros_like(seen.nodes))


def test_unknown_settings_list_the_known_ones():
    with pytest.raises(LograbError, match="align_dim"):
        find_attack("afr")(**{"alfa": 1}).reconstruct(empty(), np.random.default_rng(0))


@pytest.mark.parametrize("d", [1, 2])
def test_certified_heat_kernel_finds_exactly_the_co_observed_edges(d):
    instance = lograb.generate("citation", d=d, p=0.3, k=2000)
    answer = lograb.attack(instance, find_attack("heat-kernel")(**{"threshold": "certified"}))
    assert np.array_equal(answer.edges, instance.truth.edges[instance.co_observed])
