"""A page that shows attacks side by side, with floor and ceiling."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader

from lograb.errors import LograbError
from lograb.score import percent
from lograb.writing import check_target, replacing

Row = dict[str, Any]
PAGES = {".html": "<!doctype html>", ".htm": "<!doctype html>"}
TABLES = PAGES | {".md": "| method |", ".tex": r"\begin{tabular}"}
"""How the files begin that a comparison is written to."""
TRUSTED = 0.8
"""Precision from which claims count as read."""


def check_page_name(path: Path) -> None:
    """Refuse names that no page can have, and to write over a file that is no page."""
    _check_name(path, PAGES, "a page is written to a file that ends in .html")


def check_table_name(path: Path) -> None:
    """Refuse names that no comparison can have, and to write over a file that is none."""
    _check_name(path, TABLES, "a comparison is written to .html (a page), .md or .tex (a table)")


def _check_name(path: Path, kinds: dict[str, str], rule: str) -> None:
    if path.suffix.lower() not in kinds:
        raise LograbError(f"{rule}, got '{path}'")
    begin = kinds[path.suffix.lower()].encode()
    check_target(path, "report", lambda content: content.read(len(begin)).lower() == begin)


def write_page(
    path: Path, summary: Row, rows: Sequence[Row], *, seeds: int = 1, command: str = ""
) -> None:
    """Write the page: one file without outside parts, so it opens anywhere.

    Takes what `Instance.summary` and `Comparison.rows` give; `command` is what makes the page again.
    """
    check_page_name(path)
    ran = [row for row in rows if not row.get("problem")]
    if not ran:
        raise LograbError(f"no attack could run: {rows[0]['problem'] if rows else 'none was given'}")
    best = max(ran, key=lambda row: row["f1"])
    environment = Environment(loader=PackageLoader("lograb.report"), autoescape=True)
    environment.filters["percent"] = percent
    page = environment.get_template("comparison.html").render(
        instance=summary, rows=rows, ran=ran, best=best, headline=headline(best, rows), facts=_facts(summary),
        seeds=seeds, command=command, read=embeddings_read(rows),
    )  # fmt: skip
    with replacing(path) as file:
        file.write(page)


def embeddings_read(rows: Sequence[Row]) -> bool:
    """Say whether any attack that ran reads embeddings."""
    return any(not row.get("problem") and not row.get("trivial") for row in rows)


def headline(best: Row, rows: Sequence[Row] = ()) -> str:
    """Say in one true sentence what the best attack shows; recall leads only where claims can be trusted.

    Without `rows`, all of them, it is taken for granted that some attack read the embeddings.
    """
    if rows and not embeddings_read(rows):
        return f"No attack that reads embeddings ran, so nothing is said about them (floor {best['floor']:.3f})"
    if not best["beats_floor"]:
        return f"The embeddings add nothing measurable here (F1 {best['f1']:.3f}, floor {best['floor']:.3f})"
    if best["precision"] >= TRUSTED:
        return (f"{percent(best['recall'])} of all edges are found from what was shared, and "
                f"{percent(best['precision'])} of what is claimed is right")  # fmt: skip
    return (f"What was shared tells more than membership alone (F1 {best['f1']:.3f}, floor {best['floor']:.3f}), "
            f"but only {percent(best['precision'])} of the claims are right")  # fmt: skip


def _facts(summary: dict[str, Any]) -> list[tuple[str, Any]]:
    """Name the choices behind an instance in words."""
    complete = round(summary["complete_share"] * summary["n_patches"])
    noise = "not announced" if summary["sigma"] is None else f"σ = {summary['sigma']}"
    radius = "" if summary["strategy"] in ("custom", "global") else f", radius d = {summary['d']}"
    defences = [*summary["defences"], *([] if summary["eigenvalues"] else ["eigenvalues withheld"]),
                *([f"mean of {summary['releases']:,} releases"] if summary["releases"] > 1 else [])]  # fmt: skip
    precision = summary["precision"]
    facts = [
        ("graph", summary["source"]),
        ("patches", f"{summary['n_patches']:,}, strategy {summary['strategy']}{radius}"),
        ("observed nodes", f"p = {summary['p']}"),
        ("eigenvectors", f"k = {summary['k']}; {complete:,} patches are small enough to show all"),
        ("noise", f"{noise}, gauge {summary['gauge']}"),
        ("precision", precision if isinstance(precision, str) else f"{precision} bits after the binary point"),
        ("defences", "; ".join(defences) or "none"),
        ("edges some patch contains", f"{summary['co_observed_edges']:,} of {summary['n_edges']:,}"),
        ("seed", summary["seed"]),
    ]
    return [(label, value) for label, value in facts if value is not None]
