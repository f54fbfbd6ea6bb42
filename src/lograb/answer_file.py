"""Answers to Task 1 as files, the writing side: ours (.npz), or a plain table.

``.npz``
    The arrays of one reconstruction per graph, and nothing that could execute.
``.csv``, ``.tsv``, ``.txt``
    A table ``u,v,score,claimed`` with the nodes' names, or ids where they have none; a first column ``graph``
    for instances of several graphs. `lograb.tasks.answers` reads both, and more.
"""

from __future__ import annotations

import csv
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lograb.errors import LograbError
from lograb.writing import replacing

if TYPE_CHECKING:
    from lograb.types import Reconstruction

PARTS = ("edges", "scores", "nodes", "judged", "judged_scores", "islands", "unlisted", "cross",
         "cross_scores")
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": " "}


def check_answer_name(path: Path) -> None:
    """Refuse names that no answer can have, and to write over a file that is no earlier answer."""
    if path.suffix.lower() not in (".npz", *SEPARATORS) and not (path.exists() and not path.is_file()):
        raise LograbError(f"an answer is written to .npz (everything) or .csv, .tsv, .txt (a table), got '{path}'")
    if path.is_dir():
        raise LograbError(f"'{path}' is a folder: name a file in it")
    if not path.parent.is_dir():
        raise LograbError(f"cannot write '{path}': there is no folder '{path.parent}'")
    if path.is_file() and path.stat().st_size and not _is_answer(path):
        raise LograbError(f"'{path}' exists and is not an earlier answer: choose another name or remove it")


def _is_answer(path: Path) -> bool:
    """Say whether a file looks like one that `write_answers` wrote."""
    try:
        if path.suffix.lower() == ".npz":
            with zipfile.ZipFile(path) as arrays:
                return all(re.fullmatch(rf"\d+/({'|'.join(PARTS)})\.npy", name) for name in arrays.namelist())
        with path.open("rb") as file:
            return re.fullmatch(rb"(graph.)?u.v.score.claimed", file.readline(100).strip()) is not None
    except (OSError, zipfile.BadZipFile):
        return False


def write_answers(path: Path, answers: Sequence[Reconstruction]) -> None:
    """Write one reconstruction per graph: arrays if the name ends in .npz, else a table of all judged pairs."""
    check_answer_name(path)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        arrays = {
            f"{number}/{part}": np.asarray(getattr(answer, part))
            for number, answer in enumerate(answers)
            for part in PARTS
            if getattr(answer, part) is not None
        }
        with replacing(path, binary=True) as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
        return
    with replacing(path) as file:
        table = csv.writer(file, delimiter=SEPARATORS.get(suffix, ","), lineterminator="\n")
        many = len(answers) > 1
        table.writerow((["graph"] if many else []) + ["u", "v", "score", "claimed"])
        for number, answer in enumerate(answers):
            names = answer.node_names or range(answer.n_nodes)
            lead = [number] if many else []
            table.writerows([*lead, names[u], names[w], repr(score), claim]
                            for u, w, score, claim in _rows(answer))  # fmt: skip


def _rows(answer: Reconstruction) -> Iterator[tuple[int, int, float, int]]:
    """List claimed edges, then the other judged pairs: u, w, score, whether claimed."""
    claimed = set()
    for (u, w), score in zip(answer.edges.tolist(), answer.scores.tolist()):
        claimed.add((u, w))
        yield u, w, score, 1
    if answer.judged is not None and answer.judged_scores is not None:
        for (u, w), score in zip(answer.judged.tolist(), answer.judged_scores.tolist()):
            if (u, w) not in claimed:
                yield u, w, score, 0
