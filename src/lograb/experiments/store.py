"""A folder that keeps every run: what is there is whole, and nobody has to run it again.

``runs/ab/<key>.json``   a `RunResult`, written last: a run is there when this file is
``runs/ab/<key>.npz``    its raw answer; for Task 1 an answer as `lograb attack -o` writes it
``tables/<name>.json``   tables made of runs, for the report
``runs.jsonl``           runs made elsewhere, one on a line, without answers: as `lograb report --markdown` writes

Files are written under a temporary name and then renamed, so several sweeps may write to one store.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from lograb.errors import LograbError
from lograb.experiments.runs import RunResult, digest
from lograb.graphs.lock import only_one
from lograb.writing import replacing

Arrays = Mapping[str, npt.NDArray[Any]]
PUBLISHED = "runs.jsonl"
STALE = 3600.0  # seconds after which an unfinished file belongs to nobody


class Store:
    """The runs in a folder, which is made where there is none; one that cannot be written can be read."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise LograbError(f"a store is a folder, '{folder}' is a file")
        for name in ("runs", "tables"):
            try:
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                if (self.folder / "runs").is_dir() or (self.folder / PUBLISHED).is_file():
                    continue  # it can be read
                raise LograbError(f"cannot make the store '{folder}': {error.strerror}") from None
        self._sweep_up()

    def _sweep_up(self) -> None:
        """Remove what killed processes left unfinished."""
        for path in self.folder.glob("*/**/.lograb-*"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > STALE:
                    path.unlink()

    def path(self, key: str, suffix: str = ".json") -> Path:
        """Say where a run lies, or would."""
        return self.folder / "runs" / key[:2] / f"{key}{suffix}"

    def get(self, key: str) -> RunResult | None:
        """Read a run; None where there is none."""
        try:
            content = _load(path := self.path(key))
        except FileNotFoundError:
            return self._published.get(key)
        return _checked(content, str(path), key, "remove it, and the run is made again")

    @cached_property
    def _published(self) -> dict[str, RunResult]:
        path = self.folder / PUBLISHED
        if not path.is_file():
            return {}
        found = {}
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            if line.strip():
                place, remedy = f"{path}, line {number}", "remove that line, and the run is made again"
                result = _checked(_parse(line, place, remedy), place, None, remedy)
                found[result.key] = result
        return found

    def put(self, result: RunResult, arrays: Arrays | None = None) -> RunResult:
        """Keep a run, and give what is there now. It takes the place of one of the same key and spec.

        Only a run that is done takes the place of one that is: another sweep may have been luckier.

        Raises
        ------
        LograbError
            Where the disk is full, or the key is that of another spec; the earlier run stays as it was.
        """
        path = self.path(result.key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with only_one([self.folder / "runs" / ".lock"], lambda: None):
                return self._put(result, arrays, path)
        except OSError as error:
            raise LograbError(f"cannot write '{path}': {error.strerror or error}") from None

    def _put(self, result: RunResult, arrays: Arrays | None, path: Path) -> RunResult:
        earlier = self.get(result.key)
        if earlier is not None and earlier.spec != result.spec:
            raise LograbError(
                f"'{path}' holds another run than '{result.label}': it was changed by hand; remove it"
            )
        if earlier is not None and earlier.status == "done" != result.status:
            return earlier
        if arrays:
            with replacing(path.with_suffix(".npz"), binary=True) as file:
                np.savez_compressed(file, allow_pickle=False, **arrays)
        _write(path, result.to_dict())
        return result

    def arrays(self, key: str) -> dict[str, npt.NDArray[Any]]:
        """Read the raw answer of a run; empty where it has none."""
        path = self.path(key, ".npz")
        if not path.is_file():
            return {}
        try:
            with np.load(path, allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
        except (OSError, EOFError, ValueError, BadZipFile, zlib.error) as error:
            raise LograbError(f"the answer '{path}' is damaged ({error}): remove it and the run's .json, and the "
                              "run is made again") from None  # fmt: skip

    def results(self) -> Iterator[RunResult]:
        """Read all runs, in the order of their keys."""
        own = {path.stem for path in self.folder.glob("runs/*/*.json")}
        for key in sorted(own | self._published.keys()):
            if (found := self.get(key)) is not None:
                yield found

    def publish(self, folder: Path) -> Path:
        """Write all runs, without their answers, to one file; in the folder of a store they are its runs too."""
        path = folder / PUBLISHED
        with replacing(path) as file:
            for result in self.results():
                file.write(_text(result.to_dict()))
        return path

    def put_table(self, name: str, table: dict[str, Any]) -> None:
        """Keep a table for the report."""
        _write(self.folder / "tables" / f"{name}.json", table)

    def tables(self) -> dict[str, dict[str, Any]]:
        """Read all tables, by name."""
        return {path.stem: _load(path) for path in sorted(self.folder.glob("tables/*.json"))}


def _write(path: Path, content: dict[str, Any]) -> None:
    with replacing(path) as file:
        file.write(_text(content, indent=1))


def _text(content: dict[str, Any], indent: int | None = None) -> str:
    return json.dumps(content, indent=indent, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def _load(path: Path) -> dict[str, Any]:
    return _parse(path.read_bytes(), str(path), "remove it, and it is made again")


def _parse(text: bytes, place: str, remedy: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LograbError(f"'{place}' is damaged ({error}): {remedy}") from None
    if not isinstance(content, dict):
        raise LograbError(f"'{place}' is damaged: {remedy}")
    return content


def _checked(content: dict[str, Any], place: str, key: str | None, remedy: str) -> RunResult:
    """Make a run of what is stored, under its name if it has one."""
    try:
        result = RunResult(**content)
    except TypeError as error:
        raise LograbError(f"'{place}' is no run of this version of lograb ({error}): {remedy}") from None
    if result.key != (key or result.key) or result.key != digest(result.spec):
        raise LograbError(f"'{place}' does not hold the run of its name, it was renamed or changed: {remedy}")
    return result
