"""``lograb attack``, ``evaluate`` and ``certify``."""

from __future__ import annotations

import json as json_module
import math
from collections import Counter
from pathlib import Path
from typing import Any

from lograb import pipeline
from lograb.answer_file import check_answer_name, write_answers
from lograb.attacks import find_attack
from lograb.cli.output import notice, print_json, print_table
from lograb.errors import LograbError
from lograb.theory import certify


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """Read ``key=value`` settings; values are JSON where they can be, text otherwise."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not separator or not key:
            raise LograbError(f"a setting is written key=value, got '{pair}'")
        if key in settings:
            raise LograbError(f"the setting '{key}' is given twice")
        try:
            settings[key] = json_module.loads(text)
        except (ValueError, RecursionError):  # a RecursionError where brackets are nested too deeply
            settings[key] = None if text == "None" else text
    return settings


def attack_instance(
    path: Path, method: str, output: Path | None, seed: int, pairs: list[str], features: bool, json: bool
) -> None:
    """Run an attack; score it where the file carries the truth."""
    instance = pipeline.load(path)
    if output is not None:
        check_answer_name(output)
    attacker = find_attack(method)(**parse_settings(pairs))
    found = pipeline.attack(instance, attacker, seed=seed, features=features)
    answers = found if isinstance(found, list) else [found]
    if output is not None:
        write_answers(output, answers)
        notice(f"the answer is in '{output}'")
    told = add_up([answer.diagnostics for answer in answers])
    result: dict[str, Any] = {"method": method, "seed": seed, "features": features, "diagnostics": told,
                              "seconds": sum(answer.seconds or 0.0 for answer in answers),
                              "claimed": sum(len(answer.edges) for answer in answers)}  # fmt: skip
    if instance.has_truth:
        result |= pipeline.evaluate(instance, found).to_dict()
    else:
        notice("the file has no truth: nothing is scored")
    if method == "posterior" and "co-occurrence" in (result["diagnostics"].get("rule") or ()):
        notice("no embedding was read, only who shares patches with whom: the scores are no probabilities")
    show_scores(f"{method} on {path}", result, json)


def evaluate_answer(path: Path, answer: Path, threshold: float | None, json: bool) -> None:
    """Score an answer from a file."""
    if threshold is not None and not math.isfinite(threshold):
        raise LograbError(f"the threshold must be a finite number, got {threshold}")
    scores = pipeline.evaluate(pipeline.load(path), answer, threshold=threshold).to_dict()
    result = {"answer": answer.name, "method": None, "seconds": None, "diagnostics": None, **scores}
    show_scores(f"{answer} on {path}", result, json)


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


def show_scores(title: str, result: dict[str, Any], json: bool) -> None:
    """Print scores as JSON or as a table."""
    if json:
        print_json(result)
        return
    flat = {f"F1, {scope}": value for scope, value in result.get("f1", {}).items()}
    flat |= {key: result[key] for key in ("floor", "ceiling", "precision", "recall") if key in result}
    flat |= {key: value for key, value in result.items() if key not in ("f1", "method", "answer", "diagnostics")}
    flat |= result["diagnostics"] or {}
    if flat.get("cut") is not None:
        flat["cut"] = repr(flat["cut"])  # as a threshold, a rounded one would claim other pairs
    rows = [(key, _cell(value)) for key, value in flat.items() if value is not None]
    print_table(title, ("what", "value"), rows, fold=("value",))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_cell(item)}" for name, item in value.items())
    if isinstance(value, list):
        return " .. ".join(_cell(item) for item in value)
    return str(value)


def certify_instance(path: Path, json: bool) -> None:
    """Say for how many patches exact recovery is guaranteed, by which statement, with or without the truth."""
    instance = pipeline.load(path)
    found = [
        certify(graph.observations, graph.patch_edges if graph.has_truth else None) for graph in instance
    ]
    result = found[0] if len(found) == 1 else {"graphs": len(found), **_add_up(found)}
    if json:
        print_json(result)
        return
    rows = [
        (s["name"], "yes" if s["needs_truth"] else "no", f"{s['holds']:,} of {s['applies_to']:,}", s["says"])
        for s in result["statements"]
    ]
    columns = ("statement", "needs truth", "holds", "says")
    print_table(f"{path}: exact recovery of all edges of a patch", columns, rows, ("holds",), fold=("says",))
    guaranteed = result["guaranteed"]
    print(f"Guaranteed without the truth: {guaranteed['without_truth']:,} of {result['n_patches']:,} patches. "
          "The others are not safe: attacks may well recover them.")  # fmt: skip
    if result["unchecked"]:
        print(f"Not checked: {result['unchecked']:,} patches ({result['reason'] or 'too large'}).")


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
