from __future__ import annotations

import gzip
import hashlib
import io
import os
import pickle
import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from lograb.errors import LograbError, MissingExtraError
from lograb.graphs.catalog import DATASETS
from lograb.graphs.fetch import fetch
from lograb.graphs.public import blogcatalog, lrgb, ogb, planetoid, tu
from lograb.graphs.sources import load_graph, load_graphs
from lograb.spec import Origin

ORIGIN = Origin(source="test", kind="public")


def have(path: Path) -> Path:
    if not path.exists():
        pytest.skip(f"the mirror has no {path.name}")
    return path


@pytest.mark.parametrize(("name", "folder"), [
    ("cora", "planetoid/Cora"), ("citeseer", "planetoid/CiteSeer"), ("pubmed", "planetoid/PubMed"),
    ("blogcatalog", "blogcatalog"), ("blogcatalog-attributed", "blogcatalog-attributed"),
    ("proteins", "tu/PROTEINS"), ("msrc-21", "tu/MSRC_21"), ("ogbn-arxiv", "ogb/ogbn_arxiv"),
])
def test_real_data_have_the_size_in_the_catalog(mirror: Path, name: str, folder: str) -> None:
    have(mirror / folder)
    dataset = DATASETS[name]
    assert dataset.locate() == "mirror"
    n_graphs = n_nodes = n_edges = n_classes = 0
    for graph in load_graphs(name):
        n_graphs, n_nodes, n_edges = n_graphs + 1, n_nodes + graph.n_nodes, n_edges + graph.n_edges
        assert graph.labels is not None
        several = graph.labels.ndim == 2
        n_classes = max(n_classes, graph.labels.shape[1] if several else graph.labels.max() + 1)
        if graph.features is not None:
            assert graph.features.shape[1] == dataset.n_features
    assert (n_graphs, n_nodes, n_edges) == (dataset.n_graphs, dataset.n_nodes, dataset.n_edges)
    assert n_classes == dataset.n_classes
    assert graph.origin.source == name
    assert (graph.origin.licence, graph.origin.url) == (dataset.licence, dataset.url)
    assert graph.name == (name if n_graphs == 1 else f"{name}/{n_graphs - 1}")


def test_cora_is_complete(mirror: Path) -> None:
    have(mirror / "planetoid/Cora")
    cora = load_graph("cora")
    assert cora.features.shape == (2708, 1433)
    assert cora.features.dtype == np.float32
    assert set(np.unique(cora.features.data)) == {1.0}
    assert np.bincount(cora.labels).tolist() == [351, 217, 418, 818, 426, 298, 180]
    lines = sorted(f"{hashlib.sha256((mirror / f.path).read_bytes()).hexdigest()}  {f.path}\n"
                   for f in planetoid.raw_files("cora"))
    assert cora.origin.sha256 == hashlib.sha256("".join(lines).encode()).hexdigest()


def test_neighbours_in_cora_mostly_share_a_class(mirror: Path) -> None:
    # Rows of tx under the wrong nodes would bring this far below its known value of 0.81.
    have(mirror / "planetoid/Cora")
    cora = load_graph("cora")
    u, w = cora.edges.T
    assert (cora.labels[u] == cora.labels[w]).mean() == pytest.approx(0.81, abs=0.005)
    tested = u >= 1708
    assert (cora.labels[u] == cora.labels[w])[tested].mean() > 0.75


def test_citeseer_nodes_without_a_row_are_empty(mirror: Path) -> None:
    have(mirror / "planetoid/CiteSeer")
    citeseer = load_graph("citeseer")
    unknown = np.flatnonzero(citeseer.labels == -1)
    assert len(unknown) == 15
    assert citeseer.features[unknown].nnz == 0
    assert unknown.min() >= 2312


def test_neighbours_in_pubmed_mostly_share_a_class(mirror: Path) -> None:
    have(mirror / "planetoid/PubMed")
    pubmed = load_graph("pubmed")
    u, w = pubmed.edges.T
    assert (pubmed.labels[u] == pubmed.labels[w]).mean() == pytest.approx(0.80, abs=0.005)
    tested = w >= 18717
    assert (pubmed.labels[u] == pubmed.labels[w])[tested].mean() > 0.75
    assert pubmed.features.shape == (19717, 500)
    assert pubmed.notices == ()


