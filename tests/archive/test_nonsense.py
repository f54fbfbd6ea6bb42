"""Archives signed anew with nonsense: whoever uses them gets a clear error or an answer, never a crash."""

import dataclasses
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from tests.archive.forging import edit_manifest, read_arrays, repack, replace_array
from tests.cli.command import lograb as command

import lograb
from lograb import verify
from lograb.errors import ArchiveError, LograbError
from lograb.tasks.link_prediction import predict_links
from lograb.theory import certify


def saved(folder, strategy, **choices):
    """Make an archive of karate, with names, features and classes, and give its bytes."""
    karate = lograb.load_graph("karate")
    names = tuple(f"member-{i}" for i in range(34))
    graph = dataclasses.replace(karate, node_names=names, features=sp.csr_array(np.eye(34, 5)))
    path = folder / f"{strategy}.lograb"
    lograb.generate(graph, strategy=strategy, k=4, sigma=0.05, **choices).save(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archives")
    return {"d-hop": saved(folder, "d-hop", p=0.6), "cluster": saved(folder, "cluster", clusters=3),
            "random": saved(folder, "random"), "global": saved(folder, "global")}  # fmt: skip


def scored(graph, method):
    return lograb.evaluate(graph, lograb.attack(graph, method))


USERS = {
    "certify": lambda graph: certify(graph.observations, graph.patch_edges),
    "link": lambda graph: predict_links(graph, "cosine"),
    "evaluate": lambda graph: scored(graph, "membership"),
    "heat-kernel": lambda graph: scored(graph, "heat-kernel"),
    "afr": lambda graph: scored(graph, "afr"),
    "eigen-sync": lambda graph: scored(graph, "eigen-sync"),
    "posterior": lambda graph: scored(graph, "posterior"),
    "patches": lambda graph: [graph.patch(i) for i in range(graph.n_patches)],
    "summary": lambda graph: graph.summary(),
}


def use(path, users):
    """Let users loose on an archive; True where one of them refused it."""
    refused = False
    for user in users:
        try:
            for graph in lograb.load(path):
                USERS[user](graph)
        except LograbError:
            refused = True
    return refused


NONSENSE = {
    "vectors, huge": ("observations/vectors", 1e300),
    "vectors, not a number": ("observations/vectors", np.nan),
    "values, huge": ("observations/values", 1e154),
    "values, negative": ("observations/values", -1.0),
    "next values, small": ("observations/next_values", -5.0),
    "centres, strangers": ("observations/centres", 33),
    "centres, none": ("observations/centres", -1),
    "patch edges, far": ("patch_edges/ends", 33),
    "patch edges, negative": ("patch_edges/ends", -1),
    "classes, many": ("labels/classes", 2**62),
    "classes, negative": ("labels/classes", -2),
    "features, infinite": ("features/weights", np.inf),
    "ranks": ("observations/value_ptr", 3),
}


@pytest.mark.parametrize("case", NONSENSE)
def test_nonsense_is_refused_when_it_is_read(originals, tmp_path, case):
    name, value = NONSENSE[case]
    array = read_arrays(originals["d-hop"])[name]
    array.reshape(-1)[1:2] = value
    path = tmp_path / "x.lograb"
    path.write_bytes(repack(originals["d-hop"], replace_array(name, array)))
    with pytest.raises(ArchiveError):
        verify(path)
    used = {"labels/classes": lambda graph: graph.labels, "features/weights": lambda graph: graph.features,
            "patch_edges/ends": USERS["certify"]}  # fmt: skip
    with pytest.raises(ArchiveError):
        used.get(name, USERS["heat-kernel"])(lograb.load(path))


@pytest.mark.parametrize(("name", "change"), [
    ("d-hop", {"eigenvalues": False}),
    ("d-hop", {"strategy": "global"}),
    ("d-hop", {"strategy": "cluster"}),
    ("d-hop", {"strategy": "random"}),
    ("d-hop", {"p": 0.5}),
    ("d-hop", {"k": 5}),
    ("d-hop", {"sigma": None}),
    ("d-hop", {"sigma": 1e154}),
    ("cluster", {"strategy": "d-hop", "clusters": None}),
    ("cluster", {"strategy": "custom", "clusters": None}),
    ("random", {"seed_nodes": 3}),
    ("random", {"strategy": "d-hop"}),
    ("global", {"strategy": "cluster"}),
    ("global", {"strategy": "d-hop"}),
])
def test_verify_refuses_a_manifest_that_contradicts_the_parts(originals, tmp_path, name, change):
    path = tmp_path / "x.lograb"
    path.write_bytes(originals[name])
    verify(path)
    path.write_bytes(repack(originals[name], edit_manifest(lambda content: content["spec"].update(change))))
    with pytest.raises(ArchiveError):
        verify(path)


@pytest.mark.parametrize("count", [0, 4, 2**31 - 1])
def test_verify_refuses_another_number_of_features(originals, tmp_path, count):
    path = tmp_path / "x.lograb"
    path.write_bytes(repack(originals["d-hop"], edit_manifest(lambda content: content.update(n_features=count))))
    with pytest.raises(ArchiveError, match="features"):
        verify(path)


CHOICES = {"i": [-1, 0, 1, 2, 3, 5, 33, 34, 255, 10**6, 2**62, -(2**63)], "u": [0, 1, 2, 255],
           "f": [-1.0, 0.0, 1.0, 2.0, 1e-300, 1e6, 1e9, 1e16, 1e154, 1e300, -1e300, np.nan, np.inf]}  # fmt: skip
SPECS = {"sigma": [0.0, 5.0, 1e10, 1e300], "d": [0, 2, 64], "k": [1, 3, 10**6], "gauge": ["none", "rotation"],
         "strategy": ["d-hop", "cluster", "random", "custom", "global"], "eigenvalues": [False]}  # fmt: skip


def forge(original, rng):
    """Change a column, or a line of the manifest, and sign the archive anew."""
    if rng.random() < 0.15:
        key = list(SPECS)[rng.integers(len(SPECS))]
        value = SPECS[key][rng.integers(len(SPECS[key]))]
        return repack(original, edit_manifest(lambda content: content["spec"].update({key: value})))
    arrays = read_arrays(original)
    name = list(arrays)[rng.integers(len(arrays))]
    flat = arrays[name].reshape(-1)
    drawn = CHOICES[flat.dtype.kind]
    kind = rng.integers(4)
    if kind == 0:
        flat[:] = drawn[rng.integers(len(drawn))]
    elif kind == 1:
        flat[:] = rng.permutation(flat)
    else:
        for _ in range(rng.integers(1, 4)):
            flat[rng.integers(len(flat))] = drawn[rng.integers(len(drawn))]
    return repack(original, replace_array(name, arrays[name]))


@pytest.mark.parametrize("part", range(4))
def test_fuzz_archives_signed_anew_crash_nobody(originals, tmp_path, part):
    rng = np.random.default_rng(part)
    path = tmp_path / "x.lograb"
    refused = 0
    for number in range(60):
        path.write_bytes(forge(originals[list(originals)[number % len(originals)]], rng))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            refused += use(path, rng.choice(list(USERS), size=2, replace=False))
    assert 20 < refused < 60


@pytest.mark.parametrize("arguments", [
    ["attack", "--method", "afr"], ["certify"], ["link", "--method", "cosine"], ["info"], ["verify"]])
def test_commands_end_in_one_line(originals, tmp_path, arguments):
    ends = np.full_like(read_arrays(originals["d-hop"])["patch_edges/ends"], 33)
    values = np.full_like(read_arrays(originals["d-hop"])["observations/vectors"], 1e300)
    for name, array in (("patch_edges/ends", ends), ("observations/vectors", values)):
        path = tmp_path / "x.lograb"
        path.write_bytes(repack(originals["d-hop"], replace_array(name, array)))
        done = command(arguments[0], path, *arguments[1:])
        assert done.returncode in ((0, 1, 2) if arguments[0] == "verify" else (0, 2))
        assert done.stderr.count("\n") <= 1
