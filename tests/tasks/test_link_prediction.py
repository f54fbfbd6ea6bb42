"""Task 3: fragments, questions, and that no method can have seen an answer."""

import json
import sys
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

import lograb
from lograb.archive.tables import join
from lograb.cli import main
from lograb.errors import LograbError, MissingExtraError
from lograb.instance import Instance
from lograb.learning.links.catalog import LINKS
from lograb.learning.links.fragmented import training_pairs, unlinked_pairs
from lograb.metrics.intervals import auroc_interval
from lograb.tasks.fragments import ask, components, without_halos
from lograb.tasks.link_prediction import LinkRun, predict_links, run_method, summarise
from lograb.types import Graph

STRATEGIES = ["d-hop", "cluster", "random"]
TRIVIAL = ["features", "degree", "co-occurrence", "centres"]
FAST = {
    "cosine": {"epochs": 2},
    "seal": {"epochs": 2, "max_edges": 60},
    "neo-gnn": {"epochs": 2, "hidden": 8},
    "lightgcn": {"epochs": 3, "width": 8},
}
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")


def communities(seed=0, n_groups=12, size=12):
    """Small dense groups with few edges between them, classes and features by group."""
    rng = np.random.default_rng(seed)
    n = n_groups * size
    group = np.arange(n) // size
    inside = [(u, w) for u in range(n) for w in range(u + 1, n) if group[u] == group[w] and rng.random() < 0.35]
    outside = [tuple(pair) for pair in rng.integers(n, size=(n // 4, 2)) if group[pair[0]] != group[pair[1]]]
    features = np.eye(n_groups)[group] + 0.3 * rng.standard_normal((n, n_groups))
    return Graph.from_edges("groups", n, inside + outside, features=features, labels=group % 3)


def instance(strategy="d-hop", **changes):
    parameters = {"p": 0.9, "clusters": 10} if strategy == "cluster" else {"p": 0.25, "sigma": 0.05}
    return lograb.generate(communities(), strategy=strategy, **({"k": 8} | parameters | changes))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("halo", ["drop", "keep"])
def test_positives_are_exactly_the_true_edges_between_fragments(strategy, halo):
    made = instance(strategy)
    questions = ask(made, halo)
    label = questions.known.fragment
    expected = {
        (u, w) for u, w in made.truth.edges.tolist() if label[u] >= 0 and label[w] >= 0 and label[u] != label[w]
    }
    assert {tuple(pair) for pair in questions.positives.tolist()} == expected
    assert expected


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("halo", ["drop", "keep"])
def test_no_method_sees_a_test_edge(strategy, halo):
    """Neither as a known edge, nor as an edge of a patch, nor as a training pair."""
    questions = ask(instance(strategy), halo)
    known, asked = questions.known, {tuple(pair) for pair in questions.positives.tolist()}
    patches = known.patches
    start = np.repeat(patches.ptr[:-1], np.diff(patches.edge_ptr))
    shown = np.sort(patches.nodes[patches.edges + start[:, None]], axis=1)
    pairs, true = training_pairs(known, np.random.default_rng(0), "inside")
    for seen in (shown, known.edges, pairs):
        assert not asked & {tuple(pair) for pair in seen.tolist()}
    assert (known.fragment[pairs[:, 0]] == known.fragment[pairs[:, 1]]).all()
    for where in ("inside", "anywhere"):
        pairs, true = training_pairs(known, np.random.default_rng(0), where)
        assert {tuple(p) for p in pairs[true].tolist()} == {tuple(p) for p in known.edges.tolist()}
        assert not {tuple(sorted(p)) for p in pairs[~true].tolist()} & {tuple(p) for p in known.edges.tolist()}
        assert (known.fragment[pairs] >= 0).all()
    assert (known.fragment[pairs[:, 0]] != known.fragment[pairs[:, 1]]).any()
    if halo == "drop":
        together = known.co_occurrence
        assert not any(together[u, w] for u, w in asked)


def test_a_graph_that_shows_an_answer_is_refused():
    questions = ask(instance())
    moved = questions.known.fragment.copy()
    moved[questions.known.edges[0, 0]] = moved.max() + 1
    with pytest.raises(LograbError, match="between fragments"):
        replace(questions.known, fragment=moved)


def test_fragments_of_balls_are_components_of_their_union():
    lists = [[0, 1, 2], [2, 3], [5, 6], [7]]
    made = lograb.generate(communities(), strategy="custom", patches=lists, k=3)
    from lograb.learning.patchset import patch_set

    label = components(patch_set(made))
    assert label[:8].tolist() == [0, 0, 0, 0, -1, 1, 1, 2]
    assert (label[8:] == -1).all()


def test_fragments_of_clusters_are_their_cores():
    made = instance("cluster")
    for halo in ("drop", "keep"):
        label = ask(made, halo).known.fragment
        seen = made.observations
        for i in range(seen.n_patches):
            core = seen.members(i)[made.core[seen.ptr[i] : seen.ptr[i + 1]]]
            assert len(np.unique(label[core])) == 1
            assert (label == label[core[0]]).sum() == len(core)


def test_clusters_are_observed_anew_without_their_halos():
    made = instance("cluster", sigma=0.05)
    bare = without_halos(made)
    assert len(np.unique(bare.observations.nodes)) == len(bare.observations.nodes)
    assert set(bare.observations.nodes) == set(made.observations.nodes)
    again = without_halos(made)
    assert np.array_equal(bare.observations.vectors, again.observations.vectors)
    assert bare.spec.sigma == 0.05


def test_defended_clusters_are_observed_anew_by_the_seed_of_the_task():
    defended = lograb.defend(instance("cluster", sigma=0.05), "gaussian:sigma=0.1", seed=1)
    one, same, other = (without_halos(defended, seed).observations.vectors for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_fragments_of_a_sanitised_graph_are_not_asked_about(strategy):
    score = predict_links(instance(strategy, defences=["lap-graph:epsilon=3"]), "degree")
    assert score["status"] == "not applicable"
    assert "sanitised graph (lap-graph:epsilon=3" in score["reason"]
    assert score["auroc"] is None


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", ["uniform", "possible"])
def test_negatives_are_distinct_pairs_between_fragments_and_no_edges(strategy, kind):
    made = instance(strategy)
    questions = ask(made)
    label, truth = questions.known.fragment, {tuple(e) for e in made.truth.edges.tolist()}
    others = questions.negatives(np.random.default_rng(0), kind)
    found = {tuple(pair) for pair in others.tolist()}
    assert len(found) == len(others) == len(questions.positives)
    assert not found & truth
    assert all(0 <= label[u] != label[w] >= 0 and u < w for u, w in found)
    assert np.array_equal(others, questions.negatives(np.random.default_rng(0), kind))
    assert not np.array_equal(others, questions.negatives(np.random.default_rng(1), kind))
    if kind == "possible":
        assert not questions.known.settled[others].any()


def test_large_graphs_draw_negatives_the_same_way(monkeypatch):
    from lograb.learning.links import fragmented as links

    questions = ask(instance())
    monkeypatch.setattr(links, "MAX_LISTED", 0)
    drawn = questions.negatives(np.random.default_rng(0))
    label = questions.known.fragment
    assert len({tuple(p) for p in drawn.tolist()}) == len(questions.positives)
    assert (label[drawn[:, 0]] != label[drawn[:, 1]]).all()
    assert not set((drawn[:, 0] * questions.known.n_nodes + drawn[:, 1]).tolist()) & set(questions.truth.tolist())
    rng = np.random.default_rng(0)
    every = links.pairs_between(np.arange(4), np.array([0, 0, 1, 1]), np.array([2]), 4, 9, rng)
    assert every.tolist() == [[0, 3], [1, 2], [1, 3]]


@pytest.mark.parametrize("strategy", ["d-hop", "random"])
def test_no_edge_between_fragments_touches_a_centre(strategy):
    questions = ask(instance(strategy))
    assert questions.known.settled.any()
    assert not questions.known.settled[questions.positives].any()
    row = predict_links(instance(strategy), "centres")
    assert row["auroc"] > 0.55
    hard = predict_links(instance(strategy), "centres", negatives="possible")
    assert hard["auroc"] == 0.5


def test_halos_give_the_answers_away():
    kept, dropped = (predict_links(instance("cluster"), "co-occurrence", halo=halo) for halo in ("keep", "drop"))
    assert kept["auroc"] == kept["floors"]["co-occurrence"] > 0.9
    assert dropped["auroc"] == 0.5


@needs_torch
def test_halos_are_learned_best_from_pairs_that_are_far_apart():
    """Inside fragments nearly all pairs share a patch, linked or not: SEAL cannot learn there what that means."""
    made = lograb.generate(communities(n_groups=40), strategy="cluster", clusters=20, k=4)
    settings = {"epochs": 10, "learning_rate": 0.003, "max_edges": 300}
    anywhere, inside = (
        predict_links(made, "seal", settings=settings | {"train_negatives": where}, halo="keep")
        for where in ("anywhere", "inside")
    )
    assert anywhere["auroc"] > 0.95
    assert inside["auroc"] < anywhere["auroc"] - 0.05


@needs_torch
@pytest.mark.parametrize(
    ("method", "strategy", "halo", "settings", "blind"),
    [
        ("seal", "d-hop", "drop", {}, True),
        ("seal", "cluster", "drop", {}, True),
        ("seal", "cluster", "keep", {}, False),
        ("seal", "random", "drop", {"features": True}, False),
        ("lightgcn", "cluster", "keep", {}, True),
        ("neo-gnn", "random", "drop", {}, False),
        ("neo-gnn", "random", "drop", {"features": False}, True),
        ("cosine", "d-hop", "drop", {}, False),
        ("degree", "d-hop", "drop", None, False),
    ],
)
def test_what_can_say_nothing_by_construction_says_so(method, strategy, halo, settings, blind):
    settings = None if settings is None else FAST[method] | settings
    row = predict_links(instance(strategy), method, settings=settings, halo=halo)
    assert (row["notice"] is not None) == blind
    if blind:
        assert method in row["notice"]
        assert "no path runs between fragments" in row["notice"]


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [({"p": 1.0, "d": 3}, "fragment"), ({"strategy": "custom", "patches": [[0, 1], [60, 61]]}, "no true edge")],
)
def test_not_applicable_with_its_reason(parameters, reason):
    made = lograb.generate(communities(), **({"k": 3} | parameters))
    row = predict_links(made, "degree")
    assert row["status"] == "not applicable"
    assert reason in row["reason"]
    assert row["positives"] == 0
    assert row["seconds"] == 0
    assert row["auroc"] is row["interval"] is row["average_precision"] is row["floor"] is None


def cases():
    return TRIVIAL + [pytest.param(name, marks=needs_torch) for name in FAST]


@pytest.mark.parametrize("name", cases())
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_method_scores_and_repeats_itself(name, strategy):
    made = instance(strategy)
    one, two = (predict_links(made, name, repeats=2, seed=5, settings=FAST.get(name)).to_dict() for _ in range(2))
    assert {k: v for k, v in one.items() if k != "seconds"} == {k: v for k, v in two.items() if k != "seconds"}
    assert one["status"] == "ok"
    assert one["interval"][0] <= one["auroc"] <= one["interval"][1]
    assert 0 <= one["average_precision"] <= 1
    assert one["floor"] == max(one["floors"].values())
    assert set(one["floors"]) == set(TRIVIAL)
    assert len(one["aurocs"]) == 2


@needs_torch
@pytest.mark.parametrize("name", FAST)
def test_scores_do_not_depend_on_the_hidden_edges(name):
    """Two graphs that agree inside the fragments of fixed patches get the same scores."""
    graph = communities()
    lists = [list(range(12 * i, 12 * i + 12)) for i in range(12)]
    crossing = graph.edges[:, 0] // 12 != graph.edges[:, 1] // 12
    other = Graph.from_edges("groups", graph.n_nodes, graph.edges[~crossing], features=graph.features,
                             labels=graph.labels)  # fmt: skip
    found = []
    for truth in (graph, other):
        made = lograb.generate(truth, strategy="custom", patches=lists, k=5, sigma=0.05)
        known = ask(made).known
        pairs = graph.edges[crossing]
        found.append(LINKS[name].score(known, pairs, np.random.default_rng(0), FAST[name]))
    assert np.array_equal(*found)


@needs_torch
def test_learning_by_features_beats_chance():
    """Groups share features; every fragment holds a part of every group, so alike nodes are linked in all."""
    graph = communities()
    lists = [list(range(start, graph.n_nodes, 4)) for start in range(4)]
    made = lograb.generate(graph, strategy="custom", patches=lists, k=4, sigma=0.05)
    learned = {"cosine": {"epochs": 30}, "neo-gnn": {"epochs": 60, "hidden": 32, "learning_rate": 0.01}}
    for name, settings in learned.items():
        row = predict_links(made, name, settings=settings)
        assert row["auroc"] > 0.7, name


def test_pooling_counts_each_positive_once():
    pairs, rng = np.array([[0, 1], [2, 3], [4, 5]]), np.random.default_rng(0)
    runs = [LinkRun(pairs, np.array([[0, 5], [1, 2 + i]]), rng.random(5)) for i in range(3)]
    pooled = summarise(runs)
    assert pooled["auroc"] == pytest.approx(np.mean([run.ranking.auroc() for run in runs]))
    assert pooled["negatives"] == 4
    # Three edges against four other pairs, not nine against six.
    assert pooled["interval"] == list(auroc_interval(pooled["auroc"], 3, 4))
    assert pooled["interval"] != list(auroc_interval(pooled["auroc"], 9, 6))


def test_floor_and_method_meet_the_same_negatives():
    questions = ask(instance())
    one, two = (run_method(questions, name, repeats=2, seed=3) for name in ("degree", "centres"))
    assert all(np.array_equal(a.negatives, b.negatives) for a, b in zip(one, two))


def test_several_graphs_never_mix():
    parts = [lograb.generate(communities(seed), p=0.25, k=4, sigma=0.05, seed=seed) for seed in range(3)]
    made = Instance(parts[0].manifest, join([part.tables for part in parts]))
    questions = ask(made)
    known, negatives = questions.known, questions.negatives(np.random.default_rng(0))
    alone = [len(ask(part).positives) for part in parts]
    assert np.bincount(known.graph[questions.positives[:, 0]]).tolist() == alone
    assert np.bincount(known.graph[negatives[:, 0]]).tolist() == alone
    drawn = unlinked_pairs(known, 300, np.random.default_rng(0), "anywhere")
    for pairs in (questions.positives, negatives, known.edges, drawn):
        assert (known.graph[pairs[:, 0]] == known.graph[pairs[:, 1]]).all()


def test_mistakes_are_named():
    with pytest.raises(LograbError, match="Did you mean 'seal'"):
        predict_links(instance(), "seel")
    with pytest.raises(LograbError, match="repeats"):
        predict_links(instance(), "degree", repeats=0)
    with pytest.raises(LograbError, match="no node features"):
        predict_links(lograb.generate("karate", p=0.2, seed=3), "features")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"repeats": 0}, "repeats must be at least 1, got 0"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"settings": {"epoch": 3}}, "seal: epoch: .*Settings: .*hops"),
        ({"settings": {"epochs": True}}, "seal: epochs: "),
        ({"method": "cosine", "settings": {"model": "sagge"}}, "cosine: model: .*Did you mean 'sage'"),
        ({"halo": "lost"}, "unknown halo 'lost'"),
        ({"negatives": "all"}, "unknown kind of negatives 'all'"),
    ],
)
def test_mistakes_are_told_before_any_work(change, problem, monkeypatch):
    monkeypatch.setattr("lograb.tasks.link_prediction.ask", None)
    with pytest.raises(LograbError, match=problem):
        predict_links(instance(), **({"method": "seal"} | change))


