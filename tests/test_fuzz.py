"""Damaged node lists and answers, with fixed seeds: read, or refused with a clear error, never a crash.

Archives are fuzzed in archive/, graph files and pickles in graphs/.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import lograb
from lograb.errors import LograbError

PIECES = [b"\x00", b"\xff\xfe", b'"', b"\n" * 3, b",", b"\t", b" ", b"-1", b"nan", b"1e999", b"9" * 40, b"\x1b[2J",
          b"#", b"[" * 50, b"{", b"\r", b"\\", b"\xef\xbb\xbf", b"2147483648", b"PK\x03\x04"]  # fmt: skip


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Change, repeat, delete or put in some bytes."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        at, other, length = (int(n) for n in rng.integers(len(data) + 1, size=3))
        kind = rng.integers(5)
        if kind == 0:
            data[at : at + 1] = bytes([rng.integers(256)])
        elif kind == 1:
            data[at:at] = PIECES[rng.integers(len(PIECES))]
        elif kind == 2:
            data[at : at + length % 20] = data[other : other + length % 20]
        elif kind == 3:
            del data[at : at + length % 20]
        else:
            del data[at:]
    return bytes(data)


def count_refused(path: Path, read: Callable[[Path], object], times: int) -> int:
    content, rng, refused = path.read_bytes(), np.random.default_rng(len(path.name)), 0
    for _ in range(times):
        path.write_bytes(damaged(content, rng))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                read(path)
            except LograbError:
                refused += 1
    return refused


@pytest.mark.parametrize(("name", "content"), [
    ("p.json", json.dumps({"a": [0, 1, 2], "b": [2, 3]})),
    ("p.csv", "node,group\n0,a\n1,a\n2,b\n3,b\n"),
    ("p.txt", "0 1 2\n2 3 4 5\n"),
])
def test_fuzz_node_lists(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content)

    def read(path: Path) -> None:
        lograb.generate("karate", patches=path, k=2)

    read(path)
    assert count_refused(path, read, 150) > 20


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.npz"])
def test_fuzz_answers(tmp_path: Path, name: str) -> None:
    instance = lograb.generate("karate", p=0.5, k=4, sigma=0.1)
    path = tmp_path / name
    lograb.attack(instance, "posterior").save(path)
    assert lograb.evaluate(instance, path).f1 > 0.5
    assert count_refused(path, lambda path: lograb.evaluate(instance, path), 150) > 20
