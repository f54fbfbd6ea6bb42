"""Tables as pages of Markdown, one each, with their figures beside them as SVG."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

from lograb.report.figures import draw_file
from lograb.report.table import Table, markdown
from lograb.writing import replacing


def write_pages(folder: Path, tables: list[Table]) -> list[Path]:
    """Write a page for each table, and `index.md`, which lists them; returns all files."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = "\n".join(f"- [{table.title}]({table.name}.md)" for table in tables)
    pages = {"index.md": "# All tables\n\nWritten by `lograb report STORE --markdown DIR`; do not edit.\n\n"
             + listed + "\n"}  # fmt: skip
    for table in tables:
        pages[f"{table.name}.md"] = page(table)
        if table.figure:
            pages[f"{table.name}.svg"] = draw_file(table.figure, table.title)
    for name, content in pages.items():
        with replacing(folder / name) as file:
            file.write(content)
    return [folder / name for name in pages]


def page(table: Table) -> str:
    """Write one table with its command, its figure and its notes."""
    parts = [f"# {table.title}", _folded(table.about)]
    if table.command:
        parts.append(f"<!-- not run: takes minutes to hours -->\n```sh\n{table.command}\n```")
    if table.figure:
        parts.append(f"![{table.title}]({table.name}.svg)")
    parts.append(markdown(table.columns, table.rows).rstrip())
    parts.append("\n".join(_folded(f"- {note}", "  ") for note in table.notes))
    return "\n\n".join(part for part in parts if part) + "\n"


def _folded(text: str, indent: str = "") -> str:
    text = " ".join(text.replace("<", "&lt;").split())
    return fill(text, 118, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