def test_nothing_is_trained_where_there_is_nothing_to_tell_apart(monkeypatch):
    """Two fragments, joined by all edges that can be."""
    edges = [(u, w) for u in range(3) for w in range(3, 6)]
    graph = Graph.from_edges("between", 6, [*edges, (0, 1), (3, 4)])
    made = lograb.generate(graph, strategy="custom", patches=[[0, 1, 2], [3, 4, 5]], k=2)
    monkeypatch.setattr("lograb.tasks.link_prediction.run_method", None)
    row = predict_links(made, "degree")
    assert row["status"] == "not applicable"
    assert "every pair between fragments is an edge" in row["reason"]
    assert row["positives"] == 9
    assert row["seconds"] == 0


def test_without_torch_the_extra_is_named(monkeypatch):
    def missing(what):
        raise MissingExtraError(what, "gnn")

    monkeypatch.setattr("lograb.learning.links.catalog.require_torch", missing)
    for name in FAST:
        with pytest.raises(MissingExtraError, match="'gnn'"):
            predict_links(instance(), name)


def run(capsys, monkeypatch, *arguments):
    """Call the command line in this process: exit code, stdout, stderr."""
    monkeypatch.setattr(sys, "argv", ["lograb", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    printed = capsys.readouterr()
    return left.value.code, printed.out, printed.err


def test_command_line(tmp_path, capsys, monkeypatch):
    path = tmp_path / "x.lograb"
    instance().save(path)
    code, out, _ = run(capsys, monkeypatch, "link", path, "--method", "features", "--repeats", 3, "--json")
    row = json.loads(out)
    assert code == 0
    assert row.keys() >= {"method", "auroc", "interval", "average_precision", "positives", "floor", "status"}
    assert all(isinstance(row[key], float) for key in ("auroc", "average_precision", "floor"))
    assert row["repeats"] == 3
    assert "floor" in run(capsys, monkeypatch, "link", path, "--method", "degree")[1]
    listed = run(capsys, monkeypatch, "list", "links", "--json")[1]
    assert {item["name"] for item in json.loads(listed)} == set(LINKS)
    code, _, err = run(capsys, monkeypatch, "link", path, "--method", "x")
    assert code == 2
    assert "Choices" in err
    code, _, err = run(capsys, monkeypatch, "link", path, "--method", "degree", "--halo", "lost")
    assert code == 2
    assert "drop, keep" in err
    code, _, err = run(capsys, monkeypatch, "link", path, "--method", "degree", "--seed", "-1")
    assert code == 2
    assert "seed" in err
    code, _, err = run(capsys, monkeypatch, "link", "no-such-file", "--method", "degree", "--set", "x=1")
    assert code == 2
    assert "degree: x" in err


@needs_torch
def test_command_line_says_what_can_say_nothing(tmp_path, capsys, monkeypatch):
    path = tmp_path / "x.lograb"
    instance().save(path)
    out = run(capsys, monkeypatch, "link", path, "--method", "lightgcn", "--set", "epochs=1")[1]
    assert "By construction lightgcn cannot tell" in " ".join(out.split())
    assert "By construction" not in run(capsys, monkeypatch, "link", path, "--method", "degree")[1]


def test_command_line_says_why_it_does_not_apply(tmp_path, capsys, monkeypatch):
    path = tmp_path / "x.lograb"
    lograb.generate(communities(), d=3, k=4).save(path)
    code, out, _ = run(capsys, monkeypatch, "link", path, "--method", "degree")
    assert code == 0
    assert "not applicable" in " ".join(out.split())
    row = json.loads(run(capsys, monkeypatch, "link", path, "--method", "degree", "--json")[1])
    assert row["status"] == "not applicable"
    assert row["auroc"] is None
