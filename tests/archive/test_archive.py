"""Archives: what goes in comes out, and whatever is damaged is named."""

import dataclasses
import hashlib
import io
import json
import multiprocessing
import os
import signal
import struct
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.archive.forging import edit_manifest, repack, replace_array
from tests.strategies import graphs

import lograb
from lograb import verify
from lograb.archive import Writer, container, manifest, reader, writer
from lograb.archive.schema import RULES
from lograb.archive.tables import cut, join
from lograb.errors import ArchiveError, LograbError
from lograb.tasks.fragments import ask


def same(one, two):
    assert one.tables.keys() == two.tables.keys()
    for name in one.tables:
        a, b = (np.asarray(i.tables[name][0 : i.tables[name].shape[0]]) for i in (one, two))
        assert a.dtype == b.dtype
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), name


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("archive") / "karate.lograb"
    graph = lograb.load_graph("karate")
    names = tuple(f"member-{i}" for i in range(34))
    features = sp.csr_array(np.eye(34, 5))
    graph = dataclasses.replace(graph, node_names=names, features=features)
    lograb.generate(graph, p=0.6, k=4, sigma=0.05).save(path)
    return path.read_bytes()


@settings(max_examples=50)
@given(graphs(), st.sampled_from(["d-hop", "cluster", "random", "global"]), st.integers(1, 6), st.booleans())
def test_round_trip(tmp_path_factory, graph, strategy, k, eigenvalues):
    path = tmp_path_factory.mktemp("archive") / "g.lograb"
    instance = lograb.generate(graph, strategy=strategy, k=k, sigma=0.1, p=0.7, eigenvalues=eigenvalues)
    sha256 = instance.save(path)
    assert sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    loaded = lograb.load(path)
    same(instance, loaded)
    assert loaded.spec == instance.spec
    assert np.array_equal(loaded.truth.edges, graph.edges)
    verify(path)


def test_a_file_that_is_no_archive_is_named(tmp_path):
    (tmp_path / "friends.csv").write_text("ann,bob\n")
    with pytest.raises(ArchiveError, match="^'friends.csv': this is not a lograb archive") as error:
        lograb.load(tmp_path / "friends.csv")
    assert error.value.member == container.CONTAINER


def test_other_zip_tools_can_open_it(saved):
    with zipfile.ZipFile(io.BytesIO(saved)) as file:
        assert file.testzip() is None
        assert set(file.namelist()) >= {"manifest.json", "croissant.json", "observations/vectors.npy"}
        with file.open("truth/edges.npy") as member:
            assert np.load(io.BytesIO(member.read()), allow_pickle=False).shape == (78, 2)
        for name, entry in json.loads(file.read("manifest.json"))["members"].items():
            assert hashlib.sha256(file.read(f"{name}.npy")).hexdigest() == entry["sha256"]


def test_croissant_describes_every_array(saved):
    with zipfile.ZipFile(io.BytesIO(saved)) as file:
        document = json.loads(file.read("croissant.json"))
        arrays = {name for name in file.namelist() if name.endswith(".npy")}
        assert {entry["contentUrl"] for entry in document["distribution"]} == arrays
        for entry in document["distribution"]:
            assert hashlib.sha256(file.read(entry["contentUrl"])).hexdigest() == entry["sha256"]
    assert document["conformsTo"] == "http://mlcommons.org/croissant/1.0"


def test_same_spec_same_bytes(tmp_path):
    for name in ("a", "b"):
        lograb.generate_file("karate", tmp_path / name, p=0.6, sigma=0.05, strategy="cluster", clusters=3)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    lograb.generate_file("karate", tmp_path / "c", p=0.6, sigma=0.05, strategy="cluster", clusters=3, seed=1)
    assert (tmp_path / "a").read_bytes() != (tmp_path / "c").read_bytes()


def test_reading_one_patch_reads_only_its_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "BLOCK", 4096)
    for module in (reader, writer):
        monkeypatch.setattr(module, "BLOCK", 4096)
    path = tmp_path / "c.lograb"
    instance = lograb.generate("citation", k=8)
    instance.save(path)
    read = []
    plain = reader.StoredColumn._read

    def counting(self, start, size):
        read.append(size)
        return plain(self, start, size)

    monkeypatch.setattr(reader.StoredColumn, "_read", counting)
    patch = lograb.load(path).patch(1234)
    assert np.array_equal(patch.members(0), instance.observations.members(1234))
    assert np.array_equal(patch.block(0), instance.observations.block(1234))
    assert sum(read) < path.stat().st_size / 10


