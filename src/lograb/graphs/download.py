"""One file over HTTP: resumed after an interruption, checked, and put in place at once or not at all."""

from __future__ import annotations

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lograb.errors import UnavailableError
from lograb.limits import REMEDY
from lograb.progress import Progress

TIMEOUT = 30.0
"""Seconds without a sign of the server before an attempt is given up."""
PAUSES = (0.5, 1.5, 4.0)
"""Seconds to wait before each further attempt; their number is the number of retries."""
CHUNK = 1 << 20

_Receive = Callable[[http.client.HTTPResponse, Path, int], None]


class _TooLargeError(Exception):
    """More bytes than the limit."""


class DownloadError(UnavailableError):
    """A download that failed for good; the message is the reason, without the remedy."""


def download(url: str, target: Path, sha256: str, limit: int, progress: Progress) -> None:
    """Download a URL to a file of at most `limit` bytes.

    The bytes go to ``<target>.part`` and are renamed when they are complete and checked, so a
    killed download leaves no half file and the next one goes on where it stopped. It goes on only
    if the server can tell that its file is still the same (ETag or Last-Modified, kept in
    ``<target>.part.tag``) or a checksum is pinned; otherwise it starts again. Only one process may
    download to a target: the caller holds the lock.

    Raises
    ------
    DownloadError
        If the server cannot be reached, refuses, or sends more than the limit or a file with another
        checksum.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part, tag = beside(target, ".part"), beside(target, ".part.tag")
    try:
        _transfer(url, part, tag, bool(sha256), partial(_receive, limit, partial(progress, target.name)))
    except _TooLargeError as error:
        part.unlink(missing_ok=True)
        tag.unlink(missing_ok=True)
        raise DownloadError(f"{url}: {error}; {REMEDY}") from None
    got = file_sha256(part)
    if sha256 and got != sha256:
        part.unlink()
        tag.unlink(missing_ok=True)
        raise DownloadError(f"{target.name} from {url} must have SHA-256 {sha256}, got {got}; "
                            "the partial file was deleted")
    os.replace(part, target)
    tag.unlink(missing_ok=True)


def file_sha256(path: Path) -> str:
    """Compute the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def beside(path: Path, suffix: str) -> Path:
    """Return the path of a companion file: the same name with something appended."""
    return path.with_name(path.name + suffix)


def _transfer(url: str, part: Path, tag: Path, resumable: bool, receive: _Receive) -> None:
    """Fill the part file, with as many attempts as `PAUSES` allows."""
    for pause in (*PAUSES, None):
        try:
            _attempt(url, part, tag, resumable, receive)
            return
        except urllib.error.HTTPError as error:
            problem = f"the server answered {error.code} {error.reason}"
            final = error.code < 500 and error.code not in (408, 416, 429)
            error.close()
        except (OSError, http.client.HTTPException) as error:  # URLError and timeouts are OSErrors
            problem, final = str(error) or type(error).__name__, False
        if final or pause is None:
            raise DownloadError(f"{url}: {problem}")
        time.sleep(pause)


def _attempt(url: str, part: Path, tag: Path, resumable: bool, receive: _Receive) -> None:
    start, headers = _resume_point(part, tag, resumable)
    request = urllib.request.Request(url, headers={"User-Agent": "lograb", **headers})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416 and _range_total(error.headers.get("Content-Range")) == start:
            error.close()
            return  # the part file was complete; only its renaming is missing
        if error.code == 416:
            part.unlink(missing_ok=True)
        raise
    except ValueError as error:
        raise OSError(f"the server redirects to what is no address: {error}") from error
    with response:
        if response.status == 206 and not _starts_at(response.headers.get("Content-Range"), start):
            part.unlink(missing_ok=True)
            raise OSError("the server sent another range than the one asked for")
        if response.status != 206:  # the server ignores ranges or its file has changed
            start = 0
            _remember(tag, response.headers.get("ETag"), response.headers.get("Last-Modified"))
        receive(response, part, start)


def _resume_point(part: Path, tag: Path, resumable: bool) -> tuple[int, dict[str, str]]:
    start = part.stat().st_size if part.exists() else 0
    if start == 0:
        return 0, {}
    known = tag.read_text(errors="replace").strip() if tag.exists() else ""
    if _sendable(known):
        return start, {"Range": f"bytes={start}-", "If-Range": known}
    return (start, {"Range": f"bytes={start}-"}) if resumable else (0, {})


def _remember(tag: Path, etag: str | None, modified: str | None) -> None:
    # A weak ETag does not promise equal bytes, so it cannot vouch for a resumed file.
    known = etag if etag and not etag.startswith("W/") else modified
    if known and _sendable(known):
        tag.write_text(known)
    else:
        tag.unlink(missing_ok=True)


def _sendable(value: str) -> bool:
    """Tell whether a header that came from a server can be sent back to it."""
    return value.isascii() and value.isprintable() and 0 < len(value) < 1000


def _receive(limit: int, report: Callable[[int, int | None], None], response: http.client.HTTPResponse,
             part: Path, start: int) -> None:
    announced = response.headers.get("Content-Length")
    length = _whole_number(announced)
    if announced is not None and length is None:  # whether all has come could not be told
        raise OSError(f"the server announces a length of '{announced[:60]}'")
    total = start + length if length is not None else None
    if total is not None and total > limit:
        raise _TooLargeError(f"the file must have at most {limit} bytes, the server announces {total}")
    done = start
    with part.open("ab" if start else "wb") as file:
        report(done, total)
        while chunk := response.read(CHUNK):
            done += len(chunk)
            if done > limit:
                raise _TooLargeError(f"the file must have at most {limit} bytes, the server sends more")
            file.write(chunk)
            report(done, total)
    if total is not None and done != total:
        raise OSError(f"the connection broke after {done} of {total} bytes")


def _range_total(header: str | None) -> int | None:
    return _whole_number((header or "").rpartition("/")[2])


def _whole_number(text: str | None) -> int | None:
    """Read a number from a header; None where there is none, or something else."""
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _starts_at(header: str | None, start: int) -> bool:
    return (header or "").replace("=", " ").startswith(f"bytes {start}-")
