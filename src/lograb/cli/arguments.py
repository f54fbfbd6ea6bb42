"""What users write behind a command, made into what the public API takes; checked before work starts."""

from __future__ import annotations

import importlib.util
import json
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

from lograb.attacks import Attack, find_attack
from lograb.errors import LograbError, unknown_name


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
    return [find_method(name) for name in names]


def find_method(text: str, settings: dict[str, Any] | None = None) -> Any:
    """Find an attack by name, or in the user's own file as ``file.py:function``."""
    settings = settings or {}
    file, _, name = text.rpartition(":")
    if text.endswith(".py") or (file.endswith(".py") and not name):
        raise LograbError(f"which function of '{text}'? Write {text.rstrip(':')}:FUNCTION")
    if not file.endswith(".py"):
        return find_attack(text)(**settings)
    found = _pick(_run_file(Path(file)), file, name)
    if isinstance(found, type) and issubclass(found, Attack):
        return found(**settings)
    if settings:
        raise LograbError(f"a function takes no settings, got {', '.join(settings)}: write '{text}' as a "
                          "lograb.attacks.Attack with parameters")  # fmt: skip
    return found if isinstance(found, Attack) else _guarded(found, text)


def _run_file(path: Path) -> ModuleType:
    """Run a Python file, with what lies beside it in reach, as ``python FILE`` would."""
    if not path.is_file():
        raise LograbError(f"no such file: '{path}'")
    path = path.resolve()
    spec = importlib.util.spec_from_file_location(f"lograb_user_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise LograbError(f"'{path.name}' cannot be run: {_where(error, path)}") from error
    return module


def _pick(module: ModuleType, file: str, name: str) -> Any:
    found = getattr(module, name, None)
    if found is None:
        here = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")
                and getattr(value, "__module__", module.__name__) == module.__name__]  # fmt: skip
        raise unknown_name(f"function of '{file}':", name, here or ["none"])
    if not callable(found):
        raise LograbError(f"'{name}' of '{file}' must be a function (observations, rng) -> lograb.Reconstruction, "
                          f"got {type(found).__name__}")  # fmt: skip
    return found


def _guarded(function: Callable[..., Any], text: str) -> Callable[..., Any]:
    """Let an error in the user's function say where it happened, in one line."""
    path = Path(text.rpartition(":")[0]).resolve()

    @wraps(function)
    def call(seen: Any, rng: Any) -> Any:
        try:
            return function(seen, rng)
        except LograbError:
            raise
        except Exception as error:
            raise LograbError(f"'{text}' failed: {_where(error, path)}") from error

    return call


def _where(error: BaseException, path: Path) -> str:
    """Name an error and the last line of the user's file that led to it."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    for frame in traceback.extract_tb(error.__traceback__):
        line = frame.lineno if Path(frame.filename) == path else line
    place = "" if line is None else f" (line {line})"
    return f"{type(error).__name__}: {error}{place}"
