"""MatrixMarket files (.mtx): a square matrix whose non-zero entries are the edges.

An own reader, because scipy's compiled one reads past the end of some damaged files and takes the
process down; a file from a stranger must not do that.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from lograb.errors import LograbError
from lograb.graphs.formats.simple import RawGraph, check_claimed_size, read_matrix
from lograb.types import Floats, Ints

_N_VALUES = {"pattern": 0, "integer": 1, "unsigned-integer": 1, "real": 1, "double": 1, "complex": 2}
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


@dataclass(frozen=True)
class _Header:
    """What the banner and the size line announce; entries follow after line `size_line`, from byte `start`."""

    sparse: bool
    n_values: int
    symmetry: str
    n_nodes: int
    n_entries: int
    size_line: int
    start: int


def read_matrix_market(data: bytes) -> RawGraph:
    """Read a pattern, integer, real or complex matrix, coordinate or array, general or symmetric."""
    text = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    header = _read_header(text)
    width = 2 * header.sparse + header.n_values
    fields = _read_fields(text, header, width)
    if header.sparse:
        rows, cols = (_indices(fields[side::width], header) for side in (0, 1))
    else:
        rows, cols = _dense_places(header)
    values = _values(fields, header, width)
    if header.symmetry != "general":
        # Whether the mirror image has the other sign or is conjugate does not matter: weights are dropped.
        off = rows != cols
        rows, cols = np.concatenate([rows, cols[off]]), np.concatenate([cols, rows[off]])
        values = np.concatenate([values, values[off]])
    return read_matrix(sp.coo_array((values, (rows, cols)), shape=(header.n_nodes, header.n_nodes)))


def _read_header(text: bytes) -> _Header:
    """Read the banner and the size, and refuse claims that the rest of the file cannot keep."""
    words = io.BytesIO(text).readline().decode("utf-8", "replace").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"] or words[2] not in ("coordinate", "array"):
        raise LograbError("line 1: a MatrixMarket file must start with '%%MatrixMarket matrix coordinate' or "
                          f"'array', a field and a symmetry, got '{' '.join(words)[:60]}'")
    sparse, field, symmetry = words[2] == "coordinate", words[3], words[4]
    if field not in _N_VALUES or symmetry not in _SYMMETRIES or (field == "pattern" and not sparse):
        raise LograbError(f"line 1: the field must be one of {', '.join(_N_VALUES)}, the symmetry one of "
                          f"{', '.join(_SYMMETRIES)}, got '{field[:20]}' and '{symmetry[:20]}'")
    at, line, start = _find_size(text)
    sizes, wanted = line.split(), 3 if sparse else 2
    if len(sizes) != wanted or not all(word.isdigit() and len(word) < 18 for word in sizes):
        raise LograbError(f"line {at}: the size must be {wanted} whole numbers, got {_quote(line)}")
    n, n_cols = int(sizes[0]), int(sizes[1])
    if n != n_cols:
        raise LograbError(f"an adjacency matrix must be square, got {n} rows and {n_cols} columns")
    diagonal = 0 if symmetry == "skew-symmetric" else n
    dense = n * n if symmetry == "general" else n * (n - 1) // 2 + diagonal
    n_entries = int(sizes[2]) if sparse else dense
    n_lines = text.count(b"\n", start) + 1
    if n_entries > n_lines:
        raise LograbError(f"line {at}: {n_entries} entries are announced, but only {n_lines} lines follow: "
                          "the file is incomplete")
    check_claimed_size(n, n_entries)
    return _Header(sparse, _N_VALUES[field], symmetry, n, n_entries, at, start)


def _find_size(text: bytes) -> tuple[int, bytes, int]:
    """Return the number of the first line that is neither blank nor a comment, the line, and where it ends."""
    lines = io.BytesIO(text)
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith(b"%"):
            return number, line, lines.tell()
    raise LograbError("a MatrixMarket file needs a line with its size, got only comments")


def _read_fields(text: bytes, header: _Header, width: int) -> list[bytes]:
    """Return the fields of all entries, one after the other; every entry has a line and `width` fields."""
    n_entries, entries = 0, text[header.start :]
    for number, line in enumerate(io.BytesIO(entries), start=header.size_line + 1):  # no list: lines may be empty
        n_fields = len(line.split())
        n_entries += n_fields > 0
        if n_fields not in (0, width) or n_entries > header.n_entries:
            raise LograbError(f"line {number}: the file announces {header.n_entries} entries of {width} numbers, "
                              f"got {_quote(line)} as number {n_entries}")
    if n_entries < header.n_entries:
        raise LograbError(f"{header.n_entries} entries are announced, got {n_entries}: the file is incomplete")
    return entries.split()


def _indices(fields: list[bytes], header: _Header) -> Ints:
    """Turn 1-based row or column numbers into ids."""
    try:
        ids = np.fromiter(map(int, fields), dtype=np.int64, count=len(fields)) - 1
    except (ValueError, OverflowError) as error:
        raise LograbError(f"row and column must be whole numbers: {str(error)[:120]}") from None
    if len(ids) and (ids.min() < 0 or ids.max() >= header.n_nodes):
        raise LograbError(f"row and column must lie in 1 .. {header.n_nodes}, got {ids.min() + 1} .. "
                          f"{ids.max() + 1}")
    return ids


def _dense_places(header: _Header) -> tuple[Ints, Ints]:
    """Rows and columns of a dense listing, which goes down the columns."""
    n = header.n_nodes
    if header.symmetry == "general":
        return np.tile(np.arange(n), n), np.repeat(np.arange(n), n)
    cols, rows = np.triu_indices(n, k=1 if header.symmetry == "skew-symmetric" else 0)
    return rows, cols


def _values(fields: list[bytes], header: _Header, width: int) -> Floats:
    """Return the entries; of complex ones the size, for only zero or not zero matters."""
    if header.n_values == 0:
        return np.ones(header.n_entries)
    try:
        parts = [np.fromiter(map(float, fields[width - 1 - i :: width]), dtype=np.float64)
                 for i in range(header.n_values)]
    except ValueError as error:
        raise LograbError(f"entries must be numbers: {str(error)[:120]}") from None
    return parts[0] if header.n_values == 1 else np.abs(parts[0]) + np.abs(parts[1])


def _quote(line: bytes) -> str:
    return f"'{line.strip()[:60].decode('utf-8', 'replace')}'"
