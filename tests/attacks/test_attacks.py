"""The attacks that exist so far, and what must hold for each of them."""

import dataclasses
from importlib.util import find_spec

import numpy as np
import pytest

import lograb
from lograb.attacks import ATTACKS, find_attack
from lograb.attacks.heat_kernel import two_groups
from lograb.errors import LograbError
from lograb.spec import Protocol
from lograb.tasks import ceiling, compare, evaluate, run_attack
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
    return ATTACKS[name].reconstruct(seen, np.random.default_rng(0), QUICK.get(name))


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
    instance = lograb.generate("karate", strategy=strategy, d=1, p=0.7, k=40, sigma=0.1)
    seen = instance.observations
    answer = reconstruct(name, seen)
    together = {(u, w) for i in range(seen.n_patches) for u in seen.members(i) for w in seen.members(i) if u < w}
    assert len(answer.edges)
    assert {tuple(e) for e in answer.edges.tolist()} <= together


def test_membership_is_certain_about_one_hop_balls():
    instance = lograb.generate("citation", d=1, p=0.3)
    answer, _ = run_attack(instance, "membership")
    scores = evaluate(instance, answer)
    assert scores["precision"] == 1.0
    incident = np.isin(instance.truth.edges, instance.observations.centres).any(axis=1)
    assert len(answer.edges) == incident.sum()


def test_heat_kernel_inverts_complete_noiseless_karate():
    row = next(r for r in compare(lograb.generate("karate", d=1, k=40), ["heat-kernel"]))
    assert row["f1"]["global"] > 0.97


def test_heat_kernel_says_what_it_lacks():
    with pytest.raises(LograbError, match="withhold"):
        run_attack(lograb.generate("karate", eigenvalues=False), "heat-kernel")


def test_two_groups():
    rows = np.array([[0.0, 0.1, 0.9, 1.0], [5.0, 5.0, 5.0, 5.0]])
    assert (rows > two_groups(rows)[:, None]).tolist() == [[False, False, True, True], [True] * 4]
    assert (np.array([[0.3]]) > two_groups(np.array([[0.3]]))[:, None]).all()


def test_floor_and_ceiling_enclose():
    instance = lograb.generate("citation", d=1, p=0.6, sigma=0.05)
    rows = compare(instance)
    flags = instance.co_observed
    assert ceiling(instance) == pytest.approx(2 * flags.sum() / (flags.sum() + len(flags)))
    best = max(r["f1"]["global"] for r in rows if ATTACKS[r["method"]].trivial)
    assert compare(instance, ["heat-kernel"])[0]["floor"] == best
    assert all(r["f1"]["global"] <= r["ceiling"] for r in rows)
    assert 0.9 < rows[0]["floor"] < rows[0]["ceiling"] < 1


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
    rng = np.random.default_rng(7)
    flipped = replace_vectors(seen, lambda i, block: block * rng.choice([-1.0, 1.0], size=block.shape[1]))
    same_answer(*(reconstruct(name, s) for s in (seen, flipped)))


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
    graph = lograb.load_graph("karate")
    patches = [range(17), range(10, 25)]  # nodes 25 .. 33 are in no patch
    seen_edges = graph.edges[(graph.edges < 25).all(axis=1)]
    hidden = Graph.from_edges("other", 34, np.concatenate([seen_edges, [[0, 33]]]))
    answers = []
    for truth in (graph, hidden):
        seen = lograb.generate(truth, strategy="custom", patches=patches, k=6).observations
        answers.append(reconstruct(name, seen))
    same_answer(*answers)


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("patches", [[[0], [1], [2]], [[0, 1], [2, 3]], [[0, 1, 2]] * 3, [list(range(34))]])
def test_odd_patches_give_a_valid_answer(name, patches):
    seen = lograb.generate("karate", strategy="custom", patches=patches, k=3, sigma=0.1).observations
    answer = reconstruct(name, seen)
    assert answer.n_nodes == 34
    assert np.isin(answer.nodes, seen.nodes).all()


def test_nan_embeddings_and_duplicate_nodes_are_refused_before_any_attack():
    seen = instance_for_invariance().observations
    with pytest.raises(LograbError, match="finite"):
        replace_vectors(seen, lambda i, block: block * np.nan)
    with pytest.raises(LograbError, match="distinct"):
        dataclasses.replace(seen, nodes=np.zeros_like(seen.nodes))


def test_unknown_settings_list_the_known_ones():
    with pytest.raises(LograbError, match="align_dim"):
        find_attack("afr").reconstruct(empty(), np.random.default_rng(0), {"alfa": 1})


@pytest.mark.parametrize("d", [1, 2])
def test_certified_heat_kernel_finds_exactly_the_co_observed_edges(d):
    instance = lograb.generate("citation", d=d, p=0.3, k=2000)
    answer, _ = run_attack(instance, "heat-kernel", settings={"threshold": "certified"})
    assert np.array_equal(answer.edges, instance.truth.edges[instance.co_observed])