def test_damage_shows_in_the_block_that_is_read_and_only_there(tmp_path, monkeypatch):
    for module in (reader, writer):
        monkeypatch.setattr(module, "BLOCK", 1024)
    path = tmp_path / "c.lograb"
    lograb.generate("citation", k=8).save(path)
    data = bytearray(path.read_bytes())
    with path.open("rb") as file:
        entry = container.read_directory(file)[0]["observations/vectors.npy"]
    data[entry.stop - 5] ^= 1
    path.write_bytes(data)
    instance = lograb.load(path)
    assert instance.patch(0).n_patches == 1
    with pytest.raises(ArchiveError, match="observations/vectors.npy"):
        instance.patch(instance.n_patches - 1)
    with pytest.raises(ArchiveError, match="observations/vectors.npy"):
        _ = instance.observations
    with pytest.raises(ArchiveError, match="observations/vectors.npy"):
        verify(path)


def test_every_single_flipped_byte_is_noticed(saved, tmp_path):
    """All bytes of the headers and the directory, and a sample of the data."""
    path = tmp_path / "x.lograb"
    positions = set(range(0, len(saved), 97)) | set(range(len(saved) - 4000, len(saved)))
    path.write_bytes(saved)
    with path.open("rb") as file:
        entries = container.read_directory(file)[0]
    for entry in entries.values():
        positions |= set(range(entry.offset, entry.start + 2)) | {entry.stop - 1}
    for position in positions:
        data = bytearray(saved)
        data[position] ^= 0x10
        path.write_bytes(data)
        with pytest.raises(ArchiveError) as error:
            verify(path)
        assert error.value.member


def test_flipped_byte_names_its_member(saved, tmp_path):
    path = tmp_path / "x.lograb"
    path.write_bytes(saved)
    with path.open("rb") as file:
        entries = container.read_directory(file)[0]
    for name, entry in entries.items():
        for position in (entry.offset + 14, entry.start, entry.stop - 1):
            data = bytearray(saved)
            data[position] ^= 1
            path.write_bytes(data)
            with pytest.raises(ArchiveError) as error:
                verify(path)
            assert error.value.member == name


def test_truncation_names_the_member_that_is_cut(saved, tmp_path):
    path = tmp_path / "x.lograb"
    path.write_bytes(saved)
    with path.open("rb") as file:
        entries = container.read_directory(file)[0]
    for name, entry in entries.items():
        path.write_bytes(saved[: entry.stop - 1])
        with pytest.raises(ArchiveError, match="cut short") as error:
            lograb.load(path)
        assert error.value.member == name
    for length in (0, 1, 30, len(saved) - 1, len(saved) - 60, len(saved) - 300):
        path.write_bytes(saved[:length])
        with pytest.raises(ArchiveError):
            lograb.load(path)


def edit_shape(shape):
    return edit_manifest(lambda m: m["members"]["truth/edges"].update(shape=shape))


def add(name, data=b""):
    return lambda members: members.update({name: data})


