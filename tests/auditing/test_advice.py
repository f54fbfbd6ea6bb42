"""What an audit advises: drawn more than once, true to the whole policy, and made by the command it prints."""

import html
import shlex

import networkx as nx
import numpy as np
import pytest

import lograb
from lograb.auditing import auditor
from lograb.auditing.policy import Policy
from lograb.auditing.sharing import SECRET
from lograb.auditing.wording import answer, use, useless
from lograb.errors import LograbError
from lograb.score import percent
from tests.auditing.test_audit import NOTHING, by_id, organisation, readable


def shares_drawn(sigma):
    """Measure what is read at draws 0 .. 4 of some noise."""
    graph, groups = organisation()
    found = []
    for seed in range(5):
        shared = lograb.generate(graph, patches=groups, k=32, sigma=sigma, seed=seed)
        found.append(max(readable(shared, lograb.attack(shared, name)) for name in ("posterior", "membership"))
                     / shared.co_observed.sum())  # fmt: skip
    return found


def test_the_worst_draw_of_what_is_recommended_counts():
    drawn = shares_drawn(0.2)
    assert max(drawn) > drawn[0], "the first draw is the worst already: this test shows nothing"
    graph, groups = organisation()
    between = (drawn[0] + max(drawn)) / 2
    found = lograb.audit(graph, patches=groups, tolerate=between, quick=True)
    row = by_id(found)["noise-0.2"]
    assert row["draws"] == pytest.approx(drawn)
    assert row["share"] == max(drawn)
    assert row["share_interval"][0] <= min(drawn)
    assert row["share_interval"][1] >= max(drawn)
    assert not row["tolerated"]
    assert found.findings["recommendation"]["setting"] != "noise-0.2"
    enough = lograb.audit(graph, patches=groups, tolerate=max(drawn), quick=True).findings["recommendation"]
    assert enough["setting"] == "noise-0.2"
    assert "in the worst of 5 draws" in enough["sentence"]


def test_draws_are_kept_and_differ_from_the_point(tmp_path, monkeypatch):
    how = {"scenario": "silos", "policy": {"allow": ["defence"]}, "quick": True, "store": tmp_path / "kept"}
    first = lograb.audit("karate", **how)
    assert len(by_id(first)["subspace-1"]["draws"]) == 5
    monkeypatch.setattr(auditor, "gather", None)
    assert lograb.audit("karate", **how).findings["settings"] == first.findings["settings"]


def test_no_noise_below_what_is_planned_is_tried():
    """The mean of ten releases has less noise than each; what is planned is the noise of each."""
    graph, groups = organisation()
    rows = by_id(lograb.audit(graph, patches=groups, sigma=0.3, releases=10, quick=True))
    assert not [id for id in rows if id.startswith("noise")]


def test_one_defence_may_be_given_as_text():
    rows = lograb.audit("karate", scenario="silos", defences="truncate:k=10", quick=True).findings["settings"]
    assert [row["id"] for row in rows if row["status"] != "done"] == []


def test_planned_noise_costs_use():
    graph, groups = organisation()
    exact, noisy = (lograb.audit(graph, patches=groups, sigma=sigma, quick=True).findings["settings"][0]["utility"]
                    for sigma in (0.0, 0.2))  # fmt: skip
    assert exact["value"] == exact["clustering"] == pytest.approx(1.0)
    assert noisy["value"] < 0.9
    assert noisy["clustering"] < 0.9
    assert noisy["without_embeddings"] == pytest.approx(8 / 20)


@pytest.mark.parametrize(("kept", "chance", "told"), [
    (0.32, 0.33, True), (0.15, 0.13, True), (0.29, 0.25, True), (0.44, 0.33, True), (0.53, 0.24, False),
])  # fmt: skip
def test_one_rule_tells_what_is_useless(kept, chance, told):
    assert useless({"utility": {"value": kept, "without_embeddings": chance}}) is told


