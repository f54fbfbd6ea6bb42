"""The table of a comparison: growing row by row on a terminal, printed whole at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Group
from rich.live import Live
from rich.table import Table

from lograb.cli.output import make_bar, make_table, print_table, reporting, say, stderr, stdout, waiting
from lograb.cli.stopping import clean
from lograb.progress import Progress
from lograb.report import Comparison, headline
from lograb.score import Score

BEST, BELOW = "*", "↓"
NUMERIC = ("F1", "behind best", "precision", "recall", "seconds")
Finished = Callable[[str, Score | None, float], None]
Runs = dict[str, list[tuple[Score | None, float]]]


@contextmanager
def board(seeds: int, *, quiet: bool) -> Iterator[tuple[Progress, Finished]]:
    """Show a comparison while it runs; yields what to call for progress and for each finished run.

    On a terminal the table grows, with a bar below it, and makes place for the final one; after Ctrl-C it stays.
    Where stdout is no terminal, or kept `quiet`, each finished run is a line on stderr.
    """
    runs: Runs = {}
    console = stdout()
    lines = quiet or not console.is_terminal

    def finished(name: str, score: Score | None, seconds: float) -> None:
        runs.setdefault(name, []).append((score, seconds))
        which = f", run {len(runs[name])}" if seeds > 1 else ""
        what = "could not run" if score is None else f"F1 {score.f1:.3f} ({seconds:.1f} s)"
        if lines:
            stderr.print(clean(f"  {name}{which}: {what}"), soft_wrap=True)

    if lines:
        with waiting("preparing") as report:
            yield report, finished
        return
    bar = make_bar(console=console)
    with Live(console=console, get_renderable=lambda: Group(_table(_rows_so_far(runs)), bar)) as live:
        yield reporting(bar, "preparing"), finished
        live.transient = True


def _rows_so_far(runs: Runs) -> list[dict[str, Any]]:
    """Average the runs that are there, in the shape of `Comparison.rows`."""
    rows = []
    for name, each in list(runs.items()):
        scores = [score for score, _ in each if score is not None]
        row: dict[str, Any] = {"method": name, "seconds": float(np.mean([seconds for _, seconds in each]))}
        for key in ("f1", "floor", "precision", "recall"):
            row[key] = float(np.mean([getattr(score, key) for score in scores])) if scores else None
        rows.append(row)
    return rows


def show_comparison(table: Comparison) -> None:
    """Print attacks side by side, what the marks mean, and one sentence."""
    rows, best = table.rows, table.best
    ran = [row for row in rows if not row.get("problem")]
    if ran:
        say(f"{len(rows)} attacks on {table.summary['name']}, {_seeds(table)}; floor {ran[0]['floor']:.3f} "
            f"({ran[0]['floor_by']}), ceiling {ran[0]['ceiling']:.3f}")  # fmt: skip
    print()
    columns, cells = _cells(rows, best.name)
    print_table("", columns, cells, NUMERIC, fold=("method",))
    if any(_below(row) for row in rows):
        say(f"{BEST} best   {BELOW} below the floor: who looks at no embedding does better")
    for row in rows:
        if row.get("problem"):
            say(f"{row['method']} could not run: {row['problem']}")
    if ran:
        say(verdict(table))


def _seeds(table: Comparison) -> str:
    if table.seeds == 1:
        return "one seed"
    return f"{table.seeds} seeds" + (", an instance each" if table.fresh else " of the attacks' draws")


def verdict(table: Comparison) -> str:
    """Say who is best, and whether that is more than chance."""
    best = table.best
    if not best.beats_floor:
        row = next(row for row in table.rows if row["method"] == best.name)
        return f"{headline(row, table.rows)}: best is {best.name}. That is no proof of safety."
    if table.seeds == 1:
        said = f"Best is {best.name}: it {best.scores[0].sentence()}."
    else:
        close = [row["method"] for row in table.rows if not row.get("problem") and row["method"] != best.name
                 and row["behind_interval"][0] <= 0]  # fmt: skip
        rest = f"; {', '.join(close)} may be as good (95 %)" if close else ""
        said = f"Best is {best.name}, with a mean F1 of {best.f1:.3f}{rest}."
    return said


def _table(rows: list[dict[str, Any]]) -> Table:
    columns, cells = _cells(rows, None)
    return make_table(columns, cells, NUMERIC, fold=("method",))


def _cells(rows: list[dict[str, Any]], best: str | None) -> tuple[list[str], list[list[str]]]:
    """Fill the table as text; columns for which there are no numbers are left out."""
    spread = any(row.get("behind_interval") for row in rows)
    columns = ["", "method", "F1", *(["behind best"] if spread else []), "precision", "recall", "seconds"]
    cells = []
    for row in rows:
        mark = BEST * (row["method"] == best) + BELOW * _below(row)
        if row.get("f1") is None:
            cells.append([mark, row["method"], *["-"] * (len(columns) - 2)])
            continue
        sd = "" if row.get("sd") is None else f" ± {row['sd']:.3f}"
        behind = [_behind(row, best)] if spread else []
        cells.append([mark, row["method"], f"{row['f1']:.3f}{sd}", *behind, f"{row['precision']:.3f}",
                      f"{row['recall']:.3f}", f"{row['seconds']:.2f}"])  # fmt: skip
    return columns, cells


def _behind(row: dict[str, Any], best: str | None) -> str:
    """Give the distance to the best attack and half the width of its 95 % interval."""
    if row["method"] == best:
        return ""
    low, high = row["behind_interval"]
    return f"{row['behind']:.3f} ± {(high - low) / 2:.3f}"


def _below(row: dict[str, Any]) -> bool:
    """Whether an attack stays below the floor, one that belongs to the floor included."""
    return row.get("f1") is not None and row["f1"] < row["floor"]
