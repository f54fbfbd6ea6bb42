"""Answers to Task 1 read from files: ours, or a plain table from anywhere.

``.npz``
    What `lograb attack -o` writes: the arrays of one reconstruction per graph, and nothing that
    could execute.
anything else
    A text table ``u,v,score,claimed`` with the instance's node names, or ids where it has none; a first column
    ``graph`` for instances of several graphs. The score is optional (default 1), and so is the last column: 1
    for a claimed edge, 0 for a pair that was judged only. Without it every row is a claim, or, with a threshold,
    every row whose score reaches it. Separated by commas, tabs, semicolons or spaces. A header tells which of the
    last two columns are there, and in which order. Lines that start with # are skipped, unless they name nodes.
    The nodes of the rows count as recovered. Rows that name one node twice are dropped, and a pair of several rows
    is one, with its highest score; a notice counts both.
"""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lograb.errors import LograbError, warn
from lograb.instance import Instance
from lograb.limits import REMEDY, max_bytes
from lograb.names import shorten
from lograb.tasks.answer_arrays import build_answer, read_answer_arrays
from lograb.types import Reconstruction

EXTRA: tuple[str, ...] = ("score", "claimed")
"""Columns that may follow a pair where no header says otherwise."""
NO_NODES = {"score", "claimed", "prob", "probability", "weight", "rank"}


def read_answers(path: Path, instance: Instance, threshold: float | None = None) -> list[Reconstruction]:
    """Read an answer, one reconstruction per graph of the instance.

    With a threshold the claimed edges are the pairs whose score reaches it, whatever the file says.
    """
    if path.suffix.lower() == ".npz":
        arrays = read_answer_arrays(path)
        answers = [build_answer(f"the answer '{path}'", arrays, number, graph.n_nodes, graph.node_names)
                   for number, graph in enumerate(instance)]  # fmt: skip
    else:
        answers = _read_table(path, instance)
    return answers if threshold is None else [_cut(answer, threshold) for answer in answers]


def numbered_as(graph: Instance, answer: Reconstruction) -> Reconstruction:
    """Give the nodes of an answer the numbers that they have in the instance, by name."""
    names, own = graph.node_names, answer.node_names
    if names is None or own is None or names == own:
        if answer.n_nodes == graph.n_nodes:
            return answer
        raise LograbError(f"the answer is about {answer.n_nodes} nodes, the instance has {graph.n_nodes}, and "
                          "without names of nodes on both sides nobody can tell which is which: attack the "
                          "instance itself, lograb.attack(instance, ...)")  # fmt: skip
    index = {name: i for i, name in enumerate(names)}
    if unknown := [name for name in own if name not in index]:
        raise LograbError(f"{len(unknown)} of the answer's nodes are not in the instance: {shorten(unknown)}")
    number = np.array([index[name] for name in own], dtype=np.int64)
    islands = None if answer.islands is None else np.full(graph.n_nodes, -1)
    if islands is not None:
        islands[number] = answer.islands
    pairs: dict[str, Any] = {part: np.sort(number[getattr(answer, part)], axis=1)
                             for part in ("edges", "judged", "cross") if getattr(answer, part) is not None}
    return replace(answer, n_nodes=graph.n_nodes, node_names=names, nodes=np.sort(number[answer.nodes]),
                   islands=islands, **pairs)  # fmt: skip


def _cut(answer: Reconstruction, threshold: float) -> Reconstruction:
    """Claim the judged pairs whose score reaches the threshold."""
    pairs, scores = answer.ranked
    kept = scores >= threshold
    nodes = np.union1d(answer.nodes, pairs[kept])
    return replace(answer, edges=pairs[kept], scores=scores[kept], nodes=nodes, judged=pairs, judged_scores=scores)


def _read_text(path: Path) -> str:
    limit = max_bytes()
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise LograbError(f"cannot read '{path}': {error.strerror}") from None
    if len(data) > limit:
        raise LograbError(f"the answer '{path}' has more than {limit:,} bytes: {REMEDY}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise LograbError(f"'{path}' is neither an .npz file nor UTF-8 text") from None


def _read_table(path: Path, instance: Instance) -> list[Reconstruction]:
    text = _read_text(path)
    if not text.strip():
        raise LograbError(f"the answer '{path}' is empty: one that claims nothing has a header, u,v,score")
    names = (graph.node_names or map(str, range(graph.n_nodes)) for graph in instance)
    index = [{name: i for i, name in enumerate(known)} for known in names]
    found: list[dict[tuple[int, int], tuple[float, bool]]] = [{} for _ in index]
    width = 3 if len(index) > 1 else 2
    separator = _separator(text, width)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=separator == " ")
    first, extra, loops, again = True, EXTRA, 0, 0
    try:
        for fields in reader:
            row = [field for field in fields if field] if separator == " " else fields
            if not any(field.strip() for field in row):
                continue
            if not _names_nodes(row, index) and (row[0].startswith("#") or (first and _is_header(row, index))):
                if not row[0].startswith("#"):
                    first, extra = False, _extra_columns(row, width)
                continue
            first = False
            graph, pair, told = _parse(row, width, extra, index)
            loops += pair[0] == pair[1]
            if pair[0] != pair[1]:
                again += pair in found[graph]
                before = found[graph].get(pair, told)
                found[graph][pair] = max(told[0], before[0]), told[1] or before[1]
    except (csv.Error, _RowError) as error:
        raise LograbError(f"'{path.name}', line {reader.line_num}: {error}") from None
    if loops:
        warn(f"'{path.name}': {loops:,} rows name one node twice, which is no pair: dropped")
    if again:
        warn(f"'{path.name}': {again:,} rows name a pair again (u,w is w,u): its highest score counts, once")
    return [_from_pairs(graph, pairs) for graph, pairs in zip(instance, found)]


