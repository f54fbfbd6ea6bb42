"""The arrays of an answer, read from an ``.npz`` file by somebody unknown.

What a member claims to be is held against what it holds, and against the limit, before memory is taken: a few
bytes of a zip file can unpack to gigabytes, and a header can name any shape.
"""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from lograb.answer_file import PARTS
from lograb.errors import LograbError
from lograb.limits import REMEDY, max_bytes
from lograb.types import Reconstruction

Arrays = dict[str, npt.NDArray[Any]]
INTS = {"edges", "nodes", "judged", "islands", "cross"}
BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OverflowError, RuntimeError, ValueError)
"""What reading a damaged zip file can raise."""
KNOWN_PACKING = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_arrays(path: Path) -> Arrays:
    """Read all arrays of numbers from an .npz file; together they may take `max_bytes()` bytes."""
    try:
        with zipfile.ZipFile(path) as file:
            members = [info for info in file.infolist() if info.filename.endswith(".npy")]
            _check_size(path, members)
            return {info.filename.removesuffix(".npy"): _read_member(file, info) for info in members}
    except OSError as error:
        raise LograbError(f"cannot read the answer '{path}': {error.strerror or error}") from None
    except LograbError:
        raise
    except BROKEN as error:
        raise LograbError(f"the answer '{path}' is not an .npz file, or damaged: {error}") from None


def _check_size(path: Path, members: list[zipfile.ZipInfo]) -> None:
    limit = max_bytes()
    total = max(path.stat().st_size, sum(info.file_size for info in members))
    if total > limit:
        raise LograbError(f"the answer '{path}' unpacks to {total:,} bytes, more than {limit:,}: {REMEDY}")


def _read_member(file: zipfile.ZipFile, info: zipfile.ZipInfo) -> npt.NDArray[Any]:
    if info.compress_type not in KNOWN_PACKING:
        raise ValueError(f"{info.filename[:80]} is packed in an unknown way")
    with file.open(info) as stream:
        shape, columns_first, dtype = _read_header(stream)
        if dtype.kind not in "biuf":
            raise ValueError(f"{info.filename[:80]} holds {dtype}, not numbers")
        expected = math.prod(shape) * dtype.itemsize
        if any(extent < 0 for extent in shape) or expected != info.file_size - stream.tell():
            raise ValueError(f"{info.filename[:80]} does not hold an array of shape {str(shape)[:80]}")
        data = stream.read(expected)
        if len(data) != expected:
            raise ValueError(f"{info.filename[:80]} is cut short")
        return np.frombuffer(data, dtype).reshape(shape, order="F" if columns_first else "C")


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, columns_first, dtype = read(stream)
        return shape, columns_first, dtype
    except Exception as error:  # numpy parses it as Python text, with all that can happen then
        raise ValueError(f"the header of {getattr(stream, 'name', 'an array')[:80]} is no header of an array "
                         f"({type(error).__name__})") from None  # fmt: skip


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
