"""NumPy archives (.npz): a sparse matrix saved by scipy, or arrays under known names.

Arrays: ``edges`` (m, 2) or ``edge_index`` (2, m); optionally ``num_nodes``, ``x`` or ``features``
(n, f), or sparse features as ``x_indptr``, ``x_indices``, ``x_data``, ``x_shape``; ``y`` or
``labels``. Without ``num_nodes`` and feature or label rows to count, the numbers are names as in an
edge list: nodes are those that occur. Nothing is ever unpickled.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from lograb.arrays import Arrays, load_arrays
from lograb.errors import LograbError
from lograb.graphs.formats.simple import (
    FREE_NODES,
    NODES_PER_ENTRY,
    RawGraph,
    as_pairs,
    check_claimed_size,
    check_features,
    check_ids,
    check_labels,
    numbered,
    read_matrix,
)
from lograb.types import Matrix

_SPARSE_PARTS = ("x_indptr", "x_indices", "x_data", "x_shape")
_KNOWN = {"edges", "edge_index", "num_nodes", "x", "features", "y", "labels", *_SPARSE_PARTS}
SCIPY_PARTS = ("format", "shape", "data", "row", "col", "coords", "indices", "indptr", "offsets")


def read_npz(data: bytes, max_bytes: int) -> RawGraph:
    """Read an archive that unpacks to at most `max_bytes`."""
    arrays, others = load_arrays(io.BytesIO(data), {*_KNOWN, *SCIPY_PARTS}, max_bytes)
    if {"format", "shape", "data"} <= arrays.keys():
        return read_matrix(scipy_matrix(arrays))
    if ("edges" in arrays) == ("edge_index" in arrays):
        names = ", ".join(sorted({*arrays, *others}))
        raise LograbError("an .npz graph needs either 'edges' (m, 2) or 'edge_index' (2, m), or a matrix saved "
                          f"by scipy.sparse.save_npz, got: {names[:120] or 'no arrays'}")
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
    unknown = sorted({*arrays, *others} - _KNOWN)
    return RawGraph(
        n_nodes, pairs, "once" if listed_once else "both", node_names=node_names,
        features=None if features is None else check_features(features, n_nodes),
        labels=None if labels is None else check_labels(labels, n_nodes),
        notices=(f"arrays ignored: {', '.join(unknown)[:120]}",) if unknown else ())


def scipy_matrix(arrays: Arrays) -> Matrix:
    """Build the matrix that `scipy.sparse.save_npz` took apart; every index is checked."""
    kind, shape = arrays["format"].item() if arrays["format"].size == 1 else "", arrays["shape"]
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    sides = _sides(shape, "'shape'", arrays["data"].size)
    try:
        if kind == "coo":  # checks its indices itself
            ends = (arrays["row"], arrays["col"]) if "row" in arrays else tuple(arrays["coords"])
            return sp.coo_array((arrays["data"], ends), shape=sides)
        if kind == "dia":
            return _diagonals(arrays["data"], arrays["offsets"], sides)
        build = {"csr": sp.csr_array, "csc": sp.csc_array, "bsr": sp.bsr_array}.get(kind)
        if build is None:
            raise LograbError(f"the sparse format must be csr, csc, coo, bsr or dia, got '{kind[:20]}'")
        if kind == "bsr" and 0 in arrays["data"].shape[1:]:
            raise LograbError(f"blocks must not be empty, got data of shape {arrays['data'].shape}")
        matrix = build((arrays["data"], arrays["indices"], arrays["indptr"]), shape=sides)
        # Indices out of range would make the compiled code read foreign memory.
        matrix.check_format(full_check=True)
    except LograbError:
        raise
    except Exception as error:  # whatever scipy raises for parts that do not fit together
        raise LograbError(f"not a matrix that scipy.sparse.save_npz wrote: {error!r:.200}") from None
    return matrix


def _diagonals(data: npt.NDArray[Any], offsets: npt.NDArray[Any], sides: tuple[int, int]) -> sp.coo_array:
    """Lay out a matrix of diagonals, in the time of its entries; scipy takes that of offsets times columns."""
    if data.ndim != 2 or offsets.shape != data.shape[:1] or offsets.dtype.kind not in "ui":
        raise LograbError(f"diagonals (k, m) need k whole numbers as offsets, got shapes {data.shape} and "
                          f"{offsets.shape}")
    cols = np.broadcast_to(np.arange(data.shape[1]), data.shape)
    rows = cols - offsets.astype(np.int64)[:, None]
    inside = (rows >= 0) & (rows < sides[0]) & (cols < sides[1])
    return sp.coo_array((data[inside], (rows[inside], cols[inside])), shape=sides)


def _sides(shape: npt.NDArray[Any], name: str, n_entries: int) -> tuple[int, int]:
    """Return the claimed sides of a matrix, if it has entries enough for such a claim."""
    if shape.shape != (2,) or shape.dtype.kind not in "ui" or (shape < 0).any():
        raise LograbError(f"{name} must be two whole numbers from 0, got an array of shape {shape.shape}")
    sides, limit = (int(shape[0]), int(shape[1])), max(FREE_NODES, NODES_PER_ENTRY * n_entries)
    if max(sides) > limit:
        raise LograbError(f"a matrix of {n_entries} entries may claim at most {limit} rows and columns, got "
                          f"{sides}: leave out empty ones")
    return sides


def _features(arrays: Arrays) -> Any:
    if not arrays.keys() & set(_SPARSE_PARTS):
        return _one_of(arrays, "x", "features")
    missing = [part for part in _SPARSE_PARTS if part not in arrays]
    if missing or arrays.keys() & {"x", "features"}:
        raise LograbError(f"sparse features need {', '.join(_SPARSE_PARTS)} and no dense ones, got "
                          f"{', '.join(sorted(arrays))}")
    sides = _sides(arrays["x_shape"], "'x_shape'", arrays["x_data"].size)
    try:
        parts = arrays["x_data"], arrays["x_indices"], arrays["x_indptr"]
        matrix = sp.csr_array(parts, shape=sides)
        matrix.check_format(full_check=True)
        matrix.sum_duplicates()
    except Exception as error:  # as above
        raise LograbError(f"the sparse features do not fit together: {error!r:.200}") from None
    return matrix


def _one_of(arrays: Arrays, first: str, second: str) -> npt.NDArray[Any] | None:
    if first in arrays and second in arrays:
        raise LograbError(f"an .npz graph may hold '{first}' or '{second}', got both: keep one")
    return arrays.get(first, arrays.get(second))


def _claimed_nodes(arrays: Arrays, features: Any, labels: npt.NDArray[Any] | None) -> int | None:
    if "num_nodes" in arrays:
        number = arrays["num_nodes"]
        if number.size != 1 or number.dtype.kind not in "ui" or not 0 < int(number.item()) < 2**62:
            raise LograbError(f"'num_nodes' must be one whole number above 0, got an array of "
                              f"{number.dtype} and shape {number.shape}")
        return int(number.item())
    for rows in (features, labels):
        if rows is not None and rows.ndim:
            return int(rows.shape[0])
    return None
