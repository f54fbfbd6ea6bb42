"""The audit: what it says is so, with and without the truth, and whatever is in the names."""

import csv
import json
import math
from functools import cache
from tempfile import TemporaryDirectory

import networkx as nx
import numpy as np
import pytest

import lograb
from lograb.auditing import auditor
from lograb.errors import LograbError
from tests.auditing.graphs import kinds

NOTHING = {"allow": []}
"""Recommends nothing, and so draws nothing more than once: both audits see the same draw."""
EVIL = ["<script>alert(1)</script>", 'a "quoted", name', "Zoë\nnew line", "=1+1"]


def organisation():
    """Sixty people in three departments, some with unpleasant names."""
    graph = nx.random_partition_graph([20, 20, 20], 0.25, 0.02, seed=1)
    names = {i: EVIL[i] if i < len(EVIL) else f"person {i}" for i in graph}
    groups = {names[i]: f"dep {i // 20}" for i in graph}
    return nx.relabel_nodes(graph, names), groups


@pytest.fixture(scope="module")
def silos():
    graph, groups = organisation()
    return lograb.audit(graph, patches=groups)


@pytest.fixture(scope="module")
def ego():
    return lograb.audit("karate", quick=True)


def by_id(found):
    return {row["id"]: row for row in found.findings["settings"]}


def readable(instance, answer, confidence=0.9):
    """Count what is read, slowly: pair by pair, score by score."""
    true = {tuple(edge) for edge in instance.truth.edges[instance.co_observed].tolist()}
    pairs, scores = answer.ranked
    best = 0
    for cut in set(scores.tolist()):
        claims = [tuple(pair) for pair, score in zip(pairs.tolist(), scores.tolist()) if score >= cut]
        right = sum(pair in true for pair in claims)
        best = max(best, right) if right >= confidence * len(claims) else best
    return best


# --- the answer ---------------------------------------------------------------------------------------------


def test_the_headline_counts_what_is_read(silos):
    graph, groups = organisation()
    plan = lograb.generate(graph, patches=groups, k=32)
    count = readable(plan, lograb.attack(plan, "posterior"))
    numbers = silos.findings["answer"]["numbers"]
    assert numbers["readable"] == count > 0
    assert numbers["in_scope"] == plan.co_observed.sum()
    assert numbers["share"] == count / plan.co_observed.sum()
    said = f"reads {count} of your {plan.co_observed.sum()} edges inside groups"
    assert said in silos.findings["answer"]["headline"]


@pytest.mark.parametrize("id", ["noise-0.2", "columns-4", "no-eigenvalues"])
def test_every_setting_is_what_its_options_make(silos, id):
    graph, groups = organisation()
    change = {"noise-0.2": {"sigma": 0.2}, "columns-4": {"k": 4}, "no-eigenvalues": {"eigenvalues": False}}[id]
    shared = lograb.generate(graph, patches=groups, **{"k": 32} | change)
    row = by_id(silos)[id]
    assert row["f1"] == max(lograb.evaluate(shared, lograb.attack(shared, name)).f1
                            for name in ("posterior", "membership", "afr")
                            if name != "afr" or shared.observations.values is not None)  # fmt: skip
    assert row["readable"] >= readable(shared, lograb.attack(shared, "posterior"))


def test_neighbourhoods_are_read_by_membership_and_that_is_said(ego):
    found = ego.findings
    assert found["answer"]["level"] == "exposed"
    assert found["answer"]["numbers"]["by_membership"] == 1.0
    assert "membership alone" in found["answer"]["channel"]
    assert found["recommendation"] | {"sentence": "", "rule": ""} == {
        "tolerate": 0.1, "confidence": 0.9, "policy": None, "least_use": 0.2, "setting": None,
        "blame": "membership", "rule": "", "command": None, "sentence": ""}
    assert any("Membership alone" in text for text in found["reasons"]["against"])


def test_people_without_an_edge_are_counted_and_the_audit_goes_on(tmp_path):
    graph = nx.connected_caveman_graph(3, 5)
    table = "".join(f"p{i},team {i // 5}\n" for i in graph)
    (tmp_path / "friends.csv").write_text("".join(f"p{u},p{v}\n" for u, v in graph.edges))
    (tmp_path / "all.csv").write_text("node,group\n" + table)
    (tmp_path / "more.csv").write_text("node,group\n" + table + "loner,team 0\nhermit,team 3\n")
    with pytest.warns(lograb.LograbNotice, match="2 of 17 members"):
        found = lograb.audit(tmp_path / "friends.csv", patches=tmp_path / "more.csv", quick=True).findings
    assert any("loner, hermit" in text for text in found["source"]["notices"])
    without = lograb.audit(tmp_path / "friends.csv", patches=tmp_path / "all.csv", quick=True).findings
    assert found["answer"] == without["answer"]
    assert found["recommendation"]["setting"] == without["recommendation"]["setting"]


