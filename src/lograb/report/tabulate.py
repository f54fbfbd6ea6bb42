"""Runs -> a table: the paper's figure beside ours, mean ± sd over seeds, with floor and ceiling.

Runs come as plain dicts, as the store keeps them, each in a cell: ``row``, ``column``, ``dataset``, ``task``,
``problem`` (why there is no run) and ``result`` (the run, or None).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from lograb.metrics.significance import holm, signed_rank
from lograb.report.table import Table
from lograb.score import HEADLINES, METRICS

Cell = dict[str, Any]
Laid = tuple[list[str], list[list[str]]]
AROUND = ("floor", "ceiling")
BOUNDED = {"reconstruction": ("", "f1.global", "f1.recovered"), "classification": ("", "f1_micro"),
           "links": ("", "auroc")}  # fmt: skip
"""The scores that have a floor and a ceiling; other numbers stand without."""
BESIDE = "protection"


def tabulate(
    name: str, title: str, about: str, layout: dict[str, Any], paper: dict[str, Any], cells: Iterable[Cell]
) -> Table:
    """Lay runs out, one line for each instance and method.

    Parameters
    ----------
    name, title, about : str
    layout : dict
        As in a config, see `lograb.experiments.config.Layout`.
    paper : dict
        What the paper prints, by row and column: a number, [mean, sd], text, or a dict of those by score.
    cells : iterable of dict
    """
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell["row"], cell["column"]), []).append(cell)
    scores = list(layout.get("scores") or [layout.get("score") or ""])
    lines = [_Line(row, column, group, scores, layout, paper.get(row, {}).get(column))
             for (row, column), group in groups.items()]  # fmt: skip
    missing = [line for line in lines if not line.results and not any(cell["problem"] for cell in line.cells)]
    tried = {line.row for line in lines if line not in missing} if layout.get("wide") else set()
    lines = [line for line in lines if line not in missing or line.row in tried]
    columns, rows = (_wide if layout.get("wide") else _long)(lines, scores, layout)
    notes = [*_not_run(missing), *_problems(lines), *_tests(lines, scores[0], layout), *_versions(lines)]
    return Table(name, title or name, columns, rows, about, "", notes, _figure(lines, scores[0], layout))


def _long(lines: Sequence[_Line], scores: Sequence[str], layout: dict[str, Any]) -> Laid:
    """Give every instance and method a line, with all scores, the paper's figure in a column of its own.

    The number in front of a task has a column for each task: they are not the same measure.
    """
    around = _around(lines)
    tasks = [task for task in dict.fromkeys(line.task for line in lines) if task in METRICS]
    fronts = [("", task) for task in tasks] or [("", "")]
    shown = [pair for score in scores for pair in ([(score, "")] if score else fronts)]
    printed = [(score, task) for score, task in shown
               if any(line.printed(score) is not None for line in lines if task in ("", line.task))]  # fmt: skip
    methods = len({line.column for line in lines}) > 1
    columns = ["instance", *(["method"] if methods else [])]
    for score, task in shown:
        name = _short(score) or METRICS.get(task, "score")
        columns += [f"paper {name}"] * ((score, task) in printed) + [name]
    rows = []
    ran, first = {line.row for line in lines if line.results}, dict[str, _Line]()
    for line in lines:
        if line.row not in ran and first.setdefault(line.row, line) is not line:
            continue  # one line is enough for an instance that nothing ran on
        texts = [line.row, *([line.column if line.row in ran else "all"] if methods else [])]
        for score, task in shown:
            mine = task in ("", line.task)
            texts += [line.paper_text(score) if mine else ""] * ((score, task) in printed)
            texts.append(line.text(score) if mine else "")
        rows.append([*texts, str(len(line.done)), *(_number(line.bound(bound), line.digits) for bound in around)])
    return [*columns, "seeds", *around], rows


def _wide(lines: Sequence[_Line], scores: Sequence[str], layout: dict[str, Any]) -> Laid:
    """Give every instance a line and every method a column: the first score, the paper's figure in brackets."""
    lists: dict[str, dict[str, _Line]] = {}
    for line in lines:
        lists.setdefault(line.row, {})[line.column] = line
    methods = [column for column in dict.fromkeys(line.column for line in lines) if column != BESIDE]
    around, beside = _around(lines), list(layout.get("beside") or ())
    rows = []
    for row, found in lists.items():
        texts = [found[method].beside_paper(scores[0]) if method in found else "" for method in methods]
        first = found.get(BESIDE) or max(found.values(), key=lambda line: len(line.done))
        told = [first.told(score) for score in beside]
        counts = sorted({len(line.done) for line in found.values() if line.results}) or [0]
        seeds = "–".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
        bounds = [next((_number(mean, line.digits) for line in found.values()
                        if (mean := line.bound(bound)) is not None), "–") for bound in around]  # fmt: skip
        rows.append([row, *texts, *told, seeds, *bounds])
    return ["instance", *methods, *map(_short, beside), "seeds", *around], rows


