"""``lograb list``: every catalog of the package, by kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lograb.cli.output import print_facts, print_json, print_table, say
from lograb.errors import unknown_name
from lograb.plugins import origin, plugins, with_plugins

Rows = list[dict[str, Any]]


def _datasets() -> Rows:
    from lograb.graphs import DATASETS

    fields = ("name", "n_graphs", "n_nodes", "n_edges", "n_classes", "n_features", "licence", "description", "url")
    return [_take(dataset, *fields) | {"available": dataset.locate()} 
            for dataset in with_plugins("datasets", DATASETS).values()]  # fmt: skip


def _strategies() -> Rows:
    from lograb.patches.catalog import STRATEGIES

    return [_take(strategy, "name", "description") for strategy in STRATEGIES.values()]


def _gauges() -> Rows:
    from lograb.observations.gauges import GAUGES

    return [{"name": name, "description": text} for name, text in GAUGES.items()]


def _defences() -> Rows:
    from lograb.defences import DEFENCES
    from lograb.plugins import with_plugins

    fields = ("name", "touches", "guarantee", "unit", "does", "exposes", "on_graph")
    return [_take(defence, *fields) | {"settings": {name: "required" if field.is_required() else field.default
                                                    for name, field in defence.model_fields.items()}}
            for defence in with_plugins("defences", DEFENCES).values()]  # fmt: skip


def _attacks() -> Rows:
    from lograb.attacks import ATTACKS

    fields = ("optional", "trivial", "extra", "scenario", "cost")
    ours = [{"name": attack.name, "channels": attack.uses, **_take(attack, *fields), "settings": _defaults(attack)}
            for attack in ATTACKS.values()]  # fmt: skip
    others: Rows = [{"name": name, "channels": (), "optional": (), "trivial": False, "extra": None, "cost": "",
                     "scenario": f"of {origin('attacks', name)}, in a process of its own", "settings": {}}
                    for name in plugins("attacks") if name not in ATTACKS]  # fmt: skip
    return ours + others


def _models() -> Rows:
    from lograb.learning.nodes.catalog import MODELS
    from lograb.learning.nodes.settings import TrainingSettings

    fields, training = ("name", "encodings", "trivial", "description", "settings"), _defaults(TrainingSettings)
    return [_take(model, *fields) | {"training": training} for model in with_plugins("models", MODELS).values()]


def _links() -> Rows:
    from lograb.learning.links.catalog import LINKS

    fields = ("name", "sees", "trivial", "description")
    return [_take(method, *fields) | {"settings": _defaults(method.settings)}
            for method in with_plugins("links", LINKS).values()]  # fmt: skip


def _presets() -> Rows:
    from lograb.experiments.config import find_config, preset_names

    families: dict[str, list[str]] = {}
    for name in preset_names():
        family, _, member = name.partition("-")
        families.setdefault(family, []).append(member)
    alone = [{"name": name, "description": find_config(name)[name].title} for name in preset_names()]
    several = [{"name": family, "description": f"{len(members)} at once: {', '.join(members)}"}
               for family, members in families.items() if len(members) > 1]  # fmt: skip
    return sorted(alone + several, key=lambda row: row["name"])


def _take(entry: Any, *fields: str) -> dict[str, Any]:
    return {field: getattr(entry, field) for field in fields}


def _defaults(settings: Any) -> dict[str, Any]:
    return {name: field.default for name, field in settings.model_fields.items()}


CATALOGS: dict[str, Callable[[], Rows]] = {"datasets": _datasets, "strategies": _strategies, "gauges": _gauges,
                                           "defences": _defences, "attacks": _attacks, "models": _models,
                                           "links": _links, "presets": _presets}  # fmt: skip
SHOWN = {
    "datasets": {"name": "name", "graphs": "n_graphs", "nodes": "n_nodes", "edges": "n_edges",
                 "available": "available"},
    "attacks": {"name": "name", "scenario": "scenario", "besides members": "channels", "cost grows with": "cost"},
    "defences": {"name": "name", "guarantee": "guarantee", "unit": "unit", "does": "does", "exposes": "exposes"},
    "models": {"name": "name", "encodings": "encodings", "description": "description"},
    "links": {"name": "name", "sees": "sees", "description": "description"},
}  # fmt: skip
"""Columns of the tables, where they are not all fields; ``--verbose`` and JSON have the others."""
NUMBERS = {"graphs", "nodes", "edges"}
WIDTHS = {"scenario": 30, "besides members": 15, "cost grows with": 17, "encodings": 20, "sees": 20,
          "description": None, "does": 30, "exposes": 30}  # fmt: skip
"""Columns that may break lines, and how wide they are at most; names never break."""


def show_catalogs(kind: str | None, *, verbose: bool, json: bool) -> None:
    """Print one catalog, or all."""
    if kind is not None and kind not in CATALOGS:
        raise unknown_name("catalog", kind, CATALOGS)
    chosen = {name: make() for name, make in CATALOGS.items() if kind in (None, name)}
    if json:
        print_json(chosen if kind is None else chosen[kind])
        return
    for name, rows in chosen.items():
        if verbose:
            _show_records(rows)
            continue
        columns = SHOWN.get(name) or {key: key for key in rows[0]}
        cells = [[_fill(row, title, key) for title, key in columns.items()] for row in rows]
        numeric = NUMBERS & columns.keys()
        widths = {title: width for title, width in WIDTHS.items() if title in columns}
        print_table(name, list(columns), cells, numeric, fold=widths)


def _show_records(rows: Rows) -> None:
    """Print every field of every entry."""
    for row in rows:
        say(row["name"])
        told = {key: _cell(value) for key, value in row.items() if key != "name"}
        print_facts([(f"  {key.removeprefix('n_')}", text) for key, text in told.items() if text not in ("", "-")])
        print()


def _fill(row: dict[str, Any], title: str, key: str) -> str:
    """Fill a cell of a table; what is worth no column of its own is added to the words."""
    if title == "besides members":
        return ", ".join(channel for channel in row[key] if channel != "members")
    remarks = []
    if title in ("scenario", "description"):
        remarks += ["floor"] if row.get("trivial") and "floor" not in row[key] else []
        remarks += [f"extra {row['extra']}"] if row.get("extra") else []
    return _cell(row[key]) + (f" ({', '.join(remarks)})" if remarks else "")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{key} = {_setting(item)}" for key, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _setting(value: Any) -> str:
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
