"""Patches a user brings along: a file with one node list per patch."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from lograb.errors import LograbError
from lograb.types import Patches


def read_node_lists(path: str | Path) -> list[list[str]]:
    """Read one patch per line, or a JSON list of lists.

    In a text file the names stand in one line, separated by tabs, else by commas (quoted as in a
    csv file where needed), else by spaces; empty lines and lines that start with ``#`` or ``%`` are
    passed over.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise LograbError(f"cannot read the patches in '{path}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise LograbError(f"cannot read the patches in '{path}': it is not UTF-8 text") from None
    if path.suffix.lower() == ".json":
        return _read_json_lists(path, text)
    lines = (line.strip() for line in text.splitlines())
    return [_split(line) for line in lines if line and line[0] not in "#%"]


def _split(line: str) -> list[str]:
    if "\t" in line:
        return [name.strip() for name in line.split("\t") if name.strip()]
    if "," in line:
        return [name.strip() for name in next(csv.reader([line], skipinitialspace=True)) if name.strip()]
    return line.split()


def _read_json_lists(path: Path, text: str) -> list[list[str]]:
    try:
        lists = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise LograbError(f"'{path}' is not valid JSON: {error}") from None
    if not isinstance(lists, list) or not all(isinstance(item, list) for item in lists):
        raise LograbError(f"'{path}' must hold a list of node lists, one per patch")
    return [[str(node) for node in item] for item in lists]


def custom(
    n_nodes: int, node_names: Sequence[str] | None, node_lists: Iterable[Iterable[object]]
) -> Patches:
    """Turn node lists, by name or id, into patches.

    Nodes are looked up by name where the graph has names, by number otherwise; repetition inside
    a list does not matter.
    """
    index = {name: i for i, name in enumerate(node_names)} if node_names is not None else None
    lists = []
    for number, item in enumerate(node_lists):
        ids = [_node_id(str(node), number, n_nodes, index) for node in item]
        if not ids:
            raise LograbError(f"patch {number} has no nodes; leave it out")
        lists.append(np.array(ids, dtype=np.int64))
    if not lists:
        raise LograbError("the strategy 'custom' needs at least one patch")
    return Patches.from_lists(n_nodes, lists)


def _node_id(name: str, patch: int, n_nodes: int, index: dict[str, int] | None) -> int:
    if index is not None:
        found = index.get(name)
    else:
        short = name.isascii() and name.isdigit() and len(name) < 20
        found = int(name) if short and name == str(int(name)) and int(name) < n_nodes else None
    if found is None:
        known = "the graph's node names" if index is not None else f"the ids 0 .. {n_nodes - 1}"
        raise LograbError(f"patch {patch} names the node '{name}', which is not among {known}")
    return found
