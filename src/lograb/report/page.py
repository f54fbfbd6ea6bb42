"""A page that shows attacks side by side, between floor and ceiling."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader

from lograb.errors import LograbError
from lograb.score import percent
from lograb.writing import replacing

PAGES = {".html": "<!doctype html>", ".htm": "<!doctype html>"}
TABLES = PAGES | {".md": "| method |", ".tex": r"\begin{tabular}"}
"""How the files begin that a comparison is written to."""


def check_page_name(path: Path) -> None:
    """Refuse names that no page can have, and to write over a file that is no page."""
    _check_name(path, PAGES, "a page is written to a file that ends in .html")


def check_table_name(path: Path) -> None:
    """Refuse names that no comparison can have, and to write over a file that is none."""
    _check_name(path, TABLES, "a comparison is written to .html (a page), .md or .tex (a table)")


def _check_name(path: Path, kinds: dict[str, str], rule: str) -> None:
    if path.suffix.lower() not in kinds:
        raise LograbError(f"{rule}, got '{path}'")
    if path.is_dir():
        raise LograbError(f"'{path}' is a folder: name a file in it")
    if not path.parent.is_dir():
        raise LograbError(f"cannot write '{path}': there is no folder '{path.parent}'")
    begin = kinds[path.suffix.lower()].encode()
    if path.is_file() and path.read_bytes()[: len(begin)].lower() not in (b"", begin):
        raise LograbError(f"'{path}' exists and is not an earlier report: choose another name or remove it")


def write_page(
    path: Path,
    summary: dict[str, Any],
    rows: list[dict[str, Any]],
    classified: Sequence[dict[str, Any]] = (),
    linked: Sequence[dict[str, Any]] = (),
    *,
    seeds: int = 1,
    command: str = "",
) -> None:
    """Write the page: one file without outside parts, so it opens anywhere.

    Parameters
    ----------
    path : Path
    summary : dict
        As from `Instance.summary`.
    rows : list of dict
        As from `Comparison.rows`.
    classified, linked : sequences of dict
        As from `lograb.tasks.node_classification.classify` and `lograb.tasks.link_prediction.predict_links`.
    seeds : int
    command : str
        What makes the page again.
    """
    check_page_name(path)
    ran = [row for row in rows if not row.get("problem")]
    if not ran:
        raise LograbError(f"no attack could run: {rows[0]['problem'] if rows else 'none was given'}")
    environment = Environment(loader=PackageLoader("lograb.report"), autoescape=True)
    environment.filters["percent"] = percent
    page = environment.get_template("comparison.html").render(
        instance=summary, rows=rows, ran=ran, best=max(ran, key=lambda row: row["f1"]), facts=_facts(summary),
        classified=classified, linked=linked, seeds=seeds, command=command,
    )  # fmt: skip
    with replacing(path) as file:
        file.write(page)


def _facts(summary: dict[str, Any]) -> list[tuple[str, Any]]:
    """Name the choices behind an instance in words."""
    complete = round(summary["complete_share"] * summary["n_patches"])
    noise = "not announced" if summary["sigma"] is None else f"σ = {summary['sigma']}"
    return [
        ("graph", summary["source"]),
        ("patches", f"{summary['n_patches']:,}, strategy {summary['strategy']}, radius d = {summary['d']}"),
        ("observed nodes", f"p = {summary['p']}"),
        ("eigenvectors", f"k = {summary['k']}; {complete:,} patches are small enough to show all"),
        ("noise", f"{noise}, gauge {summary['gauge']}"),
        ("edges some patch contains", f"{summary['co_observed_edges']:,} of {summary['n_edges']:,}"),
        ("seed", summary["seed"]),
    ]
