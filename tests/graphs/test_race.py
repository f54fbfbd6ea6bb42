"""Several processes fetch the same dataset into the same cache, and none of them fails."""

from __future__ import annotations

import http.server
import io
import multiprocessing
import os
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lograb.errors import LograbError
from lograb.graphs.fetch import RawFile, fetch

N_PROCESSES, N_ROUNDS = 3, 20
MEMBERS = {f"m{i}": bytes([i]) * 20_000 for i in range(4)}
FILES = {f"f{i}": bytes([i]) * 20_000 for i in range(4)}


def box() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in MEMBERS.items():
            archive.writestr(name, content)
    return stream.getvalue()


CONTENTS = {"/box.zip": box(), **{f"/{name}": content for name, content in FILES.items()}}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = CONTENTS[self.path]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.delenv("LOGRAB_MIRROR", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def raw_files(url: str, round_: int) -> list[RawFile]:
    """In turn: members of a zip file, of which the archive is discarded, and single files."""
    if round_ % 2:
        return [RawFile(f"set/raw/{name}", url=f"{url}/{name}") for name in FILES]
    archive = RawFile("set/box.zip", url=f"{url}/box.zip")
    return [RawFile(f"set/raw/{name}", archive=archive, member=name) for name in MEMBERS]


def work(url: str, folder: Path, start: Any, failures: Any) -> None:
    for round_ in range(N_ROUNDS):
        os.environ["LOGRAB_CACHE"] = str(folder / str(round_))
        start.wait(20)
        try:
            paths = fetch(raw_files(url, round_)).paths
            contents = {path.name: path.read_bytes() for path in paths.values()}
            assert contents == (FILES if round_ % 2 else MEMBERS)
        except Exception as error:
            failures.put(f"round {round_}: {error!r}")
    failures.put("")


def test_processes_that_fetch_at_the_same_time_all_succeed(url: str, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start, failures = context.Barrier(N_PROCESSES), context.Queue()
    workers = [context.Process(target=work, args=(url, tmp_path, start, failures)) for _ in range(N_PROCESSES)]
    for worker in workers:
        worker.start()
    found, done = [], 0
    while done < N_PROCESSES:
        text = failures.get(timeout=30)
        done += not text
        found += [text] * bool(text)
    for worker in workers:
        worker.join()
    assert found == []
    left = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    notes = {f"{name}.sha256" for name in (*FILES, *MEMBERS)}
    assert left == {*FILES, *MEMBERS, *notes, "box.zip.lock", ".lock"}


def test_a_complete_cache_is_not_written(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGRAB_CACHE", str(tmp_path))
    found = fetch(raw_files(url, 0))
    (tmp_path / "set/box.zip.lock").unlink()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert fetch(raw_files(url, 0)) == found
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_an_archive_left_by_a_stopped_process_is_deleted(
        url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGRAB_CACHE", str(tmp_path))
    found = fetch(raw_files(url, 0))
    (tmp_path / "set/box.zip").write_bytes(box())
    assert fetch(raw_files(url, 0)) == found
    assert not (tmp_path / "set/box.zip").exists()


def test_whoever_waits_is_told(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setenv("LOGRAB_CACHE", str(tmp_path))
    (tmp_path / "set").mkdir()
    with (tmp_path / "set/box.zip.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        told: list[str] = []

        def report(what: str, done: int, total: int | None) -> None:
            told.append(what)
            if len(told) == 1:
                fcntl.flock(lock, fcntl.LOCK_UN)

        fetch(raw_files(url, 0), report)
    assert told[0] == "waiting for another process"


def test_a_note_that_is_not_text_is_an_error_with_a_remedy(
        url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGRAB_CACHE", str(tmp_path))
    fetch(raw_files(url, 1))
    (tmp_path / "set/raw/f0.sha256").write_bytes(b"\xff\xfe")
    with pytest.raises(LograbError, match="delete it"):
        fetch(raw_files(url, 1))


def test_a_cache_that_cannot_be_written_is_named(
        url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("LOGRAB_CACHE", str(tmp_path / "file"))
    with pytest.raises(LograbError, match="must be writable.*LOGRAB_CACHE"):
        fetch(raw_files(url, 0))
