"""The arrays of an answer, read from an ``.npz`` file by somebody unknown (see `lograb.arrays`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lograb.answer_file import PARTS
from lograb.arrays import Arrays, load_arrays
from lograb.errors import LograbError
from lograb.limits import max_bytes
from lograb.types import Reconstruction

INTS = {"edges", "nodes", "judged", "islands", "cross"}


def read_answer_arrays(path: Path) -> Arrays:
    """Read all arrays from an .npz file; together they may take `max_bytes()` bytes."""
    try:
        with path.open("rb") as file:
            return load_arrays(file, None, max_bytes())[0]
    except OSError as error:
        raise LograbError(f"cannot read the answer '{path}': {error.strerror or error}") from None
    except LograbError as error:
        raise LograbError(f"the answer '{path}' is not an .npz file, or damaged: {error}") from None


def build_answer(
    where: str, arrays: Arrays, number: int, n_nodes: int, names: tuple[str, ...] | None
) -> Reconstruction:
    """Build the reconstruction of graph `number`; `where` says in errors whose it is."""
    found: dict[str, Any] = {}
    for part in PARTS:
        array = arrays.get(f"{number}/{part}")
        if array is not None:
            if array.dtype.kind not in ("iu" if part in INTS else "fiu"):
                kind = "whole numbers" if part in INTS else "numbers"
                raise LograbError(f"{where}: {part} must be {kind}, got {array.dtype}")
            found[part] = array.astype(np.int64 if part in INTS else np.float64)
    if not {"edges", "scores", "nodes"} <= found.keys():
        raise LograbError(f"{where} lacks the edges, scores or nodes of graph {number}")
    if (unlisted := found.pop("unlisted", None)) is not None and unlisted.size != 1:
        raise LograbError(f"{where}: unlisted must be one number, got shape {unlisted.shape}")
    chance = None if unlisted is None else float(unlisted.ravel()[0])
    return Reconstruction(n_nodes, **found, unlisted=chance, node_names=names)
