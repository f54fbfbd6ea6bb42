"""Task 1: scopes, several graphs, and answers as files."""

import dataclasses
import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest

import lograb
from lograb.answer_file import write_answers
from lograb.attacks import ATTACKS
from lograb.cli.app import app
from lograb.cli.reconstruct import add_up
from lograb.errors import LograbError
from lograb.tasks import evaluate
from lograb.tasks.answers import read_answers
from lograb.theory.cohesion import recall_within
from lograb.types import Graph, Reconstruction


def several(graphs, **parameters):
    """Make one instance of several graphs."""
    return lograb.generate(graphs, **parameters)


@pytest.fixture(scope="module")
def molecules():
    """Three graphs; the last one has no edges."""
    karate = Graph.from_edges("karate", 34, lograb.load_graph("karate").edges)
    graphs = [karate, Graph.from_edges("path", 6, [(i, i + 1) for i in range(5)]),
              Graph.from_edges("dust", 4, np.empty((0, 2)))]  # fmt: skip
    return several(graphs, d=1, p=0.8, k=8, sigma=0.02)


def test_both_scopes_have_precision_and_recall():
    instance = lograb.generate("citation", d=2, p=0.3, k=16, sigma=0.02)
    answer = lograb.attack(instance, lograb.attacks.Afr(align_dim="auto", connected="any"))
    scores = evaluate(instance, answer)
    p, r = scores["recovered_precision"], scores["recovered_recall"]
    assert scores["f1"]["recovered"] == pytest.approx(2 * p * r / (p + r))
    assert r > scores["recall"]
    low, high = scores["recall_interval"]
    assert low <= r <= high
    assert r == pytest.approx(recall_within(instance.truth.edges, answer.edges, answer.islands))


def test_edges_between_islands_are_judged_apart_and_kept_in_files(tmp_path):
    instance = lograb.generate("citation", d=2, p=0.3, k=32, sigma=0.05)
    answer = lograb.attack(instance, "afr")
    score = lograb.evaluate(instance, answer)
    true = {tuple(e) for e in instance.truth.edges.tolist()}
    hits = sum(tuple(e) in true for e in answer.cross.tolist())
    assert score["cross"]["precision"] == pytest.approx(hits / len(answer.cross))
    assert score["cross"]["recall"] == pytest.approx(hits / len(true))
    both = len(answer.cross) + len(answer.edges) + len(true)
    assert score["cross"]["f1_together"] == pytest.approx(2 * (hits + score["hits"]) / both)
    same = dataclasses.replace(answer, cross=answer.edges, cross_scores=answer.scores)
    assert lograb.evaluate(instance, same)["cross"]["f1_together"] == pytest.approx(score["f1"]["global"])
    answer.save(tmp_path / "a.npz")
    assert lograb.evaluate(instance, tmp_path / "a.npz").to_dict() == score.to_dict()
    with np.load(tmp_path / "a.npz") as arrays:  # as they were written before there were cross edges
        np.savez(tmp_path / "b.npz", **{name: arrays[name] for name in arrays.files if "cross" not in name})
    before = lograb.evaluate(instance, tmp_path / "b.npz")
    assert before["cross"] is None
    assert before["f1"] == score["f1"]
    with pytest.raises(LograbError, match="edges between islands and their scores belong together"):
        dataclasses.replace(answer, cross_scores=None)


def test_cohesion_over_components_is_recall_inside_what_hangs_together():
    graph = Graph.from_edges("g", 6, [(0, 1), (1, 2), (0, 2), (3, 4), (2, 3)])
    instance = lograb.generate(graph, d=1, k=8)
    answer = Reconstruction(6, np.array([[0, 1], [1, 2], [4, 5]]), np.ones(3), np.arange(6))
    score = lograb.evaluate(instance, answer)
    assert score["component_cohesion"] == pytest.approx(2 / 3)  # (0, 2) is the third edge of {0, 1, 2}
    assert score["island_cohesion"] is None


