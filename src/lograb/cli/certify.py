"""``lograb certify``: what is guaranteed about patches."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from lograb import pipeline
from lograb.cli.output import print_json, print_table, say, waiting
from lograb.theory import certify


def certify_instance(file: Path, json: bool) -> None:
    """Say for how many patches exact recovery is guaranteed, by which statement, with or without the truth."""
    instance = pipeline.load(file)
    found = []
    with waiting("checking patches") as report:
        for number, graph in enumerate(instance):
            if len(instance) > 1:
                report("checking graphs", number, len(instance))
            inner = partial(report, "checking patches") if len(instance) == 1 else None
            found.append(certify(graph.observations, graph.patch_edges if graph.has_truth else None,
                                 progress=inner))  # fmt: skip
    result = found[0] if len(found) == 1 else {"graphs": len(found), **_add_up(found)}
    if json:
        print_json(result)
        return
    rows = [
        (s["name"], "yes" if s["needs_truth"] else "no", f"{s['holds']:,} of {s['applies_to']:,}", s["says"])
        for s in result["statements"]
    ]
    columns = ("statement", "needs truth", "holds", "says")
    print_table(f"{file}: exact recovery of all edges of a patch", columns, rows, ("holds",), fold=("says",))
    guaranteed = result["guaranteed"]
    exposed, patches = guaranteed["without_truth"], result["n_patches"]
    say(f"Provably exposed, to whoever has no more than this file shows: {exposed:,} of {patches:,} patches."
        + (" The others are not safe: attacks may well recover them." if exposed < patches else ""))  # fmt: skip
    if result["unchecked"]:
        say(f"Not checked: {result['unchecked']:,} patches ({result['reason'] or 'too large'}).")


def _add_up(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Add the counts of several graphs."""
    first = found[0]
    total: dict[str, Any] = {}
    for key, value in first.items():
        parts = [item[key] for item in found]
        if isinstance(value, bool) or not isinstance(value, int | dict | list):
            total[key] = value if all(part == value for part in parts) else None
        elif isinstance(value, int):
            total[key] = sum(part or 0 for part in parts)
        elif isinstance(value, dict):
            total[key] = _add_up(parts)
        else:
            total[key] = [_add_up([part[i] for part in parts]) for i in range(len(value))]
    return total
