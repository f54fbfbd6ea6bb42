"""``lograb classify``: Task 2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lograb import pipeline
from lograb.cli.arguments import parse_settings
from lograb.cli.output import print_json, print_table, say, waiting
from lograb.score import percent
from lograb.tasks.node_classification import check_choices, classify


def classify_nodes(
    file: Path, model: str, split: str, repeats: int, seed: int, settings: list[str] | None, json: bool
) -> None:
    """Train a model on an instance's patches and score it beside its floors."""
    chosen = parse_settings(settings)
    check_choices(model, split, chosen)  # before the file is read
    instance = pipeline.load(file)
    with waiting("preparing") as report:
        result = classify(
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