def test_several_graphs_are_averaged_claims_and_counts_added(molecules):
    auto = lograb.attacks.Afr(align_dim="auto")
    answers = lograb.attack(molecules, auto)
    row = evaluate(molecules, answers).to_dict()
    streams = [np.random.default_rng(np.random.SeedSequence(0, spawn_key=(i,))) for i in range(3)]
    parts = [auto(graph.observations, stream) for graph, stream in zip(molecules, streams)]
    each = [evaluate(graph, answer) for graph, answer in zip(molecules, parts)]
    assert len(each) == 3
    assert row["f1"]["global"] == pytest.approx(np.mean([s["f1"]["global"] for s in each]))
    assert row["claimed"] == sum(len(answer.edges) for answer in parts)
    told = add_up([answer.diagnostics for answer in answers])
    assert told["graphs"] == 3
    for key in ("core_patches", "stitches_tried", "islands"):
        assert told[key] == sum(answer.diagnostics[key] for answer in parts)
    json.dumps(row)
    members = lograb.attack(molecules, "membership")
    assert add_up([answer.diagnostics for answer in members])["rule"] == {"centre-member": 3}


def test_an_undefined_error_is_left_out_and_counted(molecules):
    nothing = [Reconstruction(g.n_nodes, np.empty((0, 2), np.int64), np.empty(0), np.arange(g.n_nodes))
               for g in molecules]  # fmt: skip
    claims = dataclasses.replace(nothing[2], edges=np.array([[0, 1]]), scores=np.ones(1))
    means = evaluate(molecules, [*nothing[:2], claims])
    assert means["frobenius_error"] == 1.0
    assert means["frobenius_undefined"] == 1


def test_graphs_have_independent_streams_of_one_seed():
    twins = several([lograb.load_graph("karate")] * 2, d=1, p=1.0, k=4)
    one, two = lograb.attack(twins, "random", seed=3)
    assert not np.array_equal(one.edges, two.edges)
    again = lograb.attack(twins, "random", seed=3)
    assert np.array_equal(again[1].edges, two.edges)
    alone = lograb.generate("karate", d=1, p=1.0, k=4)
    expected = ATTACKS["random"]().reconstruct(alone.observations, np.random.default_rng(3))
    assert np.array_equal(lograb.attack(alone, "random", seed=3).edges, expected.edges)
    with pytest.raises(LograbError, match="seed"):
        lograb.attack(alone, "random", seed=-1)


@pytest.mark.parametrize("ending", ["csv", "npz"])
@pytest.mark.parametrize("method", ["heat-kernel", "membership", "afr"])
def test_a_written_answer_has_the_scores_of_the_attack(tmp_path, molecules, method, ending):
    for instance in (molecules, lograb.generate("karate", d=2, k=8, sigma=0.05)):
        answers = lograb.attack(instance, method)
        write_answers(tmp_path / f"a.{ending}", answers if isinstance(answers, list) else [answers])
        again = evaluate(instance, tmp_path / f"a.{ending}")
        expected = evaluate(instance, answers)
        keys = {"f1", "precision", "recall", "claimed", "average_precision", "auroc", "frobenius_error"}
        for key in keys if ending == "npz" else keys - {"f1"}:
            assert again[key] == pytest.approx(expected[key]), key
        assert again["f1"]["global"] == pytest.approx(expected["f1"]["global"])


def named(*names):
    edges = [(i, i + 1) for i in range(len(names) - 1)]
    return lograb.generate(Graph.from_edges("g", len(names), edges, node_names=names), d=1, p=1.0, k=4)


def read(tmp_path, text, instance, threshold=None):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    answer = read_answers(tmp_path / "a.csv", instance, threshold)[0]
    names = instance.node_names or [str(i) for i in range(instance.n_nodes)]
    return [(names[u], names[w], s) for (u, w), s in zip(answer.edges.tolist(), answer.scores.tolist())]


@pytest.mark.parametrize("text", [
    "ann,bob,0.5\n", "u,v,score\nann,bob,0.5\n", "source,target,weight\nann,bob,0.5\n", "# hello\n\nann,bob,0.5\n",
    "node1;node2;p\nann;bob;0.5\n", "ann\tbob\t0.5", "ann  bob 0.5 \n", "from to p\nann bob 0.5", "ann, bob , 0.5",
    '"ann","bob",0.5', "u,v,score,claimed\nann,bob,0.5,1\nbob,eve,0.4,0\n",
    "u,v,claimed,p\nann,bob,1,0.5\nbob,eve,0,1\n",
    "\ufeffu,v,score\r\nann,bob,0.5\r\n",
])  # fmt: skip
def test_tables_from_anywhere(tmp_path, text):
    assert read(tmp_path, text, named("ann", "bob", "eve")) == [("ann", "bob", 0.5)]


