"""Scores of Task 1 in words and lines: the sentence first, what a reader needs next, the rest when asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from lograb.cli.output import print_facts, print_table, say
from lograb.score import Score, percent
from lograb.types import Reconstruction

FAILS = "the attack fails here: who looks at no embedding does better. That is no proof of safety."
MANY, NAMED = 20, 200
"""How many patches are listed, and how many where they have names."""


def sentence(who: str, score: Score, answers: Sequence[Reconstruction] = ()) -> str:
    """Say what was found, how much of it is right, and what is known patch by patch."""
    count, exact = score["patches"]["count"], score["patches"]["exact"]
    passed = checked(answers)
    if passed is None:
        patches = f"{exact:,} of {count:,} patches are recovered exactly"
    else:
        patches = (f"{passed:,} of {count:,} patches pass the check against their eigenvalues, "
                   f"{exact:,} are recovered exactly")  # fmt: skip
    return f"{who} {score.sentence()}; {patches}."


def checked(answers: Sequence[Reconstruction]) -> int | None:
    """Count the patches that pass the attack's own check against eigenvalues; None where it has none."""
    rounds = [answer.diagnostics["passed"] for answer in answers if answer.diagnostics.get("passed")]
    return int(sum(np.sum(counts) for counts in rounds)) if rounds else None


def claims(who: str, answers: Sequence[Reconstruction]) -> str:
    """Say what is claimed where no truth can tell what is right, and what the attack expects of itself."""
    number = sum(len(answer.edges) for answer in answers)
    text = f"{who} claims {number:,} edges among {sum(answer.n_nodes for answer in answers):,} nodes."
    hopes = expected(answers)
    if hopes is None:
        return text
    return (f"{text} By its own estimate, which nothing here can check, {percent(hopes[0])} of these claims are "
            f"right, and they are {percent(hopes[1])} of the edges that some patch contains.")  # fmt: skip


def expected(answers: Sequence[Reconstruction]) -> tuple[float, float] | None:
    """Give the precision and recall that an attack with probabilities expects; None without them."""
    right = true = claimed = 0.0
    for answer in answers:
        hopes = answer.diagnostics.get("expected")
        if answer.unlisted is None or not hopes or not hopes["recall"]:
            return None
        claimed += len(answer.edges)
        right += hopes["precision"] * len(answer.edges)
        true += hopes["precision"] * len(answer.edges) / hopes["recall"]
    return (right / claimed, right / true) if right else None


def headlines(score: Score, seconds: float | None) -> list[tuple[str, str]]:
    """Give the few lines that a reader needs."""
    v = score.values
    low, high = score.interval or (score.f1, score.f1)
    last = [("seconds", f"{seconds:.2f}")] if seconds is not None else []
    if seconds is None and score.calibration is not None:
        last = [("calibration", f"error {_cell(score.calibration['error'])}, "
                                f"{_cell(score.calibration['by_chance'])} by chance")]  # fmt: skip
    return [
        ("F1", f"{score.f1:.3f}, 95 % interval {low:.3f} to {high:.3f}"),
        ("floor, ceiling", f"{score.floor:.3f} without embeddings ({v['floor_by']}), "
                           f"{score.ceiling:.3f} at best"),
        *([("F1 with names", f"{v['named_f1']:.3f}; all other numbers are without names (pseudonyms)")]
          if v.get("named_f1") is not None else []),
        ("precision", f"{score.precision:.3f} of {v['claimed']:,} claims"),
        ("recall", f"{score.recall:.3f} of all {v['edges']:,} edges, in some patch or not"),
        *last,
    ]


def show_score(score: Score, said: str, seconds: float | None, *, trivial: bool = False) -> None:
    """Print the sentence, a warning where an attack that reads embeddings fails, and the headlines."""
    say(said)
    if score.fails and not trivial:
        say(f"BELOW THE FLOOR ({score.f1:.3f} < {score.floor:.3f}): {FAILS}")
    print()
    print_facts(headlines(score, seconds))


def show_details(result: dict[str, Any]) -> None:
    """Print all numbers, and what the attack tells of itself."""
    flat = {f"F1, {scope}": value for scope, value in result.get("f1", {}).items()}
    flat |= {key: value for key, value in result.items() if key not in ("f1", "method", "answer", "diagnostics")}
    flat |= result["diagnostics"] or {}
    if flat.get("cut") is not None:
        flat["cut"] = repr(flat["cut"])  # as a threshold, a rounded one would claim other pairs
    rows = [(key, _cell(value)) for key, value in flat.items() if value is not None]
    print()
    print_table("All numbers", ("what", "value"), rows, fold=("value",))


def show_patches(score: Score | None, *, named: bool) -> None:
    """Print what was found patch by patch, the most exposed first."""
    if score is None or score.patches is None or not len(score.patches):
        return
    rows = score.patches.rows(NAMED if named else MANY)
    columns = ("patch", "members", "edges", "found", "wrong", "exact")
    cells = [(row["patch"], *(f"{row[c]:,}" for c in columns[1:5]), "yes" if row["exact"] else "") for row in rows]
    print_table("Patches, the most exposed first", columns, cells, columns[1:5], fold=("patch",))
    if len(rows) < len(score.patches):
        say(f"{len(score.patches) - len(rows):,} more patches are left out; --json --verbose lists all.")


def add_up(told: list[dict[str, Any]]) -> dict[str, Any]:
    """Add the counts of several graphs' diagnostics and count their words; other values are left out."""
    return told[0] if len(told) == 1 else {"graphs": len(told), **_sum_diagnostics(told)}


def _sum_diagnostics(told: list[dict[str, Any]]) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for key in dict.fromkeys(key for item in told for key in item):
        values = [item[key] for item in told if item.get(key) is not None]
        if values and all(isinstance(value, int) and not isinstance(value, bool) for value in values):
            total[key] = sum(values)
        elif values and all(isinstance(value, str) for value in values):
            total[key] = dict(Counter(values))
        elif values and all(isinstance(value, dict) for value in values) and (inner := _sum_diagnostics(values)):
            total[key] = inner
    return total


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_cell(item)}" for name, item in value.items())
    if isinstance(value, list):
        return " .. ".join(_cell(item) for item in value)
    return str(value)