def _around(lines: Sequence[_Line]) -> list[str]:
    return [bound for bound in AROUND if any(line.bound(bound) is not None for line in lines)]


class _Line:
    """The runs of one instance and method, over seeds."""

    def __init__(
        self, row: str, column: str, cells: list[Cell], scores: Sequence[str], layout: dict[str, Any], paper: Any
    ) -> None:
        self.row, self.column, self.cells, self.layout = row, column, cells, layout
        self.results = [cell["result"] for cell in cells if cell["result"] is not None]
        self.task: str = next((name for cell in cells if (name := cell.get("task", ""))), "")
        self.done = [result for result in self.results if result["status"] == "done"]
        self.digits, self.unit = layout.get("digits", 3), layout.get("unit", 1.0)
        self.shown = scores[:1] if layout.get("wide") else scores
        self.paper = paper if isinstance(paper, dict) else {scores[0]: paper}

    def values(self, score: str, seeds: set[Any] | None = None) -> list[float]:
        """Look a number up in every run that has it, or in those of some seeds."""
        found = [look_up(result, score) for result in self.done if seeds is None or _seed(result) in seeds]
        return [float(value) for value in found if isinstance(value, int | float)]

    def seeds(self, score: str) -> set[Any]:
        """Name the seeds whose runs have a number."""
        return {_seed(result) for result in self.done if isinstance(look_up(result, score), int | float)}

    def mean(self, score: str, seeds: set[Any] | None = None) -> float | None:
        values = self.values(score, seeds)
        if not values:
            return None
        by = self.layout.get("weight")
        return float(np.average(values, weights=self.values(by, seeds) if by else None))

    def bound(self, bound: str) -> float | None:
        """Give the floor or ceiling, if a score that it bounds is shown."""
        bounded = BOUNDED.get(self.task, ())
        return self.mean(bound) if any(score in bounded for score in self.shown) else None

    def text(self, score: str) -> str:
        """Write mean ± sd; or why there is no number."""
        values, mean = self.values(score), self.mean(score)
        if mean is None:
            return self.why()
        spread = f" ± {_number(float(np.std(values, ddof=1)), self.digits)}" if len(values) > 1 else ""
        return _number(mean, self.digits) + spread

    def why(self) -> str:
        """Say in a word or two why there is no number."""
        if self.done:
            return "–"
        if any(cell["problem"] for cell in self.cells):
            return "no data"
        return ", ".join(dict.fromkeys(result["status"] for result in self.results)) or "not run"

    def printed(self, score: str) -> Any:
        """What the paper prints: mean and sd as numbers of our unit, or text."""
        found = self.paper.get(score)
        if isinstance(found, int | float):
            return (found * self.unit, None)
        if isinstance(found, list):
            return (found[0] * self.unit, found[1] * self.unit)
        return found

    def beside_paper(self, score: str) -> str:
        """Write mean ± sd with the paper's figure in brackets."""
        found = self.printed(score)
        text = _number(found[0], self.digits) if isinstance(found, tuple) else found
        return self.text(score) + (f" ({text})" if text else "")

    def told(self, score: str) -> str:
        """Write a mean without its spread, or a word that all runs agree on; "none" where they have nothing."""
        mean, words = self.mean(score), {look_up(result, score) for result in self.done}
        if mean is not None:
            return _number(mean, self.digits)
        if not self.done:
            return self.why()
        return "/".join(sorted(map(str, words - {None}))) or "none"

    def paper_text(self, score: str) -> str:
        found = self.printed(score)
        if not isinstance(found, tuple):
            return found or "–"
        spread = "" if found[1] is None else f" ± {_number(found[1], self.digits)}"
        return _number(found[0], self.digits) + spread


