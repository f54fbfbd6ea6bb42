"""Printing: JSON and tables to stdout, everything else to stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.table import Table

stderr = Console(stderr=True, highlight=False)


def print_json(content: Any) -> None:
    """Print JSON; a missing number is null, never NaN."""
    print(json.dumps(_finite(content), indent=2, ensure_ascii=False))


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    numeric: Iterable[str] = (),
    fold: Iterable[str] = (),
) -> None:
    """Print a table; `numeric` names the columns that align right, `fold` those that may break lines."""
    numeric, fold = set(numeric), set(fold)
    style: dict[str, Any] = {"box": box.SIMPLE_HEAD, "pad_edge": False, "padding": (0, 1, 0, 0)}
    table = Table(title=title, title_justify="left", title_style="bold", **style)
    for column in columns:
        justify: Literal["right", "left"] = "right" if column in numeric else "left"
        breaks = column in fold
        table.add_column(column, justify=justify, no_wrap=not breaks, overflow="fold", min_width=13 * breaks)
    for row in rows:
        table.add_row(*row)
    # In a pipe there is no window to fit into: never cut a cell.
    width = None if sys.stdout.isatty() else 160
    Console(highlight=False, markup=False, width=width).print(table)


def notice(text: str) -> None:
    """Tell the user something about their input or output, on stderr."""
    stderr.print(f"note: {text}", style="yellow", markup=False, soft_wrap=True)