def test_the_leading_subspace_has_a_dimension():
    graph, groups = organisation()
    found = lograb.audit(graph, patches=groups, k=6, sigma=0.1, quick=True, policy=NOTHING).findings
    assert found["settings"][0]["utility"]["dimension"] == 6
    assert "the first 6 eigenvectors" in use(found["settings"][0])


def test_what_is_as_good_as_nothing_is_said_to_be():
    graph, groups = organisation()
    policy = {"allow": ["defence"]}
    found = lograb.audit(graph, patches=groups, policy=policy, quick=True).findings
    assert found["recommendation"]["setting"] == "subspace-1"
    assert "next to nothing to use" in found["recommendation"]["sentence"]


@pytest.mark.parametrize("policy", [
    {"require_guarantee": True, "allow": ["noise", "columns"]},
    {"allow": []},
    {"require_guarantee": True, "max_epsilon": 1e-9, "allow": ["graph"]},
])  # fmt: skip
def test_a_policy_that_asks_for_more_than_a_share_blames_no_channel(policy):
    graph, groups = organisation()
    advice = lograb.audit(graph, patches=groups, policy=policy, quick=True).findings["recommendation"]
    assert advice["setting"] is None
    assert advice["blame"] == "policy"
    assert advice["sentence"].startswith("No setting on this grid keeps to the policy.")


def test_a_typing_error_in_a_policy_gets_the_right_name():
    with pytest.raises(LograbError, match="Did you mean 'tolerate'"):
        lograb.audit("karate", policy={"tolerat": 0.1})


def test_few_edges_from_the_embeddings_are_not_blamed_on_membership():
    plan = dict.fromkeys(("f1", "f1_interval", "floor", "floor_by", "ceiling", "expected_f1", "measured_f1",
                          "expected_share", "expected_precision"))  # fmt: skip
    plan |= {"readable": 2, "share": 0.004, "share_interval": [0.001, 0.02], "share_half": 0.004, "sure": 1.0,
             "scale_known": True, "guessed": 2, "guesses": 2, "guessed_share": 0.004}
    found = {"source": {"truth": True}, "scenario": {"edge_word": "edges"}, "settings": [plan]}
    for by, told in ((0.0, "All of it comes from the embeddings"), (0.002, "0.2 % come from membership alone"),
                     (0.004, "All of it comes from membership")):  # fmt: skip
        plan["by_membership"] = by
        assert answer(found, Policy(), 500.0)["channel"].startswith(told)


def test_a_leak_that_just_misses_the_limit_is_called_one():
    graph, groups = organisation()
    how = {"patches": groups, "sigma": 0.2, "quick": True, "policy": NOTHING}
    found = lograb.audit(graph, **how).findings
    plan, numbers = found["settings"][0], found["answer"]["numbers"]
    shared = lograb.generate(graph, patches=groups, k=32, sigma=0.2)
    pairs, scores = lograb.attack(shared, "posterior").ranked
    edges = set(map(tuple, shared.truth.edges.tolist()))
    right = np.array([tuple(pair) in edges for pair in pairs.tolist()])
    gains = [2 * right[scores >= cut].sum() - (scores >= cut).sum() for cut in np.unique(scores)]
    assert 2 * numbers["guessed"] - numbers["guesses"] == max(gains)
    assert plan["share"] <= 0.1 < numbers["guessed_share"], "nothing just misses the limit: this shows nothing"
    assert found["answer"]["level"] == "partly"
    told = f"{numbers['guessed']} edges ({percent(numbers['guessed_share'])}) are named"
    said = (found["answer"]["headline"], *found["reasons"]["against"], found["terms"][0]["finding"])
    assert told in said[0]
    assert any(told in text for text in said[1:-1])
    assert told in said[-1]
    assert not any("are tolerated" in text for text in found["reasons"]["for"])


