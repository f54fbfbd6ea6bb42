"""``lograb list``: every catalog of the package, by kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lograb.cli.output import print_json, print_table
from lograb.errors import unknown_name

Rows = list[dict[str, Any]]


def _datasets() -> Rows:
    from lograb.graphs import DATASETS

    fields = ("name", "n_graphs", "n_nodes", "n_edges", "n_classes", "n_features", "licence", "description", "url")
    return [
        {field: getattr(dataset, field) for field in fields} | {"available": dataset.locate()}
        for dataset in DATASETS.values()
    ]


def _strategies() -> Rows:
    from lograb.patches.catalog import STRATEGIES

    return [{"name": s.name, "description": s.description} for s in STRATEGIES.values()]


def _gauges() -> Rows:
    from lograb.observations.gauges import GAUGES

    return [{"name": name, "description": text} for name, text in GAUGES.items()]


def _attacks() -> Rows:
    from lograb.attacks import ATTACKS

    return [
        {"name": a.name, "channels": list(a.uses), "optional": list(a.optional), "trivial": a.trivial,
         "extra": a.extra, "scenario": a.scenario, "cost": a.cost,
         "settings": {k: f.default for k, f in a.model_fields.items()}}
        for a in ATTACKS.values()
    ]


def _models() -> Rows:
    from lograb.learning.nodes.catalog import MODELS
    from lograb.learning.nodes.settings import TrainingSettings

    training = {key: field.default for key, field in TrainingSettings.model_fields.items()}
    return [
        {"name": m.name, "encodings": list(m.encodings), "trivial": m.trivial, "description": m.description,
         "settings": m.settings, "training": training}
        for m in MODELS.values()
    ]


def _links() -> Rows:
    from lograb.learning.links.catalog import LINKS

    return [
        {"name": m.name, "sees": list(m.sees), "trivial": m.trivial, "description": m.description,
         "settings": {k: f.default for k, f in m.settings.model_fields.items()}}
        for m in LINKS.values()
    ]


CATALOGS: dict[str, Callable[[], Rows]] = {
    "datasets": _datasets,
    "strategies": _strategies,
    "gauges": _gauges,
    "attacks": _attacks,
    "models": _models,
    "links": _links,
}
# Too much for a table; JSON has them.
LEFT_OUT = {"datasets": {"description", "url", "n_classes", "n_features"},
            "attacks": {"settings", "optional", "trivial"},
            "models": {"settings", "training"}, "links": {"settings"}}

FOLDED = {"licence", "channels", "optional", "scenario", "cost", "description"}
"""Columns that may break lines; names never do."""


def show_catalogs(kind: str | None, json: bool) -> None:
    """Print one catalog, or all."""
    if kind is not None and kind not in CATALOGS:
        raise unknown_name("catalog", kind, CATALOGS)
    chosen = {name: make() for name, make in CATALOGS.items() if kind in (None, name)}
    if json:
        print_json(chosen if kind is None else chosen[kind])
        return
    for name, rows in chosen.items():
        columns = [c for c in rows[0] if c not in LEFT_OUT.get(name, ())]
        titles = [column.removeprefix("n_") for column in columns]
        fold = FOLDED & set(columns)
        numeric = [t for t, c in zip(titles, columns) if c.startswith("n_")]
        print_table(name, titles, [[_cell(row[c]) for c in columns] for row in rows], numeric, fold)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(value) if isinstance(value, list) else str(value)