HOSTILE = {
    "future": (edit_manifest(lambda m: m.update(version=2)), "manifest.json.*too new"),
    "foreign": (edit_manifest(lambda m: m.update(format="other")), "manifest.json"),
    "bad spec": (edit_manifest(lambda m: m["spec"].update(k=-1)), "manifest.json.*spec.k"),
    "unknown key": (edit_manifest(lambda m: m.update(run="rm")), "manifest.json"),
    "bad dtype": (edit_manifest(lambda m: m["members"]["truth/edges"].update(dtype="|O")), "manifest.json"),
    "bomb": (edit_shape([10**14, 2]), "truth/edges.npy"),
    "unlisted": (edit_manifest(lambda m: m["members"].pop("truth/edges")), "truth/edges.npy"),
    "missing": (lambda m: m.pop("truth/edges.npy"), "truth/edges.npy"),
    "traversal": (add("../evil.npy"), "evil"),
    "absolute": (add("/etc/passwd"), "passwd"),
    "extra": (add("more/things.npy"), "more/things.npy"),
    "deep json": (add("manifest.json", b"[" * 100_000), "manifest.json"),
    "not json": (add("manifest.json", b"\xff\xfe"), "manifest.json"),
    "empty": (lambda m: [m.pop(name) for name in list(m) if name.endswith(".npy")], "npy"),
    "no dimension": (edit_shape([]), "manifest.json"),
    "huge shape": (edit_shape([78, 2**70]), "manifest.json"),
    "many dimensions": (edit_shape([1] * 30000), "manifest.json"),
    "half a character": (edit_manifest(lambda m: m.update(name="\ud800")), "manifest.json"),
    "many features": (edit_manifest(lambda m: m.update(n_features=10**30)), "manifest.json"),
    "other truth": (edit_manifest(lambda m: m.update(truth=False)), "manifest.json"),
    "small k": (edit_manifest(lambda m: m["spec"].update(k=2)), "observations"),
    "many nodes": (replace_array("graphs/nodes", np.array([0, 10**12])), "graphs/nodes|name_ptr"),
    "no graph": (replace_array("graphs/patches", np.array([0])), "graphs/patches"),
    "no patch": (replace_array("graphs/patches", np.array([0, 0])), "graphs/patches"),
    "falling pointer": (replace_array("observations/ptr", np.r_[0, 9, 3, np.full(18, 128)]), "observations/ptr"),
    "short pointer": (replace_array("observations/ptr", np.arange(5)), "observations"),
    "negative pointer": (replace_array("graphs/patches", np.array([0, -20])), "graphs/patches"),
    "no rows": (replace_array("graphs/nodes", np.empty(0, np.int64)), "graphs/nodes"),
    "float nodes": (replace_array("observations/nodes", np.zeros(128)), "manifest.json"),
    "two columns": (replace_array("observations/nodes", np.zeros((128, 1), np.int64)), "observations/nodes"),
}


LIES = {
    "observations/nodes": 33,
    "observations/vectors": np.nan,
    "observations/centres": 99,
    "observations/values": 7.0,
    "observations/next_values": np.nan,
    "patch_edges/ends": 10**6,
    "labels/classes": -77,
    "truth/co_observed": 9,
    "truth/edges": 33,
    "features/columns": 5,
}


@pytest.mark.parametrize("name", LIES)
def test_verify_notices_content_that_does_not_fit_and_names_the_part(saved, tmp_path, name):
    with zipfile.ZipFile(io.BytesIO(saved)) as file:
        array = np.load(io.BytesIO(file.read(f"{name}.npy")))
    array.reshape(-1)[np.flatnonzero(~np.isnan(array.reshape(-1)))[0]] = LIES[name]
    path = tmp_path / "x.lograb"
    path.write_bytes(repack(saved, replace_array(name, array)))
    with pytest.raises(ArchiveError) as error:
        verify(path)
    assert error.value.member.split("/")[0] == name.split("/")[0]


def drop(*names):
    def edit(members):
        content = json.loads(members["manifest.json"])
        for name in names:
            del members[f"{name}.npy"], content["members"][name]
        members["manifest.json"] = json.dumps(content).encode()

    return edit


@pytest.mark.parametrize(
    "name",
    ["nodes/names", "features/weights", "features/columns", "truth/co_observed", "patch_edges/ends",
     "observations/vectors", "observations/ptr"],
)  # fmt: skip
def test_missing_companions_are_named(saved, tmp_path, name):
    path = tmp_path / "x.lograb"
    path.write_bytes(repack(saved, drop(name)))
    with pytest.raises(ArchiveError, match=name):
        lograb.load(path)


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_archives_get_a_clear_error(saved, tmp_path, case):
    change, pattern = HOSTILE[case]
    path = tmp_path / "x.lograb"
    path.write_bytes(repack(saved, change))
    with pytest.raises(LograbError, match=pattern):
        _ = verify(path) and lograb.load(path).observations


def test_unchanged_repack_is_accepted(saved, tmp_path):
    path = tmp_path / "x.lograb"
    path.write_bytes(repack(saved, lambda members: None))
    assert path.read_bytes() == saved
    verify(path)


def test_compressed_or_foreign_zips_are_refused(saved, tmp_path):
    path = tmp_path / "x.lograb"
    with zipfile.ZipFile(io.BytesIO(saved)) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    with pytest.raises(ArchiveError):
        lograb.load(path)