def test_a_failing_attack_is_no_proof(silos, ego):
    for found in (silos, ego):
        assert any("no proof" in text for text in found.findings["reasons"]["caution"])
    noise = lograb.audit("karate", scenario="silos", defences="subspace:epsilon=1", quick=True).findings
    assert noise["answer"]["level"] == "little"
    assert "no proof" in noise["answer"]["headline"]
    assert noise["recommendation"]["setting"] == "plan"


def test_who_gets_more_reads_at_least_as_much(silos):
    rows = by_id(silos)
    ladders = [("plan", "columns-16", "columns-8", "columns-4", "columns-2"), ("plan", "no-eigenvalues"),
               ("plan", "digits-23", "digits-10", "digits-7"),
               ("no-eigenvalues", "no-eigenvalues-8", "no-eigenvalues-4"), ("columns-4", "no-eigenvalues-4"),
               ("plan", *(id for id in rows if id.startswith("noise")))]  # fmt: skip
    for ladder in ladders:
        shares = [rows[id]["share"] for id in ladder if id in rows]
        assert shares == sorted(shares, reverse=True), ladder


# --- with and without the truth -----------------------------------------------------------------------------


@cache
def known_and_blind(kind):
    """Audit one instance with its truth and without: settings by id."""
    graph, how = kinds()[kind]
    strategy = {"ego": "d-hop", "silos": "cluster", "global": "global"}[how["scenario"]]
    parameters = {"d": int(how["scenario"] == "ego")} | {key: how[key] for key in how if key != "scenario"}
    instance = lograb.generate(graph, strategy=strategy, **parameters)
    with TemporaryDirectory() as folder:
        instance.save(f"{folder}/shared.lograb", truth=False)
        blind = lograb.audit(f"{folder}/shared.lograb", quick=True, policy=NOTHING)
    assert blind.findings["answer"]["estimated"]
    assert blind.findings["source"]["edges_in_scope"] is None
    return by_id(lograb.audit(instance, quick=True, policy=NOTHING)), by_id(blind)


def agrees(known, blind):
    low, high = blind["share_interval"]
    return low - 1e-9 <= known["share"] <= high + 1e-9


@pytest.mark.parametrize("kind", kinds())
def test_the_headline_without_the_truth_agrees_with_the_truth(kind):
    known, blind = known_and_blind(kind)
    assert agrees(known["plan"], blind["plan"])


def test_so_do_nearly_all_settings():
    rows = [(known[id], blind[id]) for known, blind in map(known_and_blind, kinds()) for id in known
            if blind[id]["status"] == "done"]  # fmt: skip
    assert len(rows) > 60
    assert sum(agrees(*row) for row in rows) >= 0.95 * len(rows)
    sharp = [blind for _, blind in rows if blind["share_interval"][1] - blind["share_interval"][0] < 0.25]
    assert len(sharp) > 0.5 * len(rows)  # an interval from 0 to 1 always agrees


SCALELESS = {
    "barbell, rotated": (nx.barbell_graph(22, 0), {"k": 2, "gauge": "rotation", "eigenvalues": False}),
    "line graph": (nx.convert_node_labels_to_integers(nx.line_graph(nx.complete_graph(8))),
                   {"k": 8, "eigenvalues": False}),
    "complete": (nx.complete_graph(20), {"k": 1}),
    "hypercube": (nx.convert_node_labels_to_integers(nx.hypercube_graph(6)), {"k": 8, "eigenvalues": False}),
}  # fmt: skip
"""Shared so that the attack ranks pairs, and nothing tells it how many of them are edges."""


@pytest.mark.parametrize("kind", SCALELESS)
def test_where_nothing_tells_how_many_edges_there_are_nothing_is_promised(kind, tmp_path):
    graph, how = SCALELESS[kind]
    instance = lograb.generate(graph, strategy="global", **how)
    instance.save(tmp_path / "shared.lograb", truth=False)
    blind = lograb.audit(tmp_path / "shared.lograb", quick=True, policy=NOTHING)
    known = by_id(lograb.audit(instance, quick=True, policy=NOTHING))
    assert known["plan"]["share"] > 0.8, "it is not read: this test shows nothing"
    told, plan = blind.findings["answer"], by_id(blind)["plan"]
    assert told["level"] == "unknown"
    assert plan["share_interval"] == [0.0, pytest.approx(1.0)]
    assert not plan["scale_known"]
    assert "Nothing in the file tells how many edges there are" in told["headline"]
    assert "can tell more than an audit of the file" in told["channel"]
    assert " of some " not in told["headline"]
    assert not any("can be read" in text for text in blind.findings["reasons"]["against"])
    assert not any("are tolerated" in text for text in blind.findings["reasons"]["for"])
    assert all(agrees(known[id], row) for id, row in by_id(blind).items() if row["status"] == "done")


