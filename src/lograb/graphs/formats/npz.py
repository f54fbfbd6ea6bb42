"""NumPy archives (.npz): a sparse matrix saved by scipy, or arrays under known names.

Arrays: ``edges`` (m, 2) or ``edge_index`` (2, m); optionally ``num_nodes``, ``x`` or ``features``
(n, f), or sparse features as ``x_indptr``, ``x_indices``, ``x_data``, ``x_shape``; ``y`` or
``labels``. Without ``num_nodes`` and feature or label rows to count, the numbers are names as in an
edge list: nodes are those that occur. Nothing is ever unpickled.
"""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from lograb.errors import LograbError
from lograb.graphs.formats.simple import (
    RawGraph,
    as_pairs,
    check_claimed_size,
    check_features,
    check_ids,
    check_labels,
    numbered,
    read_matrix,
)

Arrays = dict[str, npt.NDArray[Any]]

_SPARSE_PARTS = ("x_indptr", "x_indices", "x_data", "x_shape")
_KNOWN = {"edges", "edge_index", "num_nodes", "x", "features", "y", "labels", *_SPARSE_PARTS}


def read_npz(data: bytes, max_bytes: int) -> RawGraph:
    """Read an archive that unpacks to at most `max_bytes`."""
    arrays = _load_arrays(data, max_bytes)
    if {"format", "shape", "data"} <= arrays.keys():
        return read_matrix(_scipy_matrix(arrays))
    if ("edges" in arrays) == ("edge_index" in arrays):
        raise LograbError("an .npz graph needs either 'edges' (m, 2) or 'edge_index' (2, m), or a matrix saved "
                          f"by scipy.sparse.save_npz, got: {', '.join(sorted(arrays)) or 'no arrays'}")
    if "edges" in arrays:
        pairs, listed_once = as_pairs(arrays["edges"], "'edges'"), True
    else:
        pairs, listed_once = as_pairs(arrays["edge_index"].T, "'edge_index'"), False
    features, labels = _features(arrays), _one_of(arrays, "y", "labels")
    n_nodes = _claimed_nodes(arrays, features, labels)
    node_names = None
    if n_nodes is None:
        pairs, node_names = numbered(pairs)
        n_nodes = int(pairs.max(initial=-1)) + 1
    check_claimed_size(n_nodes, len(pairs) + sum(array.size for array in arrays.values()))
    check_ids(pairs, n_nodes)
    unknown = sorted(set(arrays) - _KNOWN)
    return RawGraph(
        n_nodes, pairs, "once" if listed_once else "both", node_names=node_names,
        features=None if features is None else check_features(features, n_nodes),
        labels=None if labels is None else check_labels(labels, n_nodes),
        notices=(f"arrays ignored: {', '.join(unknown)[:120]}",) if unknown else ())


def _load_arrays(data: bytes, max_bytes: int) -> Arrays:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > max_bytes:
            raise LograbError(f"an .npz file of {len(data)} bytes may unpack to {max_bytes} bytes, "
                              f"got {size}")
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            arrays = {key: np.asarray(stored[key]) for key in stored.files}
    except LograbError:
        raise
    except Exception as error:  # zipfile, zlib and numpy raise many kinds for damaged files
        reason = "arrays of Python objects are not read" if "allow_pickle" in str(error) else str(error)
        raise LograbError(f"not a readable .npz file: {reason}") from None
    return arrays


def _scipy_matrix(arrays: Arrays) -> sp.coo_array:
    kind, shape = arrays["format"].item() if arrays["format"].size == 1 else "", arrays["shape"]
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    if shape.shape != (2,) or shape.dtype.kind not in "ui" or shape[0] != shape[1] or shape[0] < 0:
        raise LograbError(f"an adjacency matrix must be square, got shape {shape.tolist()}")
    n = int(shape[0])
    check_claimed_size(n, arrays["data"].size)
    try:
        if kind == "coo":
            ends = (arrays["row"], arrays["col"]) if "row" in arrays else tuple(arrays["coords"])
            return sp.coo_array((arrays["data"], ends), shape=(n, n))
        if kind in ("csr", "csc", "bsr"):
            build = {"csr": sp.csr_array, "csc": sp.csc_array, "bsr": sp.bsr_array}[kind]
            matrix = build((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(n, n))
            # Indices out of range would make the compiled code read foreign memory.
            matrix.check_format(full_check=True)
            return matrix.tocoo()
        if kind == "dia":
            return sp.dia_array((arrays["data"], arrays["offsets"]), shape=(n, n)).tocoo()
    except Exception as error:  # whatever scipy raises for parts that do not fit together
        raise LograbError(f"not a matrix that scipy.sparse.save_npz wrote: {error!r}") from None
    raise LograbError(f"the sparse format must be csr, csc, coo, bsr or dia, got '{kind[:20]}'")


def _features(arrays: Arrays) -> Any:
    if not arrays.keys() & set(_SPARSE_PARTS):
        return _one_of(arrays, "x", "features")
    missing = [part for part in _SPARSE_PARTS if part not in arrays]
    if missing or arrays.keys() & {"x", "features"}:
        raise LograbError(f"sparse features need {', '.join(_SPARSE_PARTS)} and no dense ones, got "
                          f"{', '.join(sorted(arrays))}")
    shape = arrays["x_shape"]
    if shape.shape != (2,) or shape.dtype.kind not in "ui" or (shape < 0).any():
        raise LograbError(f"'x_shape' must be two whole numbers, got {shape.tolist()}")
    try:
        parts = arrays["x_data"], arrays["x_indices"], arrays["x_indptr"]
        matrix = sp.csr_array(parts, shape=(int(shape[0]), int(shape[1])))
        matrix.check_format(full_check=True)
        matrix.sum_duplicates()
    except Exception as error:  # as above
        raise LograbError(f"the sparse features do not fit together: {error!r}") from None
    return matrix


def _one_of(arrays: Arrays, first: str, second: str) -> npt.NDArray[Any] | None:
    if first in arrays and second in arrays:
        raise LograbError(f"an .npz graph may hold '{first}' or '{second}', got both: keep one")
    return arrays.get(first, arrays.get(second))


def _claimed_nodes(arrays: Arrays, features: Any, labels: npt.NDArray[Any] | None) -> int | None:
    if "num_nodes" in arrays:
        number = arrays["num_nodes"]
        if number.size != 1 or number.dtype.kind not in "ui" or not 0 < int(number.item()) < 2**62:
            raise LograbError(f"'num_nodes' must be one whole number above 0, got {number.tolist()!r:.60}")
        return int(number.item())
    for rows in (features, labels):
        if rows is not None and rows.ndim:
            return int(rows.shape[0])
    return None
