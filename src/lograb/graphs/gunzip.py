"""Unpack gzip, several members included, without trusting it."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

from lograb.errors import LograbError
from lograb.limits import REMEDY

CHUNK = 1 << 20
BYTES_PER_MEMBER = 1 << 12
_FIRST, _MOST = 1 << 9, 1 << 16
_PADDING = re.compile(rb"\0*")  # tapes and disks pad with zeros


def gunzip(data: bytes, limit: int) -> Iterator[bytes]:
    """Yield the content piece by piece, up to `limit` bytes and one member for every 4 KiB of them."""
    view, at, size, n_members = memoryview(data), 0, 0, 0
    try:
        while at < len(view):
            n_members += 1
            if n_members > max(1, limit // BYTES_PER_MEMBER):
                raise LograbError(f"a .gz file may have {n_members - 1} members, got more; {REMEDY}")
            unpacker = zlib.decompressobj(wbits=31)
            step = _FIRST  # what is left of the input is copied, so a short member must not get much of it
            while not unpacker.eof:
                piece = unpacker.unconsumed_tail or view[at : at + step]
                if not piece:
                    raise LograbError("the .gz file is cut off: copy or download it again")
                part = unpacker.decompress(piece, CHUNK)
                at += len(piece) - len(unpacker.unconsumed_tail) - len(unpacker.unused_data)
                size += len(part)
                if size > limit:
                    raise LograbError(f"a .gz file may unpack to {limit} bytes, got more; {REMEDY}")
                yield part
                step = min(2 * step, _MOST)
            padding = _PADDING.match(data, at)
            at = padding.end() if padding else at
    except zlib.error as error:
        raise LograbError(f"not a readable .gz file: {error}") from None
