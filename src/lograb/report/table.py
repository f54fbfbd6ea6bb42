"""A table of text, in the forms that papers and pages take."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

LATEX = str.maketrans({"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$",
                       "{": r"\{", "}": r"\}", "^": r"\^{}", "~": r"\~{}", "±": r"$\pm$", "σ": r"$\sigma$",
                       "δ": r"$\delta$", "ε": r"$\varepsilon$", "∞": r"$\infty$", "√": r"$\surd$",
                       "→": r"$\rightarrow$", "≤": r"$\leq$", "≥": r"$\geq$", "×": r"$\times$", "−": "$-$",
                       "·": r"$\cdot$", "–": "--", "—": "---", "…": r"\dots{}"})  # fmt: skip

WORDS = ("instance", "method")
WORD, KEY = re.compile(r"[a-z][a-z0-9-]+"), re.compile(r"^\w+=(?=[a-z])")
"""A word in the name of an instance; and a key whose value is one too."""


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

    def render(self, form: str, width: int | None = None) -> str:
        """Write the table as text, markdown (with title, command and notes), latex (booktabs) or csv.

        Text is at most `width` wide, if its columns are.
        """
        if form == "text":
            return text(*_shortened(self.columns, self.rows), width)
        if form == "csv":
            file = io.StringIO(newline="")
            csv.writer(file, lineterminator="\n").writerows([self.columns, *self.rows])
            return file.getvalue()
        if form == "latex":
            return latex(self.columns, self.rows)
        head = [f"## {self.title}\n", self.about, f"```sh\n{self.command}\n```" if self.command else ""]
        return "\n".join([*(f"{part}\n" for part in head if part), markdown(self.columns, self.rows),
                          *(f"- {note}" for note in self.notes), ""])  # fmt: skip


def joined_csv(tables: Sequence[Table]) -> str:
    """Write several tables as one CSV: the name of the table first, then every column that any of them has."""
    columns = list(dict.fromkeys(column for table in tables for column in table.columns))
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, ["table", *columns], lineterminator="\n")
    writer.writeheader()
    for table in tables:
        writer.writerows({"table": table.name} | dict(zip(table.columns, row)) for row in table.rows)
    return file.getvalue()


def text(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Lay a table out in columns: the first ones of words, the others of numbers.

    What is wider than `width` is broken into blocks, each with the columns of words.
    """
    lines = [columns, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    names = [i for i, column in enumerate(columns) if column.partition(":")[0] in WORDS]
    blocks = [list(names)]
    for i in range(len(columns)):
        if i in names:
            continue
        if width and len(blocks[-1]) > len(names) and sum(widths[j] + 2 for j in blocks[-1]) + widths[i] > width:
            blocks.append(list(names))
        blocks[-1].append(i)
    laid = []
    for block in blocks:
        told = ["  ".join(line[i].ljust(widths[i]) if i in names else line[i].rjust(widths[i])
                          for i in block).rstrip() for line in lines]  # fmt: skip
        laid.append("\n".join([told[0], "─" * max(map(len, told)), *told[1:], ""]))
    return "\n".join(laid)


def _shortened(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """Shorten names of instances: a word that all have moves to the head; a key goes where its value is a word."""
    labels = list(dict.fromkeys(row[0] for row in rows))
    common = [word for word in labels[0].split() if WORD.fullmatch(word)
              and all(word in label.split() for label in labels)] if len(labels) > 1 else []  # fmt: skip
    short = {label: " ".join(KEY.sub("", word) for word in label.split() if word not in common)
             for label in labels}  # fmt: skip
    if columns[0] != "instance" or len({*short.values()} - {""}) < len(labels):
        return list(columns), [list(row) for row in rows]
    head = ": ".join(filter(None, ("instance", " ".join(common))))
    return [head, *columns[1:]], [[short[row[0]], *row[1:]] for row in rows]


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