@pytest.mark.parametrize(("graph", "k"), [(nx.star_graph(18), 128), (nx.barbell_graph(15, 0), 4)])
def test_no_more_edges_are_read_than_there_are_expected(graph, k, tmp_path):
    lograb.generate(graph, strategy="global", k=k).save(tmp_path / "shared.lograb", truth=False)
    found = lograb.audit(tmp_path / "shared.lograb", quick=True, policy=NOTHING).findings
    numbers = found["answer"]["numbers"]
    assert numbers["readable"] <= numbers["in_scope"] or not numbers["scale_known"]
    assert found["answer"]["level"] in ("unknown", "exposed")


def test_exact_eigenvalues_keep_an_estimate_tight(tmp_path):
    for how in ({"k": 8}, {"k": 4, "eigenvalues": False}):
        lograb.generate("karate", strategy="global", **how).save(tmp_path / "k.lograb", truth=False)
        plan = by_id(lograb.audit(tmp_path / "k.lograb", quick=True, policy=NOTHING))["plan"]
        assert plan["scale_known"]
        assert plan["share_interval"][0] > 0.8


def test_an_undecided_estimate_is_called_unknown(tmp_path):
    graph = nx.random_geometric_graph(60, 0.25, seed=5)
    lograb.generate(graph, strategy="global", k=16, sigma=0.05).save(tmp_path / "n.lograb", truth=False)
    found = lograb.audit(tmp_path / "n.lograb", quick=True, policy=NOTHING).findings
    low, high = found["answer"]["numbers"]["share_interval"]
    assert low <= 0.1 < high, "the estimate decides: this test shows nothing"
    assert found["answer"]["level"] == "unknown"


def test_eigenvalues_that_follow_are_not_said_to_be_hidden_by_withholding():
    graph, groups = organisation()
    lines = {row["name"]: row for row in lograb.audit(graph, patches=groups, quick=True).findings["channels"]}
    assert lines["eigenvectors"]["share"] >= 0.99 * lines["eigenvalues"]["share"] > 0
    assert "withholding the eigenvalues does not help" in lines["eigenvalues"]["protect"]


def test_edges_of_groups_are_called_so(tmp_path):
    (tmp_path / "friends.csv").write_text("a,b\nb,c\nc,a\nc,d\nd,e\ne,f\nf,d\n")
    (tmp_path / "departments.csv").write_text("node,group\na,x\nb,x\nc,x\nd,y\ne,y\nf,y\n")
    found = lograb.audit(tmp_path / "friends.csv", patches=tmp_path / "departments.csv", quick=True)
    assert "of your 6 edges inside departments" in found.findings["answer"]["headline"]
    assert "all of their edges inside departments read" in str(found.findings["terms"])
    found.save(tmp_path / "page.html")
    assert "<button>edges inside departments</button>" in (tmp_path / "page.html").read_text()


def test_an_archive_with_truth_says_what_its_graph_says(tmp_path):
    instance = lograb.generate("karate", strategy="cluster", d=0, k=32)
    instance.save(tmp_path / "k.lograb")
    ours, theirs = (lograb.audit(source, **how, quick=True).findings["settings"][0]
                    for source, how in ((tmp_path / "k.lograb", {}), ("karate", {"scenario": "silos"})))
    assert {**ours, "seconds": 0} == {**theirs, "seconds": 0}


def test_what_acts_on_the_graph_is_said_to_need_it(tmp_path):
    row = by_id(lograb.audit(lograb.generate("karate"), quick=True))["graph"]
    assert row["status"] == "not-applicable"
    assert "audit the graph" in row["reason"]
    assert row["share"] is None


