"""The ten lines that a researcher writes, and a sentence for every plausible slip."""

import json
import warnings

import numpy as np
import pytest

import lograb
from lograb import LograbError


def claim_everything(seen, rng):
    pairs = np.unique([(u, w) for i in range(seen.n_patches) for u in seen.members(i) for w in seen.members(i)
                       if u < w], axis=0)  # fmt: skip
    return lograb.Reconstruction(seen.n_nodes, pairs, rng.random(len(pairs)), np.unique(seen.nodes))


@pytest.fixture(scope="module")
def instance():
    return lograb.generate("karate", d=1, p=0.6, k=32, sigma=0.05, seed=0)


def test_the_ten_lines(tmp_path, monkeypatch, mirror):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    my_function = claim_everything
    instance = lograb.generate("cora", d=1, p=0.6, k=32, sigma=0.05, seed=0)
    attack = lograb.attacks.Posterior(channels=("membership", "eigenvectors"))
    guess = lograb.attack(instance, attack)
    score = lograb.evaluate(instance, guess)
    assert score.floor <= score.f1 <= score.ceiling
    assert score.interval[0] <= score.f1 <= score.interval[1]
    assert score.calibration["skill"] > 0.9
    table = lograb.compare(instance, ["afr", attack, my_function], seeds=3)
    table.to_html("report.html")
    assert r"\toprule" in table.to_latex()
    assert list(table.to_pandas().index) == ["afr", attack.label, "claim_everything"]
    assert table["claim_everything"].f1 <= score.floor + 1e-12
    guess.save("guess.npz")
    assert lograb.evaluate(instance, "guess.npz").to_dict() == score.to_dict()
    seen = instance.observations
    members, vectors, values = (
        [get(i) for i in range(seen.n_patches)] for get in (seen.members, seen.block, seen.spectrum)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine = lograb.Observations.from_arrays(members, vectors, values)
    assert len(lograb.attack(mine, "posterior").edges)


def test_a_name_is_short_for_an_object(instance):
    named, made = (lograb.attack(instance, what) for what in ("posterior", lograb.attacks.Posterior()))
    assert np.array_equal(named.edges, made.edges)
    assert np.array_equal(lograb.attack(instance, lograb.attacks.Posterior).edges, made.edges)
    assert named.method == "posterior"
    assert named.seconds > 0


def test_objects_and_functions_are_attacks_alike(instance):
    attack = lograb.attacks.Afr(top_k=3)
    direct = attack(instance.observations, np.random.default_rng(0))
    assert np.array_equal(lograb.attack(instance, attack).edges, direct.edges)
    assert np.array_equal(lograb.attack(instance.observations, attack).edges, direct.edges)
    assert attack.label == "afr(top_k=3)"
    assert repr(attack) == "Afr(top_k=3)"
    assert repr(lograb.attacks.Afr()) == "Afr()"


def test_seeds_are_paired(instance):
    table = lograb.compare("karate", ["random", "membership"], seeds=4, p=0.5, sigma=0.05)
    assert table.fresh
    rows = {row["method"]: row for row in table.rows}
    each = [(b.f1, r.f1) for b, r in zip(table["membership"].scores, table["random"].scores)]
    differences = [b - r for b, r in each]
    assert rows["random"]["behind"] == pytest.approx(np.mean(differences))
    low, high = rows["random"]["behind_interval"]
    assert low < rows["random"]["behind"] < high
    assert len({score.ceiling for score in table["random"].scores}) > 1
    assert rows["random"]["sd"] == pytest.approx(np.std([r for _, r in each], ddof=1))
    draws = lograb.compare(instance, ["random"], seeds=3)
    assert not draws.fresh
    assert len({score.ceiling for score in draws["random"].scores}) == 1
    json.dumps(table.to_dict())


def test_one_failing_attack_does_not_stop_the_others(tmp_path):
    table = lograb.compare("karate", ["afr", "membership"], eigenvalues=False)
    assert "withhold" in table["afr"].problem
    assert table["membership"].f1 > 0.9
    table.to_html(tmp_path / "page.html")
    assert "could not run" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "withhold" in table.to_markdown()


def test_one_line_reprs_and_html(instance):
    guess = lograb.attack(instance, "membership")
    score = lograb.evaluate(instance, guess)
    table = lograb.compare(instance, ["membership", "random"])
    for thing in (instance, instance.observations, instance.truth, guess, score, score.patches, table):
        assert "\n" not in repr(thing)
        assert len(repr(thing)) < 200
    for thing in (score, table):
        assert thing._repr_html_().startswith("<table>")
    evil = lograb.generate(lograb.Graph.from_edges("<script>", 3, [(0, 1), (1, 2)]))
    assert "<script>" not in lograb.compare(evil, ["membership"])._repr_html_()


def test_patches_are_scored_by_name():
    graph = lograb.Graph.from_edges("g", 6, [(0, 1), (1, 2), (3, 4), (4, 5), (3, 5)])
    instance = lograb.generate(graph, strategy="custom", patches=[[0, 1, 2], [3, 4, 5]], k=3)
    answer = lograb.Reconstruction(6, [(0, 1), (1, 2), (3, 4), (2, 3)], np.ones(4), np.arange(6))
    patches = lograb.evaluate(instance, answer).patches
    assert patches.exact.tolist() == [True, False]
    assert patches.found.tolist() == [2, 1]
    assert patches.wrong.tolist() == [0, 0]
    assert patches.rows()[0] == {"patch": "0", "members": 3, "edges": 2, "found": 2, "wrong": 0, "exact": True}


SLIPS = {
    "a tuple instead of an answer": (lambda i: lograb.evaluate(i, (lograb.attack(i, "random"), 1.0)), "unpack"),
    "a path instead of an instance": (lambda i: lograb.evaluate("a.lograb", None), "lograb.load"),
    "a path to attack": (lambda i: lograb.attack("a.lograb", "afr"), "lograb.load"),
    "a graph to attack": (lambda i: lograb.attack(i.truth, "afr"), "needs an instance"),
    "one attack instead of a list": (lambda i: lograb.compare(i, "afr"), r"\['afr'\]"),
    "no attack": (lambda i: lograb.compare(i, []), "at least one"),
    "an instance with parameters": (lambda i: lograb.compare(i, ["afr"], sigma=0.1), "parameters already"),
    "a misspelt parameter": (lambda i: lograb.generate("karate", sigm=0.1), "Did you mean 'sigma'"),
    "a misspelt parameter of compare": (lambda i: lograb.compare("karate", ["random"], sigm=0.1), "'sigma'"),
    "a misspelt setting": (lambda i: lograb.attacks.Posterior(chanels=("membership",)), "Did you mean 'channels'"),
    "a bad setting": (lambda i: lograb.attacks.Posterior(iterations=0), "iterations"),
    "a misspelt attack": (lambda i: lograb.attack(i, "posteriour"), "Did you mean 'posterior'"),
    "a number as attack": (lambda i: lograb.attack(i, 3), "an attack is a name"),
    "a negative seed": (lambda i: lograb.attack(i, "random", seed=-1), "seed"),
    "a function that returns pairs": (lambda i: lograb.attack(i, lambda seen, rng: [(0, 1)]), "Reconstruction"),
    "an answer about another graph": (
        lambda i: lograb.evaluate(i, lograb.Reconstruction(3, [], [], [])), "3 nodes, the instance has 34"),
    "an unsuitable suffix": (lambda i: lograb.attack(i, "random").save("a.xlsx"), r"\.npz"),
    "a page without suffix": (lambda i: lograb.compare(i, ["random"]).to_html("page"), r"\.html"),
}  # fmt: skip


@pytest.mark.parametrize("slip", SLIPS)
def test_slips_get_a_sentence_with_the_remedy(slip, instance, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, remedy = SLIPS[slip]
    with pytest.raises(LograbError, match=remedy):
        call(instance)
    assert not list(tmp_path.iterdir())


def test_an_answer_survives_a_full_disk(instance, tmp_path, monkeypatch):
    guess = lograb.attack(instance, "membership")
    guess.save(tmp_path / "a.csv")
    before = (tmp_path / "a.csv").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(LograbError, match="No space left"):
        lograb.attack(instance, "random").save(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
