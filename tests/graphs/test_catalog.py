from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lograb.errors import LograbError
from lograb.graphs.catalog import DATASETS, find_dataset
from lograb.graphs.sources import count_graphs, load_graph, load_graphs
from lograb.types import Graph

NAMES = ["karate", "citation", "citation-170k", "superpixels", "molecules", "cora", "citeseer", "pubmed",
         "ogbn-arxiv", "blogcatalog", "blogcatalog-attributed", "proteins", "msrc-21", "pascalvoc-sp",
         "coco-sp", "pcqm-contact"]


def test_the_catalog_is_complete() -> None:
    assert set(DATASETS) == set(NAMES)
    for name, dataset in DATASETS.items():
        assert dataset.name == name
        assert dataset.licence
        assert bool(dataset.url) == (dataset.kind == "public")
        assert min(dataset.n_graphs, dataset.n_nodes, dataset.n_edges) > 0


def test_names_are_found_in_any_case() -> None:
    assert find_dataset("PascalVOC-SP") is DATASETS["pascalvoc-sp"]
    assert find_dataset(" Cora") is DATASETS["cora"]


def test_an_unknown_name_suggests_a_known_one() -> None:
    with pytest.raises(LograbError, match="Did you mean 'citeseer'"):
        find_dataset("citeser")


def test_built_in_graphs_need_no_place(own_mirror: Path) -> None:
    assert {d.locate() for d in DATASETS.values() if d.kind == "built-in"} == {"built in"}
    assert {d.locate() for d in DATASETS.values() if d.kind == "public"} == {"download"}


def test_listing_imports_neither_torch_nor_generators() -> None:
    code = ("import sys; from lograb.graphs.catalog import DATASETS\n"
            "for dataset in DATASETS.values(): dataset.locate()\n"
            "print({'torch', 'scipy.io', 'networkx', 'lograb.graphs.builtin'} & set(sys.modules))")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.strip() == "set()", run.stderr


@pytest.mark.parametrize("name", ["karate", "citation", "citation-170k", "superpixels", "molecules"])
def test_built_in_graphs_have_the_size_in_the_catalog(name: str) -> None:
    dataset = DATASETS[name]
    n_graphs = n_nodes = n_edges = 0
    for graph in load_graphs(name):
        n_graphs, n_nodes, n_edges = n_graphs + 1, n_nodes + graph.n_nodes, n_edges + graph.n_edges
        assert (graph.labels is None) == (dataset.n_classes is None)
        assert (graph.features.shape[1] if graph.features is not None else None) == dataset.n_features
        assert graph.origin.source == name
    assert (n_graphs, n_nodes, n_edges) == (dataset.n_graphs, dataset.n_nodes, dataset.n_edges)


def test_a_collection_needs_an_index(mirror: Path) -> None:
    with pytest.raises(LograbError, match=r"1113 graphs.*--graph"):
        load_graph("proteins")
    assert load_graph("PROTEINS", graph=3).name == "proteins/3"
    assert count_graphs("proteins") == 1113


@pytest.mark.parametrize("index", [-1, 1113])
def test_an_index_out_of_range_is_refused_before_reading(index: int, own_mirror: Path) -> None:
    with pytest.raises(LograbError, match=f"0 to 1112, got {index}"):
        load_graph("proteins", graph=index)


def test_a_single_graph_has_index_0(mirror: Path) -> None:
    assert load_graph("cora", graph=0).n_edges == 5278
    with pytest.raises(LograbError, match="0 to 0, got 1"):
        load_graph("cora", graph=1)


def test_a_graph_is_its_own_source() -> None:
    graph = Graph.from_edges("mine", 2, [(0, 1)])
    assert load_graph(graph) is graph
    assert list(load_graphs(graph)) == [graph]
    assert count_graphs(graph) == 1


def test_a_name_wins_over_a_file(mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cora").write_text("0 1\n")
    assert load_graph("cora").n_nodes == 2708


def test_files_and_objects_go_to_their_readers(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("0,1\n")
    for source in (str(path), path):
        assert load_graph(source).origin.kind == "file"
        assert load_graph(source).edges.tolist() == [[0, 1]]
    assert load_graph(np.eye(2)[::-1]).origin.kind == "memory"
    graph = Graph.from_edges("mine", 2, [(0, 1)])
    assert load_graph(graph) is graph
    with pytest.raises(LograbError, match="builtins.dict"):
        load_graph({0: [1]})


@pytest.mark.parametrize("text", ["missing.csv", "folder/missing", "./missing"])
def test_what_looks_like_a_path_is_a_missing_file(text: str) -> None:
    with pytest.raises(LograbError, match="no such file"):
        load_graph(text)


def test_what_looks_like_a_name_is_an_unknown_name() -> None:
    with pytest.raises(LograbError, match="unknown dataset 'karaté'"):
        load_graph("karaté")


def test_a_folder_is_no_graph(tmp_path: Path) -> None:
    with pytest.raises(LograbError, match="folder"):
        load_graph(tmp_path)
