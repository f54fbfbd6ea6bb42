"""MatrixMarket files (.mtx): a square matrix whose non-zero entries are the edges."""

from __future__ import annotations

import io

import scipy.io

from lograb.errors import LograbError
from lograb.graphs.formats.rules import RawGraph, check_claimed_size, read_matrix

_BANNER = b"%%matrixmarket"


def read_matrix_market(data: bytes) -> RawGraph:
    """Read a pattern, real, integer or complex matrix, general or symmetric."""
    _check_claims(data)
    try:
        matrix = scipy.io.mmread(io.BytesIO(data), spmatrix=False)
    except Exception as error:  # the parser raises whatever its C++ code throws
        raise LograbError(f"not a readable MatrixMarket file: {error}") from None
    return read_matrix(matrix)


def _check_claims(data: bytes) -> None:
    """Check the two header lines, because the parser allocates what they claim."""
    lines = iter(io.BytesIO(data))
    words = next(lines, b"").lower().split()
    if len(words) != 5 or words[0] != _BANNER or words[1] != b"matrix":
        raise LograbError("line 1: a MatrixMarket file must start with '%%MatrixMarket matrix', got "
                          f"{b' '.join(words)[:60].decode('utf-8', 'replace')!r}")
    content = ((number, line) for number, line in enumerate(lines, start=2)
               if line.strip() and not line.lstrip().startswith(b"%"))
    number, line = next(content, (0, b""))
    if not line:
        raise LograbError("a MatrixMarket file needs a line with its size, got only comments")
    sizes = line.split()
    wanted = 3 if words[2] == b"coordinate" else 2
    if len(sizes) != wanted or not all(word.isdigit() and len(word) < 18 for word in sizes):
        raise LograbError(f"line {number}: the size must be {wanted} whole numbers, got "
                          f"{line.strip()[:60].decode('utf-8', 'replace')!r}")
    rows, cols = int(sizes[0]), int(sizes[1])
    if rows != cols:
        raise LograbError(f"an adjacency matrix must be square, got {rows} rows and {cols} columns")
    # A symmetric dense matrix lists half of its entries, each at least a digit and a line end.
    claimed = int(sizes[2]) if wanted == 3 else rows * (cols - 1) // 2
    if claimed > len(data) // 2:
        raise LograbError(f"line {number}: {claimed} entries are announced, but the file has only "
                          f"{len(data)} bytes: it is incomplete")
    check_claimed_size(rows, claimed)
