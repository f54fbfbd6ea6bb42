"""A drawing of the riskiest neighbourhood: who is there, and which edges are read, missed or wrongly claimed."""

from __future__ import annotations

from typing import Any

import numpy as np

from lograb.auditing.exposure import Exposure
from lograb.auditing.measuring import Evidence
from lograb.auditing.subject import Subject
from lograb.pairs import edge_keys, unpair
from lograb.types import Floats, Ints

MOST, FEW = 20, 12
"""Nodes that are drawn, and up to how many neighbours' neighbours fill up a small neighbourhood."""
STEPS = 200
BUT = ", the most exposed node whose neighbours can all be drawn"


def sketch(
    subject: Subject, evidence: Evidence, found: Exposure, nodes: list[dict[str, Any]]
) -> dict[str, Any] | None:
    """Draw the most exposed node whose neighbourhood fits, or part of that of the most exposed one."""
    if not nodes:
        return None
    n = max(subject.plan.n_nodes, 1)
    read = found.pairs[found.read]
    true = read if evidence.truth is None else unpair(evidence.truth, n)
    drawn = np.unique(np.concatenate([read, true]), axis=0)
    place = {name: i for i, name in enumerate(subject.node_names)}
    ids = [place[row["name"]] for row in nodes]
    around = {i: _neighbours(drawn, i) for i in ids}
    centre = next((i for i in ids if 3 <= len(around[i]) < MOST), ids[0])
    members = [centre, *_closest(evidence, around[centre], centre, n)]
    for i in members[1:]:  # fill up with the neighbours' neighbours
        more = [j for j in _neighbours(drawn, i).tolist() if j not in members]
        members += more[: max(0, FEW - len(members))]
    inside = drawn[np.isin(drawn, members).all(axis=1)]
    keys = edge_keys(inside, n)
    claimed, real = np.isin(keys, edge_keys(read, n)), np.isin(keys, edge_keys(true, n))
    kinds = np.where(claimed & real, "read", np.where(real, "missed", "wrong"))
    at = {node: i for i, node in enumerate(members)}
    ends = np.array([[at[u], at[w]] for u, w in inside.tolist()], dtype=np.int64).reshape(-1, 2)
    places = layout(len(members), ends)
    return {
        "title": f"Around {subject.node_names[centre]}" + ("" if centre == ids[0] else BUT),
        "nodes": [{"name": subject.node_names[node], "x": round(float(x), 4), "y": round(float(y), 4),
                   "centre": node == centre} for node, (x, y) in zip(members, places)],
        "edges": [{"u": int(u), "v": int(w), "kind": str(kind), "probability": float(chance)}
                  for (u, w), kind, chance in zip(ends, kinds, evidence.chance(keys))],
        "truth": evidence.truth is not None,
    }  # fmt: skip


def _neighbours(edges: Ints, node: int) -> Ints:
    mine = edges[(edges == node).any(axis=1)]
    return np.asarray(mine[mine != node])


def _closest(evidence: Evidence, nodes: Ints, centre: int, n: int) -> list[int]:
    """Take those that the centre is most probably joined to."""
    pairs = np.sort(np.stack([nodes, np.full(len(nodes), centre)], axis=1), axis=1)
    order = np.argsort(-evidence.chance(edge_keys(pairs, n)), kind="stable")
    return [int(i) for i in nodes[order][: MOST - 1]]


def layout(n: int, edges: Ints) -> Floats:
    """Place nodes in the unit square, the first one near the middle: springs, from a circle on, without chance."""
    if n == 1:
        return np.array([[0.5, 0.5]])
    angle = 2 * np.pi * np.arange(n - 1) / (n - 1)
    spot = np.concatenate([np.zeros((1, 2)), np.stack([np.cos(angle), np.sin(angle)], axis=1)])
    length = 1.6 / np.sqrt(n)
    for step in range(STEPS):
        apart = spot[:, None] - spot[None]
        distance = np.maximum(np.linalg.norm(apart, axis=2), 1e-3)
        push = (apart * (length / distance)[:, :, None] ** 2 / distance[:, :, None]).sum(axis=1)
        along = spot[edges[:, 0]] - spot[edges[:, 1]]
        strain = along * np.linalg.norm(along, axis=1, keepdims=True) / length
        np.add.at(push, edges[:, 0], -strain)
        np.add.at(push, edges[:, 1], strain)
        size = np.maximum(np.linalg.norm(push, axis=1, keepdims=True), 1e-9)
        spot = spot + push / size * np.minimum(size, 0.1 * (1 - step / STEPS))
        spot[0] *= 0.9
    low, high = spot.min(axis=0), spot.max(axis=0)
    return np.asarray(0.06 + 0.88 * (spot - low) / np.maximum(high - low, 1e-9))
