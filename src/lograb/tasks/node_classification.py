"""Task 2: classify the nodes of a patch from that patch alone (§4.4.2).

Every score stands beside its floor: the better of the most frequent class and of a perceptron that
reads a node's features and nothing else. Beside it stands *memory*: who only remembers the labels
of the nodes met in training. The scopes of a score:

``f1_micro``, ``f1_macro``
    all test occurrences (patch, node), the paper's;
``centres``
    those where the node is the centre of the patch: every node at most once per patch of its own;
``unseen``
    those whose node was not met in training.
"""

from __future__ import annotations

import math
import time
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from lograb.errors import LograbError, unknown_name
from lograb.instance import Instance
from lograb.learning.nodes.catalog import MODELS, Model, find_model
from lograb.learning.nodes.encodings import encode
from lograb.learning.nodes.settings import TrainingSettings
from lograb.learning.nodes.splits import SPLITS, Split, make_split, seen_share, unseen_rows
from lograb.learning.patchset import PatchSet, patch_set
from lograb.learning.randomness import require_torch
from lograb.metrics.classification import choose_labels, f1_scores
from lograb.metrics.intervals import mean_interval
from lograb.progress import Progress, ignore
from lograb.score import Score
from lograb.spec import checked
from lograb.types import Bools

Streams = dict[str, np.random.Generator]
_FLOORS: WeakKeyDictionary[Instance, dict[tuple[Any, ...], dict[str, Any]]] = WeakKeyDictionary()
"""The floors of an instance by split, seed, repeat and training: the same for all models, so trained once."""


def classify(
    instance: Instance,
    name: str,
    split: str = "patch",
    *,
    seed: int = 0,
    repeats: int = 1,
    settings: dict[str, Any] | None = None,
    progress: Progress = ignore,
) -> Score:
    """Train a model on an instance and score it.

    Parameters
    ----------
    instance : with labels and patch edges
    name : see `lograb.learning.nodes.catalog.MODELS`
    split : ``patch`` or ``node-disjoint``
    seed : split, initial weights and all else follow from it, and from the number of the repeat. All models meet
        the same splits.
    repeats : splits and trainings; with several, numbers are means, with standard deviation and interval
    settings : of the training (`TrainingSettings`) or of the model, by name
    """
    check_counts(repeats, seed)
    model, training, special = check_choices(name, split, settings)
    require_torch("lograb classify")
    patches = patch_set(instance)
    patches.require_labels()
    known = _FLOORS.setdefault(instance, {})
    runs: list[dict[str, Any]] = []
    raw: dict[str, npt.NDArray[Any]] = {}
    for number in range(repeats):
        streams = run_streams(seed, number)
        division = make_split(patches, split, streams["split"])
        run = score_model(patches, division, model, streams, training, special, progress)
        raw |= {f"{number}/answer": run.pop("answer"), f"{number}/train": division.train,
                f"{number}/test": division.test}  # fmt: skip
        key = (split, seed, number, training.model_dump_json())
        floors = known.get(key) or score_floors(patches, division, streams["floor"], training, progress)
        known[key] = floors
        floor = max(floors[name]["f1_micro"] for name in ("majority", "mlp") if name in floors)
        runs.append(run | describe_split(patches, division) | {"floor": floor, "floors": floors})
    values = {"model": name, "split": split, "seed": seed, "repeats": repeats, **combine(runs)}
    return Score("classification", values, raw=raw)


def check_counts(repeats: int, seed: int) -> None:
    """Refuse what cannot be counted or drawn by."""
    for name, value, least in (("repeats", repeats, 1), ("seed", seed, 0)):
        if value < least:
            raise LograbError(f"{name} must be at least {least}, got {value}")


def check_choices(
    name: str, split: str, settings: dict[str, Any] | None
) -> tuple[Model, TrainingSettings, dict[str, Any]]:
    """Check names and settings before any work; separates settings of training and model."""
    model = find_model(name)
    if split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    given = settings or {}
    fields = TrainingSettings.model_fields
    special = {key: value for key, value in given.items() if key not in fields}
    model.choose(special)
    training = checked(TrainingSettings, {key: value for key, value in given.items() if key in fields})
    return model, training, special


def run_streams(seed: int, number: int) -> Streams:
    """Give independent streams for the parts of one repeat."""
    children = np.random.SeedSequence(seed, spawn_key=(number,)).spawn(4)
    names = ("split", "encode", "train", "floor")
    return {name: np.random.default_rng(child) for name, child in zip(names, children)}


