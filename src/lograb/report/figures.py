"""Curves as SVG for pages, and as PDF and PNG for papers (extra ``figures``).

A figure is a dict: ``x`` and ``y`` name the axes, ``series`` lists curves with ``name``, ``x`` (numbers or words),
``y`` and ``sd``.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from lograb.errors import MissingExtraError

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 560, 310, 52, 28, 44
COLOURS = ("#3377bb", "#ff8800", "#7700ff", "#aabbaa", "#665544", "#aa3300", "#dd9966", "#4433bb", "#773366",
           "#ccaadd", "#ff55ff")  # fmt: skip
"""They differ for all kinds of eyes, the first ones most, and stand out on white and on black."""


def draw_svg(figure: dict[str, Any], title: str) -> str:
    """Draw curves with bars of one standard deviation; the text of the page gives them their colours' names."""
    places = _places(figure)
    low, high = _range(figure)

    def at(x: Any, y: float) -> tuple[float, float]:
        return (LEFT + 20 + places[x] * (WIDTH - LEFT - 40),
                TOP + (high - y) / (high - low) * (HEIGHT - TOP - BOTTOM))  # fmt: skip

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
             f'class="figure"><title>{escape(title)}</title>'
             f'<desc>{escape(figure["y"])} over {escape(figure["x"])}; the table below has all '
             'numbers</desc>']  # fmt: skip
    for value in _ticks(low, high):
        y = TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
                     f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')  # fmt: skip
    for x in places:
        parts.append(f'<text x="{at(x, low)[0]:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
                     f'{escape(_text(x))}</text>')  # fmt: skip
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 6}" text-anchor="middle">{escape(figure["x"])}</text>'
                 f'<text x="8" y="14">{escape(figure["y"])}</text>')  # fmt: skip
    for number, curve in enumerate(figure["series"]):
        colour = COLOURS[number % len(COLOURS)]
        points = [(*at(x, y), sd) for x, y, sd in zip(curve["x"], curve["y"], curve["sd"])]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for x, y, sd in points:
            reach = sd / (high - low) * (HEIGHT - TOP - BOTTOM)
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y - reach:.1f}" y2="{y + reach:.1f}" '
                         f'stroke="{colour}"/>'
                         f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')  # fmt: skip
    return "".join([*parts, "</svg>"])


def draw_file(figure: dict[str, Any], title: str) -> str:
    """Draw a figure that stands alone, with its colours and the names of its curves below."""
    names = [(60 + 170 * (i % 3), HEIGHT + 8 + 18 * (i // 3), *each) for i, each in enumerate(legend(figure))]
    keys = [f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>'
            f'<text x="{x + 10}" y="{y + 4}">{escape(name)}</text>'
            for x, y, name, colour in names]  # fmt: skip
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {names[-1][1] + 12}">'
            '<style>text { font: 12px sans-serif; fill: #667085 } .grid { stroke: #d0d5dd }</style>'
            f'{draw_svg(figure, title)}{"".join(keys)}</svg>\n')  # fmt: skip


def legend(figure: dict[str, Any]) -> list[tuple[str, str]]:
    """Name the curves and their colours."""
    return [(curve["name"], COLOURS[i % len(COLOURS)]) for i, curve in enumerate(figure["series"])]


def save_figure(figure: dict[str, Any], title: str, folder: Path, name: str) -> list[Path]:
    """Write a figure as PDF and PNG, the same bytes every time."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError("figures as PDF and PNG", "figures") from None
    matplotlib.use("agg")
    from matplotlib import pyplot

    places = _places(figure)
    panel, axes = pyplot.subplots(figsize=(5.5, 3.4), layout="constrained")
    for number, curve in enumerate(figure["series"]):
        axes.errorbar([places[x] for x in curve["x"]], curve["y"], yerr=curve["sd"], marker="o", markersize=3,
                      capsize=2, label=curve["name"], color=COLOURS[number % len(COLOURS)])  # fmt: skip
    axes.set_xticks(list(places.values()), [_text(x) for x in places])
    axes.set(xlabel=figure["x"], ylabel=figure["y"], title=title)
    axes.legend(fontsize=7)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.pdf", folder / f"{name}.png"]
    panel.savefig(paths[0], metadata={"CreationDate": datetime(2000, 1, 1, tzinfo=UTC)})
    panel.savefig(paths[1], dpi=200, metadata={"Software": None})
    pyplot.close(panel)
    return paths


def _places(figure: dict[str, Any]) -> dict[Any, float]:
    """Place the values of x between 0 and 1: numbers to scale, words at equal distances."""
    values = list(dict.fromkeys(x for curve in figure["series"] for x in curve["x"]))
    if all(isinstance(x, int | float) for x in values) and len(values) > 1:
        values.sort()
        return {x: (x - values[0]) / (values[-1] - values[0]) for x in values}
    return {x: i / max(len(values) - 1, 1) for i, x in enumerate(values)}


def _range(figure: dict[str, Any]) -> tuple[float, float]:
    heights = [y + sign * sd for curve in figure["series"] for y, sd in zip(curve["y"], curve["sd"])
               for sign in (-1, 1)]  # fmt: skip
    low, high = min(heights), max(heights)
    edge = 0.05 * (high - low) or 0.05
    return max(low - edge, min(low, 0.0)), high + edge


def _ticks(low: float, high: float) -> list[float]:
    """Choose round numbers between two, four to eight of them."""
    size = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = size * next(round_ for round_ in (5.0, 2.0, 1.0) if size * round_ * 4 <= high - low)
    return [round(step * n, 12) for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _text(x: Any) -> str:
    return f"{x:g}" if isinstance(x, int | float) else str(x)
