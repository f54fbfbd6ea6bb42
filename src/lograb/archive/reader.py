"""Open an archive without reading it all, and never hand out a byte that was not verified."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from lograb.archive.container import CONTAINER, Entry, read_directory
from lograb.archive.manifest import BLOCK, CROISSANT, MANIFEST, MAX_BYTES, Digest, Manifest, Member
from lograb.archive.schema import RULES
from lograb.archive.tables import Tables, check
from lograb.archive.writer import npy_header
from lograb.errors import ArchiveError, LograbError


class StoredColumn:
    """An array in an archive: rows are read, and verified block by block, when asked for."""

    def __init__(self, path: Path, entry: Entry, member: Member) -> None:
        self.shape = tuple(member.shape)
        self.dtype: np.dtype[Any] = np.dtype(member.dtype)
        self._path, self._entry, self._member = path, entry, member
        self._row_bytes = self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=np.int64))
        self._header = npy_header(self.dtype, self.shape)
        self._last: tuple[int, bytes] = (-1, b"")
        expected = len(self._header) + self._row_bytes * self.shape[0]
        if not expected == member.bytes == entry.size or len(member.blocks) != -(-member.bytes // BLOCK):
            raise ArchiveError(entry.name, f"holds {entry.size} bytes where its shape needs {expected}")
        if self._read(0, len(self._header)) != self._header:
            raise ArchiveError(entry.name, "its array header is damaged")

    def __getitem__(self, rows: slice) -> Any:
        start, stop, step = rows.indices(self.shape[0])
        if step != 1:
            raise ValueError("a stored column is read in runs of consecutive rows")
        stop = max(start, stop)
        head = len(self._header)
        data = self._bytes(head + start * self._row_bytes, head + stop * self._row_bytes)
        return np.frombuffer(data, dtype=self.dtype).reshape(stop - start, *self.shape[1:])

    def _bytes(self, start: int, stop: int) -> bytes:
        if stop == start:
            return b""
        first, last = start // BLOCK, (stop - 1) // BLOCK
        pieces = [self._block(number) for number in range(first, last + 1)]
        pieces[-1] = pieces[-1][: stop - last * BLOCK]
        pieces[0] = pieces[0][start - first * BLOCK :]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _read(self, start: int, size: int) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._entry.start + start)
                return file.read(size)
        except OSError as error:
            raise LograbError(f"cannot read '{self._path}': {error.strerror}") from None

    def _block(self, number: int) -> bytes:
        if self._last[0] == number:
            return self._last[1]
        size = min(BLOCK, self._entry.size - number * BLOCK)
        data = self._read(number * BLOCK, size)
        if hashlib.sha256(data).hexdigest() != self._member.blocks[number]:
            raise ArchiveError(self._entry.name, f"checksum differs in block {number}: the file is damaged")
        self._last = (number, data)
        return data


def read(path: str | Path) -> tuple[Manifest, Tables]:
    """Open an archive: check its structure and manifest, and return its columns unread."""
    path = Path(path).absolute()  # the columns are read later, perhaps from another folder
    entries, manifest = _open(path)
    return manifest, _columns(path, entries, manifest)


def _columns(path: Path, entries: dict[str, Entry], manifest: Manifest) -> Tables:
    columns = {
        name: StoredColumn(path, entries[f"{name}.npy"], member) for name, member in manifest.members.items()
    }
    check(columns)
    return columns


def _open(path: Path) -> tuple[dict[str, Entry], Manifest]:
    try:
        with path.open("rb") as file:
            entries, sha256 = read_directory(file)
            entry = entries.get(MANIFEST)
            if entry is None or entry.size > MAX_BYTES:
                raise ArchiveError(MANIFEST, "is missing" if entry is None else "is too large")
            file.seek(entry.start)
            data = file.read(entry.size)
    except OSError as error:
        raise LograbError(f"cannot read '{path}': {error.strerror}") from None
    except ArchiveError as error:
        if error.member != CONTAINER:
            raise
        raise ArchiveError(CONTAINER, error.problem, path.name) from None
    except ValueError as error:
        raise LograbError(f"cannot read '{path}': {error}") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ArchiveError(MANIFEST, "checksum differs: the file is damaged")
    manifest = Manifest.decode(data)
    for name, member in manifest.members.items():
        if name not in RULES or member.dtype not in RULES[name].dtypes:
            raise ArchiveError(MANIFEST, f"lists the unknown column '{name[:80]}' of type {member.dtype[:20]}")
    expected = {MANIFEST, CROISSANT, *(f"{name}.npy" for name in manifest.members)}
    if expected != entries.keys():
        odd = sorted(expected ^ entries.keys())[0]
        raise ArchiveError(odd, "is missing" if odd in expected else "is not listed in the manifest")
    return entries, manifest


def verify(path: str | Path) -> Manifest:
    """Read every byte of an archive and check all checksums.

    Raises
    ------
    ArchiveError
        Naming the first member that does not hold.
    """
    path = Path(path)
    entries, manifest = _open(path)
    _columns(path, entries, manifest)
    with path.open("rb") as file:
        for name, entry in entries.items():
            file.seek(entry.start)
            found = Digest.of(
                file.read(min(BLOCK, entry.size - start)) for start in range(0, entry.size, BLOCK)
            )
            member = manifest.members.get(name.removesuffix(".npy"))
            if member is not None:
                good = (found.sha256, found.blocks) == (member.sha256, member.blocks)
            else:  # the manifest's own checksum was compared when it was opened
                good = name == MANIFEST or found.sha256 == manifest.croissant_sha256
            if not good or found.crc != entry.crc:
                raise ArchiveError(name, "checksum differs: the file is damaged")
    return manifest
