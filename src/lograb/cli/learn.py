"""``lograb classify`` and ``lograb link``: Tasks 2 and 3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lograb import pipeline
from lograb.cli.arguments import parse_settings
from lograb.cli.output import print_json, print_table, say, waiting
from lograb.score import percent
from lograb.tasks import link_prediction, node_classification


def classify_nodes(
    file: Path, model: str, split: str, repeats: int, seed: int, settings: list[str] | None, json: bool
) -> None:
    """Train a model on an instance's patches and score it beside its floors."""
    chosen = parse_settings(settings)
    node_classification.check_choices(model, split, chosen)  # before the file is read
    instance = pipeline.load(file)
    with waiting("preparing") as report:
        result = node_classification.classify(
            instance, model, split, seed=seed, repeats=repeats, settings=chosen, progress=report
        ).to_dict()
    if json:
        print_json(result)
        return
    columns = ("", "F1-micro", "F1-macro", "centres", "unseen nodes")
    rows = [(name, *_scores(found)) for name, found in {model: result, **result["floors"]}.items()]
    title = f"{model} on {file}, split {split}" + (f", mean of {repeats}" if repeats > 1 else "")
    print_table(title, columns, rows, columns[1:])
    if repeats > 1:
        low, high = result["f1_micro_interval"]
        say(f"F1-micro {result['f1_micro']:.3f} ± {result['f1_micro_sd']:.3f}, 95 % {low:.3f} to {high:.3f}.")
    say(f"{percent(result['seen_share'])} of the test nodes were seen in training, label included. "
        f"{result['parameters']:,} parameters, {result['seconds']:.1f} s, "
        f"{result['inference_ms']:.0f} ms for one pass over the test patches.")  # fmt: skip
    if result["floor"] >= result["f1_micro"]:
        say(f"Who looks at no edge reaches {result['floor']:.3f}: the patches have not helped.")


def _scores(found: dict[str, Any]) -> list[str]:
    """Give a row's cells: scores over occurrences, over centres, over unseen nodes."""
    scopes = [found["centres"], found["unseen"]]
    values = [found["f1_micro"], found["f1_macro"], *(None if s is None else s["f1_micro"] for s in scopes)]
    return ["-" if value is None else f"{value:.3f}" for value in values]


def link_instance(
    file: Path, method: str, *, settings: list[str] | None, json: bool, halo: Any, negatives: Any, **draws: int
) -> None:
    """Train a method on the insides of the fragments and score it on the edges between them.

    `draws` are repeats and seed.
    """
    chosen = parse_settings(settings)
    link_prediction.check_choices(method, chosen, halo, negatives)  # before the file is read
    instance = pipeline.load(file)
    with waiting(method) as report:
        result = link_prediction.predict_links(
            instance, method, settings=chosen, halo=halo, negatives=negatives, progress=report, **draws
        ).to_dict()
    if json:
        print_json(result)
    else:
        show_links(f"{method} on {file}", result)


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
