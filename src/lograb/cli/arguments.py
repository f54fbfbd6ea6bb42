"""What users write behind a command, made into what the public API takes; checked before work starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lograb.errors import LograbError
from lograb.tasks.isolation import choose_attack


def check_instance_name(path: Path) -> None:
    """Refuse names that no instance can have."""
    if path.suffix.lower() != ".lograb":
        better = str(path).removesuffix(path.suffix) + ".lograb"
        raise LograbError(f"an instance is a file whose name ends in .lograb, got '{path}': write -o '{better}'")


def parse_settings(pairs: list[str] | None) -> dict[str, Any]:
    """Read ``key=value`` settings; values are JSON where they can be, text otherwise."""
    settings: dict[str, Any] = {}
    for pair in pairs or []:
        key, separator, text = pair.partition("=")
        if not separator or not key:
            raise LograbError(f"a setting is written key=value, got '{pair}'")
        if key in settings:
            raise LograbError(f"the setting '{key}' is given twice")
        try:
            settings[key] = json.loads(text)
        except (ValueError, RecursionError):  # a RecursionError where brackets are nested too deeply
            settings[key] = None if text == "None" else text
    return settings


def parse_methods(text: str) -> list[Any]:
    """Read a list of attacks, separated by commas."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise LograbError("name at least one attack, as in --methods afr,posterior; see 'lograb list attacks'")
    return [choose_attack(name) for name in names]