def test_pubmed_without_features_says_so(mirror: Path, own_mirror: Path) -> None:
    source = have(mirror / "pubmed-structure")
    shutil.copytree(source, own_mirror / "pubmed-structure")
    pubmed = load_graph("pubmed")
    assert pubmed.features is None
    assert "features" in pubmed.notices[0]
    assert "structure" in pubmed.origin.revision


def test_a_changed_file_in_the_mirror_is_refused(own_mirror: Path) -> None:
    for file in planetoid.raw_files("cora"):
        path = own_mirror / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"changed")
    with pytest.raises(LograbError, match=planetoid.CHECKSUMS["cora.allx"]):
        load_graph("cora")


@pytest.fixture
def tiny_pubmed(own_mirror: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror with a PubMed of five nodes, which the pinned checksums would refuse."""
    monkeypatch.setattr(planetoid, "CHECKSUMS", {})
    write_pubmed(own_mirror)
    return own_mirror


def write_pubmed(mirror: Path) -> None:
    """Write five nodes in Planetoid's format: 0, 1 known, 2 and 4 tested, 3 without a row."""
    content = {
        "allx": sp.csr_matrix(np.array([[1.0, 0.5], [0, 2]])),
        "ally": np.array([[1, 0], [0, 1]], dtype=np.int32),
        "tx": sp.csr_matrix(np.array([[4.0, 0], [0, 3]])),
        "ty": np.array([[0, 1], [1, 0]], dtype=np.int32),
        "graph": defaultdict(list, {0: [1, 1, 0], 1: [0, 4], 2: [4], 3: [], 4: [1, 2]}),
    }
    folder = mirror / "planetoid/PubMed/raw"
    folder.mkdir(parents=True)
    for part, value in content.items():
        (folder / f"ind.pubmed.{part}").write_bytes(pickle.dumps(value, 2))
    (folder / "ind.pubmed.test.index").write_text("4\n2\n")


def test_planetoid_format(tiny_pubmed: Path) -> None:
    assert DATASETS["pubmed"].locate() == "mirror"
    graph = load_graph("pubmed")
    assert graph.edges.tolist() == [[0, 1], [1, 4], [2, 4]]
    assert graph.features.toarray().tolist() == [[1, 0.5], [0, 2], [0, 3], [0, 0], [4, 0]]
    assert graph.labels is not None
    assert graph.labels.tolist() == [0, 1, 0, -1, 1]
    assert graph.notices == ()


def test_full_pubmed_wins_over_its_structure(tiny_pubmed: Path) -> None:
    (tiny_pubmed / "pubmed-structure").mkdir()
    (tiny_pubmed / "pubmed-structure/pubmed.npz").write_bytes(b"not even read")
    assert load_graph("pubmed").features is not None


def test_planetoid_test_index_must_fit(tiny_pubmed: Path) -> None:
    (tiny_pubmed / "planetoid/PubMed/raw/ind.pubmed.test.index").write_text("4\n1\n")
    with pytest.raises(LograbError, match=r"test\.index"):
        load_graph("pubmed")


def test_planetoid_pickles_cannot_execute(tiny_pubmed: Path, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "executed"),)

    (tiny_pubmed / "planetoid/PubMed/raw/ind.pubmed.graph").write_bytes(pickle.dumps({0: [Evil()]}, 2))
    with pytest.raises(LograbError, match=r"ind\.pubmed\.graph.*mkdir"):
        load_graph("pubmed")
    assert not (tmp_path / "executed").exists()


def write_tu(folder: Path, **changed: str) -> dict[str, Path]:
    content = {"A": "2, 1\n1, 2\n4, 5\n5, 4\n3, 2\n2, 3\n", "graph_indicator": "1\n1\n1\n2\n2\n",
               "graph_labels": "1\n2\n", "node_labels": "0\n2\n1\n1\n0\n",
               "node_attributes": " 1.5\n2\n3\n4\n5\n", **changed}
    for part, text in content.items():
        (folder / part).write_text(text)
    return {part: folder / part for part in content}


