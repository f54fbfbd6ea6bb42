"""What other packages add by entry points: datasets, attacks, defences, models and link methods.

A package names them in its ``pyproject.toml``, under ``[project.entry-points."lograb.attacks"]`` and so on. What
comes with lograb wins over a plugin of the same name. Nothing of a plugin is imported before it is asked for.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from lograb.errors import LograbError, warn


@cache
def plugins(kind: str) -> dict[str, EntryPoint]:
    """List the plugins of a kind by name: "datasets", "attacks", "defences", "models", "links"."""
    return {point.name: point for point in entry_points(group=f"lograb.{kind}")}


def find_plugin(kind: str, name: str) -> Any:
    """Import a plugin; None where there is none of that name."""
    point = plugins(kind).get(name)
    if point is None:
        return None
    try:
        return point.load()
    except Exception as error:
        raise LograbError(f"the plugin '{name}' ({point.value}) of {origin(kind, name)} cannot be imported: "
                          f"{type(error).__name__}: {error}") from None  # fmt: skip


def with_plugins(kind: str, catalog: dict[str, Any]) -> dict[str, Any]:
    """Add the plugins of a kind to a catalog; those that cannot be imported are told and left out."""
    every = dict(catalog)
    for name in plugins(kind):
        try:
            every.setdefault(name, find_plugin(kind, name))
        except LograbError as error:
            warn(str(error))
    return every


def origin(kind: str, name: str) -> str:
    """Name the package that a plugin comes from, with its version; "" for what comes with lograb."""
    point = plugins(kind).get(name)
    return "" if point is None or point.dist is None else f"{point.dist.name} {point.dist.version}"
