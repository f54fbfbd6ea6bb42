"""Files that appear whole or not at all, also while others clear away what was left over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lograb.writing import _temporary, replacing


@pytest.mark.skipif(os.name != "posix", reason="files are locked on POSIX systems only")
def test_nobody_takes_a_finished_file_for_a_leftover(tmp_path, monkeypatch):
    rename = os.replace

    def after_others(source: str, target: Path) -> None:
        handle, name = _temporary(tmp_path)  # another writer, at the worst of times
        os.close(handle)
        os.unlink(name)
        rename(source, target)

    monkeypatch.setattr(os, "replace", after_others)
    with replacing(tmp_path / "a.txt") as file:
        file.write("whole")
    assert (tmp_path / "a.txt").read_text() == "whole"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_what_a_killed_writer_left_is_cleared_away(tmp_path):
    (tmp_path / ".lograb-left.part").write_text("half")
    with replacing(tmp_path / "a.txt") as file:
        file.write("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