def mutate(data, rng):
    """Damage an archive in one of many ways."""
    data = bytearray(data)
    kind = rng.integers(7)
    at, other = rng.integers(len(data), size=2)
    if kind == 0:
        data[at] ^= 1 << rng.integers(8)
    elif kind == 1:
        del data[at:]
    elif kind == 2:
        data[at:at] = rng.bytes(rng.integers(1, 50))
    elif kind == 3:
        del data[at : at + rng.integers(1, 200)]
    elif kind == 4:
        length = rng.integers(1, 200)
        data[at : at + length] = data[other : other + length]
    elif kind == 5:
        tail = len(data) - rng.integers(1, 3000)
        data[tail : tail + 8] = struct.pack("<Q", int(rng.integers(2**63)))
    else:
        data[at : at + 8] = b"\xff" * 8
    return bytes(data)


def use_everything(path):
    instance = lograb.load(path)
    for graph in instance:
        parts = ("observations", "truth", "patch_edges", "labels", "node_names", "co_observed", "features")
        _ = [getattr(graph, part) for part in parts]
    instance.summary()
    verify(path)


@pytest.mark.parametrize("part", range(4))
def test_fuzz_mutated_archives_give_only_clean_errors(saved, tmp_path, part):
    rng = np.random.default_rng(part)
    path = tmp_path / "x.lograb"
    refused = 0
    for _ in range(400):
        damaged = mutate(saved, rng)
        path.write_bytes(damaged)
        try:
            use_everything(path)
        except LograbError:
            refused += 1
        else:
            assert damaged == saved
    assert refused > 380


def test_no_truth_leaves_out_everything_that_answers_task_1(tmp_path):
    path = tmp_path / "x.lograb"
    secret = 987654321987654321
    lograb.generate_file("karate", path, truth=False, sigma=0.05, seed=secret)
    instance = lograb.load(path)
    assert not instance.has_truth
    assert not [name for name in instance.tables if name.startswith(("truth", "patch_edges"))]
    assert instance.spec.seed is None
    assert str(secret).encode() not in path.read_bytes()
    assert instance.summary()["n_edges"] is None
    assert instance.labels is not None
    for part in ("truth", "patch_edges", "co_observed"):
        with pytest.raises(LograbError, match="without its truth"):
            getattr(instance, part)
    again = tmp_path / "y.lograb"
    instance.save(again)
    assert again.read_bytes() == path.read_bytes()


def test_no_truth_leaves_out_the_cores_of_clusters(tmp_path):
    path = tmp_path / "x.lograb"
    whole = lograb.generate("karate", strategy="cluster", clusters=3)
    assert whole.core is not None
    whole.save(path, truth=False)
    instance = lograb.load(path)
    assert instance.core is None
    assert not [name for name in instance.tables if name.startswith("fragments")]
    verify(path)
    with pytest.raises(LograbError, match="without its truth"):
        ask(instance)


def test_no_truth_of_an_own_file_gives_no_clue_to_its_lines(tmp_path):
    lines = ["zoe,ann", "eve,bob", "kim,leo"]
    (tmp_path / "g.csv").write_text("\n".join(["source,target", *lines]))
    path = tmp_path / "x.lograb"
    lograb.generate_file(tmp_path / "g.csv", path, truth=False, sigma=0.1)
    instance = lograb.load(path)
    assert instance.node_names == ("ann", "bob", "eve", "kim", "leo", "zoe")  # not in the order of the lines
    assert instance.origin.sha256 == ""


SILOS = {f"ward {i}": list(range(4 * i, 4 * i + 6)) for i in range(7)} | {"Zürich": [0, 33]}


@pytest.mark.parametrize("truth", [True, False])
def test_names_of_patches_stay_with_their_patches(tmp_path, truth):
    path = tmp_path / "x.lograb"
    instance = lograb.generate("karate", patches=SILOS, p=0.5, k=3, sigma=0.1)
    assert len(instance.patch_names) == 4
    instance.save(path, truth=truth)
    verify(path)
    loaded = lograb.load(path)
    assert loaded.patch_names == loaded.observations.patch_names == instance.patch_names
    for i, name in enumerate(loaded.patch_names):
        assert loaded.patch(i).patch_names == (name,)
        assert loaded.patch(i).members(0).tolist() == loaded.observations.members(i).tolist() == SILOS[name]
    assert lograb.generate("karate").patch(0).patch_names is None