def test_a_table_may_say_what_is_claimed_without_scores(tmp_path):
    text = "u,v,claimed\nann,bob,1\nbob,eve,0\n"
    assert read(tmp_path, text, named("ann", "bob", "eve")) == [("ann", "bob", 1.0)]


def test_names_that_look_like_headers_or_comments_are_nodes(tmp_path):
    assert read(tmp_path, "u,v\n", named("u", "v")) == [("u", "v", 1.0)]
    assert read(tmp_path, "a,score\na,target\n", named("a", "score", "target"))[0] == ("a", "score", 1.0)
    assert read(tmp_path, "#1,#2,0.3\n# a comment\n", named("#1", "#2")) == [("#1", "#2", 0.3)]
    assert read(tmp_path, " a ,b,0.3\n", named(" a ", "b")) == [(" a ", "b", 0.3)]
    assert read(tmp_path, '"a,b",c,0.3\n', named("a,b", "c")) == [("a,b", "c", 0.3)]
    assert read(tmp_path, "node1,node2\n", named("x", "y")) == []


@pytest.mark.parametrize(("text", "message"), [
    ("# one\n\nann,bob,1\nann,zoe,1\n", "line 4: there is no node 'zoe'"),
    ("u,v,score\nann,bob,high\n", "line 2: a score must be a number"),
    ("ann,bob,nan\n", "line 1: a score must be a number"), ("ann,bobb\n", "line 1: there is no node 'bobb'"),
    ("ann,zoe,1\n", "line 1: there is no node 'zoe'"),
    ("u,v,s,claimed\nann,bob,1,yes\n", "line 2: a pair is claimed"),
    ("u,v\nu,v\n", "line 2: there is no node 'u'"),
    ("score,u,v\n1,ann,bob\n", "line 1: the two nodes of a pair must come before"),
    ("u,v,prob,rank\nann,bob,1,1\n", "line 1: beside the score there can be a column 'claimed' only"),
    ("u,v,claimed\nann,bob,0.5,1\n", "line 2: expected 2 columns, claimed; got 4"),
])  # fmt: skip
def test_mistakes_in_tables_are_named_with_their_line(tmp_path, text, message):
    with pytest.raises(LograbError, match=f"^'a.csv', {message}"):
        read(tmp_path, text, named("ann", "bob"))


def test_a_threshold_decides_what_is_claimed(tmp_path):
    instance, text = named("a", "b", "c"), "a,b,0.9\nb,c,0.2\n"
    assert len(read(tmp_path, text, instance)) == 2
    assert read(tmp_path, text, instance, 0.5) == [("a", "b", 0.9)]
    judged = read_answers(tmp_path / "a.csv", instance, 0.5)[0]
    assert judged.judged.tolist() == [[0, 1], [1, 2]]
    answer = lograb.attack(instance, "heat-kernel")
    answer.save(tmp_path / "a.npz")
    cut = read_answers(tmp_path / "a.npz", instance, 0.0)[0]
    assert len(cut.edges) == (answer.judged_scores >= 0).sum()


GOOD = {"edges": np.array([[0, 1]]), "scores": np.ones(1), "nodes": np.arange(3)}


@pytest.mark.parametrize("change", [
    {"edges": np.array([["a", "b"]])}, {"edges": np.array([[0.0, 1.0]])}, {"nodes": np.array(3)},
    {"nodes": np.array([[0, 1, 2]])}, {"nodes": np.array([0, 2])}, {"nodes": np.array([0.0, 1.0])},
    {"scores": np.array(["x"])}, {"scores": np.ones(2)}, {"edges": np.array([[0, 9]])},
    {"edges": np.array([0, 1])}, {"islands": np.array(1)},
], ids=str)  # fmt: skip
def test_bad_arrays_are_a_clear_error(tmp_path, change):
    path = tmp_path / "a.npz"
    np.savez(path, **{f"0/{part}": array for part, array in GOOD.items()})
    assert len(read_answers(path, named("a", "b", "c"))[0].edges) == 1
    np.savez(path, **{f"0/{part}": array for part, array in (GOOD | change).items()})
    with pytest.raises(LograbError):
        read_answers(path, named("a", "b", "c"))