def test_tu_format(tmp_path: Path) -> None:
    first, second = tu.read_tu("tiny", write_tu(tmp_path), ORIGIN)
    assert first.edges.tolist() == [[0, 1], [1, 2]]
    assert second.edges.tolist() == [[0, 1]]
    assert [first.name, second.name] == ["tiny/0", "tiny/1"]
    assert second.labels is not None
    assert second.labels.tolist() == [1, 0]
    assert first.features.tolist() == [[1.5], [2], [3]]


def test_tu_without_attributes_and_with_gaps_in_its_labels(tmp_path: Path) -> None:
    parts = write_tu(tmp_path, node_labels="7\n2\n7\n9\n2\n")
    del parts["node_attributes"]
    first, second = tu.read_tu("tiny", parts, ORIGIN)
    assert first.features is None
    assert [graph.labels.tolist() for graph in (first, second)] == [[1, 0, 1], [2, 0]]


@pytest.mark.parametrize(("part", "text", "problem"), [
    ("A", "1, 4\n", "same graph"), ("A", "1, 6\n", "from 1 to 5"), ("A", "1, x\n", "numbers"),
    ("graph_indicator", "1\n2\n1\n2\n2\n", "rise"), ("graph_indicator", "1\n1\n1\n2\n3\n", "rise"),
    ("node_labels", "0\n", "as many labels"),
])
def test_tu_inconsistencies_are_refused(tmp_path: Path, part: str, text: str, problem: str) -> None:
    with pytest.raises(LograbError, match=problem):
        list(tu.read_tu("tiny", write_tu(tmp_path, **{part: text}), ORIGIN))


@pytest.fixture
def unpinned_ogb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files of our own pass for OGB's."""
    monkeypatch.setattr(ogb, "FILES", {part: replace(file, sha256="") for part, file in ogb.FILES.items()})


def write_ogb(mirror: Path, *parts: str) -> None:
    content = {"edge": "0,1\n1,0\n2,1\n2,2\n", "node-feat": "0.5,-1\n1e-3,2\n3,4\n",
               "node-label": "4\n0\n39\n"}
    for part in parts:
        path = mirror / ogb.FILES[part].path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content[part].encode()))


@pytest.mark.usefixtures("unpinned_ogb")
def test_ogb_format(own_mirror: Path) -> None:
    write_ogb(own_mirror, *ogb.FILES)
    assert DATASETS["ogbn-arxiv"].locate() == "mirror"
    graph = load_graph("ogbn-arxiv")
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    np.testing.assert_array_equal(graph.features, np.array([[0.5, -1], [1e-3, 2], [3, 4]], dtype=np.float32))
    assert graph.labels is not None
    assert graph.labels.tolist() == [4, 0, 39]
    assert graph.notices == (ogb.DIRECTED,)
    path = own_mirror / ogb.FILES["edge"].path
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(LograbError, match="gzip"):
        load_graph("ogbn-arxiv")


@pytest.mark.usefixtures("unpinned_ogb")
def test_ogb_without_features_says_so(own_mirror: Path) -> None:
    write_ogb(own_mirror, "edge", "node-label")
    assert DATASETS["ogbn-arxiv"].locate() == "mirror"
    graph = load_graph("ogbn-arxiv")
    assert graph.features is None
    assert graph.n_nodes == 3
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert ogb.NO_FEATURES in graph.notices
    assert "structure" in graph.origin.revision
    (own_mirror / ogb.FILES["node-label"].path).unlink()
    assert DATASETS["ogbn-arxiv"].locate() == "download"


