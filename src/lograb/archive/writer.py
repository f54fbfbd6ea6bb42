"""Write an archive graph by graph, in constant memory, and all or nothing."""

from __future__ import annotations

import hashlib
import io
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np

from lograb.archive import schema
from lograb.archive.container import COMMENT, COMMENT_SIZE, Entry, directory
from lograb.archive.croissant import croissant
from lograb.archive.manifest import BLOCK, CROISSANT, MANIFEST, Digest, Manifest, Member, software
from lograb.archive.schema import POINTERS, TRUTH_PARTS, part
from lograb.archive.tables import Array, canonical
from lograb.errors import LograbError
from lograb.writing import replacing


class Writer:
    """Collect the tables of one or more graphs and pack them into one file.

    Columns grow in files without a name on the target's disk; `finish` packs them into a temporary file beside
    the target, which then takes its name. Whatever happens before that, the target is untouched.

    Parameters
    ----------
    path : path of the archive
    truth : bool
        If False, whatever would answer Task 1 is left out, the seed included: it would reproduce
        the noise, and with the noise subtracted the embeddings are exact.
    """

    def __init__(self, path: str | Path, *, truth: bool = True) -> None:
        self.path = Path(path).resolve()  # through a link to the file it names
        self.truth = truth
        self._columns: dict[str, _Column] = {}
        _check_target(self.path)
        try:
            tempfile.TemporaryFile(dir=self.path.parent).close()
        except OSError as error:
            raise LograbError(f"cannot write into the folder '{self.path.parent}': {error.strerror}") from None

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        for column in self._columns.values():
            with suppress(OSError):  # a full disk fails once more when its buffer is flushed
                column.file.close()
        if isinstance(value, OSError):
            raise LograbError(f"cannot write '{self.path}': {value.strerror}") from None

    def append(self, tables: Mapping[str, Array]) -> None:
        """Add the tables of one graph (or of several, already joined)."""
        left_out = () if self.truth else TRUTH_PARTS
        kept = {name: array for name, array in canonical(tables).items() if part(name) not in left_out}
        if not self._columns:
            self._columns = {name: _Column(self.path.parent, name, array) for name, array in kept.items()}
        if kept.keys() != self._columns.keys():
            odd = sorted(kept.keys() ^ self._columns.keys())
            raise LograbError(f"all graphs of an archive need the same columns; they differ in {', '.join(odd)}")
        for name, array in kept.items():
            self._columns[name].append(array)

    def finish(self, manifest: Manifest) -> str:
        """Pack everything, give it its final name, and return the SHA-256 of the file."""
        if not self._columns:
            raise LograbError("an archive needs at least one graph")
        with replacing(self.path, binary=True) as file:
            return self._pack(file, manifest)

    def _pack(self, file: IO[bytes], manifest: Manifest) -> str:
        whole = hashlib.sha256()
        entries: list[Entry] = []

        def add(name: str, blocks: Iterator[bytes], crc: int, size: int) -> None:
            entries.append(Entry(name, crc, size, entries[-1].stop if entries else 0))
            for piece in chain((entries[-1].local_header(),), blocks):
                file.write(piece)
                whole.update(piece)

        members = {}
        for name, column in self._columns.items():
            members[name], crc = column.describe()
            add(f"{name}.npy", column.blocks(), crc, members[name].bytes)
        update = {"members": members, "software": software(), "truth": schema.TRUTH in members}
        manifest = (manifest if self.truth else _without_clues(manifest)).model_copy(update=update)
        metadata = croissant(manifest)
        digest = hashlib.sha256(metadata).hexdigest()
        encoded = manifest.model_copy(update={"croissant_sha256": digest}).encode()
        for name, data in ((CROISSANT, metadata), (MANIFEST, encoded)):
            add(name, iter((data,)), zlib.crc32(data), len(data))
        end = directory(entries, hashlib.sha256(encoded).hexdigest())
        file.write(end)
        whole.update(end)
        return whole.hexdigest()


def _check_target(path: Path) -> None:
    """Refuse to replace anything but a lograb archive."""
    if path.is_dir():
        raise LograbError(f"cannot write '{path}': it is a folder")
    if not path.exists():
        return
    if not path.is_file():
        raise LograbError(f"cannot write '{path}': it is not a regular file")
    if path.stat().st_size:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - COMMENT_SIZE))
            if not file.read().startswith(COMMENT.encode()):
                raise LograbError(f"'{path}' exists and is not a lograb archive: choose another name or remove it")


def _without_clues(manifest: Manifest) -> Manifest:
    """Withhold the seed, and the checksum by which a guess at the user's own file could be confirmed."""
    update: dict[str, object] = {"spec": manifest.spec.model_copy(update={"seed": None}), "notices": ()}
    if manifest.origin.kind == "file":
        update["origin"] = manifest.origin.model_copy(update={"sha256": ""})
    return manifest.model_copy(update=update)


class _Column:
    """One growing array in a temporary file."""

    def __init__(self, folder: Path, name: str, like: Array) -> None:
        self.name, self.dtype, self.tail = name, like.dtype, like.shape[1:]
        self.rows = 0
        self.last = 0
        self.file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (the writer closes it)

    def append(self, array: Array) -> None:
        if array.dtype != self.dtype or array.shape[1:] != self.tail:
            raise LograbError(f"'{self.name}' must have one type and width in all graphs of an archive, "
                              f"got {array.dtype}{array.shape[1:]} after {self.dtype}{self.tail}")
        if self.name in POINTERS:
            total = int(array[-1])
            array = array + self.last if self.rows == 0 else array[1:] + self.last
            self.last += total
        self.file.write(np.ascontiguousarray(array).data)
        self.rows += len(array)

    def blocks(self) -> Iterator[bytes]:
        """Read the member's bytes, npy header first, in blocks."""
        head = npy_header(self.dtype, (self.rows, *self.tail))
        self.file.seek(0)
        piece = head + self.file.read(BLOCK - len(head))
        while piece:
            yield piece
            piece = self.file.read(BLOCK)

    def describe(self) -> tuple[Member, int]:
        """Make the member's manifest entry, and its CRC-32."""
        found = Digest.of(self.blocks())
        shape = (self.rows, *self.tail)
        member = Member(
            dtype=self.dtype.str, shape=shape, bytes=found.size, sha256=found.sha256, blocks=found.blocks
        )
        return member, found.crc


def npy_header(dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> bytes:
    """Encode the header of a .npy file (version 1.0, row-major)."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": dtype.str, "fortran_order": False, "shape": shape}
    )
    return buffer.getvalue()
