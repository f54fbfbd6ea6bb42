"""A page that shows attacks side by side, between floor and ceiling."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader

from lograb.errors import LograbError


def write_comparison(
    path: Path,
    summary: dict[str, Any],
    rows: list[dict[str, Any]],
    classified: Sequence[dict[str, Any]] = (),
    linked: Sequence[dict[str, Any]] = (),
) -> None:
    """Write the page: one file without outside parts, so it opens anywhere.

    Parameters
    ----------
    path : Path
    summary : dict
        As from `Instance.summary`.
    rows : list of dict
        As from `lograb.tasks.reconstruction.compare`, with one floor and ceiling for all.
    classified, linked : sequences of dict
        As from `lograb.tasks.node_classification.classify` and `lograb.tasks.link_prediction.predict_links`.
    """
    environment = Environment(loader=PackageLoader("lograb.report"), autoescape=True)
    page = environment.get_template("comparison.html").render(
        instance=summary,
        rows=rows,
        best=max(rows, key=lambda row: row["f1"]["global"]),
        trivial=[row["method"] for row in rows if row["trivial"]],
        facts=_facts(summary),
        classified=classified,
        linked=linked,
    )
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise LograbError(f"cannot write the report '{path}': {error.strerror}") from None


def _facts(summary: dict[str, Any]) -> list[tuple[str, Any]]:
    """Name the choices behind an instance in words."""
    complete = round(summary["complete_share"] * summary["n_patches"])
    return [
        ("graph", summary["source"]),
        ("patches", f"{summary['n_patches']:,}, strategy {summary['strategy']}, radius d = {summary['d']}"),
        ("observed nodes", f"p = {summary['p']}"),
        ("eigenvectors", f"k = {summary['k']}; {complete:,} patches are small enough to show all"),
        ("noise", f"σ = {summary['sigma']}, gauge {summary['gauge']}"),
        ("edges some patch contains", f"{summary['co_observed_edges']:,} of {summary['n_edges']:,}"),
        ("seed", summary["seed"]),
    ]
