"""``lograb demo``: the main job on a built-in graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lograb import pipeline
from lograb.cli.output import print_json, print_table, stderr
from lograb.report import write_comparison
from lograb.tasks import compare

SOURCE = "citation"
PARAMETERS: dict[str, Any] = {"d": 1, "p": 0.6, "k": 32, "sigma": 0.05, "seed": 0}


def run_demo(output: Path, json: bool) -> None:
    """Generate an instance, run every attack, print a table and write a report."""
    stderr.print("A built-in citation graph is cut into patches, each shared as a noisy spectrum.")
    instance = pipeline.generate(SOURCE, **PARAMETERS)
    summary = instance.summary()
    stderr.print(f"{summary['n_patches']:,} patches of {summary['n_nodes']:,} nodes. An eavesdropper tries:")
    rows = compare(instance)
    write_comparison(output, summary, rows)
    if json:
        print_json({"instance": summary, "attacks": rows, "report": str(output)})
        return
    print_table(
        "Edges recovered from shared embeddings (F1 over the whole graph)",
        ("attack", "F1", "floor", "ceiling", "precision", "recall", "seconds"),
        [
            (row["method"], *(f"{row[c]:.3f}" if c != "f1" else f"{row['f1']['global']:.3f}"
             for c in ("f1", "floor", "ceiling", "precision", "recall")), f"{row['seconds']:.2f}")
            for row in rows
        ],
        numeric=("F1", "floor", "ceiling", "precision", "recall", "seconds"),
    )  # fmt: skip
    best = max(rows, key=lambda row: row["f1"]["global"])
    print(f"Best: {best['method']} finds {best['recall']:.0%} of all {summary['n_edges']:,} edges, and "
          f"{best['precision']:.0%} of its claims are right.")  # fmt: skip
    print(f"Report: {output}")
