"""Small files that claim, or unpack to, more than any graph: refused in time, with the remedy."""

from __future__ import annotations

import gzip
import io
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from lograb.errors import LograbError
from lograb.graphs.files import read_graph
from lograb.graphs.gunzip import gunzip
from lograb.graphs.public import ogb
from lograb.limits import DEFAULT, max_bytes
from lograb.spec import Origin

EDGES = np.array([[0, 1]])


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_the_variable_sets_the_limit_and_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOGRAB_MAX_BYTES", raising=False)
    assert max_bytes() == DEFAULT == 2**28
    assert max_bytes(at_least=5) == 5
    monkeypatch.setenv("LOGRAB_MAX_BYTES", "1000")
    assert max_bytes() == 1000
    assert (max_bytes(at_least=5), max_bytes(at_least=5000)) == (1000, 5000)
    for wrong in ("0", "-1", "1e9", "2 GB", "²", "9" * 5000):
        monkeypatch.setenv("LOGRAB_MAX_BYTES", wrong)
        with pytest.raises(LograbError, match="LOGRAB_MAX_BYTES must be a whole number"):
            max_bytes()


def test_a_gz_bomb_is_refused_and_the_variable_raises_the_limit(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "g.csv.gz", gzip.compress(b"a,b\n" * 100_000))
    monkeypatch.setenv("LOGRAB_MAX_BYTES", "399999")
    with pytest.raises(LograbError, match="may unpack to 399999 bytes.*LOGRAB_MAX_BYTES"):
        read_graph(path)
    monkeypatch.setenv("LOGRAB_MAX_BYTES", "400000")
    assert read_graph(path).n_edges == 1


def test_a_gibibyte_in_a_megabyte_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "g.csv.gz", gzip.compress(b"1,2\n" * 2**22) * 64)
    assert path.stat().st_size < 2**21
    with pytest.raises(LograbError, match="may unpack to"):
        read_graph(path)


def test_many_empty_members_are_refused_in_time(tmp_path: Path) -> None:
    path = write(tmp_path, "g.csv.gz", gzip.compress(b"") * 400_000)
    start = time.perf_counter()
    with pytest.raises(LograbError, match="members"):
        read_graph(path)
    assert time.perf_counter() - start < 20  # two minutes, when each member copied what follows it


@pytest.mark.parametrize("size", [1, 500, 600, 70_000, 3_000_000])
def test_members_and_padding_are_put_together(size: int) -> None:
    parts = [np.random.default_rng(i).bytes(size) for i in range(3)]
    data = b"".join(gzip.compress(part) + bytes(100 * i) for i, part in enumerate(parts))
    assert b"".join(gunzip(data, 10**7)) == b"".join(parts)
    with pytest.raises(LograbError, match="cut off"):
        list(gunzip(data[:-201], 10**7))
    with pytest.raises(LograbError, match="not a readable"):
        list(gunzip(data + b"more", 10**7))


def test_a_plain_file_has_the_same_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGRAB_MAX_BYTES", "7")
    assert read_graph(write(tmp_path, "g.csv", b"a,b\nb,c")).n_edges == 2
    with pytest.raises(LograbError, match="may have 7 bytes.*LOGRAB_MAX_BYTES"):
        read_graph(write(tmp_path, "g.csv", b"a,b\nb,cc"))


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a device without an end")
def test_a_device_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGRAB_MAX_BYTES", "1000000")
    (tmp_path / "g.csv").symlink_to("/dev/zero")
    with pytest.raises(LograbError, match="may have 1000000 bytes"):
        read_graph(tmp_path / "g.csv")


@pytest.mark.parametrize(("name", "content", "times"), [
    ("g.csv", b"1,2\n" + b"3\n" * 200_000, 60),
    ("g.csv", b'1,2\n"3","4"\n' + b"1,2\n" * 100_000, 50),
    ("g.csv", b"\n".join(b"%d,%d" % (i, i * 7919 % 99991) for i in range(30_000)), 60),
    ("g.mtx", b"%%MatrixMarket matrix coordinate pattern general\n9 9 1\n1 2\n" + b"\n" * 400_000, 6),
])
def test_reading_takes_as_much_memory_as_documented(tmp_path: Path, name: str, content: bytes, times: int) -> None:
    path = write(tmp_path, name, content)
    read_graph(path)  # what is imported and cached on first use does not count
    tracemalloc.start()
    try:
        read_graph(path)
        assert tracemalloc.get_traced_memory()[1] < times * len(content)
    finally:
        tracemalloc.stop()


def test_an_npz_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "g.npz", edges=np.zeros((100_000, 2), dtype=np.int64))
    monkeypatch.setenv("LOGRAB_MAX_BYTES", "1000000")
    with pytest.raises(LograbError, match="may unpack to 1000000 bytes.*LOGRAB_MAX_BYTES"):
        read_graph(tmp_path / "g.npz")


