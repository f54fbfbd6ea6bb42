"""Arrays out of ``.npz`` files: numbers and strings, never objects, and never more than was announced."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from lograb.errors import LograbError
from lograb.limits import REMEDY

Arrays = dict[str, npt.NDArray[Any]]

# What numpy writes. Others unpack a small read to gigabytes before anybody can count.
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
MAX_EMPTY = 1_000_000
"""An array without bytes may have this many rows; nothing else in the file vouches for them."""
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def load_arrays(file: BinaryIO, names: Collection[str] | None, limit: int) -> tuple[Arrays, list[str]]:
    """Read those of the named arrays that a file has, or all of them; list what else it holds, unread.

    The whole file may unpack to `limit` bytes.
    """
    try:
        with zipfile.ZipFile(file) as box:
            members = {member.filename.removesuffix(".npy"): member for member in box.infolist()}
            size = sum(member.file_size for member in box.infolist())
            if size > limit:
                raise LograbError(f"an .npz file may unpack to {limit} bytes, got {size}; {REMEDY}")
            wanted = [name for name, member in members.items()
                      if (member.filename.endswith(".npy") if names is None else name in names)]  # fmt: skip
            arrays = {name: _load(box, members[name]) for name in wanted}
    except LograbError:
        raise
    except Exception as error:  # zipfile, zlib and numpy raise many kinds for damaged files
        raise LograbError(f"not a readable .npz file: {str(error)[:200]}") from None
    return arrays, sorted(members.keys() - arrays.keys())


def read_arrays(path: Path, names: Collection[str], limit: int) -> Arrays:
    """Read the named arrays, all of them, from a file."""
    try:
        with path.open("rb") as file:
            arrays, _ = load_arrays(file, names, limit)
    except (LograbError, OSError) as error:
        raise LograbError(f"{path.name} must be an npz file of plain arrays {', '.join(names)}; "
                          f"got: {error}") from error
    missing = [name for name in names if name not in arrays]
    if missing:
        raise LograbError(f"{path.name} must hold the arrays {', '.join(names)}; it has no {', '.join(missing)}")
    return arrays


def _load(box: zipfile.ZipFile, member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    if member.compress_type not in PACKINGS:
        raise LograbError(f"an .npz file must be stored or deflated, got packing {member.compress_type} for "
                          f"'{member.filename[:60]}'")
    file = io.BytesIO(box.read(member))
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise LograbError(f"an array must be of version 1 or 2 of numpy's format, got {version}")
    shape, fortran, dtype = HEADERS[version](file)
    if dtype.hasobject:
        name = member.filename.removesuffix(".npy")[:60]
        raise LograbError(f"arrays of Python objects are not read, and '{name}' is one: save names with "
                          ".astype(str), numbers with .astype(float)")  # fmt: skip
    if dtype.kind not in "biufcSU":
        raise LograbError(f"an array must hold numbers or strings, got data type {str(dtype)[:60]}")
    rows = math.prod(side for side in shape if side)
    left = len(file.getbuffer()) - file.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != left or rows > max(left, MAX_EMPTY):
        raise LograbError(f"'{member.filename[:60]}' must have the bytes of its shape, got {left} for shape "
                          f"{str(shape)[:60]} of {dtype}")
    flat = np.frombuffer(file.getbuffer(), dtype=dtype, offset=file.tell()) if left else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if fortran else "C").copy()