def test_files_that_are_no_npz_are_a_clear_error(tmp_path):
    path = tmp_path / "a.npz"
    for content in (b"", b"PK", b"hello"):
        path.write_bytes(content)
        with pytest.raises(LograbError, match="a.npz"):
            read_answers(path, named("a", "b"))
    with path.open("wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(LograbError, match=r"not an \.npz"):
        read_answers(path, named("a", "b"))


def bomb(path, part, shape, dtype="<i8", size=64, **rest):
    """Write an answer one of whose arrays says it has a shape that it has not."""
    arrays = {f"0/{name}": array for name, array in GOOD.items() if name != part}
    np.savez(path, **arrays)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": dtype, "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr(f"0/{part}.npy", head.getvalue() + bytes(size))


SHAPES = [(10**15, 2), (2**62, 2), (2**70, 2), (-4, -1), (1,) * 200, (0, 10**30), (10**9,)]


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_that_the_content_does_not_have_are_refused_before_memory_is_taken(tmp_path, shape):
    bomb(tmp_path / "a.npz", "edges", shape)
    tracemalloc.start()
    try:
        with pytest.raises(LograbError, match="a.npz"):
            read_answers(tmp_path / "a.npz", named("a", "b", "c"))
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


def test_an_answer_that_unpacks_to_too_much_is_refused_before_memory_is_taken(tmp_path, monkeypatch):
    bomb(tmp_path / "a.npz", "edges", (10**7, 2), size=16 * 10**7)
    assert (tmp_path / "a.npz").stat().st_size < 10**6
    monkeypatch.setenv("LOGRAB_MAX_BYTES", "1000000")
    tracemalloc.start()
    try:
        with pytest.raises(LograbError, match="LOGRAB_MAX_BYTES"):
            read_answers(tmp_path / "a.npz", named("a", "b", "c"))
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


def test_a_table_that_is_too_large_is_refused(tmp_path, monkeypatch):
    instance = named("ann", "bob")
    monkeypatch.setenv("LOGRAB_MAX_BYTES", "200")
    assert len(read(tmp_path, "ann,bob,0.5\n" * 16, instance)) == 1
    with pytest.raises(LograbError, match="more than 200 bytes"):
        read(tmp_path, "ann,bob,0.5\n" * 17, instance)


LONG = "x" * 140_000


@pytest.mark.parametrize("text", [
    f"{LONG},bob,1\n", f'"{LONG}",bob\n', f"ann,bob\n{LONG},bob\n", f"# {LONG}\n{LONG} {LONG} 1", LONG,
    f'"{LONG}\n' * 2,
    "ann,bob," + "9" * 5000 + "x\n", "ann,bob," + "[" * 100_000, '"ann,bob\n', "ann,bob\n\0,bob\n",
])  # fmt: skip
def test_fields_of_any_length_give_one_short_sentence(tmp_path, text):
    with pytest.raises(LograbError) as error:
        read(tmp_path, text, named("ann", "bob"))
    assert len(str(error.value)) < 300


def test_numbers_of_many_digits_are_numbers(tmp_path):
    rows = read(tmp_path, f"ann,bob,0.{'3' * 5000}\n", named("ann", "bob"))
    assert rows == [("ann", "bob", pytest.approx(1 / 3))]


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000, '{"a":' * 50_000])
def test_settings_of_any_depth_give_one_short_sentence(tmp_path, text):
    lograb.generate("karate", k=4).save(tmp_path / "k.lograb")
    with pytest.raises(LograbError) as error:
        app(["attack", str(tmp_path / "k.lograb"), "--method", "posterior", "--set", f"channels={text}"],
            standalone_mode=False)  # fmt: skip
    assert len(str(error.value)) < 500


def test_a_function_that_takes_other_arguments_is_refused_before_it_runs():
    instance = lograb.generate("karate")
    for wrong in (lambda s: None, lambda a, b, c: None):
        with pytest.raises(LograbError, match=r"two arguments.*got <lambda>\(.*\(seen, rng\)"):
            lograb.attack(instance, wrong)
    for fine in (lambda *_: Reconstruction(34, [], [], []), lambda a, b, c=0: Reconstruction(34, [], [], [])):
        assert len(lograb.attack(instance, fine).edges) == 0