def test_names_that_are_not_distinct_are_noticed(saved, tmp_path):
    path = tmp_path / "x.lograb"
    lograb.generate("karate", patches={"aa": [0, 1], "ab": [2, 3]}).save(path)
    own = path.read_bytes()
    lies = [(own, "patches/names", np.frombuffer(b"abab", dtype=np.uint8)),
            (own, "patches/names", np.frombuffer(b"ab\xffa", dtype=np.uint8)),
            (saved, "nodes/names", np.full(len("member-") * 34 + 58, 65, dtype=np.uint8))]  # fmt: skip
    for content, name, array in lies:
        path.write_bytes(repack(content, replace_array(name, array)))
        with pytest.raises(ArchiveError) as error:
            verify(path)
        assert error.value.member == f"{name}.npy"


def _write_forever(path, stage, started):
    tables = lograb.generate("karate").tables
    if stage == "packing":  # the file under its temporary name grows and grows
        writer._Column.blocks = lambda self: iter(lambda: started.set() or bytes(1 << 16), None)
        writer._Column.describe = lambda self: (_MEMBER, 0)
    with Writer(path) as target:
        target.append(tables)
        if stage == "packing":
            target.finish(lograb.generate("karate").manifest)
        started.set()
        while True:
            target.append(tables)


_MEMBER = manifest.Member(dtype="<i8", shape=(1,), bytes=8, sha256="0" * 64, blocks=("0" * 64,))


@pytest.mark.parametrize("stage", ["collecting", "packing"])
def test_killed_writer_leaves_no_half_file_and_nothing_for_good(tmp_path, saved, stage):
    path = tmp_path / "x.lograb"
    path.write_bytes(saved)
    context = multiprocessing.get_context("spawn")
    started = context.Event()
    process = context.Process(target=_write_forever, args=(path, stage, started))
    process.start()
    assert started.wait(60)
    lograb.generate_file("karate", tmp_path / "other.lograb")  # who writes beside it takes nothing from it
    left = [name for name in os.listdir(tmp_path) if name.startswith(".")]
    assert len(left) == (stage == "packing")
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert path.read_bytes() == saved
    lograb.generate_file("karate", tmp_path / "other.lograb")
    assert sorted(os.listdir(tmp_path)) == ["other.lograb", "x.lograb"]


def test_only_archives_are_replaced(tmp_path, saved):
    own = tmp_path / "friends.csv"
    own.write_text("a,b\n")
    (tmp_path / "old.lograb").write_bytes(saved)
    (tmp_path / "link.lograb").symlink_to(tmp_path / "old.lograb")
    os.mkfifo(tmp_path / "pipe")
    for bad in (own, tmp_path / "pipe", tmp_path):
        with pytest.raises(LograbError):
            lograb.generate_file("karate", bad)
    with pytest.raises(LograbError, match="file of the source"):
        lograb.generate_file(own, own)
    assert own.read_text() == "a,b\n"
    sha256 = lograb.generate_file("karate", tmp_path / "link.lograb", seed=5)
    assert (tmp_path / "link.lograb").is_symlink()
    assert hashlib.sha256((tmp_path / "old.lograb").read_bytes()).hexdigest() == sha256


def test_full_disk_is_a_clear_error_and_leaves_nothing(tmp_path, monkeypatch):
    def full(self, array):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer._Column, "append", full)
    with pytest.raises(LograbError, match="No space left"):
        lograb.generate_file("karate", tmp_path / "x.lograb")
    assert list(tmp_path.iterdir()) == []


def test_failed_writer_cleans_up(tmp_path):
    path = tmp_path / "x.lograb"
    with pytest.raises(LograbError), Writer(path) as target:
        target.append(lograb.generate("karate").tables)
        target.append(lograb.generate("karate", strategy="cluster").tables)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(LograbError, match="folder"):
        Writer(tmp_path)


def test_cut_and_join_are_inverse():
    many = lograb.generate("molecules", graph=3), lograb.generate("molecules", graph=4)
    joined = join([dict(i.tables) for i in many])
    for number, one in enumerate(many):
        piece = cut(joined, "graph", number, number + 1)
        assert piece.keys() == one.tables.keys()
        assert all(np.array_equal(piece[n], one.tables[n], equal_nan=True) for n in piece)


def test_graphs_with_different_columns_are_not_joined():
    one, two = (lograb.generate("karate", eigenvalues=shared).tables for shared in (True, False))
    for pieces in ((one, two), (two, one)):
        with pytest.raises(LograbError, match="differ in observations/next_values, observations/values"):
            join(pieces)


def test_every_column_has_a_meaning():
    assert all(rule.meaning for rule in RULES.values())
