"""``lograb demo``: the main job on a built-in graph."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lograb import pipeline
from lograb.attacks import ATTACKS
from lograb.cli.output import print_json, print_table, stderr
from lograb.errors import LograbError
from lograb.instance import Instance
from lograb.report import write_page

SOURCE = "citation"
PARAMETERS: dict[str, Any] = {"d": 1, "p": 0.6, "k": 32, "sigma": 0.05, "seed": 0}
# A minute is short: fewer epochs than the defaults.
MODEL, EPOCHS = "gcn", 10
LINKS = ("cosine", "lightgcn")
WITHOUT = "Tasks 2 and 3 and the neural attacks are left out: they need the extra 'gnn' (pip install '.[gnn]')."


def run_demo(output: Path, json: bool) -> None:
    """Generate an instance, run every attack and the other two tasks, print tables and write a report."""
    if output.is_file() and output.read_bytes()[:15].lower() not in (b"", b"<!doctype html>"):
        raise LograbError(f"'{output}' exists and is not an earlier report: choose another name or remove it")
    learns = all(find_spec(name) is not None for name in ("torch", "torch_geometric"))
    stderr.print("A built-in citation graph is cut into patches, each shared as a noisy spectrum.")
    instance = pipeline.generate(SOURCE, **PARAMETERS)
    summary = instance.summary()
    stderr.print(f"{summary['n_patches']:,} patches of {summary['n_nodes']:,} nodes. An eavesdropper tries:")
    usual = [name for name, attack in ATTACKS.items() if not attack.small_only]
    rows = pipeline.compare(instance, [name for name in usual if learns or ATTACKS[name].extra is None]).rows
    classified, linked = learn(instance) if learns else ([], [])
    write_page(output, summary, rows, classified, linked, command="lograb demo")
    if json:
        print_json({"instance": summary, "attacks": rows, "classification": classified, "links": linked,
                    "learning": learns, "report": str(output)})  # fmt: skip
        return
    show_attacks(rows, summary)
    if learns:
        show_learning(classified, linked)
    else:
        print(WITHOUT)
    print(f"Report: {output}")


def learn(instance: Instance) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Run Task 2 under both splits, and Task 3 between clusters of the same graph."""
    from lograb.tasks.link_prediction import predict_links
    from lograb.tasks.node_classification import classify

    stderr.print("Who works with the patches classifies their nodes, and links fragments:")
    settings = {"epochs": EPOCHS}
    classified = [classify(instance, MODEL, split, settings=settings).to_dict()
                  for split in ("patch", "node-disjoint")]  # fmt: skip
    clusters = pipeline.generate(SOURCE, strategy="cluster", **PARAMETERS)
    longer = {"cosine": {"epochs": 2 * EPOCHS}}
    linked = [predict_links(clusters, method, settings=longer.get(method)).to_dict() for method in LINKS]
    return classified, linked


def show_attacks(rows: list[dict[str, Any]], summary: dict[str, Any]) -> None:
    """Print Task 1."""
    print_table(
        "Edges recovered from shared embeddings (F1 over the whole graph)",
        ("attack", "F1", "floor", "ceiling", "precision", "recall", "seconds"),
        [
            (row["method"], *(f"{row[c]:.3f}"
             for c in ("f1", "floor", "ceiling", "precision", "recall")), f"{row['seconds']:.2f}")
            for row in rows
        ],
        numeric=("F1", "floor", "ceiling", "precision", "recall", "seconds"),
    )  # fmt: skip
    best = max(rows, key=lambda row: row["f1"])
    print(f"Best: {best['method']} finds {best['recall']:.0%} of all {summary['n_edges']:,} edges, and "
          f"{best['precision']:.1%} of its claims are right.\n")  # fmt: skip


def show_learning(classified: list[dict[str, Any]], linked: list[dict[str, Any]]) -> None:
    """Print Tasks 2 and 3."""
    print_table(
        f"Nodes classified from their own patch (F1-micro, {EPOCHS} epochs)",
        ("model", "split", "F1", "floor", "test nodes met in training", "seconds"),
        [
            (row["model"], row["split"], f"{row['f1_micro']:.3f}", f"{row['floor']:.3f}",
             f"{row['seen_share']:.0%}", f"{row['seconds']:.2f}")
            for row in classified
        ],
        numeric=("F1", "floor", "test nodes met in training", "seconds"),
    )  # fmt: skip
    print_table(
        "Edges between the clusters of the same graph (AUROC)",
        ("method", "AUROC", "95 % interval", "floor", "edges", "seconds"),
        [
            (row["method"], f"{row['auroc']:.3f}", "{:.3f} .. {:.3f}".format(*row["interval"]),
             f"{row['floor']:.3f}", f"{row['positives']:,}", f"{row['seconds']:.2f}")
            for row in linked
        ],
        numeric=("AUROC", "floor", "edges", "seconds"),
    )  # fmt: skip
