"""``lograb submit-check``: is somebody's answer to a challenge complete and well formed, and what is it worth?"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from lograb import pipeline
from lograb.cli.output import print_facts, print_json, say, waiting
from lograb.cli.scores import sentence, show_score
from lograb.errors import LograbError
from lograb.instance import Instance
from lograb.pairs import shared_pairs
from lograb.tasks.answers import read_answers
from lograb.types import Observations, Reconstruction


def check_submission(archive: Path, predictions: Path, truth: Path | None, *, json: bool) -> None:
    """Read an answer as the judge would, count what is in it, and score it where the truth is given."""
    for path in (archive, predictions, truth):
        if path is not None and path.exists() and not path.is_file():
            raise LograbError(f"'{path}' must be a regular file: a submission is read more than once")
    instance = pipeline.load(archive)
    full = None if truth is None else pipeline.load(truth)
    if full is not None:
        check_same(instance, full)
    with waiting("checking"):
        answers = read_answers(predictions, instance)
        told: dict[str, Any] = {"archive": archive.name, "predictions": predictions.name, "valid": True,
                                "sha256": hashlib.sha256(predictions.read_bytes()).hexdigest(),
                                "instance": instance.spec.model_dump(exclude={"seed"}),
                                **_count(instance, answers)}  # fmt: skip
        score = None if full is None else pipeline.evaluate(full, answers)
    if json:
        print_json(told | {"score": None if score is None else score.to_dict()})
        return
    say(f"'{predictions.name}' is a valid answer to '{archive.name}'.")
    print()
    print_facts([("graphs", f"{len(answers):,}"), ("claims", f"{told['claimed']:,}"),
                 ("pairs judged", f"{told['judged']:,}"),
                 ("claims that share no patch", f"{told['claimed_apart']:,}"),
                 ("scores", "probabilities" if told["probabilities"] else "an order only"),
                 ("SHA-256", told["sha256"])])  # fmt: skip
    if score is not None:
        print()
        show_score(score, sentence(predictions.name, score), None)


def check_same(challenge: Instance, full: Instance) -> None:
    """Refuse a truth that belongs to another instance than the one that was answered."""
    if not full.has_truth:
        raise LograbError(f"--truth must name the archive with the truth; '{full.name}' was saved without it")
    one, other = (instance.spec.model_dump(exclude={"seed"}) for instance in (challenge, full))
    different = [key for key in one if one[key] != other[key]]
    if different or len(challenge) != len(full):
        raise LograbError("the archives are of different instances: they differ in "
                          f"{', '.join(different) or 'their number of graphs'}")  # fmt: skip
    for number, (mine, theirs) in enumerate(zip(challenge, full)):
        if not _equal(mine.observations, theirs.observations):
            raise LograbError(f"the archives are of different instances: what is shown of graph {number} differs")


def _equal(one: Observations, other: Observations) -> bool:
    """Say whether two observations show the same; the truth may also name the nodes."""
    return one.n_nodes == other.n_nodes and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("nodes", "ptr", "ranks", "vectors")
    )


def _count(instance: Instance, answers: list[Reconstruction]) -> dict[str, Any]:
    claimed = judged = apart = 0
    for graph, answer in zip(instance, answers):
        seen = graph.observations
        _, shared = shared_pairs(seen.n_nodes, seen.nodes, seen.ptr, answer.edges)
        claimed += len(answer.edges)
        apart += int((~shared).sum())
        judged += len(answer.edges if answer.judged is None else answer.judged)
    scores = [item.scores if item.judged_scores is None else item.judged_scores for item in answers]
    every = np.concatenate(scores)
    return {"claimed": claimed, "judged": judged, "claimed_apart": apart,
            "probabilities": bool(len(every)) and bool(((every >= 0) & (every <= 1)).all())}  # fmt: skip