def score_model(
    patches: PatchSet, split: Split, model: Model, streams: Streams, training: TrainingSettings | None = None,
    settings: dict[str, Any] | None = None, progress: Progress = ignore,
) -> dict[str, Any]:  # fmt: skip
    """Train one model and score it on the test rows; ``answer`` are its labels, one for each row."""
    from lograb.learning.nodes.models.classifier import count_parameters
    from lograb.learning.nodes.training import inference_milliseconds, patches_with, predict, train

    start = time.perf_counter()
    encoded = encode(patches, model.encodings, streams["encode"])
    trained = train(model, encoded, split, streams["train"], training, settings, progress)
    tested = patches_with(encoded, split.test)
    scores = predict(trained.network, encoded, tested)
    seconds = time.perf_counter() - start
    answer = choose_labels(scores, multi_label=patches.multi_label)
    return {
        **score_scopes(patches, split, answer),
        "answer": answer,
        "parameters": count_parameters(trained.network),
        "inference_ms": inference_milliseconds(trained.network, encoded, tested),
        "epochs": trained.epochs,
        "best_epoch": trained.best_epoch,
        "valid_f1_micro": max(trained.valid_f1),
        "seconds": seconds,
    }


def score_scopes(patches: PatchSet, split: Split, answer: npt.NDArray[Any]) -> dict[str, Any]:
    """Score answers per row, (n_rows,) or (n_rows, n_classes), over all test rows, centres, unseen nodes."""
    scores = _score(patches, split.test, answer)
    centres = None
    if patches.centres is not None:
        tested = split.test & np.isin(np.arange(patches.n_rows), patches.centres)
        centres = _score(patches, tested, answer)
    return scores | {"centres": centres, "unseen": _score(patches, unseen_rows(patches, split), answer)}


def _score(patches: PatchSet, rows: Bools, answer: npt.NDArray[Any]) -> dict[str, Any]:
    truth = patches.require_labels()[patches.nodes[rows]]
    found = f1_scores(truth, answer[rows], patches.n_classes)
    return {name: None if math.isnan(value) else value for name, value in zip(("f1_micro", "f1_macro"), found)}


def describe_split(patches: PatchSet, split: Split) -> dict[str, Any]:
    """Say how large the test is and how much of it training has shown."""
    return {
        "seen_share": seen_share(patches, split),
        "seen_occurrences": 1.0 - float(unseen_rows(patches, split).sum() / split.test.sum()),
        "test_nodes": len(np.unique(patches.nodes[split.test])),
        "test_occurrences": int(split.test.sum()),
        "n_classes": patches.n_classes,
        "multi_label": patches.multi_label,
    }


def score_floors(
    patches: PatchSet, split: Split, rng: np.random.Generator, training: TrainingSettings | None = None,
    progress: Progress = ignore,
) -> dict[str, dict[str, Any]]:  # fmt: skip
    """Score what needs no skill: ``majority``, ``memory``, and where there are features ``mlp``."""
    labels = patches.require_labels()
    shown = labels[patches.nodes[split.train]]
    counts = shown.sum(axis=0) if patches.multi_label else np.bincount(shown, minlength=patches.n_classes)
    # A label that most training rows have is more likely than not; choose_labels cuts at 0.
    shares = np.tile(counts / len(shown), (patches.n_rows, 1))
    majority = choose_labels(shares - 0.5, multi_label=patches.multi_label)
    memory = majority.copy()
    met = np.isin(patches.nodes, patches.nodes[split.train])
    memory[met] = labels[patches.nodes[met]]
    answers = {"majority": majority, "memory": memory}
    floors = {name: score_scopes(patches, split, answer) for name, answer in answers.items()}
    if patches.n_features:
        streams = dict.fromkeys(("encode", "train"), rng)
        floors["mlp"] = score_model(patches, split, MODELS["mlp"], streams, training, progress=progress)
        floors["mlp"].pop("answer")
    return floors


def combine(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Average the numbers of several runs; the two main scores with standard deviation and 95 % interval."""
    means: dict[str, Any] = _mean(runs)
    for key in ("f1_micro", "f1_macro"):
        values = [run[key] for run in runs]
        means |= {f"{key}_sd": None, f"{key}_interval": None}
        if len(values) > 1:
            means |= {f"{key}_sd": float(np.std(values, ddof=1)),
                      f"{key}_interval": np.clip(mean_interval(values), 0.0, 1.0).tolist()}  # fmt: skip
    if len(runs) > 1:
        means["runs"] = [{key: run[key] for key in ("f1_micro", "f1_macro", "floor", "seconds")} for run in runs]
    return means


def _mean(parts: list[Any]) -> Any:
    first = parts[0]
    if isinstance(first, dict):
        return {key: _mean([part.get(key) for part in parts]) for key in first}
    present = [part for part in parts if part is not None]
    if not present or isinstance(first, bool) or all(part == first for part in parts):
        return first
    return float(np.mean(present))
