"""The two BlogCatalogs, which share a name and a website but not their nodes.

`blogcatalog` (Tang and Liu, 2009): 10,312 bloggers, each with some of 39 interests, no features;
a MATLAB file. `blogcatalog-attributed` (in the form released with Yang et al., "Scaling
Attributed Network Embedding to Massive Graphs", 2020): 5,196 bloggers, 8,189 features, 6 classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from lograb.arrays import load_arrays, read_arrays
from lograb.errors import LograbError
from lograb.graphs.dataset import UNSTATED, Dataset
from lograb.graphs.fetch import Place, RawFile, fetch, in_mirror, locate
from lograb.graphs.formats.npz import SCIPY_PARTS, scipy_matrix
from lograb.progress import Progress
from lograb.spec import Origin
from lograb.types import Graph, Matrix

URL = "http://leitang.net/social_dimension.html"
MAT = RawFile("blogcatalog/raw/blogcatalog.mat",
              "d4f4fb89ce1ccd4b7e2a183386c000773cc9362cc61f1be5b246a6d9c259da8f",
              "http://leitang.net/code/social-dimension/data/blogcatalog.mat")

ATTRIBUTED_URL = "https://arxiv.org/abs/2009.00826"
NPZ = RawFile("blogcatalog-attributed/blogcatalog.npz",
              "2ff34d64828c8a6ff5fea745e4f6ccf76b939ddd62c75a39adda61204f948758")
ARCHIVE = RawFile("attributed/blogcatalog.zip", url="https://docs.google.com/uc?export=download"
                  "&id=178PqGqh67RUYMMP6-SoRHDoIBh8ku5FS&confirm=t")
FILES = {part: RawFile(f"attributed/blogcatalog/raw/{part}", archive=ARCHIVE,
                       member=f"blogcatalog.attr/{part}")
         for part in ("attrs.npz", "edgelist.txt", "labels.txt")}


def load(progress: Progress | None = None) -> Iterator[Graph]:
    """Yield the BlogCatalog with 39 overlapping labels, as a 0/1 array (10312, 39)."""
    found = fetch((MAT,), progress)
    origin = Origin(source="blogcatalog", kind="public", revision="2009", sha256=found.sha256,
                    licence=UNSTATED, url=URL)
    yield read_mat("blogcatalog", found.paths[MAT.path], origin)


def load_attributed(progress: Progress | None = None) -> Iterator[Graph]:
    """Yield the BlogCatalog with features, a csr_array of float32.

    From the mirror's ``blogcatalog-attributed/blogcatalog.npz`` if it is there, otherwise from the
    files that PyTorch Geometric's ``AttributedGraphDataset(root="attributed")`` leaves behind.
    """
    files = (NPZ,) if in_mirror(NPZ) else tuple(FILES.values())
    found = fetch(files, progress)
    revision = "one npz file of plain arrays" if in_mirror(NPZ) else "attrs, edgelist, labels"
    origin = Origin(source="blogcatalog-attributed", kind="public", revision=revision, sha256=found.sha256,
                    licence=UNSTATED, url=ATTRIBUTED_URL)
    if in_mirror(NPZ):
        yield read_npz("blogcatalog-attributed", found.paths[NPZ.path], origin)
    else:
        paths = {part: found.paths[file.path] for part, file in FILES.items()}
        yield read_attributed("blogcatalog-attributed", paths, origin)


def read_mat(name: str, path: Path, origin: Origin) -> Graph:
    """Build a graph from the variables ``network`` and ``group`` of a MATLAB file."""
    from scipy.io import loadmat  # slow to import, and only needed here

    try:
        content = loadmat(path, variable_names=["network", "group"])
        network, group = _checked_csr(content["network"]), _checked_csr(content["group"])
    except Exception as error:  # the MATLAB reader raises many kinds of errors on a broken file
        raise LograbError(f"{path.name} must be a MATLAB file (version 4 to 7) with sparse matrices "
                          f"'network' and 'group'; got: {type(error).__name__}: {error}") from error
    if network.shape[0] != network.shape[1]:
        raise LograbError(f"'network' in {path.name} must be square, got shape {network.shape}")
    edges = np.stack(network.nonzero(), axis=1)
    labels = (group.toarray() != 0).astype(np.int8)
    return Graph.from_edges(name, network.shape[0], edges, labels=labels, origin=origin)


def read_npz(name: str, path: Path, origin: Origin) -> Graph:
    """Build a graph from an npz file with edges, labels and the parts of a CSR feature matrix."""
    a = read_arrays(path, ("edges", "y", "num_nodes", "x_data", "x_indices", "x_indptr", "x_shape"), NPZ.max_bytes)
    try:
        features = _checked_csr(sp.csr_array((a["x_data"].astype(np.float32), a["x_indices"], a["x_indptr"]),
                                             shape=tuple(int(n) for n in a["x_shape"])))
    except ValueError as error:
        raise LograbError(f"the features in {path.name} must form a CSR matrix; got: {error}") from error
    return Graph.from_edges(name, int(a["num_nodes"]), a["edges"], features=features,
                            labels=a["y"].astype(np.int64), origin=origin)


def read_attributed(name: str, paths: dict[str, Path], origin: Origin) -> Graph:
    """Build a graph from ``attrs.npz``, ``edgelist.txt`` and ``labels.txt`` (node, label from 1)."""
    try:
        with paths["attrs.npz"].open("rb") as file:
            arrays, _ = load_arrays(file, SCIPY_PARTS, FILES["attrs.npz"].max_bytes)
        features = _checked_csr(sp.csr_array(scipy_matrix(arrays))).astype(np.float32)
    except (ValueError, OSError, KeyError) as error:
        raise LograbError(f"attrs.npz must hold a scipy sparse matrix; got: {error}") from error
    edges, classes = _columns(paths["edgelist.txt"]), _columns(paths["labels.txt"])
    if len(classes) != features.shape[0] or (np.diff(classes[:, 0]) <= 0).any():
        raise LograbError(f"labels.txt must list {features.shape[0]} nodes in rising order, one label each, "
                          f"got {len(classes)} lines")
    return Graph.from_edges(name, features.shape[0], edges, features=features,
                            labels=classes[:, 1] - 1, origin=origin)


def _checked_csr(matrix: Any) -> Matrix:
    matrix.check_format(full_check=True)
    matrix = sp.csr_array(matrix)
    matrix.sum_duplicates()
    return matrix


def _columns(path: Path) -> npt.NDArray[np.int64]:
    """Read the first two columns of a file separated by commas, tabs or spaces."""
    try:
        with path.open(encoding="ascii") as lines:
            spaced = (line.replace(",", " ") for line in lines)
            return np.loadtxt(spaced, dtype=np.int64, usecols=(0, 1), ndmin=2)
    except ValueError as error:
        raise LograbError(f"{path.name} must have two columns of integers; got: {error}") from error


def place_attributed() -> Place:
    """Tell where the BlogCatalog with features would come from."""
    return "mirror" if in_mirror(NPZ) else locate(FILES.values())


DATASETS = (
    Dataset("blogcatalog", "BlogCatalog", "public", "friendships of bloggers with overlapping interests", 1,
            10312, 333983, 39, None, UNSTATED, URL, load, partial(locate, (MAT,))),
    Dataset("blogcatalog-attributed", "BlogCatalog (attributed)", "public",
            "bloggers who follow each other, with keywords of their blogs as features", 1, 5196, 171743, 6,
            8189, UNSTATED, ATTRIBUTED_URL, load_attributed, place_attributed),
)
