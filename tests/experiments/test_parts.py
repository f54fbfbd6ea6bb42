"""One graph in parts: nothing is shown that is not the part's own, and the joined answer is as good."""

import numpy as np
import pytest

import lograb
from lograb.experiments.parts import InParts, cut_patches, join, show


@pytest.fixture(scope="module")
def instance():
    return lograb.generate("citation", p=0.6, k=32, sigma=0.05, seed=1)


def test_a_part_sees_all_members_but_its_own_embeddings(instance):
    seen = instance.observations
    part = cut_patches(seen, seen.sizes**2, 3, 0)
    assert set(part.tolist()) == {0, 1, 2}
    for number in range(3):
        shown, mine = (show(seen, part == number, members) for members in (True, False))
        assert mine.n_patches == (part == number).sum()
        assert np.array_equal(mine.vectors, shown.vectors)
        assert np.array_equal(shown.nodes, seen.nodes)
        for i in range(0, seen.n_patches, 50):
            own = part[i] == number
            assert shown.block(i).shape[1] == (seen.ranks[i] if own else 0)
            assert not own or np.array_equal(shown.block(i), seen.block(i))
            assert not own or np.array_equal(shown.spectrum(i), seen.spectrum(i))


def test_patches_with_common_members_stay_together(instance):
    seen = instance.observations
    part, drawn = cut_patches(seen, seen.sizes**2, 4, 0), np.random.default_rng(0).integers(4, size=seen.n_patches)

    def torn(labels):
        """Count nodes whose patches lie in several parts."""
        owner = np.repeat(labels, seen.sizes)
        return len(np.unique(seen.nodes * 4 + owner)) - len(np.unique(seen.nodes))

    assert torn(part) < 0.5 * torn(drawn)


@pytest.mark.parametrize("attack", ["posterior", "heat-kernel", "afr"])
def test_the_joined_answer_is_as_good(instance, scheduler, attack):
    told = []
    apart = InParts(attack, 3, scheduler=scheduler, progress=lambda *stage: told.append(stage[1:]))
    joined, whole = (lograb.attack(instance, one) for one in (apart, attack))
    assert lograb.evaluate(instance, joined).f1 == pytest.approx(lograb.evaluate(instance, whole).f1, abs=0.01)
    assert len(np.unique(joined.judged, axis=0)) == len(joined.judged)
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert joined.method == f"{attack}, 3 parts"


@pytest.mark.parametrize("parts", [1, 3])
def test_the_joined_answer_tells_what_it_expects(scheduler, parts):
    """Whether it is as sure as the whole or not: what it tells is about what it claims."""
    weak = lograb.generate("citation", strategy="cluster", d=0, cluster_size=20, p=0.2, k=8, sigma=0.05)
    joined = lograb.attack(weak, InParts("posterior", parts, scheduler=scheduler))
    told, hits = joined.diagnostics["expected"], joined.scores.sum()
    assert told["precision"] == pytest.approx(joined.scores.mean())
    assert told["precision"] < 0.95, "it is sure of everything: this test shows nothing"
    total = hits / told["recall"]
    assert joined.judged_scores.sum() <= total <= 1.02 * joined.judged_scores.sum()  # the rest is not listed
    assert told["f1"] == pytest.approx(2 * hits / (len(joined.edges) + total))
    if parts == 1:
        assert told == pytest.approx(lograb.attack(weak, "posterior").diagnostics["expected"])


def test_scores_that_are_no_probabilities_promise_nothing(instance, scheduler):
    assert "expected" not in lograb.attack(instance, InParts("afr", 3, scheduler=scheduler)).diagnostics


def test_parts_of_a_sanitised_graph_expect_nothing_together(scheduler):
    hidden = lograb.generate("karate", k=8, defences="edge-rand:epsilon=4")
    assert "expected" in lograb.attack(hidden, "posterior").diagnostics
    joined = lograb.attack(hidden, InParts("posterior", 2, scheduler=scheduler))
    assert "expected" not in joined.diagnostics


