"""Printing: results to stdout, everything else to stderr; nothing from a file reaches a terminal unescaped."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from lograb.cli.stopping import clean
from lograb.progress import Progress

Rows = Iterable[Sequence[str]]
Fold = Iterable[str] | Mapping[str, int | None]
stderr = Console(stderr=True, highlight=False, markup=False, emoji=False)  # ':top:' is a name
UNSAFE = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that JSON leaves as they are, and that a terminal obeys or cannot show."""


def print_json(content: Any) -> None:
    """Print JSON; a missing number is null, never NaN."""
    text = json.dumps(_finite(content), indent=2, ensure_ascii=False)
    print(UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def say(text: str) -> None:
    """Print a sentence to stdout, in lines that fit."""
    lines = textwrap.wrap(clean(text), stdout().width, break_long_words=False, break_on_hyphens=False)
    print("\n".join(lines))


def notice(text: str) -> None:
    """Tell the user something about their input or output, on stderr."""
    stderr.print(clean(f"note: {text}"), style="yellow", soft_wrap=True)


def stdout(pipe: int = 80) -> Console:
    """Give the console of the results; a pipe is as wide as COLUMNS says, or `pipe`."""
    told = os.environ.get("COLUMNS", "")
    width = int(told) if told.isdecimal() and int(told) else pipe
    return Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else width)


def print_table(
    title: str, columns: Sequence[str], rows: Rows, numeric: Iterable[str] = (), fold: Fold = ()
) -> None:
    """Print a table.

    `numeric` names the columns that align right, `fold` those that may break lines, with their greatest width
    where it is a dict.
    """
    if title:
        _print(Text(clean(title), style="bold"))
    _print(make_table(columns, rows, numeric, fold))
    print()


def print_facts(rows: Rows) -> None:
    """Print labels and what belongs to each, without a frame."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*map(clean, row))
    _print(table)


def make_table(columns: Sequence[str], rows: Rows, numeric: Iterable[str] = (), fold: Fold = ()) -> Table:
    """Lay a table out; see `print_table`."""
    widths = dict(fold) if isinstance(fold, Mapping) else dict.fromkeys(fold)
    numeric = set(numeric)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        justify: Literal["right", "left"] = "right" if column in numeric else "left"
        breaks = column in widths
        table.add_column(column, justify=justify, no_wrap=not breaks, overflow="fold",
                         min_width=13 * breaks or None, max_width=widths.get(column))  # fmt: skip
    for row in rows:
        table.add_row(*map(clean, row))
    return table


def _print(content: Any) -> None:
    """Print what rich lays out, without spaces at the ends of lines."""
    console = stdout()
    with console.capture() as captured:
        console.print(content)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


class _Left(ProgressColumn):
    """How much is done and how long the rest will take; or, where nobody knows, how long it has taken."""

    def render(self, task: Task) -> Text:
        if task.total is None:
            return Text(clock(task.elapsed or 0.0))
        left = "" if task.time_remaining is None else f", {clock(task.time_remaining)} left"
        return Text(f"{int(task.percentage)} %{left}")


def clock(seconds: float) -> str:
    """Write a time span the way a clock shows it."""
    return str(timedelta(seconds=round(seconds))).removeprefix("0:")


def make_bar(**options: Any) -> Bar:
    """Give a bar that shows stage, share done and remaining time."""
    return Bar(TextColumn("{task.description}", markup=False), BarColumn(24), _Left(), **options)


def reporting(bar: Bar, what: str) -> Progress:
    """Give the function that a bar is told progress by; a new total or a step back starts a new stage."""
    task, last = bar.add_task(clean(what), total=None), (0, 0)

    def report(what: str, done: int, total: int | None) -> None:
        nonlocal task, last
        if (total or 0) != last[1] or done < last[0]:
            bar.remove_task(task)
            task = bar.add_task(clean(what), total=total or None, completed=done)
        else:
            bar.update(task, description=clean(what), completed=done)
        last = done, total or 0

    return report


@contextmanager
def waiting(what: str) -> Iterator[Progress]:
    """Show a bar on a terminal while something takes time; yields the function to tell progress by."""
    quiet = not stderr.is_terminal
    with make_bar(console=stderr, transient=True, disable=quiet, redirect_stdout=False) as bar:
        yield reporting(bar, what)
