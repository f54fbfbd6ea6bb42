from __future__ import annotations

import hashlib
import http.server
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lograb.errors import LograbError
from lograb.graphs import download as download_module
from lograb.graphs.fetch import RawFile, cache_folder, fetch, locate

CONTENT = bytes(range(256)) * 4000  # about a megabyte
SHA = hashlib.sha256(CONTENT).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    """Serves one content; `cuts` counts the answers still to be broken off halfway."""

    content = CONTENT
    etag: str | None = '"one"'
    ranges = True
    length: str | None = ""  # to announce instead of the true length; None for nothing
    cuts = 0
    statuses: tuple[int, ...] = ()
    asked: list[str | None]

    def url(self, name: str = "data.bin") -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server = self.server
        asked = self.headers.get("Range")
        server.asked.append(asked)
        if "address" in self.path:
            self.send_response(302)
            self.send_header("Location", "http://[no-address/")
            self.end_headers()
            return
        if server.statuses:
            status, *rest = server.statuses
            server.statuses = tuple(rest)
            self.send_error(status)
            return
        start = 0
        same = self.headers.get("If-Range") in (None, server.etag)
        if asked and server.ranges and same:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
        if start >= len(server.content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(server.content)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.answer(start)

    def answer(self, start: int) -> None:
        server, body = self.server, self.server.content[start:]
        self.send_response(206 if start else 200)
        if start:
            size = len(server.content)
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        if server.etag:
            self.send_header("ETag", server.etag)
        if server.length is not None:
            self.send_header("Content-Length", server.length or str(len(body)))
        self.end_headers()
        if server.cuts:
            server.cuts -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    monkeypatch.delenv("LOGRAB_MIRROR", raising=False)
    monkeypatch.setenv("LOGRAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download_module, "PAUSES", (0.0, 0.0, 0.0))
    with Server(("127.0.0.1", 0), Handler) as running:
        running.asked = []
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def raw(server: Server, sha256: str = SHA) -> RawFile:
    return RawFile("some/raw/data.bin", sha256, server.url())


def cached() -> Path:
    return cache_folder() / "some/raw/data.bin"


def leftovers() -> set[str]:
    return {path.name for path in cached().parent.iterdir()} - {".lock"}


def test_download_reports_progress_and_is_not_repeated(server: Server) -> None:
    seen: list[tuple[str, int, int | None]] = []
    found = fetch([raw(server)], lambda *report: seen.append(report))
    assert found.paths["some/raw/data.bin"].read_bytes() == CONTENT
    assert found.sha256 == hashlib.sha256(f"{SHA}  some/raw/data.bin\n".encode()).hexdigest()
    assert seen[0] == ("data.bin", 0, len(CONTENT))
    assert seen[-1] == ("data.bin", len(CONTENT), len(CONTENT))
    assert locate([raw(server)]) == "cache"
    assert fetch([raw(server)]) == found
    assert len(server.asked) == 1
    assert leftovers() == {"data.bin"}


def test_a_cut_connection_is_resumed(server: Server) -> None:
    server.cuts = 2
    fetch([raw(server)])
    assert cached().read_bytes() == CONTENT
    half = len(CONTENT) // 2
    assert server.asked == [None, f"bytes={half}-", f"bytes={half + half // 2}-"]


def test_a_killed_download_is_resumed_by_the_next(server: Server) -> None:
    server.cuts = 4
    with pytest.raises(LograbError, match="broke after"):
        fetch([raw(server)])
    assert not cached().exists()
    server.asked.clear()
    fetch([raw(server)])
    assert cached().read_bytes() == CONTENT
    assert len(server.asked) == 1
    assert server.asked[0] is not None


def test_a_server_without_ranges_starts_again(server: Server) -> None:
    server.cuts, server.ranges = 1, False
    fetch([raw(server)])
    assert cached().read_bytes() == CONTENT


def test_a_changed_file_is_not_spliced(server: Server) -> None:
    server.cuts = 4
    with pytest.raises(LograbError):
        fetch([raw(server, "")])
    server.content, server.etag = CONTENT[::-1], '"two"'
    fetch([raw(server, "")])
    assert cached().read_bytes() == CONTENT[::-1]


def test_without_etag_and_checksum_nothing_is_resumed(server: Server) -> None:
    server.cuts, server.etag = 1, None
    fetch([raw(server, "")])
    assert server.asked == [None, None]


def test_a_complete_part_file_is_only_renamed(server: Server) -> None:
    cached().parent.mkdir(parents=True)
    cached().with_name("data.bin.part").write_bytes(CONTENT)
    fetch([raw(server)])
    assert cached().read_bytes() == CONTENT
    assert server.asked == [f"bytes={len(CONTENT)}-"]


def test_a_part_file_that_is_too_long_is_started_again(server: Server) -> None:
    cached().parent.mkdir(parents=True)
    cached().with_name("data.bin.part").write_bytes(CONTENT + b"more")
    fetch([raw(server)])
    assert cached().read_bytes() == CONTENT


def test_a_wrong_checksum_deletes_the_file(server: Server) -> None:
    with pytest.raises(LograbError) as caught:
        fetch([raw(server, "0" * 64)])
    for part in ("data.bin", "0" * 64, SHA):
        assert part in str(caught.value)
    assert leftovers() == set()


def test_404_is_final_and_explained(server: Server) -> None:
    server.statuses = (404,)
    with pytest.raises(LograbError, match=r"404.*LOGRAB_MIRROR"):
        fetch([raw(server)])
    assert len(server.asked) == 1


def test_a_busy_server_is_asked_again(server: Server) -> None:
    server.statuses = (503, 429)
    fetch([raw(server)])
    assert cached().read_bytes() == CONTENT


def test_no_network_says_what_was_tried(server: Server) -> None:
    file = RawFile("some/raw/data.bin", SHA, "http://127.0.0.1:9/data.bin")
    with pytest.raises(LograbError) as caught:
        fetch([file])
    for part in ("some/raw/data.bin", "127.0.0.1:9", "LOGRAB_MIRROR", str(cache_folder())):
        assert part in str(caught.value)


def test_the_first_download_is_trusted_and_later_ones_compared(server: Server) -> None:
    found = fetch([raw(server, "")])
    assert cached().with_name("data.bin.sha256").read_text() == f"{SHA}  data.bin\n"
    assert fetch([raw(server, "")]) == found
    cached().write_bytes(b"changed")
    with pytest.raises(LograbError, match=SHA):
        fetch([raw(server, "")])


def test_a_damaged_cache_is_noticed(server: Server) -> None:
    fetch([raw(server)])
    cached().write_bytes(CONTENT[:-1])
    with pytest.raises(LograbError, match="delete it"):
        fetch([raw(server)])


def test_the_mirror_comes_first_is_checked_and_never_written(
        server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = tmp_path / "mirror"
    (mirror / "some/raw").mkdir(parents=True)
    (mirror / "some/raw/data.bin").write_bytes(CONTENT)
    monkeypatch.setenv("LOGRAB_MIRROR", str(mirror))
    for sha256 in (SHA, ""):
        assert locate([raw(server, sha256)]) == "mirror"
        assert fetch([raw(server, sha256)]).paths["some/raw/data.bin"] == mirror / "some/raw/data.bin"
    assert server.asked == []
    assert [path.name for path in mirror.rglob("*") if path.is_file()] == ["data.bin"]
    assert not cache_folder().exists()
    with pytest.raises(LograbError, match="mirror"):
        fetch([raw(server, "0" * 64)])


@pytest.mark.parametrize("length", ["abc", "-7", "1_0", "²", "9" * 5000])
def test_a_length_that_is_no_number_is_an_error(server: Server, length: str) -> None:
    server.length = length
    with pytest.raises(LograbError, match="announces a length"):
        fetch([raw(server, "")])


def test_a_server_need_not_announce_the_length(server: Server) -> None:
    server.length = None
    fetch([raw(server)])
    assert cached().read_bytes() == CONTENT


@pytest.mark.parametrize("length", ["", None])
def test_a_download_beyond_the_limit_is_stopped_and_forgotten(
        server: Server, monkeypatch: pytest.MonkeyPatch, length: str | None) -> None:
    server.length = length
    file = RawFile("some/raw/data.bin", url=server.url(), limit=len(CONTENT) - 1)
    with pytest.raises(LograbError, match=f"at most {len(CONTENT) - 1} bytes.*LOGRAB_MAX_BYTES"):
        fetch([file])
    assert len(server.asked) == 1
    assert leftovers() == set()
    monkeypatch.setenv("LOGRAB_MAX_BYTES", str(len(CONTENT)))
    fetch([file])
    assert cached().read_bytes() == CONTENT


def test_the_variable_does_not_lower_the_limit_of_a_download(
        server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGRAB_MAX_BYTES", "7")
    fetch([raw(server)])
    assert cached().read_bytes() == CONTENT


@pytest.mark.parametrize("etag", ['"a\xe9"', '"' + "e" * 5000 + '"', '"a\r\n b"'])
def test_a_tag_that_cannot_be_sent_back_is_not_kept(server: Server, etag: str) -> None:
    server.cuts, server.etag = 1, etag
    fetch([raw(server, "")])
    assert cached().read_bytes() == CONTENT
    assert server.asked == [None, None]


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"a\nb"])
def test_a_damaged_tag_is_not_sent(server: Server, content: bytes) -> None:
    cached().parent.mkdir(parents=True)
    cached().with_name("data.bin.part").write_bytes(CONTENT[:-1])
    cached().with_name("data.bin.part.tag").write_bytes(content)
    fetch([raw(server, "")])
    assert cached().read_bytes() == CONTENT
    assert server.asked == [None]


def test_a_redirection_to_no_address_is_an_error(server: Server) -> None:
    with pytest.raises(LograbError, match="no address"):
        fetch([RawFile("some/raw/data.bin", url=server.url("address"))])


def test_a_missing_mirror_is_an_error(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGRAB_MIRROR", "/no/such/folder")
    with pytest.raises(LograbError, match="LOGRAB_MIRROR must name an existing folder"):
        fetch([raw(server)])


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LOGRAB_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "lograb"
    monkeypatch.setenv("LOGRAB_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"


def zipped(path: Path, members: dict[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    with zipfile.ZipFile(path, "w", packing) as box:
        for name, content in members.items():
            box.writestr(name, content)
    return path.read_bytes()


def members(server: Server, limit: int = 10**7) -> list[RawFile]:
    archive = RawFile("some/box.zip", url=server.url("box.zip"))
    return [RawFile(f"some/raw/{name}", archive=archive, member=f"box/{name}", limit=limit) for name in "ab"]


def test_members_of_a_zip_are_extracted_and_nothing_else(server: Server, tmp_path: Path) -> None:
    content = {"box/a": b"A", "box/b": b"B", "../escaped": b"!", "box/c": b"C"}
    server.content = zipped(tmp_path / "box.zip", content)
    found = fetch(members(server))
    assert [path.read_bytes() for path in found.paths.values()] == [b"A", b"B"]
    files = {str(path.relative_to(cache_folder())) for path in cache_folder().rglob("*") if path.is_file()}
    assert files - {"some/box.zip.lock"} == {f"some/raw/{name}" for name in ("a", "b", "a.sha256", "b.sha256")}
    assert not list(tmp_path.rglob("escaped"))
    assert len(server.asked) == 1
    assert fetch(members(server)) == found
    assert len(server.asked) == 1


def test_a_zip_in_the_mirror_is_used_and_kept(
        server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mirror/some").mkdir(parents=True)
    zipped(tmp_path / "mirror/some/box.zip", {"box/a": b"A", "box/b": b"B"})
    monkeypatch.setenv("LOGRAB_MIRROR", str(tmp_path / "mirror"))
    assert locate(members(server)) == "mirror"
    assert fetch(members(server)).paths["some/raw/a"].read_bytes() == b"A"
    assert (tmp_path / "mirror/some/box.zip").exists()
    assert server.asked == []


@pytest.mark.parametrize(("content", "problem"), [
    ({"box/a": b"A"}, "must contain 'box/b'"),
    ({"box/a": b"A", "box/b": b"x" * 2000}, "at most 1000 bytes"),
    (None, "readable zip"),
])
def test_a_bad_zip_is_refused_and_forgotten(
        server: Server, tmp_path: Path, content: dict[str, bytes] | None, problem: str) -> None:
    server.content = b"<html>" if content is None else zipped(tmp_path / "box.zip", content)
    with pytest.raises(LograbError, match=problem):
        fetch(members(server, limit=1000))
    assert not (cache_folder() / "some/box.zip").exists()
    assert not list(cache_folder().rglob("*.part"))
    server.content = zipped(tmp_path / "box.zip", {"box/a": b"A", "box/b": b"B"})
    fetch(members(server, limit=1000))


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_packing_that_cannot_be_unpacked_in_steps_is_refused(
        server: Server, tmp_path: Path, packing: int) -> None:
    server.content = zipped(tmp_path / "box.zip", {"box/a": b"A", "box/b": b"B"}, packing)
    with pytest.raises(LograbError, match="stored or deflated"):
        fetch(members(server))