def test_mat_format(tmp_path: Path) -> None:
    network = sp.csc_matrix(np.array([[0, 1, 0], [1, 0, 2], [0, 0, 5]], dtype=float))
    group = sp.csc_matrix(np.array([[1, 0], [1, 1], [0, 0]], dtype=float))
    scipy.io.savemat(tmp_path / "b.mat", {"network": network, "group": group})
    graph = blogcatalog.read_mat("b", tmp_path / "b.mat", ORIGIN)
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.labels is not None
    assert graph.labels.tolist() == [[1, 0], [1, 1], [0, 0]]
    scipy.io.savemat(tmp_path / "b.mat", {"network": network})
    with pytest.raises(LograbError, match="'group'"):
        blogcatalog.read_mat("b", tmp_path / "b.mat", ORIGIN)


@pytest.mark.parametrize("separator", [" ", "\t", ","])
def test_attributed_blogcatalog_in_its_publishers_format(own_mirror: Path, separator: str) -> None:
    folder = own_mirror / "attributed/blogcatalog/raw"
    folder.mkdir(parents=True)
    features = sp.csr_matrix(np.array([[0, 2, 0], [1, 0, 0], [0, 0, 3]]))
    sp.save_npz(folder / "attrs.npz", features)
    (folder / "edgelist.txt").write_text("".join(f"{u}{separator}{w}\n" for u, w in [(0, 1), (1, 0), (2, 1)]))
    (folder / "labels.txt").write_text("0 1\n1 6\n2 3\n")
    graph = load_graph("blogcatalog-attributed")
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.features.dtype == np.float32
    assert graph.features.toarray().tolist() == features.toarray().tolist()
    assert graph.labels is not None
    assert graph.labels.tolist() == [0, 5, 2]


def test_attributed_blogcatalog_refuses_pickled_features(own_mirror: Path) -> None:
    folder = own_mirror / "attributed/blogcatalog/raw"
    folder.mkdir(parents=True)
    for name in ("edgelist.txt", "labels.txt"):
        (folder / name).write_text("0 1\n")
    np.savez(folder / "attrs.npz", data=np.array([{}], dtype=object), format=np.array("csr"))
    with pytest.raises(LograbError, match=r"attrs\.npz"):
        load_graph("blogcatalog-attributed")


def test_lrgb_asks_for_the_extra_before_it_downloads(own_mirror: Path) -> None:
    code = ("import sys; sys.modules['torch'] = None\n"
            "from lograb.graphs.sources import load_graph\n"
            "load_graph('pascalvoc-sp', graph=0)")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert MissingExtraError.__name__ in run.stderr
    assert "the extra 'gnn'" in run.stderr


@pytest.mark.parametrize("name", ["pascalvoc-sp", "coco-sp"])
@pytest.mark.parametrize("listed", [True, False])
def test_superpixels_in_lrgbs_format(own_mirror: Path, name: str, listed: bool) -> None:
    torch = pytest.importorskip("torch")
    (own_mirror / f"lrgb/{name}/raw").mkdir(parents=True)
    for i, split in enumerate(("train", "val", "test")):
        x = torch.arange(42, dtype=torch.float64).reshape(3, 14) + i
        # A slice: its storage is larger than the tensor, as it happens in released files.
        edge_index = torch.tensor([[9, 0, 1, 1, 2], [9, 1, 0, 2, 1]])[:, 1:]
        y: Any = [0, 13, 90] if name == "coco-sp" else [0, 13, 20]
        items = [(x, torch.ones(4, 2), edge_index, y if listed else torch.tensor(y))] * (i + 1)
        (own_mirror / f"lrgb/{name}/raw/{split}.pickle").write_bytes(pickle.dumps(items))
    graphs = list(load_graphs(name))
    assert [graph.name for graph in graphs] == [f"{name}/{i}" for i in range(6)]
    assert graphs[0].edges.tolist() == [[0, 1], [1, 2]]
    assert [graph.features[0, 0] for graph in graphs] == [0, 1, 1, 2, 2, 2]
    assert graphs[0].features.dtype == np.float32
    assert graphs[0].labels is not None
    assert graphs[0].labels.tolist() == ([0, 12, 80] if name == "coco-sp" else [0, 13, 20])
    assert load_graph(name, graph=3).features[0, 0] == 2
    with pytest.raises(LograbError, match="ended before graph 6"):
        load_graph(name, graph=6)


