"""Attacks side by side: one table, as text, Markdown, LaTeX, pandas or a page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from html import escape
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np

from lograb.errors import LograbError
from lograb.metrics.intervals import mean_interval
from lograb.report.page import write_page
from lograb.report.table import latex, markdown
from lograb.score import Score
from lograb.writing import replacing

COLUMNS = ("method", "F1", "sd", "behind", "floor", "ceiling", "precision", "recall", "seconds")


@dataclass(frozen=True)
class Method:
    """One row: an attack, its scores seed by seed, and how long each took; or why it could not run."""

    name: str
    trivial: bool
    scores: tuple[Score, ...]
    seconds: tuple[float, ...]
    problem: str = ""

    @property
    def f1(self) -> float:
        """Mean of the global F1 over the seeds; 0 where the attack could not run."""
        return self.mean("f1", "global") if self.scores else 0.0

    @property
    def beats_floor(self) -> bool:
        """Whether F1 is above the floor by more than chance: the lower ends of the 95 % intervals, on average."""
        low = [score.interval[0] for score in self.scores if score.interval is not None]
        return bool(low) and float(np.mean(low)) > self.mean("floor")

    def mean(self, *path: str) -> float:
        """Average one number over the seeds: ``mean("f1", "recovered")``, ``mean("auroc")``."""
        return float(np.mean([reduce(getitem, path, score.values) for score in self.scores]))


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Attacks on the same instances, between one floor and one ceiling.

    Attributes
    ----------
    summary : what was attacked (of the first seed), as `Instance.summary` describes it
    fresh : whether each seed has an instance of its own; otherwise seeds only vary what the attacks draw
    """

    summary: dict[str, Any]
    methods: tuple[Method, ...]
    seeds: int
    fresh: bool

    @property
    def best(self) -> Method:
        """The attack with the highest mean F1, among those that could run."""
        return max(self.methods, key=lambda method: (bool(method.scores), method.f1))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dict per attack: means over the seeds, and how far behind the best, with a paired 95 % interval."""
        best = self.best
        return [self._row(method, best) for method in self.methods]

    def _row(self, method: Method, best: Method) -> dict[str, Any]:
        row: dict[str, Any] = {"method": method.name, "trivial": method.trivial}
        if method.problem:
            return row | {"problem": method.problem}
        f1 = np.array([score.f1 for score in method.scores])
        behind = np.array([score.f1 for score in best.scores]) - f1
        values = {"f1": float(f1.mean()), "sd": float(f1.std(ddof=1)) if self.seeds > 1 else None,
                  "recovered": method.mean("f1", "recovered"),
                  "interval": (list(method.scores[0].interval or ()) if self.seeds == 1
                               else np.clip(mean_interval(f1), 0.0, 1.0).tolist()),
                  "behind": float(behind.mean()),
                  "behind_interval": mean_interval(behind) if self.seeds > 1 else None}  # fmt: skip
        for name in ("floor", "ceiling", "precision", "recall"):
            values[name] = method.mean(name)
        values |= {"floor_by": method.scores[0].values.get("floor_by"), "beats_floor": method.beats_floor}
        return row | values | {"seconds": float(np.mean(method.seconds))}

    def __getitem__(self, name: str) -> Method:
        for method in self.methods:
            if method.name == name:
                return method
        raise KeyError(f"no attack '{name}' among {', '.join(method.name for method in self.methods)}")

    def __len__(self) -> int:
        return len(self.methods)

    def __repr__(self) -> str:
        return (f"<Comparison of {len(self.methods)} attacks on {self.summary['name']}, {self.seeds} seed(s): "
                f"best {self.best.name}, F1 {self.best.f1:.3f}>")  # fmt: skip

    def __str__(self) -> str:
        lines = [list(self.columns), *self.cells()]
        ran = [line for line in lines if any(line[2:])]  # the others hold why an attack could not run
        widths = [max(len(line[i]) for line in (ran if i else lines)) for i in range(len(self.columns))]
        rows = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
        return "\n".join([repr(self), *rows])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(column)}</th>" for column in self.columns)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
                       for row in self.cells())  # fmt: skip
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the printed table; spread and difference need more than one seed."""
        return COLUMNS if self.seeds > 1 else tuple(c for c in COLUMNS if c not in ("sd", "behind"))

    def cells(self) -> list[list[str]]:
        """Fill the printed table, as text."""
        return [[_cell(row, column) for column in self.columns] for row in self.rows]

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain numbers, ready for JSON."""
        return {"instance": self.summary, "seeds": self.seeds, "instance_per_seed": self.fresh,
                "attacks": self.rows}  # fmt: skip

    def to_pandas(self) -> Any:
        """Give the rows as a pandas DataFrame, indexed by method."""
        try:
            import pandas as pd
        except ImportError:
            raise LograbError("to_pandas needs pandas: pip install pandas, or take .rows") from None
        return pd.DataFrame(self.rows).set_index("method")

    def to_markdown(self, path: str | Path | None = None) -> str:
        """Give the table as Markdown, and write it where a path is given."""
        return _keep(markdown(self.columns, self.cells()), path)

    def to_latex(self, path: str | Path | None = None) -> str:
        """Give the table as LaTeX (booktabs), and write it where a path is given."""
        return _keep(latex(self.columns, self.cells()), path)

    def to_html(self, path: str | Path, *, command: str = "") -> None:
        """Write a page without outside parts, so that it opens anywhere; `command` is what makes it again."""
        write_page(Path(path), self.summary, self.rows, seeds=self.seeds, command=command)


def _keep(text: str, path: str | Path | None) -> str:
    if path is not None:
        with replacing(path) as file:
            file.write(text)
    return text


def _cell(row: dict[str, Any], column: str) -> str:
    key = column.lower()
    if key == "method":
        return str(row["method"])
    if row.get("problem"):
        return row["problem"] if key == "f1" else ""
    if key == "seconds":
        return f"{row[key]:.2f}"
    if key == "behind" and row["behind_interval"] is not None:
        low, high = row["behind_interval"]
        return f"{row[key]:.3f} ({low:.3f} .. {high:.3f})"
    return "" if row[key] is None else f"{row[key]:.3f}"
