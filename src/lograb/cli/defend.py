"""``lograb defend``, ``ledger``, ``bound`` and ``utility``."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from lograb import pipeline
from lograb.cli.arguments import check_instance_name
from lograb.cli.instances import show_summary
from lograb.cli.output import notice, print_facts, print_json, print_table, say, waiting
from lograb.cli.stopping import written
from lograb.defences import as_defences
from lograb.defences.accounting import NOTHING
from lograb.defences.bound import Bound
from lograb.defences.ledger import allows
from lograb.errors import LograbError
from lograb.instance import Instance
from lograb.tasks.privacy import bound, defend, ledger
from lograb.tasks.utility import utility
from lograb.writing import replacing

SEED = ("this file holds the seed, which reproduces all noise: nothing is guaranteed against whoever has it. "
        "Share one made with --no-truth, and a seed of 128 bits.")  # fmt: skip
TRUTH = "this file also holds the true graph, for scoring: share one made with --no-truth"


def defend_instance(
    file: Path, method: list[str], output: Path, *, seed: int | None, releases: int, no_truth: bool, json: bool
) -> None:
    """Write an instance with defences applied, and describe it."""
    check_instance_name(output)
    chosen = as_defences(method)
    if output.exists() and output.resolve() == file.resolve():
        raise LograbError(f"the output '{output}' is the instance itself: choose another name")
    with waiting("defending"):
        defended = defend(pipeline.load(file), chosen, seed=seed, releases=releases)
        sha256 = defended.save(output, truth=not no_truth)
        written(output)
    show_summary(pipeline.load(output).summary() | {"sha256": sha256}, output, json)
    if defended.has_truth and not no_truth:
        notice(TRUTH)
    if not json:
        notice(f"what does it guarantee? lograb ledger {output}")


def show_ledger(files: list[Path], delta: float, json: bool) -> None:
    """Print what was released, and what it adds up to."""
    with waiting("composing"):
        found = ledger(*map(pipeline.load, files), delta=delta)
    if json:
        print_json(found)
        return
    parts = found.get("parts", [found])
    if "total" in found:
        _show_total(found["total"], len(parts))
    for path, part in zip(files, parts):
        if part.get("repeats") is None:
            if len(parts) > 1:
                print()
            _show_part(path, part, alone=len(parts) == 1)
    for text, what in ((SEED, "seed_in_file"), (TRUTH, "truth_in_file")):
        named = dict.fromkeys(str(path) for path, part in zip(files, parts) if part[what])
        if named:
            notice(text if len(parts) == 1 else f"{', '.join(named)}: {text}")


def _show_total(whole: dict[str, Any], files: int) -> None:
    """Say what all files add up to."""
    counted = f", {whole['repeated']} of them a repetition that adds nothing," if whole["repeated"] else ""
    if whole["epsilon"] is None:
        says = "no guarantee"
    else:
        says = (f"ε = {whole['epsilon']:.3g} at δ = {whole['delta']:g}: {allows(whole['tpr'])}"
                + (", with membership treated as public" if whole["whole"] == "conditional" else ""))  # fmt: skip
    say(f"All {files} files together{counted} for one edge: {says}.")


def _show_part(path: Path, part: dict[str, Any], *, alone: bool) -> None:
    say(part["sentence"] if alone else f"{path}: {part['sentence']}")
    print()
    says = {"none": "no guarantee", "formal": "formal", "public": "public", "-": "-"}
    rows = [(c["channel"], says[c["guarantee"]], _span(c["sensitivity"]), _span(c["noise"]), c["mechanism"])
            for c in part["channels"]]  # fmt: skip
    print_table(str(path), ("channel", "guarantee", "sensitivity", "noise", "mechanism"), rows,
                ("sensitivity", "noise"), fold=("mechanism",))  # fmt: skip
    shown = []
    for unit, told in part["units"].items():
        if told is None:
            shown.append((unit, "no guarantee", "-", "-"))
            continue
        patches = "-" if told["patches"] is None else f"{told['patches']:,}"
        rate = f"above {NOTHING:g}" if told["tpr"] > NOTHING else f"{told['tpr']:.2g}"
        shown.append((unit, f"{told['epsilon']:.4g}", patches, rate))
    title = f"composed at δ = {part['delta']:g} over {part['releases']:,} release(s)"
    print_table(title, ("unit", "ε", "patches at most", "TPR at FPR 0.1 %"), shown,
                ("patches at most", "TPR at FPR 0.1 %"))  # fmt: skip
    if any(part["units"].values()):
        say(f"What counts is the last column, whatever ε: beyond {NOTHING:g} it rules out nothing.")


def _span(values: list[float] | None) -> str:
    if values is None:
        return "-"
    return f"{values[0]:.3g}" if values[0] == values[1] else f"{values[0]:.3g} .. {values[1]:.3g}"


def show_bound(file: Path, output: Path | None, *, effort: float, seed: int, json: bool) -> None:
    """Print what nobody can exceed."""
    if output is not None and output.suffix != ".csv":
        raise LograbError(f"the edges are written as a table .csv, got '{output}'")
    instance = pipeline.load(file)
    with waiting("edges in patches") as report:
        told, bounds = bound(instance, effort=effort, seed=seed, progress=report)
    if output is not None:
        _write_edges(output, instance, bounds)
        written(output)
    if json:
        worst = [np.sort(found.per_node())[::-1][:10].tolist() for found in bounds[:1]] if told["mu"] else []
        print_json(told | {"largest_mu_of_nodes": worst[0] if worst else None})
        return
    say(told["sentence"])
    print()
    names = ("false-positive rate", "median", "mean", "largest")
    rows = [(f"{row['fpr']:g}", *(f"{row[key]:.3g}" for key in names[1:])) for row in told["curve"]]
    print_table("largest true-positive rate of any test of an edge, over edges", names, rows, names)


def _write_edges(output: Path, instance: Instance, bounds: list[Bound]) -> None:
    """Write a row per edge, with the nodes' names; a first column ``graph`` where there are several."""
    many = len(bounds) > 1
    with replacing(output) as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*(["graph"] if many else []), "u", "v", "mu", "tpr_at_fpr_0.001"])
        for number, (graph, found) in enumerate(zip(instance, bounds)):
            names = graph.node_names or range(graph.n_nodes)
            table.writerows([*([number] if many else []), names[u], names[w], mu, rate] for (u, w), mu, rate in
                            zip(found.edges.tolist(), found.mu.tolist(), found.tpr().tolist()))  # fmt: skip


def show_utility(file: Path, *, seed: int, repeats: int, json: bool) -> None:
    """Print what the shared embeddings are still good for."""
    with waiting("training") as report:
        told = utility(pipeline.load(file), seed=seed, repeats=repeats, progress=report)
    if json:
        print_json(told)
        return
    say(told["sentence"])
    print()
    print_facts([(key.replace("_", " "), "-" if value is None else f"{value:.3f}" if isinstance(value, float)
                  else str(value)) for key, value in told.items() if key != "sentence"])  # fmt: skip
