"""The audit's page: the answer first, then what speaks for and against, what helps, who is exposed, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader

from lograb.report.audit_charts import GROUPS, NARROW, WIDE, ladders, neighbourhood, trade_off
from lograb.report.page import check_page_name
from lograb.score import percent
from lograb.writing import replacing

NAMES = {"plan": "What is planned", "noise": "Noise on the embedding", "columns": "Fewer eigenvectors",
         "precision": "Fewer bits", "withhold": "Withholding", "defence": "Defences on what is shared",
         "graph": "Defences on the graph, before it is cut"}  # fmt: skip
LEVELS = {"exposed": "Exposed", "partly": "Partly exposed", "little": "Little can be read",
          "unknown": "Unknown"}


def write_audit(path: Path, findings: dict[str, Any]) -> None:
    """Write the page of an audit: one file without outside parts.

    Parameters
    ----------
    path : Path
        Ends in .html; an earlier page is replaced, nothing else.
    findings : dict
        As from `lograb.audit(...).to_dict()`; nothing is computed here.
    """
    check_page_name(path)
    with replacing(path) as file:
        file.write(draw_audit(findings))


def draw_audit(findings: dict[str, Any]) -> str:
    """Give the page as text."""
    environment = Environment(loader=PackageLoader("lograb.report"), autoescape=True, trim_blocks=True,
                              lstrip_blocks=True)  # fmt: skip
    environment.filters |= {"percent": _percent, "count": _count, "number": _number}
    settings, advice = findings["settings"], findings["recommendation"]
    order = {group: place for place, group in enumerate(GROUPS)}
    numbered = sorted(settings, key=lambda row: order[row["group"]])  # keeps the order inside a group
    chosen = next((row for row in numbered if row["id"] == advice["setting"]), None)
    drawing = findings["drawing"]
    page = environment.get_template("audit.html").render(
        **findings, groups=NAMES, levels=LEVELS, numbered=numbered, chosen=chosen,
        ladders=ladders(numbered, findings["plan"], advice["tolerate"]),
        trade_offs=[trade_off(numbered, advice["tolerate"], advice["setting"], width) for width in (WIDE, NARROW)],
        drawn=neighbourhood(drawing) if drawing else "", planned=_planned(findings["plan"]),
        unscaled=any(row["scale_known"] is False for row in settings),
        labels={row["id"]: row["label"] for row in settings},
    )  # fmt: skip
    return page.replace(" %", "\u00a0%")  # no line ends between a number and its sign


def _planned(plan: dict[str, Any]) -> list[str]:
    """Say in words what is planned, without what has no meaning for it."""
    many = f"{plan['k']} eigenvectors" if plan["k"] else "eigenvectors"
    said = [f"{many} {'with' if plan['eigenvalues'] else 'without'} eigenvalues",
            "noise unknown" if plan["sigma"] is None else f"noise σ = {plan['sigma']:g}",
            f"defences: {', '.join(plan['defences']) or 'none'}", f"numbers as {plan['precision']}",
            f"gauge: {plan['gauge']}", f"releases: {plan['releases']}", f"cut: {plan['strategy']}"]  # fmt: skip
    return said if plan["d"] is None else [*said, f"radius {plan['d']}"]


def _percent(share: float | None) -> str:
    return "–" if share is None else percent(share)


def _count(number: float | None) -> str:
    return "–" if number is None else f"{round(number):,}"


def _number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