def test_what_is_hardly_known_stays_little():
    found = lograb.audit("karate", scenario="silos", defences="subspace:epsilon=1", quick=True).findings
    assert found["answer"]["numbers"]["guessed_share"] <= 0.1
    assert found["answer"]["level"] == "little"


def test_what_the_attack_expects_of_itself_is_compared_with_the_same():
    """Edges that no patch contains are in F1, and in nothing that an attack can expect."""
    graph = nx.connected_caveman_graph(4, 8)
    row = lograb.audit(graph, patches=[list(range(16)), list(range(16, 32))], quick=True).findings["settings"][0]
    assert row["ceiling"] < 1
    assert row["measured_f1"] == 1.0
    assert row["f1"] < 1
    assert row["expected_f1"] == pytest.approx(1.0, abs=0.01)


def test_a_setting_whose_attack_breaks_down_does_not_end_the_audit(monkeypatch):
    real = auditor.gather

    def breaking(instance, *args):
        if instance.spec.sigma:
            raise np.linalg.LinAlgError("Eigenvalues did not converge")
        return real(instance, *args)

    monkeypatch.setattr(auditor, "gather", breaking)
    found = lograb.audit("karate", scenario="silos", quick=True).findings
    broken = [row for row in found["settings"] if row["id"].startswith("noise")]
    assert broken
    assert all(row["status"] == "failed" and row["share"] is None and not row["tolerated"] for row in broken)


def test_an_estimate_too_wide_to_decide_by_speaks_against_sharing(tmp_path):
    graph = nx.random_geometric_graph(60, 0.25, seed=5)
    shared = lograb.generate(graph, strategy="cluster", d=0, k=2, eigenvalues=False)
    shared.save(tmp_path / "s.lograb", truth=False)
    found = lograb.audit(tmp_path / "s.lograb", quick=True, policy={"allow": ["plan"]}).findings
    assert found["answer"]["numbers"]["share"] <= 0.1 < found["answer"]["numbers"]["share_interval"][1]
    assert any("may be readable" in text for text in found["reasons"]["against"])


def test_the_same_setting_is_judged_by_another_rule_without_the_truth(tmp_path):
    """And the page says by which, and that the other can end otherwise."""
    graph, groups = organisation()
    lograb.generate(graph, patches=groups, k=32, sigma=0.2).save(tmp_path / "with.lograb")
    lograb.generate(graph, patches=groups, k=32, sigma=0.2).save(tmp_path / "without.lograb", truth=False)
    how = {"quick": True, "policy": {"tolerate": 0.5, "allow": ["plan"]}}
    counted, guessed = (lograb.audit(tmp_path / f"{name}.lograb", **how) for name in ("with", "without"))
    assert by_id(counted)["plan"]["tolerated"]
    assert not by_id(guessed)["plan"]["tolerated"], "both are judged alike: this test shows nothing"
    for found, rule in ((counted, "counted against the true graph"), (guessed, "no true graph to count against")):
        found.save(tmp_path / "page.html")
        told = found.findings["recommendation"]["rule"]
        assert rule in told
        assert "the same setting can be" in told
        assert html.escape(told).replace("&#x27;", "&#39;") in (tmp_path / "page.html").read_text()


def test_the_precision_of_a_file_is_told(tmp_path):
    lograb.generate("karate", precision="float32").save(tmp_path / "k.lograb")
    assert lograb.audit(tmp_path / "k.lograb", quick=True).findings["plan"]["precision"] == "float32"


# --- the command --------------------------------------------------------------------------------------------


