"""``lograb demo``: the main job on a built-in graph."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lograb import pipeline
from lograb.attacks import ATTACKS, Attack
from lograb.cli.board import board, show_comparison
from lograb.cli.output import print_json, print_table, say, stderr, waiting
from lograb.instance import Instance
from lograb.report import check_page_name, write_page
from lograb.score import percent

SOURCE = "citation"
PARAMETERS: dict[str, Any] = {"d": 1, "p": 0.6, "k": 32, "sigma": 0.05, "seed": 0}
# A minute is short: fewer epochs than the defaults.
MODEL, EPOCHS = "gcn", 10
NEURAL: dict[str, Any] = {"epochs": 50}
LINKS = ("cosine", "lightgcn")
WITHOUT = "Tasks 2 and 3 and the neural attacks are left out: they need the extra 'gnn' (pip install '.[gnn]')."


def run_demo(output: Path, json: bool) -> None:
    """Generate an instance, run every attack and the other two tasks, print tables and write a report."""
    check_page_name(output)
    learns = all(find_spec(name) is not None for name in ("torch", "torch_geometric"))
    stderr.print("A built-in citation graph is cut into patches, each shared as a noisy spectrum.")
    instance = pipeline.generate(SOURCE, **PARAMETERS)
    summary = instance.summary()
    stderr.print(f"{summary['n_patches']:,} patches of {summary['n_nodes']:,} nodes. An eavesdropper tries:")
    usual = [attack for attack in ATTACKS.values() if not attack.small_only]
    chosen: list[Attack] = [attack() for attack in usual if attack.extra is None]
    if learns:
        chosen += [attack(**NEURAL) for attack in usual if attack.extra is not None]
    with board(1, quiet=json) as (progress, finished):
        table = pipeline.compare(instance, chosen, progress=progress, finished=finished)
    if not json:
        show_comparison(table)
    classified, linked = learn(instance) if learns else ([], [])
    write_page(output, summary, table.rows, classified, linked, command="lograb demo")
    if json:
        print_json({"instance": summary, "attacks": table.rows, "classification": classified, "links": linked,
                    "learning": learns, "report": str(output)})  # fmt: skip
        return
    print()
    if learns:
        show_learning(classified, linked)
    else:
        say(WITHOUT)
    say(f"Report: {output}")


def learn(instance: Instance) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Run Task 2 under both splits, and Task 3 between clusters of the same graph."""
    from lograb.tasks.link_prediction import predict_links
    from lograb.tasks.node_classification import classify

    stderr.print("Who works with the patches classifies their nodes, and links fragments:")
    with waiting("preparing") as report:
        settings = {"epochs": EPOCHS}
        classified = [classify(instance, MODEL, split, settings=settings, progress=report).to_dict()
                      for split in ("patch", "node-disjoint")]  # fmt: skip
        clusters = pipeline.generate(SOURCE, strategy="cluster", **PARAMETERS)
        longer = {"cosine": {"epochs": 2 * EPOCHS}}
        linked = [predict_links(clusters, method, settings=longer.get(method), progress=report).to_dict()
                  for method in LINKS]  # fmt: skip
    return classified, linked


def show_learning(classified: list[dict[str, Any]], linked: list[dict[str, Any]]) -> None:
    """Print Tasks 2 and 3."""
    columns = ("model", "split", "F1", "floor", "test nodes met in training", "seconds")
    cells = [(row["model"], row["split"], f"{row['f1_micro']:.3f}", f"{row['floor']:.3f}",
              percent(row["seen_share"]), f"{row['seconds']:.2f}") for row in classified]  # fmt: skip
    print_table(f"Nodes classified from their own patch (F1-micro, {EPOCHS} epochs)", columns, cells, columns[2:])
    columns = ("method", "AUROC", "95 % interval", "floor", "edges", "seconds")
    cells = [(row["method"], f"{row['auroc']:.3f}", "{:.3f} to {:.3f}".format(*row["interval"]),
              f"{row['floor']:.3f}", f"{row['positives']:,}", f"{row['seconds']:.2f}")
             for row in linked]  # fmt: skip
    numeric = {*columns} - {"method", "95 % interval"}
    print_table("Edges between the clusters of the same graph (AUROC)", columns, cells, numeric)
