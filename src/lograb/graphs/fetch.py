"""Find the raw files of a public dataset: mirror first, then cache, then download.

Mirror and cache have the same layout, the one that PyTorch Geometric's and OGB's own loaders
leave behind (``planetoid/Cora/raw/ind.cora.x``). The mirror is the folder named by
``LOGRAB_MIRROR``; nothing is ever written there. The cache is ``LOGRAB_CACHE``, or ``lograb`` in
the platform's usual cache folder.

A file with a pinned checksum is checked against it wherever it comes from. Where no checksum was
published, the first download is trusted: its checksum is kept in ``<file>.sha256`` beside the
cached file, and later uses are checked against that.

Several processes may fetch the same dataset into the same cache. Whoever misses something holds a
lock from the first download to the last note (``.lock`` in the folder, or ``<archive>.lock``), and
the others wait; once everything is there, nobody locks or writes.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lograb.errors import LograbError, UnavailableError
from lograb.graphs.download import DownloadError, beside, download, file_sha256
from lograb.graphs.lock import only_one
from lograb.graphs.unzip import extract_member
from lograb.limits import max_bytes
from lograb.progress import Progress, ignore
from lograb.writing import replacing

__all__ = ["Fetched", "Place", "RawFile", "cache_folder", "fetch", "in_mirror", "locate",
           "mirror_folder"]

Place = Literal["mirror", "cache", "download"]


@dataclass(frozen=True)
class RawFile:
    """One file as its publisher released it.

    Attributes
    ----------
    path : str
        Place in the mirror and in the cache, with forward slashes.
    sha256 : str
        Pinned checksum; empty where none is known.
    url : str
        Where to download the file; empty if it comes out of a zip file or only from a mirror.
    archive : RawFile, optional
        The zip file that contains it.
    member : str
        Its name in that zip file.
    limit : int
        Bytes that it may have at most, and unpack to at most; `lograb.limits` can raise it.
    """

    path: str
    sha256: str = ""
    url: str = ""
    archive: RawFile | None = None
    member: str = ""
    limit: int = 1 << 30

    @property
    def max_bytes(self) -> int:
        """The limit, raised by the user where that is wanted."""
        return max_bytes(at_least=self.limit)


@dataclass(frozen=True)
class Fetched:
    """Raw files on this machine.

    Attributes
    ----------
    paths : dict
        From `RawFile.path` to the file.
    sha256 : str
        SHA-256 of the lines ``<sha256>  <RawFile.path>\\n``, one per file, sorted.
    """

    paths: dict[str, Path]
    sha256: str


def mirror_folder() -> Path | None:
    """Return the folder that ``LOGRAB_MIRROR`` names, None if it is unset."""
    name = os.environ.get("LOGRAB_MIRROR")
    if not name:
        return None
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise LograbError(f"LOGRAB_MIRROR must name an existing folder, got '{name}'; correct or unset it")
    return folder


def cache_folder() -> Path:
    """Return the folder that downloads go to: ``LOGRAB_CACHE`` or the platform's own choice."""
    chosen = os.environ.get("LOGRAB_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    xdg = os.environ.get("XDG_CACHE_HOME")
    if xdg:
        return Path(xdg).expanduser() / "lograb"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "lograb" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "lograb"
    return Path.home() / ".cache" / "lograb"


def in_mirror(file: RawFile) -> bool:
    """Tell whether the mirror has a file."""
    mirror = mirror_folder()
    return mirror is not None and (mirror / file.path).is_file()


def locate(files: Iterable[RawFile]) -> Place:
    """Tell where files would come from: the remotest place that any of them needs."""
    places: set[Place] = {_place(file) for file in files}
    return "download" if "download" in places else "cache" if "cache" in places else "mirror"


def fetch(files: Sequence[RawFile], progress: Progress | None = None) -> Fetched:
    """Bring files to this machine and check them.

    Parameters
    ----------
    files : sequence of RawFile
    progress : callable, optional
        Called with a file name, the bytes done and in total (or None), while something is downloaded.

    Returns
    -------
    Fetched
        Their places and one checksum of them all.

    Raises
    ------
    UnavailableError
        Where one of them cannot be had, or is not the one that was published.
    """
    try:
        return _fetch(files, progress or ignore)
    except LograbError as error:
        raise UnavailableError(str(error)) from error


def _fetch(files: Sequence[RawFile], progress: Progress) -> Fetched:
    if _complete(files):
        return _found(files, progress)
    try:
        with only_one(map(_lock, files), lambda: progress("waiting for another process", 0, None)):
            found = _found(files, progress)
            for archive in {file.archive for file in files if file.archive is not None}:
                _discard(archive)
    except OSError as error:
        raise LograbError(f"the cache folder {cache_folder()} must be writable, got: {error}; "
                          "choose another one with LOGRAB_CACHE") from error
    return found


def _complete(files: Sequence[RawFile]) -> bool:
    """Tell whether nothing will be written, so that no lock is needed and a read-only cache will do."""
    for file in files:
        target = cache_folder() / file.path
        if in_mirror(file):
            continue
        if not target.is_file() or not (file.sha256 or beside(target, ".sha256").exists()):
            return False
        if file.archive is not None and (cache_folder() / file.archive.path).exists():
            return False  # somebody is at work, or was stopped before the archive could be deleted
    return True


def _lock(file: RawFile) -> Path:
    if file.archive is not None:
        return beside(cache_folder() / file.archive.path, ".lock")
    return (cache_folder() / file.path).parent / ".lock"


def _found(files: Sequence[RawFile], progress: Progress) -> Fetched:
    paths: dict[str, Path] = {}
    lines: list[str] = []
    for file in files:
        paths[file.path], digest = _fetch_one(file, progress)
        lines.append(f"{digest}  {file.path}\n")
    return Fetched(paths, hashlib.sha256("".join(sorted(lines)).encode()).hexdigest())


def _place(file: RawFile) -> Place:
    if in_mirror(file):
        return "mirror"
    if (cache_folder() / file.path).is_file():
        return "cache"
    return _place(file.archive) if file.archive else "download"


def _fetch_one(file: RawFile, progress: Progress) -> tuple[Path, str]:
    """Return where a file is and its checksum."""
    mirror = mirror_folder()
    if mirror is not None and (mirror / file.path).is_file():
        return mirror / file.path, _checked(mirror / file.path, file.sha256, "replace it in the mirror")
    target = cache_folder() / file.path
    if not target.is_file():
        _bring(file, target, progress)
    return target, _checked_in_cache(target, file.sha256)


def _bring(file: RawFile, target: Path, progress: Progress) -> None:
    """Put a file into the cache."""
    if file.archive is not None:
        archive, _ = _fetch_one(file.archive, progress)
        try:
            extract_member(archive, file.member, target, file.max_bytes)
        except LograbError:
            _discard(file.archive)  # a bad copy must not stand in the way of the next attempt
            raise
        return
    tried = f"looked in {_mirror_text()} and in the cache {cache_folder()}"
    remedy = f"put it at '{file.path}' in a folder and set LOGRAB_MIRROR to that folder"
    if not file.url:
        raise LograbError(f"{file.path} cannot be downloaded; {tried}; {remedy}")
    try:
        download(file.url, target, file.sha256, file.max_bytes, progress)
    except DownloadError as error:
        raise LograbError(f"cannot get {file.path}: {error}; {tried}; try again, or {remedy}") from error


def _mirror_text() -> str:
    mirror = mirror_folder()
    return f"the mirror {mirror}" if mirror else "no mirror (LOGRAB_MIRROR is not set)"


def _checked(path: Path, expected: str, remedy: str) -> str:
    got = file_sha256(path)
    if expected and got != expected:
        raise LograbError(f"{path} must have SHA-256 {expected}, got {got}; {remedy}")
    return got


def _checked_in_cache(path: Path, pinned: str) -> str:
    remedy = "delete it, so that it is downloaded again"
    note = beside(path, ".sha256")
    if pinned or not note.exists():
        got = _checked(path, pinned, remedy)
        if not pinned:  # trust on first use
            with replacing(note) as file:
                file.write(f"{got}  {path.name}\n")
        return got
    words = note.read_text(errors="replace").split()
    return _checked(path, words[0] if words else "missing", f"{remedy}, together with {note.name}")


def _discard(archive: RawFile) -> None:
    """Delete a zip file from the cache: its members are there, or it is of no use."""
    path = cache_folder() / archive.path
    for leftover in (path, beside(path, ".sha256")):
        leftover.unlink(missing_ok=True)
