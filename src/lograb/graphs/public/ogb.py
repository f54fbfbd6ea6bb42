"""ogbn-arxiv as the Open Graph Benchmark releases it: compressed CSV files (Hu et al., 2020)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lograb.errors import LograbError
from lograb.graphs.dataset import Dataset
from lograb.graphs.fetch import Place, RawFile, fetch, in_mirror, locate
from lograb.graphs.gunzip import gunzip
from lograb.progress import Progress
from lograb.spec import Origin
from lograb.types import Graph

URL = "https://ogb.stanford.edu/docs/nodeprop/"
LICENCE = "ODC-BY"
MAX_LINE = 1 << 20
ARCHIVE = RawFile("ogb/arxiv.zip", url="https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip")
CHECKSUMS = {"node-label": "b06e7cf75d909de66ce49bc4188a6dc525224f85dd6dcb36137de3d9321830d1"}
FILES = {part: RawFile(f"ogb/ogbn_arxiv/raw/{part}.csv.gz", CHECKSUMS.get(part, ""), archive=ARCHIVE,
                       member=f"arxiv/raw/{part}.csv.gz")
         for part in ("edge", "node-label", "node-feat")}
DIRECTED = "edges are directed in the source; an edge in either direction counts"
NO_FEATURES = ("ogbn-arXiv's features are missing: the mirror has its structure and labels only; "
               "for the features, add the publisher's node-feat.csv.gz beside them")


def load(progress: Progress | None = None) -> Iterator[Graph]:
    """Yield the one graph; reading its features takes some seconds and about 100 MB."""
    files = _files()
    found = fetch(tuple(files.values()), progress)
    revision = "v1" if "node-feat" in files else "v1; structure and labels only"
    origin = Origin(source="ogbn-arxiv", kind="public", revision=revision, sha256=found.sha256,
                    licence=LICENCE, url=URL)
    yield read_ogb("ogbn-arxiv", {part: found.paths[file.path] for part, file in files.items()}, origin)


def place() -> Place:
    """Tell where the dataset would come from."""
    return locate(_files().values())


def _files() -> dict[str, RawFile]:
    """Leave the features out where the mirror has all but them."""
    structure = {part: file for part, file in FILES.items() if part != "node-feat"}
    alone = all(map(in_mirror, structure.values())) and locate((FILES["node-feat"],)) == "download"
    return structure if alone else FILES


def read_ogb(name: str, parts: dict[str, Path], origin: Origin) -> Graph:
    """Build a graph from OGB's edge, label and, if there, feature files; a label that is not a number is -1."""
    edges = _table(parts["edge"], np.int64)
    values = _table(parts["node-label"], np.float64)[:, 0]
    features = _table(parts["node-feat"], np.float32) if "node-feat" in parts else None
    if edges.shape[1] != 2:
        raise LograbError(f"{parts['edge'].name} must have two columns, got {edges.shape[1]}")
    labels = np.where(np.isnan(values), -1, values).astype(np.int64)
    notices = (DIRECTED,) if features is not None else (DIRECTED, NO_FEATURES)
    return Graph.from_edges(name, len(labels), edges, features=features, labels=labels, origin=origin,
                            notices=notices)


def _table(path: Path, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    try:
        return np.loadtxt(_lines(path), dtype=dtype, delimiter=",", ndmin=2)
    except (ValueError, OSError) as error:
        raise LograbError(f"{path.name} must be a gzip file of numbers separated by commas; "
                          f"got: {str(error)[:200]}") from error


def _lines(path: Path) -> Iterator[bytes]:
    rest = b""
    for piece in gunzip(path.read_bytes(), ARCHIVE.max_bytes):
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > MAX_LINE:
            raise LograbError(f"a line must have at most {MAX_LINE} bytes, got more")
        yield from lines
    yield rest


DATASETS = (
    Dataset("ogbn-arxiv", "ogbn-arXiv", "public",
            "citations between computer-science papers; about: 1,166,243 edges before directions are merged",
            1, 169343, 1157799, 40, 128, LICENCE, URL, load, place),
)
