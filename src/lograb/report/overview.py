"""A page with everything that a store holds: tables, figures, leaderboards, failures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader

from lograb.report.figures import draw_svg, legend
from lograb.report.tabulate import look_up
from lograb.writing import replacing

PROTOCOL = ("dataset", "strategy", "(d, p, k, σ)", "gauge", "protocol")
TASKS = {"reconstruction": ("Task 1: rebuild the graph", "F1 over all true edges"),
         "classification": ("Task 2: classify nodes inside patches", "F1-micro"),
         "links": ("Task 3: predict edges between fragments", "AUROC")}  # fmt: skip


def write_overview(path: Path, tables: list[dict[str, Any]], results: list[dict[str, Any]]) -> None:
    """Write the page: one file without outside parts.

    Parameters
    ----------
    path : Path
    tables : list of dict
        As from `Table.to_dict`.
    results : list of dict
        All runs, as the store keeps them.
    """
    environment = Environment(loader=PackageLoader("lograb.report"), autoescape=True)
    figures = {table["name"]: (draw_svg(table["figure"], table["title"]), legend(table["figure"]))
               for table in tables if table["figure"]}  # fmt: skip
    boards = [(*texts, leaderboard(results, task)) for task, texts in TASKS.items()]
    names = _graph_names(results)
    bad = [result for result in results if result["status"] != "done"]
    page = environment.get_template("overview.html").render(
        tables=tables, figures=figures, boards=[board for board in boards if board[2]], protocol=PROTOCOL,
        statuses=Counter(result["status"] for result in results), n_runs=len(results),
        failures=[_failure(result, names) for result in bad], versions=_versions(results),
    )  # fmt: skip
    with replacing(path) as file:
        file.write(page)


def leaderboard(results: list[dict[str, Any]], task: str) -> list[dict[str, Any]]:
    """Rank the methods of a task among runs of the same protocol and seeds; like is compared with like only."""
    groups: dict[tuple[str, ...], dict[tuple[str, str], list[dict[str, Any]]]] = {}
    names = _graph_names(results)
    for result in results:
        if result["status"] == "done" and result["spec"]["task"] == task:
            who = result["name"], result["spec"]["version"]
            groups.setdefault(_protocol(result, names), {}).setdefault(who, []).append(result)
    alike: dict[tuple[tuple[str, ...], str], list[dict[str, Any]]] = {}
    for protocol, methods in sorted(groups.items()):
        for who, runs in methods.items():
            line = _line(protocol, who, runs)
            alike.setdefault((protocol, line["seeds"]), []).append(line)
    lines = []
    for group in alike.values():
        for number, line in enumerate(sorted(group, key=lambda line: -line["score"])):
            place = 1 + sum(other["score"] > line["score"] for other in group)
            lines.append(line | {"place": place, "first": number == 0})
    return lines


def _graph_names(results: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """Name every graph, by its source and what tells its content: with a short checksum where a name is shared."""
    graphs = dict.fromkeys(_graph(result) for result in results)
    shared = Counter(source for source, _ in graphs)
    return {(source, mark): f"{source} {mark[:8] or 'without checksum'}" if shared[source] > 1 else source
            for source, mark in graphs}  # fmt: skip


def _graph(result: dict[str, Any]) -> tuple[str, str]:
    origin = result["spec"]["origin"]
    return origin["source"], origin.get("sha256") or origin.get("revision", "")


def _protocol(result: dict[str, Any], names: dict[tuple[str, str], str]) -> tuple[str, ...]:
    spec = result["spec"]
    i = {"strategy": "d-hop", "d": 1, "p": 1.0, "k": 32, "sigma": 0.0, "gauge": "sign"} | spec["instance"]
    rest = {key: value for key, value in i.items()
            if key not in ("strategy", "d", "p", "k", "sigma", "gauge", "seed")}  # fmt: skip
    said = [" + ".join(value) if key == "defences" else key if value is True else f"{key}={value}"
            for key, value in (spec["options"] | rest).items() if value not in (False, None)]  # fmt: skip
    numbers = f"({i['d']}, {i['p']:g}, {i['k']}, {i['sigma']:g})"
    return names[_graph(result)], i["strategy"], numbers, i["gauge"], ", ".join(said)


def _line(protocol: tuple[str, ...], who: tuple[str, str], runs: list[dict[str, Any]]) -> dict[str, Any]:
    values = [float(look_up(run, "") or 0.0) for run in runs]
    bounds = {}
    for bound in ("floor", "ceiling"):
        known = [value for run in runs if (value := run["scores"].get(bound)) is not None]
        bounds[bound] = float(np.mean(known)) if known else None
    seeds = sorted(run["spec"]["instance"]["seed"] for run in runs)
    return {"protocol": protocol, "method": who[0], "version": who[1], "score": float(np.mean(values)), **bounds,
            "sd": float(np.std(values, ddof=1)) if len(values) > 1 else None, "seeds": _spans(seeds),
            "lograb": "/".join(sorted({run["versions"].get("lograb", "?") for run in runs}))}  # fmt: skip


def _spans(seeds: list[int]) -> str:
    return f"{seeds[0]}–{seeds[-1]}" if len(seeds) > 1 and seeds[-1] - seeds[0] == len(seeds) - 1 else ", ".join(
        map(str, seeds))  # fmt: skip


def _failure(result: dict[str, Any], names: dict[tuple[str, str], str]) -> dict[str, Any]:
    return {"who": result["name"], "where": " ".join(_protocol(result, names)), "status": result["status"],
            "seed": result["spec"]["instance"]["seed"], "reason": result["reason"]}  # fmt: skip


def _versions(results: list[dict[str, Any]]) -> list[str]:
    told = Counter(" ".join(f"{name} {number}" for name, number in sorted(result["versions"].items()))
                   for result in results if result["versions"])  # fmt: skip
    return [f"{count} runs: {text}" for text, count in told.most_common()]