def test_a_pair_goes_by_the_part_with_more_of_its_patches(instance):
    seen = instance.observations
    part = np.arange(seen.n_patches) % 2
    pair = next((u, w) for u, w in instance.truth.edges.tolist()
                if len({(u in seen.members(i) and w in seen.members(i), part[i]) for i in range(seen.n_patches)}
                       & {(True, 0), (True, 1)}) == 2)  # fmt: skip
    count = [sum({*pair} <= {*seen.members(i).tolist()} for i in range(seen.n_patches) if part[i] == side)
             for side in (0, 1)]  # fmt: skip
    answers = [lograb.Reconstruction(seen.n_nodes, [pair], [score], list(pair)) for score in (0.25, 0.75)]
    assert join(seen, part, answers).scores.tolist() == [0.75 if count[1] > count[0] else 0.25]
    odds = np.average([1 / 3, 3.0], weights=count)  # of 0.25 and 0.75
    assert join(seen, part, answers, average=True).judged_scores.tolist() == pytest.approx([odds / (1 + odds)])


def test_parts_read_the_patches_that_the_whole_reads(instance):
    """A part's budget is its share of the whole's; the patches beyond it are members only in both."""
    seen = instance.observations
    attack = lograb.attacks.Posterior(max_entries=20_000)
    whole = lograb.attack(instance, attack).diagnostics["patches"]
    assert whole["over_budget"] > 10
    costs = attack.costs(seen)
    assert (costs > 0).sum() == whole["read"]
    assert costs.sum() <= 20_000
    part = cut_patches(seen, costs, 3, 0)
    read = np.zeros(seen.n_patches, dtype=bool)
    for number in range(3):
        own = part == number
        mine = attack.for_part(int(costs[own].sum()))
        assert costs[own].sum() < 0.4 * costs.sum()  # so the patches beyond the budget weigh nothing
        shown = show(seen, own, True)
        assert lograb.attack(shown, mine).diagnostics["patches"]["read"] == (costs[own] > 0).sum()
        read |= mine.costs(shown) > 0
    assert np.array_equal(read, costs > 0)


@pytest.mark.parametrize("output", ["cap", "fill"])
def test_the_cap_holds_in_the_joined_answer(instance, scheduler, output):
    """Each claim is among the two best of one of its nodes, out of all that are joined."""
    attack = lograb.attacks.Afr(top_k=2, output=output)
    joined = lograb.attack(instance, InParts(attack, 3, scheduler=scheduler))
    pairs, scores = joined.judged, joined.judged_scores
    order = np.lexsort((np.arange(len(pairs)), -scores))
    taken, best = np.zeros(instance.n_nodes, dtype=int), set()
    for u, w in pairs[order[scores[order] >= (0.5 if output == "cap" else 0.0)]].tolist():
        if min(taken[u], taken[w]) < 2:
            best.add((u, w))
        taken[[u, w]] += 1
    assert set(map(tuple, joined.edges.tolist())) == best
    whole = lograb.attack(instance, attack)
    assert len(joined.edges) == pytest.approx(len(whole.edges), rel=0.01)
    assert lograb.evaluate(instance, joined).f1 == pytest.approx(lograb.evaluate(instance, whole).f1, abs=0.002)


def test_patches_that_are_left_out_weigh_nothing():
    hub = lograb.generate("citation", p=0.6, k=8, seed=1).observations
    attack = lograb.attacks.Afr(max_size=int(np.quantile(hub.sizes, 0.99)))
    costs = attack.costs(hub)
    part = cut_patches(hub, costs, 4, 0)
    shares = np.bincount(part, costs, 4) / costs.sum()
    assert shares.max() < 0.3
    assert np.array_equal(costs == 0, hub.sizes > attack.max_size)


def test_too_many_parts_are_refused(instance):
    with pytest.raises(lograb.LograbError, match="choose fewer"):
        lograb.attack(instance, InParts("membership", 10**6))


def test_a_part_that_the_attack_refuses_claims_nothing(instance, scheduler, monkeypatch):
    seen = instance.observations
    large = seen.sizes > 20
    assert large.any()
    monkeypatch.setattr("lograb.experiments.parts.cut_patches", lambda *given: large.astype(np.int64))
    attack, rng = lograb.attacks.Afr(max_size=20), np.random.default_rng(0)
    found = InParts(attack, 2, scheduler=scheduler)(seen, rng)
    (why,) = found.diagnostics["parts_refused"]
    assert "more than 20 members" in why
    assert len(found.edges) > 1000
    monkeypatch.undo()
    with pytest.raises(lograb.LograbError, match="more than 20 members"):
        InParts(attack, 1, scheduler=scheduler)(show(seen, large, False), rng)
