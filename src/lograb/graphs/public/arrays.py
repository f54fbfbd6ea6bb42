"""Read arrays from ``.npz`` files, never objects."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lograb.errors import LograbError


def read_arrays(path: Path, names: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
    """Read the named arrays of an ``.npz`` file; pickled objects are refused."""
    names = tuple(names)
    try:
        with np.load(path, allow_pickle=False) as box:
            return {name: box[name] for name in names}
    except (KeyError, ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise LograbError(f"{path.name} must be an npz file of plain arrays {', '.join(names)}; "
                          f"got: {error}") from error
