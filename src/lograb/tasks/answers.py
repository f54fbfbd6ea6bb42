"""Answers to Task 1 as files: ours, or a plain table from anywhere.

``.npz``
    What `lograb attack -o` writes: the arrays of one reconstruction per graph, and nothing that
    could execute.
anything else
    A text table ``u,v,score`` (score optional, default 1) with the instance's node names, or ids
    where it has none; a first column ``graph`` for instances of several graphs. Header optional.
"""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lograb.errors import LograbError
from lograb.instance import Instance
from lograb.types import Reconstruction

PARTS = ("edges", "scores", "nodes", "judged", "judged_scores", "islands")
INTS = {"edges", "nodes", "judged", "islands"}


def write_answers(path: Path, instance: Instance, answers: Sequence[Reconstruction]) -> None:
    """Write one reconstruction per graph; a name that ends in .csv gives a table of the claimed edges."""
    try:
        if path.suffix.lower() == ".npz":
            arrays = {
                f"{number}/{part}": getattr(answer, part)
                for number, answer in enumerate(answers)
                for part in PARTS
                if getattr(answer, part) is not None
            }
            np.savez_compressed(path, allow_pickle=False, **arrays)
            return
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            many = len(answers) > 1
            table.writerow((["graph"] if many else []) + ["u", "v", "score"])
            for number, (graph, answer) in enumerate(zip(instance, answers)):
                names = graph.node_names or range(graph.n_nodes)
                lead = [number] if many else []
                table.writerows([*lead, names[u], names[w], f"{s:.6g}"]
                                for (u, w), s in zip(answer.edges.tolist(), answer.scores.tolist()))  # fmt: skip
    except OSError as error:
        raise LograbError(f"cannot write '{path}': {error.strerror}") from None


def read_answers(path: Path, instance: Instance) -> list[Reconstruction]:
    """Read an answer, one reconstruction per graph of the instance."""
    if path.suffix.lower() == ".npz":
        return _read_npz(path, instance)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise LograbError(f"cannot read '{path}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise LograbError(f"'{path}' is neither an .npz file nor UTF-8 text") from None
    return _read_table(text, instance)


def _read_npz(path: Path, instance: Instance) -> list[Reconstruction]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, zipfile.BadZipFile, KeyError) as error:
        raise LograbError(f"cannot read the answer '{path}': {error}") from None
    answers = []
    for number, graph in enumerate(instance):
        found: dict[str, Any] = {}
        for part in PARTS:
            array = arrays.get(f"{number}/{part}")
            if array is not None:
                found[part] = array.astype(np.int64 if part in INTS else np.float64)
        if not {"edges", "scores", "nodes"} <= found.keys():
            raise LograbError(f"the answer '{path}' lacks the edges, scores or nodes of graph {number}")
        answers.append(Reconstruction(graph.n_nodes, **found))
    return answers


def _read_table(text: str, instance: Instance) -> list[Reconstruction]:
    many = len(instance) > 1
    rows = [row for row in csv.reader(text.splitlines()) if row and not row[0].startswith("#")]
    width = 3 if many else 2
    names = (graph.node_names or map(str, range(graph.n_nodes)) for graph in instance)
    index = [{name: i for i, name in enumerate(known)} for known in names]
    best: list[dict[tuple[int, int], float]] = [{} for _ in index]
    for number, row in enumerate(rows, start=1):
        if number == 1 and row[-1].strip().lower() in ("score", "v", "target", "probability"):
            continue
        if len(row) not in (width, width + 1):
            raise LograbError(f"line {number}: an answer needs {width} columns and a score, got {len(row)}")
        graph, u, w, score = _parse(number, row, many, index)
        if u != w:
            pair = (min(u, w), max(u, w))
            best[graph][pair] = max(score, best[graph].get(pair, -np.inf))
    return [_from_pairs(graph, pairs) for graph, pairs in zip(instance, best)]


def _parse(number: int, row: list[str], many: bool, index: list[dict[str, int]]) -> tuple[int, int, int, float]:
    fields = [field.strip() for field in row]
    lead = fields.pop(0) if many else "0"
    if not (lead.isascii() and lead.isdigit() and len(lead) < 12 and int(lead) < len(index)):
        raise LograbError(f"line {number}: there is no graph '{lead}' among {len(index)}")
    ids = index[int(lead)]
    for name in fields[:2]:
        if name not in ids:
            raise LograbError(f"line {number}: there is no node '{name}' in the instance")
    try:
        score = float(fields[2]) if len(fields) > 2 else 1.0
    except ValueError:
        raise LograbError(f"line {number}: a score must be a number, got '{fields[2]}'") from None
    return int(lead), ids[fields[0]], ids[fields[1]], score


def _from_pairs(graph: Instance, pairs: dict[tuple[int, int], float]) -> Reconstruction:
    edges = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    scores = np.array([pairs[pair] for pair in sorted(pairs)], dtype=np.float64)
    return Reconstruction(graph.n_nodes, edges, scores, np.unique(edges))
