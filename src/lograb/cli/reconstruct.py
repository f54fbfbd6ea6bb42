"""``lograb attack`` and ``evaluate``: Task 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lograb import pipeline
from lograb.answer_file import check_answer_name, write_answers
from lograb.cli.arguments import parse_settings
from lograb.cli.output import notice, print_facts, print_json, say, waiting
from lograb.cli.scores import FAILS, add_up, claims, sentence, show_details, show_patches, show_score
from lograb.cli.stopping import written
from lograb.errors import LograbError
from lograb.experiments.parts import InParts
from lograb.instance import Instance
from lograb.progress import Progress
from lograb.score import Score
from lograb.tasks.isolation import choose_attack
from lograb.types import Reconstruction


@dataclass(frozen=True)
class Run:
    """One run of an attack: its seed, its answer for each graph, and its score where there is a truth."""

    seed: int
    answers: list[Reconstruction]
    score: Score | None

    @property
    def seconds(self) -> float:
        """How long the attack took."""
        return sum(answer.seconds or 0.0 for answer in self.answers)

    @property
    def value(self) -> float:
        """What runs are compared by: F1, or the number of claims where there is no truth."""
        return float(sum(len(a.edges) for a in self.answers)) if self.score is None else self.score.f1

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain numbers, ready for JSON."""
        told = {"seed": self.seed, "diagnostics": add_up([answer.diagnostics for answer in self.answers]),
                "seconds": self.seconds, "claimed": sum(len(answer.edges) for answer in self.answers)}  # fmt: skip
        return told if self.score is None else told | self.score.to_dict() | {"below_floor": self.score.fails}


def attack_instance(
    file: Path, method: str, output: Path | None, *, seed: int, repeats: int, settings: list[str] | None,
    features: bool, parts: int | None, workers: int | None, scheduler: str | None, verbose: bool, json: bool,
) -> None:  # fmt: skip
    """Run an attack, once or more, in parts where asked for; score it where the file carries the truth."""
    if output is not None:
        check_answer_name(output)
    attacker = choose_attack(method, parse_settings(settings))
    instance = pipeline.load(file)
    with waiting(method) as report:
        if parts is not None:
            attacker = InParts(attacker, parts, workers, scheduler, report)
        runs = [_run(instance, attacker, seed + number, features, report, None if number else output)
                for number in range(repeats)]  # fmt: skip
    first = runs[0]
    if output is not None:
        notice(f"the answer is in '{output}'" + (f", that of seed {seed}" if repeats > 1 else ""))
    if first.score is None:
        notice("the file has no truth: nothing is scored")
    if len(first.answers) == 1 and (why := first.answers[0].diagnostics.get("nothing_claimed")):
        notice(f"nothing is claimed: {why}")
    if any(answer.unlisted is None and "expected" in answer.diagnostics for answer in first.answers):
        notice("no embedding was read, only who shares patches with whom: the scores are no probabilities")
    result = {"method": method, "features": features, **first.to_dict(), **_spread(runs)}
    trivial = getattr(attacker, "trivial", False)
    if json:
        _print_json(result, first.score, verbose, trivial=trivial)
        return
    _show_runs(method, runs, trivial=trivial)
    if verbose:
        show_details({key: value for key, value in result.items() if key not in ("runs", "below_floor")})
        show_patches(first.score, named=_named(instance))


def _run(
    instance: Instance, attacker: Any, seed: int, features: bool, report: Progress, output: Path | None
) -> Run:
    """Attack, keep the answer as soon as it is there, and score it."""
    found = pipeline.attack(instance, attacker, seed=seed, features=features, progress=report)
    answers = found if isinstance(found, list) else [found]
    if output is not None:
        write_answers(output, answers)
        written(output)
    report("scoring", 0, None)
    return Run(seed, answers, pipeline.evaluate(instance, found) if instance.has_truth else None)


def _spread(runs: list[Run]) -> dict[str, Any]:
    """Put several runs into numbers."""
    if len(runs) == 1:
        return {}
    what, (mean, sd) = "claimed" if runs[0].score is None else "f1", _mean_and_sd(runs)
    return {"repeats": len(runs), f"{what}_mean": mean, f"{what}_sd": sd, "runs": [run.to_dict() for run in runs]}


def _mean_and_sd(runs: list[Run]) -> tuple[float, float]:
    values = [run.value for run in runs]
    return float(np.mean(values)), float(np.std(values, ddof=1))


def _show_runs(method: str, runs: list[Run], *, trivial: bool) -> None:
    """Print the first run, and how much the draws of the attack change."""
    first = runs[0]
    if first.score is None:
        say(claims(method, first.answers))
        print()
        print_facts([("seconds", f"{first.seconds:.2f}")])
    else:
        show_score(first.score, sentence(method, first.score, first.answers), first.seconds, trivial=trivial)
    if len(runs) == 1:
        return
    print()
    if all(_same(run, first) for run in runs):
        say(f"This attack draws nothing here: {len(runs)} runs are the same.")
        return
    mean, sd = _mean_and_sd(runs)
    what = f"{mean:,.1f} ± {sd:.1f} claims" if first.score is None else f"F1 {mean:.3f} ± {sd:.3f}"
    say(f"{len(runs)} runs, seeds {first.seed} to {runs[-1].seed}: {what} (mean and standard deviation); "
        f"all above is of seed {first.seed}.")  # fmt: skip


def _same(run: Run, other: Run) -> bool:
    return all(np.array_equal(a.edges, b.edges) and np.array_equal(a.scores, b.scores)
               for a, b in zip(run.answers, other.answers))  # fmt: skip


def _named(instance: Instance) -> bool:
    return len(instance) == 1 and instance.patch_names is not None


def evaluate_answer(file: Path, answer: Path, threshold: float | None, *, verbose: bool, json: bool) -> None:
    """Score an answer from a file."""
    if threshold is not None and not math.isfinite(threshold):
        raise LograbError(f"the threshold must be a finite number, got {threshold}")
    instance = pipeline.load(file)
    with waiting("scoring"):
        score = pipeline.evaluate(instance, answer, threshold=threshold)
    result = {"answer": answer.name, "method": None, "seconds": None, "diagnostics": None, **score.to_dict()}
    if json:
        _print_json(result | {"below_floor": score.fails}, score, verbose)
        return
    show_score(score, sentence(answer.name, score), None)
    if verbose:
        show_details(result)
        show_patches(score, named=_named(instance))


def _print_json(result: dict[str, Any], score: Score | None, verbose: bool, *, trivial: bool = False) -> None:
    if score is not None and score.fails and not trivial:
        notice(f"below the floor ({score.f1:.3f} < {score.floor:.3f}): {FAILS}")
    if verbose and score is not None and score.patches is not None:
        result = result | {"patch_scores": score.patches.rows()}
    print_json(result)
