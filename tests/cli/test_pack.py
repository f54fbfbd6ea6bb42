"""``lograb pack`` as a user meets it: files in every form, one clear line for each mistake."""

import json
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
import scipy.sparse.csgraph as csgraph

import lograb
from lograb.errors import LograbError, LograbNotice
from lograb.observations.own_files import read_embeddings

GRAPH = lograb.load_graph("karate")
ADJACENCY = GRAPH.adjacency.toarray().astype(float)
GROUPS = dict(zip(("sales", "it", "hr"), map(sorted, nx.community.greedy_modularity_communities(
    nx.from_numpy_array(ADJACENCY)))))  # fmt: skip


def silo(name, k=6):
    w, u = np.linalg.eigh(csgraph.laplacian(ADJACENCY[np.ix_(GROUPS[name], GROUPS[name])], normed=True))
    return {"members": np.array(GROUPS[name]), "vectors": u[:, :k], "values": w[:k], "next_value": w[k]}


def run(*arguments, cwd=None):
    command = [sys.executable, "-c", "from lograb.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def write_csv(path, fields, head="node,a,b,c,d,e,f\n", separator=","):
    lines = [separator.join(["eigenvalue", *map(repr, map(float, fields["values"]))]),
             separator.join(["next", repr(float(fields["next_value"]))])]  # fmt: skip
    lines += [separator.join([str(node), *map(repr, map(float, row))])
              for node, row in zip(fields["members"], fields["vectors"])]  # fmt: skip
    path.write_text(head.replace(",", separator) + "\n".join(lines) + "\n")


def write_folder(folder):
    """One patch in each of the three forms."""
    folder.mkdir()
    np.savez(folder / "sales.npz", **silo("sales"))
    it = silo("it")
    np.save(folder / "it.npy", it["vectors"])
    (folder / "it.members.txt").write_text("\n".join(map(str, it["members"])) + "\n")
    np.savetxt(folder / "it.values.txt", it["values"])
    write_csv(folder / "hr.csv", silo("hr"))
    return folder


def test_pack_attack_evaluate(tmp_path):
    arrays = {f"{name}/{what}": array for name in GROUPS for what, array in silo(name).items()}
    np.savez(tmp_path / "firm.npz", **arrays)
    done = run("pack", "firm.npz", "-o", "x.lograb", "--truth", "karate", "--sigma", 0, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert (made["name"], made["n_nodes"], made["n_edges"], made["n_patches"]) == ("firm", 34, 78, 3)
    assert (made["k"], made["sigma"], made["seed"], made["truth"]) == (6, 0.0, None, True)
    checked = json.loads(run("verify", "x.lograb", "--json", cwd=tmp_path).stdout)
    assert checked["sha256"] == made["sha256"]
    packed = lograb.load(tmp_path / "x.lograb")
    assert packed.patch_names == ("hr", "it", "sales")
    assert packed.observations.next_values is not None
    made = lograb.generate("karate", patches=dict(sorted(GROUPS.items())), strategy="custom", d=0, k=6, sigma=0.0)
    one, other = (lograb.attack(instance, "posterior") for instance in (packed, made))
    assert np.array_equal(one.edges, other.edges)
    told = run("pack", "firm.npz", "-o", "x.lograb", cwd=tmp_path)
    assert "lograb attack x.lograb --method posterior" in told.stderr
    assert "None" not in told.stdout
    assert run("attack", "x.lograb", "--method", "posterior", cwd=tmp_path).returncode == 0


def test_all_forms_hold_the_same(tmp_path):
    folder = write_folder(tmp_path / "firm")
    one = read_embeddings(folder)
    assert one["names"] == ["hr", "it", "sales"]
    grouped = {f"{name}/{what}": array for name in GROUPS for what, array in silo(name).items()}
    np.savez_compressed(tmp_path / "grouped.npz", **grouped)
    other = read_embeddings(tmp_path / "grouped.npz")
    for i, name in enumerate(one["names"]):
        assert np.array_equal(one["vectors"][i], silo(name)["vectors"])
        assert np.allclose(one["values"][i], silo(name)["values"], atol=1e-15)
        assert list(map(int, one["members"][i])) == list(GROUPS[name])
        assert np.array_equal(other["vectors"][i], one["vectors"][i])
    done = run("pack", folder, "-o", tmp_path / "x.lograb", "--truth", "karate", "--json")
    assert json.loads(done.stdout)["co_observed_edges"] == 59, done.stderr
    assert "next_values are missing for 1 truncated patches" in done.stderr


def test_numbered_arrays_and_one_patch(tmp_path):
    numbered = {f"{what}_{i}": array for i, name in enumerate(GROUPS) for what, array in silo(name).items()}
    np.savez(tmp_path / "a.npz", **numbered)
    found = read_embeddings(tmp_path / "a.npz")
    assert found["names"] is None
    assert [len(members) for members in found["members"]] == [len(group) for group in GROUPS.values()]
    w, u = np.linalg.eigh(csgraph.laplacian(ADJACENCY, normed=True))
    np.savez(tmp_path / "b.npz", vectors=u[:, :8], values=w[:8], note="x")
    with pytest.warns(LograbNotice, match="note"):
        found = read_embeddings(tmp_path / "b.npz")
    assert found["members"][0].tolist() == list(range(34))
    whole = tmp_path / "whole"
    whole.mkdir()
    np.save(whole / "graph.npy", u[:, :8])
    assert read_embeddings(whole)["members"][0].tolist() == list(range(34))
    np.savez(tmp_path / "c.npz", vectors=u[:, :8], members=np.array([f"p{i:02}" for i in range(34)], dtype="S"))
    assert read_embeddings(tmp_path / "c.npz")["members"][0][3] == "p03"


@pytest.mark.parametrize("head", ["", "node,a,b,c,d,e,f\n", ",0,1,2,3,4,5\n", "# made by us\nid,0,1,2,3,4,5\n"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_tables_with_and_without_header(tmp_path, head, separator):
    folder = tmp_path / "firm"
    folder.mkdir()
    write_csv(folder / "hr.csv", silo("hr"), head, separator)
    found = read_embeddings(folder)
    assert list(map(int, found["members"][0])) == GROUPS["hr"]
    assert found["next_values"][0] == silo("hr")["next_value"]
    assert np.array_equal(found["values"][0], silo("hr")["values"])


def test_what_was_converted_is_said_and_kept(tmp_path):
    _, u = np.linalg.eigh(csgraph.laplacian(ADJACENCY, normed=True))
    walk = (u / np.sqrt(ADJACENCY.sum(axis=1))[:, None])[:, 1:11]
    np.savez(tmp_path / "walk.npz", vectors=walk)
    done = run("pack", "walk.npz", "-o", "x.lograb", cwd=tmp_path)
    assert done.returncode == 2
    assert "random-walk" in done.stderr
    assert not (tmp_path / "x.lograb").exists()
    done = run("pack", "walk.npz", "-o", "x.lograb", "--laplacian", "random-walk", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    packed = lograb.load(tmp_path / "x.lograb")
    assert any("put back" in text for text in packed.manifest.notices)
    assert "put back" in done.stderr
    assert np.allclose(np.abs(packed.observations.block(0)), np.abs(u[:, :11]))


def test_the_unnormalised_laplacian_is_refused_by_name(tmp_path):
    w, u = np.linalg.eigh(csgraph.laplacian(ADJACENCY))
    np.savez(tmp_path / "g.npz", vectors=u[:, :8], values=w[:8])
    done = run("pack", "g.npz", "-o", "x.lograb", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "unnormalised Laplacian" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def refused(path, words):
    with pytest.raises(LograbError, match=words):
        read_embeddings(path)


def test_bad_sources_get_a_sentence(tmp_path):
    refused(tmp_path / "none.npz", "no such file")
    (tmp_path / "x.csv").write_text("a,1\n")
    refused(tmp_path / "x.csv", "folder of its own")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "no patch")
    (tmp_path / "x.npz").write_bytes(b"PK nonsense")
    refused(tmp_path / "x.npz", "x.npz.*NumPy file")
    np.savez(tmp_path / "o.npz", vectors=np.array([{}, 1], dtype=object))
    refused(tmp_path / "o.npz", r"Python objects.*'vectors'.*\.astype\(float\)")
    np.savez(tmp_path / "m.npz", **{"a/members": [0, 1]})
    refused(tmp_path / "m.npz", "'a' has no vectors")
    np.savez(tmp_path / "n.npz", **{"a/vectors": np.eye(2), "b/vectors": np.eye(2)})
    refused(tmp_path / "n.npz", "which nodes")
    np.savez(tmp_path / "s.npz", **{"a/vectors": np.eye(2), "vectors": np.eye(2)})
    refused(tmp_path / "s.npz", "name them all")
    np.savez(tmp_path / "v.npz", vectors=np.eye(2), next_value=[1.0, 2.0])
    refused(tmp_path / "v.npz", "one number")
    np.savez(tmp_path / "z.npz", x=np.eye(2))
    with pytest.warns(LograbNotice):
        refused(tmp_path / "z.npz", "no array named vectors")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,1,2\nb,1\n", "row 2: expected 2 numbers"),
        ("a,1,2\nb,x,2\n", "row 2: expected a name and numbers, got 'x'"),
        ("node,u\n", "no row"),
        ("", "no row"),
    ],
)
def test_errors_in_tables_name_file_and_row(tmp_path, text, words):
    folder = tmp_path / "f"
    folder.mkdir()
    (folder / "hr.csv").write_text(text)
    refused(folder, f"hr.csv.*{words}")


def test_folders_with_more_than_patches(tmp_path):
    folder = write_folder(tmp_path / "firm")
    (folder / "readme.md").write_text("ours")
    (folder / ".hidden").write_text("")
    with pytest.warns(LograbNotice, match=r"passed over: readme.md$"):
        read_embeddings(folder)
    (folder / "it.values.txt").write_text("0\nx\n")
    with pytest.warns(LograbNotice):
        refused(folder, "it.values.txt, row 2")
    np.savez(folder / "it.npz", **silo("it"))
    with pytest.warns(LograbNotice):
        refused(folder, "same patch")


def test_archives_that_unpack_to_far_more_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("lograb.observations.own_files.FREE_BYTES", 1000)
    np.savez_compressed(tmp_path / "bomb.npz", vectors=np.zeros((1000, 1000)))
    refused(tmp_path / "bomb.npz", "may unpack to")


def test_bad_options_get_a_sentence(tmp_path):
    np.savez(tmp_path / "a.npz", **silo("it"))
    for options in (("--laplacian", "randomwalk"), ("--gauge", "x"), ("--sigma", -1), ("--truth", "karat")):
        done = run("pack", "a.npz", "-o", "x.lograb", *options, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "x.lograb").exists()
    done = run("pack", "a.npz", "-o", "a.npz", cwd=tmp_path)
    assert done.returncode == 2
    assert ".lograb" in done.stderr
    assert silo("it")["vectors"].tolist() == np.load(tmp_path / "a.npz")["vectors"].tolist()