class _RowError(ValueError):
    """What is wrong with a row."""


def _separator(text: str, width: int) -> str:
    """Find what separates the columns of the first row that is no comment."""
    line = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    for separator in ",\t; ":
        try:
            row = next(csv.reader([line.strip()], delimiter=separator, skipinitialspace=True), [])
        except csv.Error:  # a field too long for it: the reader of all lines will say so
            continue
        if width <= len(row) <= width + 2:
            return separator
    return ","


def _find(name: str, ids: dict[str, int]) -> int | None:
    """Look a node up by its name as written, else without spaces around it."""
    return ids.get(name, ids.get(name.strip()))


def _names_nodes(row: list[str], index: list[dict[str, int]]) -> bool:
    """Tell whether a row begins like one of an answer: a graph where there are several, and two nodes."""
    many = len(index) > 1
    number = _graph_number(row[0], index) if many else 0
    fields = row[many : many + 2]
    return number is not None and len(fields) == 2 and all(_find(f, index[number]) is not None for f in fields)


def _graph_number(field: str, index: list[dict[str, int]]) -> int | None:
    text = field.strip()
    fits = text.isascii() and text.isdigit() and len(text) < 12 and int(text) < len(index)
    return int(text) if fits else None


def _is_header(row: list[str], index: list[dict[str, int]]) -> bool:
    """Tell whether a first row has as many columns as an answer and only words in them.

    Without a column for scores it must not name any node: it could be a row with a node misspelt.
    """
    width = 3 if len(index) > 1 else 2
    if not width <= len(row) <= width + 2 or any(_is_number(field) for field in row):
        return False
    return len(row) > width or all(_find(field, ids) is None for field in row for ids in index)


def _extra_columns(header: list[str], width: int) -> tuple[str, ...]:
    """Read off a header which columns follow the pair; a score may have any name."""
    names = [field.strip().lower() for field in header]
    if NO_NODES.intersection(names[:width]):
        raise _RowError(f"the two nodes of a pair must come before score and claimed, got '{','.join(names):.80}'")
    extra = tuple(name if name == "claimed" else "score" for name in names[width:])
    if len(set(extra)) < len(extra):
        raise _RowError(f"beside the score there can be a column 'claimed' only, got '{','.join(names):.80}'")
    return extra


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse(
    row: list[str], width: int, extra: tuple[str, ...], index: list[dict[str, int]]
) -> tuple[int, tuple[int, int], tuple[float, bool]]:
    """Read a row: the graph, the pair, and its score with whether it is claimed."""
    if not width <= len(row) <= width + len(extra):
        raise _RowError(f"expected {width} columns{''.join(f', {name}' for name in extra)}; got {len(row)}")
    graph = 0
    if width == 3:
        number = _graph_number(row[0], index)
        if number is None:
            raise _RowError(f"there is no graph '{row[0].strip():.80}' among {len(index)}")
        graph, row = number, row[1:]
    nodes = []
    for name in row[:2]:
        node = _find(name, index[graph])
        if node is None:
            raise _RowError(f"there is no node '{name.strip():.80}' in the instance")
        nodes.append(node)
    told = dict(zip(extra, row[2:]))
    text = told.get("score", "1").strip()
    if not _is_number(text) or np.isnan(float(text)):
        raise _RowError(f"a score must be a number, got '{text:.80}'")
    claimed = told.get("claimed", "1").strip().lower()
    if claimed not in ("0", "1", "true", "false"):
        raise _RowError(f"a pair is claimed (1) or not (0), got '{claimed:.80}'")
    return graph, (min(nodes), max(nodes)), (float(text), claimed in ("1", "true"))


def _from_pairs(graph: Instance, found: dict[tuple[int, int], tuple[float, bool]]) -> Reconstruction:
    pairs = np.array(sorted(found), dtype=np.int64).reshape(-1, 2)
    told = np.array([found[pair] for pair in sorted(found)], dtype=np.float64).reshape(-1, 2)
    scores, claimed = told[:, 0], told[:, 1] == 1
    return Reconstruction(graph.n_nodes, pairs[claimed], scores[claimed], np.unique(pairs), pairs, scores,
                          node_names=graph.node_names)  # fmt: skip