def npy(shape: tuple[int, ...], descr: str = "<i8", content: bytes = b"") -> bytes:
    """Write an array whose header claims what it likes."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue() + content


def box(folder: Path, packing: int = zipfile.ZIP_STORED, **members: bytes) -> Path:
    with zipfile.ZipFile(folder / "g.npz", "w", packing) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return folder / "g.npz"


PAIR = npy((1, 2), "<i8", EDGES.tobytes())
SIDES = npy((2,), "<i8", np.array([10**6, 10**6]).tobytes())
NUMBERS = np.arange(2**16).tobytes()


@pytest.mark.parametrize("members", [
    {"edges": PAIR, "num_nodes": npy((2**40, 0))},
    {"edges": PAIR, "num_nodes": npy((2**40,), "|S0")},
    {"edges": PAIR, "num_nodes": npy((2**40,), "|V0")},
    {"edges": PAIR, "y": npy((2**40, 0))},
    {"edges": npy((2**27, 2))},
    {"edges": npy((2**62, 2**62))},
    {"edges": npy((-1, 2))},
    {"format": npy((), "|S3", b"csr"), "shape": npy((2**40, 0)), "data": npy((1,), "<f8", bytes(8))},
    {"format": npy((), "|S3", b"bsr"), "shape": SIDES, "data": npy((5, 0, 2)), "indices": npy((0,)),
     "indptr": npy((1,), "<i8", bytes(8))},
    {"format": npy((), "|S3", b"dia"), "shape": SIDES, "data": npy((2**16, 0)),
     "offsets": npy((1,), "<i8", bytes(8))},
])
def test_claims_without_content_are_refused(tmp_path: Path, members: dict[str, bytes]) -> None:
    with pytest.raises(LograbError):
        read_graph(box(tmp_path, **members))


def test_diagonals_cost_what_they_hold(tmp_path: Path) -> None:
    # scipy lays out 65536 diagonals of a million columns each: minutes and gigabytes.
    start = time.perf_counter()
    graph = read_graph(box(tmp_path, format=npy((), "|S3", b"dia"), shape=SIDES, data=npy((2**16, 0), "<f8"),
                           offsets=npy((2**16,), "<i8", NUMBERS)))
    assert (graph.n_nodes, graph.n_edges) == (10**6, 0)
    assert time.perf_counter() - start < 20


@pytest.mark.parametrize("shape", [(2, 2**62), (2, 2 * 10**6), (2**62, 2)])
def test_features_may_not_claim_columns_without_entries(tmp_path: Path, shape: tuple[int, int]) -> None:
    np.savez(tmp_path / "g.npz", edges=EDGES, x_indptr=np.zeros(3, int), x_indices=np.zeros(0, int),
             x_data=np.zeros(0), x_shape=np.array(shape))
    with pytest.raises(LograbError, match="at most 1000000 rows and columns"):
        read_graph(tmp_path / "g.npz")


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packings_that_numpy_does_not_write_are_refused(tmp_path: Path, packing: int) -> None:
    with pytest.raises(LograbError, match="stored or deflated"):
        read_graph(box(tmp_path, packing, edges=PAIR))


def test_other_arrays_are_not_even_read(tmp_path: Path) -> None:
    graph = read_graph(box(tmp_path, edges=PAIR, more=b"not an array", **{f"a{i}": b"" for i in range(2000)}))
    assert graph.n_edges == 1
    assert "arrays ignored: a0, a1" in graph.notices[0]


def ogb_files(folder: Path, edges: bytes) -> dict[str, Path]:
    content = {"edge": edges, "node-feat": gzip.compress(b"1\n2\n"), "node-label": gzip.compress(b"0\n1\n")}
    return {part: write(folder, f"{part}.csv.gz", data) for part, data in content.items()}


@pytest.mark.parametrize(("edges", "problem"), [
    (gzip.compress(b"0," + b"0" * 2**21), "a line must have at most"),
    (gzip.compress(b"") * 400_000, "members"),
    (b"\x1f\x8b", "cut off"),
])
def test_a_publishers_gz_file_is_not_trusted_either(tmp_path: Path, edges: bytes, problem: str) -> None:
    with pytest.raises(LograbError, match=f"edge.csv.gz must be a gzip file.*{problem}"):
        ogb.read_ogb("tiny", ogb_files(tmp_path, edges), Origin(source="test", kind="public"))


def test_real_files_are_far_below_the_limits(mirror: Path) -> None:
    path = mirror / "ogb/ogbn_arxiv/raw/edge.csv.gz"
    if not path.exists():
        pytest.skip("the mirror has no ogbn-arXiv")
    assert sum(map(len, gunzip(path.read_bytes(), DEFAULT))) < DEFAULT / 10