def test_packed_embeddings(tmp_path):
    graph = nx.random_partition_graph([15, 15], 0.4, 0.0, seed=2)
    arrays = {}
    for number, members in enumerate((range(15), range(15, 30))):
        laplacian = nx.normalized_laplacian_matrix(graph, nodelist=members).toarray()
        values, vectors = np.linalg.eigh(laplacian)
        arrays |= {f"{number}/members": list(members), f"{number}/vectors": vectors, f"{number}/values": values}
    np.savez(tmp_path / "mine.npz", **arrays)
    found = lograb.audit(tmp_path / "mine.npz", quick=True).findings
    assert found["source"]["kind"] == "embeddings"
    assert found["answer"]["estimated"]
    low, high = found["answer"]["numbers"]["share_interval"]
    assert low <= 1.0 <= high + 1e-9
    assert abs(found["answer"]["numbers"]["readable"] - graph.number_of_edges()) <= 1


# --- who is exposed -----------------------------------------------------------------------------------------


def test_who_is_exposed_has_the_users_names(silos):
    graph, _ = organisation()
    exposed = silos.findings["exposed"]
    assert exposed["nodes"] == sorted(exposed["nodes"], key=lambda row: -row["readable"])
    for row in exposed["edges"]:
        assert graph.has_edge(row["u"], row["v"]) == row["true"]
        assert row["patch"] in {"dep 0", "dep 1", "dep 2"}
    assert {row["name"] for row in exposed["patches"]} == {"dep 0", "dep 1", "dep 2"}
    for row in exposed["patches"]:
        inside = [n for n, group in organisation()[1].items() if group == row["name"]]
        assert row["edges"] == graph.subgraph(inside).number_of_edges()
        assert row["exact"] == (row["found"] == row["edges"] and not row["wrong"])
    first = exposed["nodes"][0]
    assert first["readable"] == max(row["readable"] for row in exposed["nodes"])
    assert exposed["counts"]["touched"] >= exposed["counts"]["fully"]


def test_the_drawing_shows_true_edges_for_what_they_are(silos):
    graph, _ = organisation()
    drawing = silos.findings["drawing"]
    names = [node["name"] for node in drawing["nodes"]]
    assert len(set(names)) == len(names) <= 20
    assert sum(node["centre"] for node in drawing["nodes"]) == 1
    assert all(0 <= node[axis] <= 1 for node in drawing["nodes"] for axis in "xy")
    for edge in drawing["edges"]:
        assert graph.has_edge(names[edge["u"]], names[edge["v"]]) == (edge["kind"] != "wrong")


