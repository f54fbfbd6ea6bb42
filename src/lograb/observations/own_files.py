"""Embeddings that were made elsewhere, read from files: what ``lograb pack`` takes.

One ``.npz`` file
    Arrays ``members``, ``vectors``, ``values``, ``next_value``, ``centre``, ``degrees`` of one patch; for several
    patches as ``NAME/members`` or ``members_NAME`` and so on, where NAME may be a number.
A folder with one file per patch, which it names
    ``NAME.npz``
        As above, with the arrays of one patch.
    ``NAME.npy``
        The vectors. Members stand in ``NAME.members.txt``, eigenvalues in ``NAME.values.txt``, one per line, or as
        arrays in ``.npy`` files of the same names.
    ``NAME.csv``
        A row per member, its name first. A row that starts with ``eigenvalue`` holds the eigenvalues, one that
        starts with ``next`` the first that was cut off. A header may come first.

Only vectors are required; without members, a single patch has the nodes 0, 1, 2 ... Nothing is ever unpickled.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lograb.arrays import load_arrays
from lograb.errors import LograbError, warn
from lograb.limits import max_bytes
from lograb.names import shorten, sort_names

Array = npt.NDArray[Any]
Fields = dict[str, Any]

FIELDS = {"members": "members", "vectors": "vectors", "values": "values", "degrees": "degrees",
          "next_value": "next_values", "next_values": "next_values", "centre": "centres", "centres": "centres"}
"""Names of arrays in a file, and of the arguments of `Observations.from_arrays`."""
KEY = re.compile("(?:(.*)/)?({0})|({0})_(.*)".format("|".join(sorted(FIELDS, key=len, reverse=True))), re.DOTALL)
PATCH_SUFFIXES, BESIDE_SUFFIXES = (".npz", ".npy", ".csv"), (".txt", ".csv", ".npy")
HEADS = ("", "node", "nodes", "name", "id", "member")
VALUE_ROWS, NEXT_ROWS = ("eigenvalue", "eigenvalues", "lambda"), ("next", "next_value", "next_eigenvalue")
"""How a header, the row of eigenvalues and that of the next one start."""
FREE_BYTES, MAX_RATIO = 2**30, 100
"""An .npz file may unpack to this many bytes, and so many times its size."""


def read_embeddings(path: str | Path) -> Fields:
    """Read all patches of a file or folder: the arguments of `Observations.from_arrays`."""
    path = Path(path)
    if not path.exists():
        raise LograbError(f"cannot read '{path}': there is no such file or folder")
    if path.is_dir():
        patches = _read_folder(path)
    elif path.suffix.lower() == ".npz":
        patches = _read_npz(path)
    else:
        raise LograbError(f"embeddings are read from an .npz file or a folder, got '{path.name}': put a single "
                          "file into a folder of its own")  # fmt: skip
    names = sort_names(patches)
    for name in names:
        if "vectors" not in patches[name]:
            raise LograbError(f"patch '{name}' has no vectors, only {', '.join(sorted(patches[name]))}")
        if "members" not in patches[name] and len(names) > 1:
            raise LograbError(f"patch '{name}' does not say which nodes its rows are: add its members")
        patches[name].setdefault("members", np.arange(len(np.atleast_1d(patches[name]["vectors"]))))
    if len({np.asarray(patches[name]["members"]).dtype.kind in "US" for name in names}) > 1:
        for name in names:  # numbers in one file, text in another: all are names
            patches[name]["members"] = [str(node) for node in np.asarray(patches[name]["members"]).tolist()]
    lists = {what: [patches[name].get(what) for name in names] for what in dict.fromkeys(FIELDS.values())}
    given = {what: items for what, items in lists.items() if any(item is not None for item in items)}
    return given | {"names": None if names in ([""], list(map(str, range(len(names))))) else names}


def _read_npz(path: Path) -> dict[str, Fields]:
    """Sort the arrays of a file into patches by their names."""
    patches: dict[str, Fields] = {}
    try:
        with path.open("rb") as file:
            arrays, ignored = load_arrays(file, None, max_bytes(FREE_BYTES + MAX_RATIO * path.stat().st_size))
    except (LograbError, OSError) as error:
        raise _unreadable(path, error) from None
    for key, array in arrays.items():
        if found := KEY.fullmatch(key):
            name, field = found[1] or found[4] or "", found[2] or found[3]
            patches.setdefault(name, {})[FIELDS[field]] = _scalar(path, key, field, array)
        else:
            ignored.append(key)
    if ignored:
        warn(f"{path.name}: arrays passed over: {shorten(ignored)}")
    if not patches:
        raise LograbError(f"{path.name} holds no array named vectors, NAME/vectors or vectors_NAME")
    if "" in patches and len(patches) > 1:
        raise LograbError(f"{path.name} holds arrays of one patch ({', '.join(patches['']):.80}) beside those of "
                          f"'{next(name for name in patches if name):.60}': name them all")  # fmt: skip
    return patches


def _scalar(path: Path, key: str, field: str, array: Array) -> Any:
    """Decode names; take single numbers and names out of their arrays."""
    array = np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array
    if not field.startswith(("next", "centre")):
        return array
    if array.size != 1:
        raise LograbError(f"{path.name}: {key} must be one number or name, got shape {array.shape}")
    return array.item()


def _read_folder(folder: Path) -> dict[str, Fields]:
    """Read the patches of a folder, each from one file and, for ``.npy``, those beside it."""
    files = sorted(file for file in folder.iterdir() if not file.name.startswith("."))
    beside = {file for file in files if file.suffix in BESIDE_SUFFIXES
              and Path(file.stem).suffix in (".members", ".values")}  # fmt: skip
    chosen = [file for file in files if file.suffix in PATCH_SUFFIXES and file not in beside and file.is_file()]
    owners = {file.stem for file in chosen if file.suffix == ".npy"}
    used = [file for file in files if file in beside and Path(file.stem).stem in owners]
    if passed := [file.name for file in files if file not in used and file not in chosen]:
        warn(f"{folder.name or folder}: passed over: {shorten(passed)}")
    if not chosen:
        raise LograbError(f"'{folder}' holds no patch: it needs {', '.join(PATCH_SUFFIXES)} files, one per patch")
    name, count = Counter(file.stem for file in chosen).most_common(1)[0]
    if count > 1:
        raise LograbError(f"{count} files of {folder.name} are the same patch '{name}': keep one of them")
    return {file.stem: _read_patch(file, [other for other in used if Path(other.stem).stem == file.stem])
            for file in chosen}  # fmt: skip


def _read_patch(file: Path, beside: list[Path]) -> Fields:
    if file.suffix == ".npz":
        patches = _read_npz(file)
        if list(patches) != [""]:
            raise LograbError(f"{file.name} holds several patches: in a folder, one file is one patch")
        return patches[""]
    if file.suffix == ".csv":
        return _read_csv(file)
    fields: Fields = {"vectors": _load_npy(file)}
    for other in beside:
        what = Path(other.stem).suffix[1:]
        if what in fields:
            raise LograbError(f"{file.stem} has two files of {what}: remove one of them")
        fields[what] = _load_npy(other) if other.suffix == ".npy" else _read_lines(other, number=what == "values")
    return fields


def _read_csv(file: Path) -> Fields:
    """Read a table with a row per member, and perhaps one of eigenvalues."""
    members: list[str] = []
    vectors: list[list[float]] = []
    fields: Fields = {}
    for number, first, rest in _rows(file):
        values = _numbers(rest)
        if not members and not fields and _is_header(first, rest):
            continue
        if not values:
            bad = next(cell for cell in rest or [""] if not _numbers([cell]))
            raise LograbError(f"{file.name}, row {number}: expected a name and numbers, got '{bad[:40]}'")
        if first.lower() in VALUE_ROWS:
            fields["values"] = np.array(values)
        elif first.lower() in NEXT_ROWS:
            fields["next_values"] = values[0]
        elif vectors and len(values) != len(vectors[0]):
            raise LograbError(f"{file.name}, row {number}: expected {len(vectors[0])} numbers as in the rows "
                              f"before, got {len(values)}")  # fmt: skip
        else:
            members.append(first)
            vectors.append(values)
    if not members:
        raise LograbError(f"{file.name} holds no row of a name and numbers")
    return fields | {"members": members, "vectors": np.array(vectors)}


def _is_header(first: str, rest: list[str]) -> bool:
    """Tell a first row of words, or of column numbers, from a member."""
    if first.lower() in (*VALUE_ROWS, *NEXT_ROWS):
        return False
    counted = len(rest) > 2 and rest in ([str(i + start) for i in range(len(rest))] for start in (0, 1))
    return first.lower() in HEADS or counted or not _numbers(rest)


def _rows(file: Path) -> Iterator[tuple[int, str, list[str]]]:
    """Split rows at tabs, semicolons or commas: number, first cell, the others; no comments, no empty ones."""
    lines = _text(file).splitlines()
    content = next((line for line in lines if line.strip() and line[0] != "#"), "")
    separator = next((mark for mark in "\t;" if mark in content), ",")
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.startswith("#"):
            first, *rest = (cell.strip() for cell in next(csv.reader([line], delimiter=separator)))
            while rest and not rest[-1]:
                rest.pop()
            yield number, first, rest


def _numbers(cells: list[str]) -> list[float]:
    """Read cells as numbers; none if some cell is no number."""
    try:
        return [float(cell) for cell in cells]
    except ValueError:
        return []


def _read_lines(file: Path, number: bool) -> list[Any]:
    """Read one name, or number, per line."""
    lines = [(at, line.strip()) for at, line in enumerate(_text(file).splitlines(), start=1) if line.strip()]
    bad = next(((at, line) for at, line in lines if number and not _numbers([line])), None)
    if bad:
        raise LograbError(f"{file.name}, row {bad[0]}: expected a number, got '{bad[1][:40]}'")
    return [float(line) if number else line for _, line in lines]


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise LograbError(f"cannot read '{file}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise LograbError(f"{file.name} is not UTF-8 text") from None


def _load_npy(path: Path) -> Array:
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except Exception as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> LograbError:
    reason = "arrays of Python objects are not read" if "allow_pickle" in str(error) else str(error)
    return LograbError(f"cannot read '{path.name}' as a NumPy file: {reason:.200}")
