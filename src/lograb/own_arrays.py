"""A user's own arrays, put into the flat form of `lograb.types.Observations`.

One patch is a list of members, a matrix with a row per member, and perhaps eigenvalues. Whatever order rows and
columns come in, members end up increasing and eigenvalues ascending, each row and column with its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
import numpy.typing as npt

from lograb.conventions import LOOSE, Block, check
from lograb.conversions import convert
from lograb.errors import LograbError, warn
from lograb.names import index_names, shorten
from lograb.ragged import Ints, pointer

Floats = npt.NDArray[np.float64]

FREE_NODES, NODES_PER_ENTRY = 10**6, 100
"""Ids may go up to this, or so many times the number of members; beyond, they are names."""


def pack(
    given: dict[str, Any],
    names: Sequence[str] | None,
    *,
    laplacian: str,
    n_nodes: int | None,
    sigma: float | None,
    gauge: str,
) -> dict[str, Any]:
    """Check, convert, sort and lay out.

    Parameters
    ----------
    given : members, vectors, values, next_values, centres and degrees, as `Observations.from_arrays` takes them

    Returns
    -------
    dict
        The fields of `Observations` but for the protocol.
    """
    lists, names = _as_lists(given, names)
    labels = [f"patch {i}" if names is None else f"patch '{names[i]:.60}'" for i in range(len(lists["members"]))]
    numbers, node_names, n_nodes = _number(lists["members"], labels, n_nodes)
    parts = (lists[what] for what in ("vectors", "values", "next_values", "degrees"))
    blocks = [_block(label, len(ids), *part) for label, ids, *part in zip(labels, numbers, *parts)]
    blocks = convert(blocks, laplacian)
    check(blocks, sigma, gauge)
    orders = list(map(np.argsort, numbers))
    values = [block.values for block in blocks if block.values is not None]
    return {
        "n_nodes": n_nodes,
        "nodes": np.concatenate([ids[order] for ids, order in zip(numbers, orders)]),
        "ptr": pointer([len(ids) for ids in numbers]),
        "ranks": np.array([block.vectors.shape[1] for block in blocks], dtype=np.int64),
        "vectors": np.concatenate([block.vectors[order].ravel() for block, order in zip(blocks, orders)]),
        "values": np.concatenate(values).clip(0.0, 2.0) if values else None,
        "next_values": _next_values(blocks),
        "centres": _centres(lists["centres"], numbers, labels, node_names),
        "node_names": node_names,
        "patch_names": names,
    }


def _as_lists(
    given: dict[str, Any], names: Sequence[str] | None
) -> tuple[dict[str, list[Any]], tuple[str, ...] | None]:
    """Bring all ways to give patches, a mapping, lists, or one patch alone, to one list per argument."""
    members = given["members"]
    if isinstance(members, Mapping):
        if names is not None:
            raise LograbError("a mapping names its patches by its keys: leave out names")
        given, names = _by_key(given), list(members)
    else:
        members = members if _is_list(members) else list(members)
        given = given | {"members": members}
        if _is_one_patch(members, given["vectors"]):
            given = {what: None if argument is None else [argument] for what, argument in given.items()}
            names = [names] if isinstance(names, str) else names
    count = len(given["members"])
    if not count:
        raise LograbError("observations need at least one patch, got none")
    lists = {}
    for what, argument in given.items():
        if argument is not None and (not _is_list(argument) or len(argument) != count):
            raise LograbError(f"{what} must have one item for each of the {count} patches, got "
                              f"{len(argument) if _is_list(argument) else type(argument).__name__}")  # fmt: skip
        lists[what] = [None] * count if argument is None else list(argument)
    if any(v is None for v in lists["values"]) and any(v is not None for v in lists["values"]):
        raise LograbError("eigenvalues are given for all patches or withheld for all, got some without")
    return lists, None if names is None else tuple(map(str, names))


def _is_list(argument: Any) -> bool:
    return hasattr(argument, "__len__") and not isinstance(argument, str | Mapping | Set)


def _by_key(given: dict[str, Any]) -> dict[str, Any]:
    keys = given["members"].keys()
    for what, argument in given.items():
        if argument is not None and (not isinstance(argument, Mapping) or argument.keys() != keys):
            raise LograbError(f"members are a mapping from {shorten(map(str, keys))}, so {what} must be one with "
                              "the same keys")  # fmt: skip
    return {what: argument and [argument[key] for key in keys] for what, argument in given.items()}


def _is_one_patch(members: Any, vectors: Any) -> bool:
    """Tell one patch (a flat list of nodes and one matrix) from several."""
    if not len(members) or not all(isinstance(m, str | int | np.integer) for m in members):
        return False
    if getattr(vectors, "ndim", 0) == 2 and len(vectors) == len(members):
        return True
    shape = getattr(vectors, "shape", type(vectors).__name__)
    raise LograbError("members must be one list of nodes per patch, or, for a single patch, one list of nodes "
                      f"beside one matrix with a row each; got {len(members)} nodes and vectors of {shape}")


def _number(
    members: list[Any], labels: list[str], n_nodes: int | None
) -> tuple[list[Ints], tuple[str, ...] | None, int]:
    """Turn whole numbers into ids and text into names."""
    for label, item in zip(labels, members):
        if not _is_list(item) or getattr(item, "ndim", 1) != 1:
            raise LograbError(f"the members of {label} must be a list of nodes in the order of the rows, got a "
                              f"{type(item).__name__}")  # fmt: skip
    lists = [list(item.tolist() if hasattr(item, "tolist") else item) for item in members]
    for label, item in zip(labels, lists):
        if not item:
            raise LograbError(f"{label} has no members: leave it out")
        if len(set(item)) != len(item):
            twice = next(node for i, node in enumerate(item) if node in item[:i])
            raise LograbError(f"the members of a patch must be distinct, and {label} lists {twice!r} twice")
    kinds = {type(node) for item in lists for node in item}
    if all(issubclass(kind, str) for kind in kinds):
        index, names = index_names(node for item in lists for node in item)
        if n_nodes is not None and (names is not None or n_nodes < len(index)):
            raise LograbError("n_nodes is for members that are numbers: leave it out")
        numbers = [np.array([index[node] for node in item], dtype=np.int64) for item in lists]
        return numbers, names, n_nodes or len(index)
    if any(issubclass(kind, bool) or not issubclass(kind, int | np.integer) for kind in kinds):
        found = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise LograbError(f"members must be all whole numbers or all text, got {found}: make them text, "
                          "list(map(str, members)), or of an array members.astype(str)")  # fmt: skip
    lowest, highest = min(map(min, lists)), max(map(max, lists))
    limit = max(FREE_NODES, NODES_PER_ENTRY * sum(map(len, lists))) if n_nodes is None else n_nodes
    if lowest < 0 or highest >= limit:
        remedy = "use them as names, str(id)" if n_nodes is None else "raise n_nodes or leave it out"
        raise LograbError(f"node ids must lie in 0 .. {limit - 1}, got {lowest} .. {highest}: {remedy}")
    return [np.array(item, dtype=np.int64) for item in lists], None, n_nodes or highest + 1


def _block(label: str, size: int, vectors: Any, values: Any, next_value: Any, degrees: Any) -> Block:
    """Check the shapes of one patch, and sort its columns by eigenvalue."""
    matrix = _real(f"the vectors of {label}", vectors, 2)
    if matrix.shape[0] != size and matrix.shape[1] == size:
        raise LograbError(f"the vectors of {label} need a row per member, got {matrix.shape}: transpose them")
    if matrix.shape[0] != size or not 1 <= matrix.shape[1] <= size:
        raise LograbError(f"the vectors of {label} need a row for each of its {size} members, and 1 to {size} "
                          f"columns, got shape {matrix.shape}")  # fmt: skip
    spectrum = None if values is None else _real(f"the eigenvalues of {label}", values, 1)
    weights = None if degrees is None else _real(f"the degrees of {label}", degrees, 1)
    if spectrum is not None and len(spectrum) != matrix.shape[1]:
        raise LograbError(f"{label} needs an eigenvalue for each of its {matrix.shape[1]} columns, got "
                          f"{len(spectrum)}; the first one that was cut off goes into next_values")  # fmt: skip
    if weights is not None and (len(weights) != size or not (weights > 0).all()):
        raise LograbError(f"the degrees of {label} must be {size} positive numbers (1 for an isolated member)")
    after = np.nan if next_value is None else float(_real(f"the next value of {label}", next_value, 0, nan=True))
    if spectrum is not None:
        order = np.argsort(spectrum, kind="stable")
        matrix, spectrum = matrix[:, order], spectrum[order]
    return Block(label, matrix, spectrum, after, weights)


def _real(what: str, given: Any, ndim: int, nan: bool = False) -> Floats:
    """Read finite real numbers of any type as float64."""
    try:
        array = np.asarray(given)
    except (ValueError, TypeError, RuntimeError):
        raise LograbError(f"{what} must be an array of numbers, got {type(given).__name__}") from None
    if array.dtype.kind == "c":
        raise LograbError(f"{what} are complex, and a symmetric matrix has real ones: use numpy.linalg.eigh")
    if array.dtype.kind not in "fiu" or array.ndim != ndim:
        raise LograbError(f"{what} must be a {ndim}-d array of numbers, got shape {array.shape} of {array.dtype}")
    if np.isinf(array).any() or (not nan and np.isnan(array).any()):
        raise LograbError(f"{what} must be finite, got NaN or infinity: drop that patch")
    return array.astype(np.float64)


def _next_values(blocks: list[Block]) -> Floats | None:
    """Collect the first eigenvalues that were cut off: NaN exactly where a spectrum is complete, or None."""
    after = np.array([block.next_value for block in blocks])
    known, complete = ~np.isnan(after), np.array([block.complete for block in blocks])
    if blocks[0].values is None:
        if known.any():
            warn("next_values are eigenvalues too, and the eigenvalues are withheld: they are left out")
        return None
    for i in np.flatnonzero(known):
        block = blocks[i]
        last = float(block.spectrum[-1])
        if block.complete:
            raise LograbError(f"{block.label} shows its whole spectrum and nothing was cut off, so its next value "
                              f"must be None, got {after[i]:.4g}")  # fmt: skip
        if not last - LOOSE <= after[i] <= 2 + LOOSE:
            raise LograbError(f"the next eigenvalue of {block.label} must lie between its last one, {last:.4g}, "
                              f"and 2, got {after[i]:.4g}")  # fmt: skip
        after[i] = min(max(after[i], last), 2.0)
    if (known | complete).all():
        return after
    if known.any():
        warn(f"next_values are missing for {int((~known & ~complete).sum())} truncated patches: all are left out")
    return None


def _centres(
    centres: list[Any], numbers: list[Ints], labels: list[str], node_names: tuple[str, ...] | None
) -> Ints | None:
    """Look centres up, by id or by name; each must be a member of its patch."""
    if all(centre is None for centre in centres):
        return None
    found = []
    for centre, ids, label in zip(centres, numbers, labels):
        members = {str(i) if node_names is None else node_names[i]: i for i in ids.tolist()}
        if str(centre) not in members:
            raise LograbError(f"the centre of {label} must be one of its members, got {centre!r}")
        found.append(members[str(centre)])
    return np.array(found, dtype=np.int64)