def test_pairs_survive_a_table(silos, tmp_path):
    silos.save_pairs(tmp_path / "pairs.csv")
    with (tmp_path / "pairs.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    graph, _ = organisation()
    assert len(rows) == len(silos.pairs) >= silos.findings["answer"]["numbers"]["readable"]
    assert all(graph.has_edge(row["u"], row["v"]) == bool(int(row["true"])) for row in rows)
    read = [row for row in rows if row["readable"] == "1"]
    assert rows[: len(read)] == read
    assert {name for row in rows for name in (row["u"], row["v"])} & set(EVIL)


# --- as data ------------------------------------------------------------------------------------------------


def test_findings_are_json_without_holes(silos, ego):
    for found in (silos, ego):
        again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert again == found.to_dict()
        assert again["schema"] == 1
        keys = {frozenset(row) for row in again["settings"]}
        assert len(keys) == 1  # what could not be measured is null, not absent
        for row in again["settings"]:
            assert row["status"] != "done" or (0 <= row["share_interval"][0] <= row["share"] + 1e-9
                                               and row["share"] <= row["share_interval"][1] + 1e-9 <= 1 + 2e-9)


def test_saving_writes_page_json_and_table(silos, tmp_path):
    silos.save(tmp_path / "report.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.csv", "report.html", "report.json"]
    assert json.loads((tmp_path / "report.json").read_text()) == silos.to_dict()
    assert EVIL[0] not in (tmp_path / "report.html").read_text()
    (tmp_path / "other.csv").write_text("mine")
    with pytest.raises(LograbError, match="not an earlier audit"):
        silos.save(tmp_path / "other.html")
    assert not (tmp_path / "other.html").exists()


# --- what is enough -----------------------------------------------------------------------------------------


def test_the_recommendation_keeps_to_the_policy(silos):
    advice, rows = silos.findings["recommendation"], by_id(silos)
    chosen = rows[advice["setting"]]
    assert chosen["share"] <= 0.1
    better = [row for row in rows.values() if row["tolerated"] and row["utility"] is not None
              and row["utility"]["value"] > chosen["utility"]["value"] + 0.01]  # fmt: skip
    assert not better


def test_a_policy_from_a_file(tmp_path):
    graph, groups = organisation()
    (tmp_path / "policy.toml").write_text('tolerate = 0.2\nrequire_guarantee = true\nmax_epsilon = 20\n'
                                          'allow = ["plan", "defence", "graph"]\n')  # fmt: skip
    found = lograb.audit(graph, patches=groups, policy=tmp_path / "policy.toml", quick=True).findings
    rows = {row["id"]: row for row in found["settings"]}
    assert found["recommendation"]["policy"] == "policy.toml"
    assert found["recommendation"]["tolerate"] == 0.2
    chosen = rows[found["recommendation"]["setting"]]
    assert not chosen["heuristic"]
    assert chosen["epsilon"]["edge"] <= 20
    assert "carries a guarantee" in found["recommendation"]["sentence"]


@pytest.mark.parametrize(("how", "message"), [
    ({"policy": {"tolerate": 2}}, "tolerate"),
    ({"policy": {"leniency": 1}}, "leniency"),
    ({"policy": {"tolerate": 0.1}, "tolerate": 0.2}, "leave tolerate"),
    ({"tolerate": -1}, "tolerate"),
    ({"scenario": "mesh"}, "Choices: ego, silos, global"),
    ({"scenario": "ego", "patches": [[0, 1]]}, "scenario silos"),
    ({"patches": [[0, 1]], "patches_by": "club"}, "got both"),
    ({"patches": [[0, 1]], "d": 2}, "leave d"),
])  # fmt: skip
def test_mistakes_are_refused(how, message):
    with pytest.raises(LograbError, match=message):
        lograb.audit("karate", **how)


def test_one_graph_at_a_time():
    graphs = [nx.karate_club_graph(), nx.path_graph(9)]
    with pytest.raises(LograbError, match=r"holds 2.*graph=I"):
        lograb.audit(graphs, quick=True)
    assert lograb.audit(graphs, graph=1, quick=True).findings["source"]["n_nodes"] == 9
    many = lograb.generate(graphs)
    with pytest.raises(LograbError, match=r"holds 2.*graph=I"):
        lograb.audit(many, quick=True)
    assert lograb.audit(many, graph=0, quick=True).findings["source"]["n_nodes"] == 34
    with pytest.raises(LograbError, match="to choose them here"):
        lograb.audit(many, graph=0, k=4)


@pytest.mark.parametrize("graph", [nx.empty_graph(5), nx.path_graph(2), nx.star_graph(6), nx.complete_graph(5)])
@pytest.mark.parametrize("scenario", ["ego", "silos", "global"])
def test_graphs_with_hardly_anything_in_them(graph, scenario):
    found = lograb.audit(graph, scenario=scenario, quick=True).findings
    json.dumps(found, allow_nan=False)
    assert not math.isnan(found["answer"]["numbers"]["share"])


# --- points are kept ----------------------------------------------------------------------------------------


def test_what_is_kept_is_not_measured_again(tmp_path, monkeypatch):
    first = lograb.audit("karate", quick=True, store=tmp_path / "kept").findings
    measured = []
    monkeypatch.setattr(auditor, "gather", lambda *args: measured.append(args))
    again = lograb.audit("karate", quick=True, store=tmp_path / "kept", tolerate=0.5).findings
    assert not measured
    assert again["settings"][0]["readable"] == first["settings"][0]["readable"]
    assert again["recommendation"]["tolerate"] == 0.5
    monkeypatch.undo()
    other = lograb.audit("karate", quick=True, store=tmp_path / "kept", k=4).findings
    assert other["run"]["hash"] != first["run"]["hash"]


def test_a_stop_in_the_middle_keeps_what_is_done(tmp_path, monkeypatch):
    real, calls = auditor.gather, []

    def stopped(*args):
        calls.append(args)
        if len(calls) > 4:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(auditor, "gather", stopped)
    with pytest.raises(KeyboardInterrupt):
        lograb.audit("karate", quick=True, store=tmp_path / "kept")
    kept = len(list((tmp_path / "kept").glob("*.json")))
    assert kept >= 1
    monkeypatch.undo()
    lograb.audit("karate", quick=True, store=tmp_path / "kept")
    assert len(list((tmp_path / "kept").glob("*.json"))) > kept


def test_a_damaged_point_is_measured_again(tmp_path):
    first = lograb.audit("karate", quick=True, store=tmp_path / "kept").findings
    for path in (tmp_path / "kept").glob("*.json"):
        path.write_text("{")
    again = lograb.audit("karate", quick=True, store=tmp_path / "kept").findings
    assert [row["share"] for row in again["settings"]] == [row["share"] for row in first["settings"]]
