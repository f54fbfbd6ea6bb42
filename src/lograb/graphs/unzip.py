"""Take single members out of a downloaded zip file, without trusting the file."""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path

from lograb.arrays import PACKINGS
from lograb.errors import LograbError
from lograb.graphs.download import CHUNK, beside
from lograb.limits import REMEDY

# A RuntimeError (NotImplementedError is one) says: encrypted, or compressed in an unknown way.
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError)


def extract_member(archive: Path, member: str, target: Path, limit: int) -> None:
    """Write one member of a zip file to `target`.

    The target is the caller's, never a name from the zip file, so a member cannot escape; what is
    written is cut off at `limit` bytes whatever the zip file claims. The file appears complete or
    not at all. Only one process may write to a target: the caller holds the lock.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = beside(target, ".part")
    try:
        _copy_member(archive, member, part, limit)
    except BROKEN as error:
        part.unlink(missing_ok=True)
        raise LograbError(f"{archive.name} must be a readable zip file, got: {error}; "
                          "replace it, or try the download again") from error
    except LograbError:
        part.unlink(missing_ok=True)
        raise
    os.replace(part, target)


def _copy_member(archive: Path, member: str, part: Path, limit: int) -> None:
    with zipfile.ZipFile(archive) as box:
        if member not in box.namelist():
            raise LograbError(f"{archive.name} must contain '{member}', it does not; "
                              "the publisher may have changed the layout")
        packing = box.getinfo(member).compress_type
        if packing not in PACKINGS:
            raise LograbError(f"{archive.name}: '{member}' must be stored or deflated, got packing {packing}; "
                              "the file is not what the publisher released")
        with box.open(member) as source, part.open("wb") as file:
            done = 0
            while chunk := source.read(CHUNK):
                done += len(chunk)
                if done > limit:
                    raise LograbError(f"{archive.name}: '{member}' must unpack to at most {limit} bytes; "
                                      f"the file is not what the publisher released; {REMEDY}")
                file.write(chunk)