def test_coco_labels_close_the_gaps() -> None:
    used = sorted(set(range(91)) - set(lrgb.UNUSED_COCO_IDS))
    assert lrgb._labels("coco-sp", used).tolist() == list(range(81))
    with pytest.raises(LograbError, match="category"):
        lrgb._labels("coco-sp", [0, 12])


@pytest.mark.parametrize(("name", "suffix"), [("pascalvoc-sp", "pickle"), ("pcqm-contact", "pt")])
def test_tensors_that_repeat_one_number_are_refused(own_mirror: Path, name: str, suffix: str) -> None:
    torch = pytest.importorskip("torch")
    (own_mirror / f"lrgb/{name}/raw").mkdir(parents=True)
    item = (torch.ones(3, 2), torch.ones(1), torch.zeros(1, dtype=torch.int64).expand(2, 2**40), torch.ones(3))
    for split in ("train", "val", "test"):
        with (own_mirror / f"lrgb/{name}/raw/{split}.{suffix}").open("wb") as file:
            if suffix == "pickle":
                pickle.dump([item], file)
            else:
                torch.save([(*item, torch.ones(1))], file)
    with pytest.raises(LograbError, match="claims 17592186044416 bytes"):
        next(iter(load_graphs(name)))


def test_pcqm_contact_in_lrgbs_format(own_mirror: Path) -> None:
    torch = pytest.importorskip("torch")
    (own_mirror / "lrgb/pcqm-contact/raw").mkdir(parents=True)
    edge_index = torch.tensor([[0, 1], [1, 0]])
    item = (torch.ones(3, 9, dtype=torch.int64), torch.ones(2, 3), edge_index, edge_index, torch.ones(2))
    for split in ("train", "val", "test"):
        torch.save([item], own_mirror / f"lrgb/pcqm-contact/raw/{split}.pt")
    graphs = list(load_graphs("pcqm-contact"))
    assert len(graphs) == 3
    assert graphs[2].n_edges == 1
    assert graphs[2].features.shape == (3, 9)
    assert graphs[2].labels is None


class MakesFolder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("way", ["plain", "nested", "pt"])
def test_lrgb_files_cannot_execute(own_mirror: Path, tmp_path: Path, way: str) -> None:
    torch = pytest.importorskip("torch")
    evil: Any = MakesFolder(tmp_path / "executed")
    name = "pcqm-contact" if way == "pt" else "pascalvoc-sp"
    if way == "nested":  # a storage that is itself a torch file with a call in it
        buffer = io.BytesIO()
        torch.save(evil, buffer)
        evil = _Stored(buffer.getvalue())
    for file in lrgb.raw_files(name):
        path = own_mirror / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if way == "pt":
            torch.save([evil], path)
        else:
            path.write_bytes(pickle.dumps([evil]))
    with pytest.raises(LograbError, match="train"):
        next(load_graphs(name))
    assert not (tmp_path / "executed").exists()


class _Stored:
    def __init__(self, content: bytes) -> None:
        self.content = content

    def __reduce__(self) -> tuple[Any, ...]:
        from torch.storage import _load_from_bytes

        return _load_from_bytes, (self.content,)


PINNED = [*planetoid.raw_files("cora"), *planetoid.raw_files("citeseer"), *planetoid.raw_files("pubmed"),
          *tu.raw_files("proteins").values(), *tu.raw_files("msrc-21").values(),
          ogb.FILES["node-label"]]  # fmt: skip


@pytest.mark.parametrize("file", PINNED, ids=lambda file: file.path)
def test_publishers_files_are_pinned(mirror: Path, file: Any) -> None:
    assert file.sha256
    if (mirror / file.path).exists():
        assert fetch((file,)).paths[file.path] == mirror / file.path


def test_a_file_with_another_checksum_is_refused(own_mirror: Path) -> None:
    for file in PINNED:
        (own_mirror / file.path).parent.mkdir(parents=True, exist_ok=True)
        (own_mirror / file.path).write_bytes(b"else")
        with pytest.raises(LograbError, match="must have SHA-256"):
            fetch((file,))