def _seed(result: dict[str, Any]) -> Any:
    return result["spec"]["instance"]["seed"]


def look_up(result: dict[str, Any], score: str) -> Any:
    """Find a number of a run by its name, with dots into nested ones; "" is that in front of its task."""
    if not score:
        front = HEADLINES.get(result["spec"]["task"], ("",))[0]  # a description of an instance has none
        score = "f1.global" if front == "f1" else front
    beside = score == "peak_memory" or score.startswith(("seconds.", "diagnostics."))
    found: Any = result if beside else result["scores"]
    for part in score.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found / 2**20 if score == "peak_memory" and found is not None else found


def _number(value: float | None, digits: int) -> str:
    if value is None:
        return "–"
    if value == int(value) and abs(value) > 1:
        return f"{value:,.0f}"
    return f"{value:,.{min(digits, 1) if abs(value) >= 10 else digits}f}"


def _short(score: str) -> str:
    if score in ("seconds.method", "peak_memory"):
        return {"seconds.method": "seconds", "peak_memory": "peak MiB"}[score]
    return score.removeprefix("diagnostics.").replace("_", " ").replace(".", " ")


def _not_run(lines: Sequence[_Line]) -> list[str]:
    """Name what a store does not have."""
    found: dict[tuple[str, ...], list[str]] = {}
    by_row: dict[str, list[str]] = {}
    for line in lines:
        by_row.setdefault(line.row, []).append(line.column)
    for row, columns in by_row.items():
        found.setdefault(tuple(columns), []).append(row)
    said = [f"{', '.join(columns)} on {'; '.join(rows)}" for columns, rows in found.items()]
    return [f"Not run: {text}" for text in said]


def _problems(lines: Sequence[_Line]) -> list[str]:
    """Say once for each dataset why it is not there, and for each kind of failure which runs it met."""
    missing = {cell["dataset"]: cell["problem"] for line in lines for cell in line.cells if cell["problem"]}
    said = [f"{dataset}: no data: {problem.partition(';')[0].partition(': http')[0]}"
            for dataset, problem in missing.items()]  # fmt: skip
    reasons: dict[tuple[str, str, str], str] = {}
    for line in lines:
        for result in line.results:
            if result["status"] != "done":
                reasons.setdefault((line.row, line.column, result["status"]), result["reason"])
    bad: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
    for (row, column, status), reason in reasons.items():
        columns, rows = bad.setdefault((status, reason), ({}, {}))
        columns[column] = rows[row] = None
    return said + [f"{', '.join(columns)}: {status} on {', '.join(rows)}: {reason}"
                   for (status, reason), (columns, rows) in bad.items()]  # fmt: skip


def _tests(lines: Sequence[_Line], score: str, layout: dict[str, Any]) -> list[str]:
    """Hold one column against the others over the rows that have both, ours and the paper's.

    Where the paper prints figures, only its rows count; a pair of ours is of the seeds that both have.
    """
    ours: str = layout.get("against", "")
    if not ours:
        return []
    of_paper = {line.row for line in lines if line.printed(score) is not None}
    counted = [line for line in lines if not of_paper or line.row in of_paper]
    mine = {line.row: line for line in counted if line.column == ours}
    others = [column for column in dict.fromkeys(line.column for line in counted) if column != ours]
    said = []
    among = " on the paper's datasets" if of_paper else ""
    kinds: dict[str, Callable[[_Line, _Line], tuple[float | None, float | None]]] = {
        f"ours{among}, over the seeds that both have": lambda a, b: _paired(a, b, score),
        "as printed": lambda a, b: (_as_printed(a, score), _as_printed(b, score)),
    }
    for who, pair in kinds.items():
        pairs = {other: [found for line in counted if line.column == other and line.row in mine
                         if None not in (found := pair(mine[line.row], line))] for other in others}  # fmt: skip
        tested = [other for other in others if len(pairs[other]) > 1]
        if not tested:
            continue
        p = [signed_rank(*zip(*pairs[other])) for other in tested]
        texts = [f"{other} p = {value:.4f}, {corrected:.4f} after Holm (n = {len(pairs[other])})"
                 for other, value, corrected in zip(tested, p, holm(p))]  # fmt: skip
        n = max(len(pairs[other]) for other in tested)
        said.append(f"Wilcoxon signed-rank of {ours} against the others, {who}: {'; '.join(texts)}. With {n} "
                    f"datasets p cannot be below {2 / 2**n:.4f}.")  # fmt: skip
    return said


