"""The audit's pictures as SVG: exposure along a ladder of settings, exposure against use, a neighbourhood.

Colours come from the page's style sheet, so that light, dark and print each have their own. Every picture has a
title and a description; the numbers stand in a table beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from lograb.score import percent

Row = dict[str, Any]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 300, 230, 46, 12, 22, 46
WIDE, NARROW, TALLER = 900, 320, 90
USES = {"accuracy": "accuracy of a classifier that gets it", "subspace": "how much of the subspace is kept"}
AXES = {"noise": ("Noise", "σ, standard deviation of the noise"),
        "columns": ("Eigenvectors", "k, eigenvectors that are shared"),
        "precision": ("Precision", "binary digits of a number")}  # fmt: skip
"""The groups of settings that lie on an axis: what the picture is called, what the axis says."""
BITS = {"float64": 52, "float32": 23, "float16": 10}
GROUPS = ("plan", "noise", "columns", "precision", "withhold", "defence", "graph")


def ladders(settings: Sequence[Row], plan: Row, tolerate: float) -> list[tuple[str, str]]:
    """Draw, for each group on an axis, how much can be read at each setting and as planned: (title, SVG)."""
    done = [row for row in settings if row["status"] == "done" and row["share"] is not None]
    drawn = []
    for group, (title, axis) in AXES.items():
        points = [row for row in done if row["group"] == group and row["x"] is not None]
        planned = (
            BITS.get(plan["precision"], plan["precision"])
            if group == "precision"
            else plan[{"noise": "sigma", "columns": "k"}[group]]
        )
        if points:
            points += [row | {"x": planned} for row in done if row["group"] == "plan" and planned is not None]
            drawn.append((title, _ladder(title, axis, points, tolerate)))
    return drawn


def _ladder(title: str, axis: str, points: list[Row], tolerate: float) -> str:
    points = sorted(points, key=lambda row: row["x"])
    step = (WIDTH - LEFT - RIGHT) / len(points)
    xs = [LEFT + (i + 0.5) * step for i in range(len(points))]
    said = "; ".join(f"{row['x']:.3g}: {_told(row)}" for row in points)
    parts = [_open(WIDTH, HEIGHT, f"{title}: edges that can be read", f"{axis}. {said}."), *_grid(WIDTH)]
    parts.append(_rule(tolerate, WIDTH, "tolerate"))
    scaled = [(x, row["share"]) for x, row in zip(xs, points) if row["scale_known"]]
    known = [(x, row["by_membership"]) for x, row in zip(xs, points) if row["by_membership"] is not None]
    parts.append(_line(known, "membership"))
    parts.append(_line(scaled, "read"))
    for x, row in zip(xs, points):
        if row["share_interval"]:
            low, high = row["share_interval"]
            parts.append(_segment("read", (x, _y(low)), (x, _y(high))))
        parts.append(_dot(f"dot {_kind(row, None)}", x, _y(_height(row)), 4))
        parts.append(_label(x, HEIGHT - BOTTOM + 17, f"{row['x']:.3g}"))
    parts.append(_label(LEFT + (WIDTH - LEFT - RIGHT) / 2, HEIGHT - 8, axis, "axis"))
    return "".join([*parts, "</svg>"])


def trade_off(settings: Sequence[Row], tolerate: float, recommended: str | None, width: int = WIDE) -> str:
    """Draw what can be read against what the recipient can still do, one dot for each setting.

    Dots stand where they belong, over each other if need be; their numbers in the table where there is room.
    """
    rows = [(i, row, float(row["utility"]["value"])) for i, row in enumerate(settings)
            if row["status"] == "done" and row["utility"] and row["utility"]["value"] is not None
            and row["share"] is not None]  # fmt: skip
    if len(rows) < 2:
        return ""
    ticks = _ticks([value for *_, value in rows], 6 if width == WIDE else 4)
    axis = USES.get(rows[0][1]["utility"]["name"], rows[0][1]["utility"]["name"])

    def at(value: float) -> float:
        return LEFT + 12 + (value - ticks[0]) / (ticks[-1] - ticks[0]) * (width - LEFT - RIGHT - 24)

    said = (f"Edges that can be read, upward, over {axis}, to the right. A dot has its number in "
            "the table.")  # fmt: skip
    bottom = HEIGHT + TALLER
    parts = [_open(width, bottom, "What can be read against what it is good for", said), *_grid(width, TALLER),
             _rule(tolerate, width, "tolerate", TALLER)]  # fmt: skip
    parts += [_label(at(value), bottom - BOTTOM + 19, f"{value:.2f}") for value in ticks]
    dots = [(at(value), _y(_height(row), TALLER), i, row) for i, row, value in rows]
    dots.sort(key=lambda dot: (dot[3]["id"] == recommended, dot[3]["group"] == "plan", dot[3]["tolerated"]))
    for x, y, i, row in dots:  # what matters most lies on top
        told = f"{i}: {row['label']}, {_told(row)} can be read"
        parts.append(f'<g><title>{escape(told)}</title>{_dot(f"dot {_kind(row, recommended)}", x, y, 6)}</g>')
    parts += _numbers([(x, y, str(i)) for x, y, i, _ in reversed(dots)], [(x, y) for x, y, *_ in dots],
                      bottom - BOTTOM + 3)  # fmt: skip
    parts.append(_label(LEFT + (width - LEFT - RIGHT) / 2, bottom - 8, axis, "axis"))
    return "".join([*parts, "</svg>"])


def _ticks(values: Sequence[float], most: int) -> list[float]:
    """Round values that enclose all."""
    low, high = min(values), max(values)
    step = next((step for step in (0.01, 0.02, 0.05, 0.1, 0.2) if (high - low) / step <= most - 2), 0.25)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [step * tick for tick in range(first, max(last, first + 1) + 1)]


def _numbers(
    labels: Sequence[tuple[float, float, str]], dots: Sequence[tuple[float, float]], lowest: float
) -> list[str]:
    """Write numbers above, below or beside their dots, the first ones first, where no other number or dot is near.

    A number next to two dots says of neither which it is: the title of a dot has its number too.
    """
    placed: list[tuple[float, float]] = []
    found = []
    for x, y, text in labels:
        for a, b in ((x, y - 11), (x, y + 18), (x + 14, y + 4), (x - 14, y + 4)):
            if (b <= lowest and not any(abs(a - c) < 15 and abs(b - d) < 12 for c, d in placed)
                    and not any(abs(a - c) < 17 and abs(b - 4 - d) < 13 for c, d in dots
                                if abs(x - c) > 1 or abs(y - d) > 1)):  # fmt: skip
                placed.append((a, b))
                found.append(_label(a, b, text))
                break
    return found


def _height(row: Row) -> float:
    """Say how high a setting is drawn: where nothing tells what is read, at the most that it may be."""
    return float(row["share"] if row["scale_known"] else row["share_interval"][1])


def _told(row: Row) -> str:
    return percent(row["share"]) if row["scale_known"] else "an unknown share"


def _kind(row: Row, recommended: str | None) -> str:
    if row["id"] == recommended:
        return "best"
    if not row["scale_known"]:
        return "open plan" if row["group"] == "plan" else "open"
    return "plan" if row["group"] == "plan" else "safe" if row["tolerated"] else "read"


def neighbourhood(drawing: Row) -> str:
    """Draw the riskiest neighbourhood: edges that are read, missed and wrongly claimed."""
    size, edge = 520, 60
    nodes = drawing["nodes"]
    at = [(edge + node["x"] * (size - 2 * edge), 30 + node["y"] * (size - 60)) for node in nodes]
    counts = {kind: sum(line["kind"] == kind for line in drawing["edges"]) for kind in ("read", "missed", "wrong")}
    said = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    parts = [_open(size, size, drawing["title"], f"{len(nodes)} nodes and the edges between them: {said}.")]
    for line in sorted(drawing["edges"], key=lambda line: ("missed", "wrong", "read").index(line["kind"])):
        parts.append(_segment(f"edge {line['kind']}", at[line["u"]], at[line["v"]]))
    for node, (x, y) in zip(nodes, at):
        parts.append(_dot("node centre", x, y, 8) if node["centre"] else _dot("node", x, y, 5))
    for node, (x, y) in zip(nodes, at):
        name = str(node["name"])
        short = name if len(name) <= 14 else name[:13] + "…"
        up = y > size / 2
        parts.append(f'<text class="name" x="{x:.1f}" y="{y + (19 if up else -11):.1f}" text-anchor="middle">'
                     f'<title>{escape(name)}</title>{escape(short)}</text>')  # fmt: skip
    return "".join([*parts, "</svg>"])


def _open(width: int, height: int, title: str, text: str) -> str:
    return (f'<svg viewBox="0 0 {width} {height}" role="img"><title>{escape(title)}</title>'
            f"<desc>{escape(text)}</desc>")  # fmt: skip


def _y(share: float, more: int = 0) -> float:
    return TOP + (1 - share) * (HEIGHT + more - TOP - BOTTOM)


def _grid(width: int, more: int = 0) -> list[str]:
    return [_rule(share, width, "grid", more)
            + f'<text x="{LEFT - 7}" y="{_y(share, more) + 4:.1f}" text-anchor="end">{100 * share:.0f} %</text>'
            for share in (0, 0.25, 0.5, 0.75, 1)]  # fmt: skip


def _rule(share: float, width: int, kind: str, more: int = 0) -> str:
    return _segment(kind, (LEFT, _y(share, more)), (width - RIGHT, _y(share, more)))


def _segment(kind: str, start: tuple[float, float], end: tuple[float, float]) -> str:
    (a, b), (c, d) = start, end
    return f'<line class="{kind}" x1="{a:.1f}" y1="{b:.1f}" x2="{c:.1f}" y2="{d:.1f}"/>'


def _dot(kind: str, x: float, y: float, radius: int) -> str:
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>'


def _line(points: Sequence[tuple[float, float]], kind: str) -> str:
    text = " ".join(f"{x:.1f},{_y(share):.1f}" for x, share in points)
    return f'<polyline class="{kind}" points="{text}"/>' if len(points) > 1 else ""


def _label(x: float, y: float, text: str, kind: str = "tick") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(text)}</text>'
