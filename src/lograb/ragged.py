"""Ragged data as flat arrays: item ``i`` is ``flat[ptr[i]:ptr[i + 1]]``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lograb.errors import LograbError

Ints = npt.NDArray[np.int64]


def pointer(lengths: npt.ArrayLike) -> Ints:
    """Turn item lengths into a pointer array: 0 and the running totals."""
    lengths = np.asarray(lengths, dtype=np.int64)
    ptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ptr[1:])
    return ptr


def ranges(starts: Ints, lengths: Ints) -> Ints:
    """Concatenate the ranges start .. start + length - 1, one after the other."""
    ptr = pointer(lengths)
    return np.arange(ptr[-1]) + np.repeat(starts - ptr[:-1], lengths)


def runs(cost: Ints, at_once: int) -> Iterator[tuple[int, int]]:
    """Cut items into runs that cost about `at_once` each: first, last + 1. `cost` is a pointer of their costs."""
    start = 0
    while start < len(cost) - 1:
        stop = max(start + 1, int(np.searchsorted(cost, cost[start] + at_once, side="right")) - 1)
        yield start, stop
        start = stop


def pack_names(names: Sequence[str]) -> tuple[Ints, npt.NDArray[np.uint8]]:
    """Lay names out as a pointer and their UTF-8 bytes."""
    encoded = [name.encode("utf-8") for name in names]
    return pointer([len(name) for name in encoded]), np.frombuffer(b"".join(encoded), dtype=np.uint8)


def unpack_names(ptr: Ints, data: npt.NDArray[np.uint8]) -> tuple[str, ...]:
    """Read names back; raises `UnicodeDecodeError` where the bytes are no text."""
    text = data.tobytes()
    return tuple(text[a:b].decode("utf-8") for a, b in pairwise(ptr))


def owners(ptr: Ints) -> Ints:
    """Say for every entry of the flat array which item it belongs to."""
    return np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))


def check_ragged(what: str, n_nodes: int, nodes: Ints, ptr: Ints) -> None:
    """Refuse flat node lists that are not increasing inside every item or out of range."""
    if ptr.ndim != 1 or len(ptr) == 0 or ptr[0] != 0 or ptr[-1] != len(nodes) or (np.diff(ptr) < 0).any():
        raise LograbError(f"{what}: the pointer must rise from 0 to the number of entries ({len(nodes)})")
    if len(nodes) == 0:
        return
    if nodes.min() < 0 or nodes.max() >= n_nodes:
        raise LograbError(f"{what}: node ids must lie in 0 .. {n_nodes - 1}, "
                          f"got {nodes.min()} .. {nodes.max()}")
    rises = np.diff(nodes) > 0
    starts = ptr[1:-1]
    rises[starts[(starts > 0) & (starts < len(nodes))] - 1] = True
    if not rises.all():
        at = int(np.flatnonzero(~rises)[0])
        patch = int(np.searchsorted(ptr, at, side="right")) - 1
        raise LograbError(f"{what}: the members of a patch must be distinct and increasing, "
                          f"patch {patch} has {nodes[at]} before {nodes[at + 1]}")