def _paired(one: _Line, other: _Line, score: str) -> tuple[float | None, float | None]:
    """Average both over the seeds that both have a number of."""
    seeds = one.seeds(score) & other.seeds(score)
    return one.mean(score, seeds), other.mean(score, seeds)


def _as_printed(line: _Line, score: str) -> float | None:
    found = line.printed(score)
    return found[0] if isinstance(found, tuple) else None


def _versions(lines: Sequence[_Line]) -> list[str]:
    codes = Counter(result["versions"].get("code", "?") for line in lines for result in line.done)
    if len(codes) < 2:
        return []
    return ["The runs were made by different source code: "
            + ", ".join(f"{count} by {code}" for code, count in codes.items())]  # fmt: skip


def _figure(lines: Sequence[_Line], score: str, layout: dict[str, Any]) -> dict[str, Any]:
    """Give the same numbers as curves over a parameter of the instances or a setting of the methods."""
    over: str = layout.get("figure", "")
    if not over:
        return {}
    series: dict[tuple[str, str], dict[str, Any]] = {}
    several = len({line.row for line in lines}) > 1
    for line in lines:
        mean = line.mean(score)
        if mean is None:
            continue
        settings = line.done[0]["spec"]["settings"]
        name, dataset = line.column, line.cells[0]["dataset"] if layout.get("relative") else ""
        if over in settings:
            name = line.column.partition(" (")[0] + (f", {line.row}" if several else "")
        if layout.get("by"):
            name = ", ".join(f"{_short(key)} {line.cells[0]['instance'][key]}" for key in layout["by"])
        curve = series.setdefault((name, dataset), {"name": name, "x": [], "y": [], "sd": []})
        values = line.values(score)
        curve["x"].append(settings.get(over, _parameter(line.cells[0]["instance"], over)))
        curve["y"].append(mean)
        curve["sd"].append(float(np.std(values, ddof=1)) if len(values) > 1 else 0.0)
    y = _short(score) or ", ".join(dict.fromkeys(METRICS.get(line.task, "score") for line in lines))
    if not series:
        return {}
    if layout.get("relative"):
        curves = _relative([curve for curve in series.values() if curve["y"][0]])
        return {"x": over, "y": f"{y}, relative to the first", "series": curves}
    return {"x": {"noise": "noise, σ √q"}.get(over, over), "y": y, "series": list(series.values())}


def _parameter(instance: dict[str, Any], over: str) -> Any:
    """Look a parameter of an instance up, or a setting of its defences; "none" where it has no defence."""
    if over == "noise":
        return f"{instance['sigma'] * instance['cluster_size'] ** 0.5:.2g}"
    if over in instance:
        return instance[over]
    told = ",".join(instance.get("defences", ())).replace(":", ",").split(",")
    found = [part.partition("=")[2] for part in told if part.startswith(f"{over}=")]
    return found[0].removesuffix(".0") if found else "none"


def _relative(curves: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Divide curves by their first values, and average those of one name; bars are the spread between them."""
    found: dict[str, dict[Any, list[float]]] = {}
    for curve in curves:
        for x, y in zip(curve["x"], curve["y"]):
            found.setdefault(curve["name"], {}).setdefault(x, []).append(y / curve["y"][0])
    return [{"name": name, "x": list(points), "y": [float(np.mean(y)) for y in points.values()],
             "sd": [float(np.std(y, ddof=1)) if len(y) > 1 else 0.0 for y in points.values()]}
            for name, points in found.items()]  # fmt: skip
