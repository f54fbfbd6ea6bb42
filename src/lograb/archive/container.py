"""The container: a plain zip file, of which every byte is accounted for.

Members are stored, not compressed, one after the other without gaps, always with 64-bit sizes,
dates fixed: equal contents give equal bytes, and a range of an array can be read in place. Any
zip tool can open it. Reading is strict: whatever lies outside the members' data must be exactly
what this module would have written, so a single changed byte shows, and entries that overlap,
hide, escape their folder or unpack to more than they occupy cannot exist.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO

from lograb.errors import ArchiveError

CONTAINER = "container"
"""The member named in errors about the file as a whole."""
NAME = re.compile(r"[a-z_]{1,40}(/[a-z_]{1,40})?\.(npy|json)")
MAX_MEMBERS = 64
VERSION, MADE_BY, DATE, MODE = 45, (3 << 8) | 45, 0x21, 0o644 << 16
FULL = 0xFFFFFFFF
LOCAL, CENTRAL = struct.Struct("<4s5H3I2H"), struct.Struct("<4s6H3I5H2I")
END64, LOCATOR, END = struct.Struct("<4sQ2H2I4Q"), struct.Struct("<4sIQI"), struct.Struct("<4s4H2IH")
COMMENT = "lograb; SHA-256 of manifest.json: "
COMMENT_SIZE = len(COMMENT) + 64


@dataclass(frozen=True)
class Entry:
    """One member: its name, the CRC-32 and length of its data, and where its header starts."""

    name: str
    crc: int
    size: int
    offset: int

    def local_header(self) -> bytes:
        """Encode the header that stands before the data."""
        name = self.name.encode("ascii")
        extra = struct.pack("<2H2Q", 1, 16, self.size, self.size)
        head = LOCAL.pack(b"PK\3\4", VERSION, 0, 0, 0, DATE, self.crc, FULL, FULL, len(name), len(extra))
        return head + name + extra

    def central_header(self) -> bytes:
        """Encode the entry in the directory at the end."""
        name = self.name.encode("ascii")
        extra = struct.pack("<2H3Q", 1, 24, self.size, self.size, self.offset)
        head = CENTRAL.pack(b"PK\1\2", MADE_BY, VERSION, 0, 0, 0, DATE, self.crc, FULL, FULL,
                            len(name), len(extra), 0, 0, 0, MODE, FULL)  # fmt: skip
        return head + name + extra

    @property
    def start(self) -> int:
        """Where the data starts."""
        return self.offset + LOCAL.size + len(self.name) + 20

    @property
    def stop(self) -> int:
        """Where the data ends."""
        return self.start + self.size


def directory(entries: Iterable[Entry], manifest_sha256: str) -> bytes:
    """Encode everything that follows the last member."""
    entries = list(entries)
    position = entries[-1].stop if entries else 0
    headers = b"".join(entry.central_header() for entry in entries)
    n = len(entries)
    end64 = END64.pack(b"PK\6\6", END64.size - 12, MADE_BY, VERSION, 0, 0, n, n, len(headers), position)
    locator = LOCATOR.pack(b"PK\6\7", 0, position + len(headers), 1)
    comment = (COMMENT + manifest_sha256).encode("ascii")
    end = END.pack(b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, FULL, FULL, len(comment))
    return headers + end64 + locator + end + comment


def read_directory(file: BinaryIO) -> tuple[dict[str, Entry], str]:
    """Read and check all headers; return the members and the manifest's checksum.

    Raises
    ------
    ArchiveError
        Naming the first member whose place in the file does not hold.
    """
    file.seek(0, 2)
    length = file.tell()
    tail_size = END64.size + LOCATOR.size + END.size + COMMENT_SIZE
    tail = _read(file, max(0, length - tail_size), tail_size)
    if len(tail) < tail_size or tail[:4] != b"PK\6\6":
        raise ArchiveError(*_first_damage(file, length))
    n, headers_size, position = struct.unpack_from("<3Q", tail, 32)
    if n > MAX_MEMBERS or position + headers_size != length - tail_size:
        raise ArchiveError(*_first_damage(file, length))
    headers = _read(file, position, headers_size)
    entries = _parse_central(headers, n)
    if [e.offset for e in entries] != [0, *(e.stop for e in entries)][:-1] or (
        (entries[-1].stop if entries else 0) != position
    ):
        raise ArchiveError(*_first_damage(file, length))
    for entry in entries:
        if _read(file, entry.offset, entry.start - entry.offset) != entry.local_header():
            raise ArchiveError(entry.name, "its header in the file is damaged")
    sha256 = tail[-64:].decode("ascii", errors="replace")
    if not re.fullmatch(r"[0-9a-f]{64}", sha256) or directory(entries, sha256) != headers + tail:
        raise ArchiveError(CONTAINER, "the directory at the end of the file is damaged")
    return {entry.name: entry for entry in entries}, sha256


def _parse_central(headers: bytes, n: int) -> list[Entry]:
    entries: list[Entry] = []
    at = 0
    for number in range(n):
        if len(headers) < at + CENTRAL.size:
            raise ArchiveError(CONTAINER, f"the directory ends before entry {number}")
        fields = CENTRAL.unpack_from(headers, at)
        name_size = fields[10]
        name = headers[at + CENTRAL.size : at + CENTRAL.size + name_size].decode("ascii", errors="replace")
        if not NAME.fullmatch(name) or any(name == entry.name for entry in entries):
            raise ArchiveError(repr(name[:80]), "is not a member name of this format, or stands there twice")
        at_extra = at + CENTRAL.size + name_size
        if len(headers) < at_extra + 28:
            raise ArchiveError(name, "its directory entry is cut short")
        size, _, offset = struct.unpack_from("<3Q", headers, at_extra + 4)
        entry = Entry(name, fields[7], size, offset)
        encoded = entry.central_header()
        if headers[at : at + len(encoded)] != encoded:
            raise ArchiveError(name, "its directory entry is damaged, or was written by another tool")
        entries.append(entry)
        at += len(encoded)
    return entries


def _first_damage(file: BinaryIO, length: int) -> tuple[str, str]:
    """Walk the members from the start to say where a broken file stops making sense."""
    at = 0
    for _ in range(MAX_MEMBERS):
        head = _read(file, at, LOCAL.size)
        if len(head) < LOCAL.size or head[:4] != b"PK\3\4":
            break
        fields = LOCAL.unpack(head)
        rest = _read(file, at + LOCAL.size, fields[9] + 20)
        name = rest[: fields[9]].decode("ascii", errors="replace")
        if len(rest) < fields[9] + 20 or not NAME.fullmatch(name):
            break
        entry = Entry(name, fields[6], struct.unpack_from("<Q", rest, fields[9] + 4)[0], at)
        if entry.stop > length:
            return name, f"is cut short: the file ends {entry.stop - length} bytes too early"
        at = entry.stop
    if at == 0:
        return CONTAINER, "this is not a lograb archive (lograb generate makes one)"
    return CONTAINER, "the directory at the end of the file is missing or damaged"


def _read(file: BinaryIO, start: int, size: int) -> bytes:
    file.seek(start)
    return file.read(max(0, size))