def test_the_command_makes_what_is_recommended(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graph, groups = organisation()
    names = {name: f"p {i}" for i, name in enumerate(graph)}
    lines = [f"{names[u]},{names[v]}\n" for u, v in graph.edges] + [f"{name}\n" for name in names.values()]
    (tmp_path / "my friends.csv").write_text("".join(lines))
    rows = "".join(f"{names[name]},{group}\n" for name, group in groups.items())
    (tmp_path / "teams.csv").write_text("node,group\n" + rows)
    found = lograb.audit("my friends.csv", patches="teams.csv", tolerate=0.3, releases=2, sigma=0.01, quick=True)
    advice = found.findings["recommendation"]
    words = shlex.split(advice["command"])
    chosen = by_id(found)[advice["setting"]]
    assert words[:3] == ["lograb", "generate", "my friends.csv"]
    assert set(shlex.split(chosen["change"])) <= set(words)
    assert words.count("--sigma") == words.count("-k") == 1
    assert words[words.index("--seed") + 1] == SECRET
    assert "--no-truth" in words


def test_the_command_for_what_is_made_defends_it(tmp_path):
    lograb.generate("karate", strategy="cluster", d=0).save(tmp_path / "k.lograb", truth=False)
    found = lograb.audit(tmp_path / "k.lograb", quick=True, policy={"allow": ["defence"]}).findings
    assert found["recommendation"]["command"] == (
        f"lograb defend {tmp_path / 'k.lograb'} --method subspace:epsilon=1 --no-truth -o k-shared.lograb")


def test_what_the_command_makes_is_named_after_what_it_reads(tmp_path):
    graph = nx.random_geometric_graph(40, 0.3, seed=5)
    values, vectors = np.linalg.eigh(nx.normalized_laplacian_matrix(graph).toarray())
    np.savez(tmp_path / "mine.npz", members=np.arange(40), vectors=vectors[:, :8], values=values[:8])
    found = lograb.audit(tmp_path / "mine.npz", quick=True, policy={"allow": ["defence"]}).findings
    pack, defend = found["recommendation"]["command"].split(" && ")
    assert pack.endswith("-o mine-packed.lograb")
    assert defend.startswith("lograb defend mine-packed.lograb")
    assert defend.endswith("-o mine-shared.lograb")


def test_the_graph_is_no_table_of_groups(tmp_path):
    path = tmp_path / "friends.csv"
    path.write_text("a,b\nb,c\nc,a\n")
    with pytest.raises(lograb.LograbError, match="is the graph itself"):
        lograb.audit(path, patches=path, quick=True)


def test_a_whole_spectrum_is_called_one():
    found = lograb.audit("karate", scenario="silos", k=64, quick=True).findings
    assert "the whole spectrum" in found["scenario"]["sentence"]
    found = lograb.audit("karate", scenario="silos", k=2, quick=True).findings
    assert "the whole spectrum" not in found["scenario"]["sentence"]


def test_no_more_columns_than_planned_are_offered():
    """What shows more than the plan says nothing about it."""
    graph, groups = organisation()
    for quick in (True, False):
        rows = by_id(lograb.audit(graph, patches=groups, k=3, quick=quick))
        assert not [name for name in rows if name.endswith(("-4", "-8")) and name.startswith(("no-", "columns"))]
        assert rows["no-eigenvalues"]["share"] <= rows["plan"]["share"]


def test_a_file_that_holds_the_truth_is_said_to(tmp_path):
    graph, groups = organisation()
    instance = lograb.generate(graph, patches=groups, k=8, sigma=0.3)
    for kept in (True, False):
        path = tmp_path / f"{kept}.lograb"
        instance.save(path, truth=kept)
        found = lograb.audit(path, quick=True).findings
        assert found["source"]["holds_truth"] is kept
        assert ("--no-truth" in str(found["reasons"]["against"])) is kept
    assert not lograb.audit(graph, patches=groups, k=8, quick=True).findings["source"]["holds_truth"]


def test_the_command_does_not_write_over_what_it_reads(tmp_path):
    path = tmp_path / "shared.lograb"
    lograb.generate("karate", strategy="cluster", clusters=2, k=16, seed=1).save(path)
    found = lograb.audit(path, quick=True, tolerate=0.5).findings["recommendation"]
    assert shlex.split(found["command"])[-1] == "shared-shared.lograb"
