"""A table of text, in the forms that papers and pages take."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

LATEX = str.maketrans({"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$",
                       "{": r"\{", "}": r"\}", "^": r"\^{}", "~": r"\~{}", "±": r"$\pm$", "σ": r"$\sigma$",
                       "–": "--"})  # fmt: skip

WORDS = ("instance", "method")


@dataclass(frozen=True)
class Table:
    """A table with what belongs to it.

    Attributes
    ----------
    name, title, about : str
    command : str
        What makes it again.
    columns : list of str
    rows : list of lists of str
        One text for each column.
    notes : list of str
        Sentences that belong below it.
    figure : dict
        The same numbers as curves, or empty: see `lograb.report.figures`.
    """

    name: str
    title: str
    columns: list[str]
    rows: list[list[str]]
    about: str = ""
    command: str = ""
    notes: list[str] = field(default_factory=list)
    figure: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, ready for JSON."""
        return asdict(self)

    def render(self, form: str) -> str:
        """Write the table as text, markdown (with title, command and notes), latex (booktabs) or csv."""
        if form == "text":
            return text(self.columns, self.rows)
        if form == "csv":
            file = io.StringIO(newline="")
            csv.writer(file, lineterminator="\n").writerows([self.columns, *self.rows])
            return file.getvalue()
        if form == "latex":
            return latex(self.columns, self.rows)
        head = [f"## {self.title}\n", self.about, f"```sh\n{self.command}\n```" if self.command else ""]
        return "\n".join([*(f"{part}\n" for part in head if part), markdown(self.columns, self.rows),
                          *(f"- {note}" for note in self.notes), ""])  # fmt: skip


def text(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay a table out in columns, as wide as they need be: the first ones of words, the others of numbers."""
    lines = [columns, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    laid = ["  ".join(cell.ljust(width) if name in WORDS else cell.rjust(width)
                      for name, cell, width in zip(columns, line, widths)).rstrip() for line in lines]  # fmt: skip
    return "\n".join([laid[0], "─" * max(map(len, laid)), *laid[1:], ""])


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay a table out as Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def latex(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay a table out as LaTeX, with the rules of booktabs."""
    lines = [" & ".join(cell.translate(LATEX) for cell in row) + r" \\" for row in rows]
    return "\n".join([rf"\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}}", r"\toprule",
                      " & ".join(column.translate(LATEX) for column in columns) + r" \\", r"\midrule", *lines,
                      r"\bottomrule", r"\end{tabular}", ""])  # fmt: skip
