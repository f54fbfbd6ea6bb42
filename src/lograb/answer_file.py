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
from typing import IO, TYPE_CHECKING

import numpy as np

from lograb.errors import LograbError
from lograb.writing import check_target, replacing

if TYPE_CHECKING:
    from lograb.types import Reconstruction

PARTS = ("edges", "scores", "nodes", "judged", "judged_scores", "islands", "unlisted", "cross",
         "cross_scores")
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": " "}


def check_answer_name(path: Path) -> None:
    """Refuse names that no answer can have, and to write over a file that is no earlier answer."""
    if path.suffix.lower() not in (".npz", *SEPARATORS) and not (path.exists() and not path.is_file()):
        raise LograbError(f"an answer is written to .npz (everything) or .csv, .tsv, .txt (a table), got '{path}'")
    check_target(path, "answer", _is_archive if path.suffix.lower() == ".npz" else _is_table)


def _is_archive(content: IO[bytes]) -> bool:
    try:
        with zipfile.ZipFile(content) as arrays:
            return all(re.fullmatch(rf"\d+/({'|'.join(PARTS)})\.npy", name) for name in arrays.namelist())
    except zipfile.BadZipFile:
        return False


def _is_table(content: IO[bytes]) -> bool:
    return re.fullmatch(rb"(graph.)?u.v.score.claimed", content.readline(100).strip()) is not None


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
