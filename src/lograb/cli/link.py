"""``lograb link``: Task 3 on an instance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lograb import pipeline
from lograb.cli.arguments import parse_settings
from lograb.cli.output import print_json, print_table, say, waiting
from lograb.tasks.link_prediction import check_choices, predict_links


def link_instance(
    path: Path, method: str, repeats: int, seed: int, pairs: list[str], halo: Any, negatives: Any, json: bool
) -> None:
    """Train a method on the insides of the fragments and score it on the edges between them."""
    settings = parse_settings(pairs)
    check_choices(method, settings, halo, negatives)  # before the file is read
    instance = pipeline.load(path)
    with waiting(method) as progress:
        result = predict_links(
            instance, method, repeats, seed, settings, halo=halo, negatives=negatives, progress=progress
        ).to_dict()
    if json:
        print_json(result)
    else:
        show_links(f"{method} on {path}", result)


def show_links(title: str, result: dict[str, Any]) -> None:
    """Print the scores of one method as a table."""
    if result["status"] != "ok":
        say(f"{title}: {result['status']}: {result['reason']}.")
        return
    floors = ", ".join(f"{name} {value:.3f}" for name, value in result["floors"].items())
    low, high = result["interval"]
    rows = [
        ("AUROC", f"{result['auroc']:.3f}, 95 % interval {low:.3f} .. {high:.3f}"),
        ("average precision", f"{result['average_precision']:.3f}"),
        ("floor", f"{result['floor']:.3f} ({floors})"),
        ("edges between fragments", f"{result['positives']:,}, against {result['negatives']:,} other pairs"),
        ("fragments", f"{result['fragments']:,}, the largest of {result['largest_fragment']:,} nodes"),
        ("known edges", f"{result['known_edges']:,}"),
        ("distinct scores", f"{result['distinct_scores']:,}"),
        ("repeats", str(result["repeats"])),
        ("seconds", f"{result['seconds']:.1f}"),
    ]
    print_table(title, ("what", "value"), rows, fold=("value",))
    if result["notice"]:
        say(result["notice"])
