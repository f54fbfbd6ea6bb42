"""Task 1: rebuild the graph (§4.4.1). Two verbs: `attack` and `evaluate`.

Here, and only here, truth and estimate meet. Every score stands between its *floor*, the best that
trivial attackers achieve on the same instance (claiming every pair that shares a patch
included), and its *ceiling*: the F1 of claiming exactly the true edges that some patch contains, since nobody
can see the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from lograb.attacks import ATTACKS, Attack, label_of
from lograb.errors import LograbError
from lograb.instance import Instance
from lograb.metrics import EdgeCounts, Ranking, bootstrap_interval, calibration, count_edges, list_f1
from lograb.pairs import edge_keys, shared_pairs
from lograb.parallel import cores_for
from lograb.patches import induced_edges
from lograb.progress import Progress, ignore
from lograb.score import PatchScores, Score
from lograb.tasks.answers import numbered_as, read_answers
from lograb.tasks.isolation import FileAttack, choose_attack, run_isolated
from lograb.tasks.parcel import private_copy
from lograb.theory.cohesion import boundary_ratio, cohesion_recall_interval, estimate_components, island_cohesion
from lograb.theory.recoverability import relative_error
from lograb.types import Bools, Floats, Graph, Ints, Observations, Patches, Reconstruction

FALSE_RATE, RECALL = 1e-3, 0.5
AT_ONCE = 256  # graphs that an attack gets at once, if it takes several
Answer = Reconstruction | Sequence[Reconstruction] | str | Path


def attack(
    subject: Instance | Observations,
    attack: Any,
    *,
    seed: int | np.random.SeedSequence = 0,
    features: bool = False,
    progress: Progress | None = None,
) -> Any:
    """Let an attack loose on what an eavesdropper sees.

    Parameters
    ----------
    subject : Instance or Observations
    attack : str, attack object, or function (observations, rng) -> Reconstruction
        (``file.py:function`` as a name runs in a process of its own)
    seed : for attacks that draw: a number, or a `numpy.random.SeedSequence`. The graphs of an instance of several
        have a random stream each.
    features : whether the eavesdropper also has the features of the observed nodes
    progress : called with the stage, how much of it is done and how much there is

    Returns
    -------
    Reconstruction
        Of an instance of several graphs: a list with one for each.

    Examples
    --------
    >>> import lograb
    >>> lograb.attack(lograb.generate("karate"), "membership")
    <Reconstruction by membership: 78 edges of 34 nodes claimed, 78 pairs judged>
    """
    if not isinstance(seed, np.random.SeedSequence) and (not isinstance(seed, int) or seed < 0):
        raise LograbError(f"a seed must be a whole number from 0 on, got {seed!r}")
    chosen = choose_attack(attack)
    if isinstance(subject, Instance):
        many = len(subject) > 1
        wanted = features or (isinstance(chosen, Attack) and "features" in chosen.uses)
        seen: Iterable[Observations] = (graph.observe(features=wanted) for graph in subject)
    elif isinstance(subject, Observations):
        many, seen = False, [subject]
    else:
        raise _no_instance("attack", subject)
    if features and isinstance(chosen, Attack) and "features" not in chosen.uses + chosen.optional:
        raise LograbError(f"the attack '{chosen.name}' does not use features")
    def stream(number: int) -> np.random.Generator:
        given = seed if isinstance(seed, np.random.SeedSequence) else stream_of(seed, number if many else None)
        return np.random.default_rng(given)

    if isinstance(chosen, FileAttack):
        answers = _run_apart(chosen, list(seen), stream)
        return answers if many else answers[0]
    answers = []
    if many and isinstance(subject, Instance) and isinstance(chosen, Attack) and chosen.together:
        seen = iter(seen)
        while part := list(islice(seen, AT_ONCE)):
            numbers = range(len(answers), len(answers) + len(part))
            if progress is not None:
                progress("attacking graphs", len(answers), len(subject))
            answers += run_together(chosen, part, [stream(number) for number in numbers])
    for number, observations in enumerate(seen):
        if many and progress is not None:
            progress("attacking graphs", number, len(subject) if isinstance(subject, Instance) else None)
        inner = ignore if many or progress is None else progress
        answers.append(_run(chosen, observations, stream(number), inner))
    return answers if many else answers[0]


def stream_of(seed: int, number: int | None) -> np.random.SeedSequence:
    """Give the random stream of an attack on one graph; `number` counts the graphs where there are several."""
    return np.random.SeedSequence(seed, spawn_key=() if number is None else (number,))


def _run_apart(
    attack: FileAttack, seen: list[Observations], stream: Callable[[int], np.random.Generator]
) -> list[Reconstruction]:
    """Run a foreign attack on all graphs, in one process of its own; the seconds are shared out evenly."""
    start = time.perf_counter()
    found = run_isolated(attack, seen, [stream(number) for number in range(len(seen))])
    seconds = (time.perf_counter() - start) / len(seen)
    return [replace(answer, method=attack.__name__, seconds=seconds) for answer in found]


def run_together(
    attack: Attack, seen: Sequence[Observations], rngs: Sequence[np.random.Generator]
) -> list[Reconstruction]:
    """Run an attack on copies of what is seen of several graphs at once; the seconds are shared out evenly."""
    seen = [private_copy(one) for one in seen]
    start = time.perf_counter()
    with cores_for(sum(int(one.sizes @ one.sizes) for one in seen)):
        found = attack.reconstruct_each(seen, rngs)
    seconds = (time.perf_counter() - start) / max(len(seen), 1)
    return [_signed(attack, one, answer, seconds) for one, answer in zip(seen, found, strict=True)]


def _run(
    attack: Any, seen: Observations, rng: np.random.Generator, progress: Progress
) -> Reconstruction:
    """Run an attack on a copy of what is seen of one graph, and note who answered and how long it took."""
    seen = private_copy(seen)
    start = time.perf_counter()
    with cores_for(int(seen.sizes @ seen.sizes)):
        found = attack.reconstruct(seen, rng, progress) if isinstance(attack, Attack) else attack(seen, rng)
    return _signed(attack, seen, found, time.perf_counter() - start)


def _signed(attack: Any, seen: Observations, found: Any, seconds: float) -> Reconstruction:
    """Check that an answer is one, and note who gave it."""
    if not isinstance(found, Reconstruction):
        raise LograbError(f"the attack '{label_of(attack)}' must return a lograb.Reconstruction, "
                          f"got {type(found).__name__}")  # fmt: skip
    if found.n_nodes != seen.n_nodes:
        raise LograbError(f"the attack '{label_of(attack)}' answers about {found.n_nodes} nodes, "
                          f"the observations have {seen.n_nodes}")  # fmt: skip
    return replace(found, node_names=seen.node_names, method=label_of(attack), seconds=seconds)


def _no_instance(verb: str, got: Any) -> LograbError:
    if isinstance(got, str | Path):
        return LograbError(f"{verb} needs an instance, got the path or name '{got}': open a file with "
                           f"lograb.load('{got}'), or make an instance with lograb.generate(...)")  # fmt: skip
    return LograbError(f"{verb} needs an instance (lograb.generate, lograb.load) or lograb.Observations, "
                       f"got {type(got).__name__}")  # fmt: skip


def evaluate(instance: Instance, answer: Answer, *, threshold: float | None = None) -> Score:
    """Score an answer against the truth, between its floor and its ceiling.

    F1 comes in two scopes: ``global`` counts all true edges, ``recovered`` those among the nodes that
    the answer claims to have recovered; ``list`` counts as the paper's appendix does, for comparison only (see
    `lograb.metrics.list_f1`). ``island_cohesion`` is over the answer's islands, ``component_cohesion`` over the
    connected components of the claimed edges, as printed. ``cross`` judges the edges between islands that an
    answer gives beside its claims, and both together. ``precision`` and ``recall`` are global,
    ``recovered_precision`` and ``recovered_recall`` of the other scope. ``recall_interval`` follows from Island
    Cohesion and bounds the recall over true edges between nodes of islands: ``recovered_recall``, where the
    recovered nodes are those. ``hits`` counts the claims that are right, ``found`` those of them that some patch
    contains; with pseudonyms, ``named_f1`` is about the claims with the names put back. A metric that the answer
    does not allow (cohesion without islands, a ranking or a Frobenius error without true pairs, calibration
    without probabilities) is None.

    Parameters
    ----------
    instance : with its truth. Scores are averaged over its graphs where it has several; counts are added up.
    answer : Reconstruction, a list with one per graph, or the path of a file with an answer
    threshold : for a file: claim the pairs whose score is at least this
    """
    if isinstance(instance, Observations):
        raise LograbError("Observations hold no truth to score against: make an instance of them, "
                          "lograb.Instance.from_observations(mine, truth=graph)")  # fmt: skip
    if not isinstance(instance, Instance):
        raise _no_instance("evaluate", instance)
    answers = _answers(instance, answer, threshold)
    return join_scores([score_graph(graph, item) for graph, item in zip(instance, answers)], _bounds(instance))


GraphScore = tuple[dict[str, Any], "Judged", PatchScores]
"""What an answer about one graph is worth: numbers, judged pairs, patches."""


def join_scores(parts: Sequence[GraphScore], bounds: Sequence[dict[str, float]]) -> Score:
    """Put the scores of all graphs of an instance, and what bounds them, into one."""
    values: dict[str, Any] = _mean([part[0] for part in parts])
    for key in ("claimed", "hits", "found", "edges", "co_observed"):
        values[key] = sum(part[0][key] for part in parts)
    values["frobenius_undefined"] = sum(part[0]["frobenius_error"] is None for part in parts)
    if len(parts) > 1:  # graphs differ more than the pairs inside one: draw graphs
        f1 = np.array([part[0]["f1"]["global"] for part in parts])
        drawn = np.random.default_rng(0).integers(len(f1), size=(2000, len(f1)))
        values["f1_interval"] = list(bootstrap_interval(f1[drawn].mean(axis=1)))
    values |= _floor_and_ceiling(bounds)
    values["calibration"] = _calibration([part[1] for part in parts])
    patches = _join_patches([part[2] for part in parts])
    values["patches"] = {"count": len(patches), "exact": int(patches.exact.sum())}
    return Score("reconstruction", values, patches)


def _answers(instance: Instance, answer: Answer, threshold: float | None) -> Sequence[Reconstruction]:
    if isinstance(answer, str | Path):
        return read_answers(Path(answer), instance, threshold)
    if threshold is not None:
        raise LograbError("a threshold goes with an answer in a file; a Reconstruction says what it claims")
    answers = _as_list(answer)
    if not isinstance(answers, list | tuple) or not all(isinstance(item, Reconstruction) for item in answers):
        raise LograbError("evaluate needs the answer that lograb.attack returns: a Reconstruction, a list of them "
                          f"for several graphs, or the path of a file; got {type(answer).__name__}"
                          + (": unpack it first" if isinstance(answer, tuple) else ""))  # fmt: skip
    if len(answers) != len(instance):
        raise LograbError(f"the instance has {len(instance)} graphs, the answer {len(answers)}")
    return [numbered_as(graph, item) for graph, item in zip(instance, answers)]


class Judged(NamedTuple):
    """Pairs that share a patch and were judged: scores and truth; and how many share one, true and in all."""

    scores: Floats
    true: Bools
    n_true: int
    n_pairs: int
    unlisted: float | None


def score_graph(instance: Instance, answer: Reconstruction) -> GraphScore:
    """Score an answer about a single graph."""
    truth = instance.truth.edges
    error = relative_error(truth, answer.edges, instance.n_nodes)
    everywhere = count_edges(truth, answer.edges, instance.n_nodes)
    recovered = count_edges(truth, answer.edges, instance.n_nodes, answer.nodes)
    judged = _judged(instance, answer)
    seen = np.isin(edge_keys(truth[instance.co_observed], instance.n_nodes),
                   edge_keys(answer.edges, instance.n_nodes))  # fmt: skip
    return {
        "f1": {"global": everywhere.f1, "recovered": recovered.f1,
               "list": list_f1(truth, answer.edges, answer.scores, instance.n_nodes)},
        "f1_interval": everywhere.f1_interval(),
        "precision": everywhere.precision,
        "recall": everywhere.recall,
        "recovered_precision": recovered.precision,
        "recovered_recall": recovered.recall,
        "node_coverage": len(answer.nodes) / instance.n_nodes,
        "claimed": everywhere.claimed,
        "hits": everywhere.hits,
        "found": int(seen.sum()),
        "edges": everywhere.true,
        "co_observed": judged.n_true,
        "frobenius_error": error if np.isfinite(error) else None,
        **_cohesion(truth, answer),
        "cross": None if answer.cross is None else _cross(truth, answer.edges, answer.cross, instance.n_nodes),
        **_ranking(judged),
        **_named(instance, truth, answer),
    }, judged, _patch_scores(instance, answer)  # fmt: skip


def _named(instance: Instance, truth: Ints, answer: Reconstruction) -> dict[str, Any]:
    """With pseudonyms: F1 of the claims with the names put back, over true edges that some patch contains."""
    key = instance.key
    if key is None:
        return {}
    real, claimed = (np.unique(np.sort(key[edges], axis=1), axis=0) for edges in (truth, answer.edges))
    n = int(key.max()) + 1
    return {"named_f1": count_edges(real, claimed[claimed[:, 0] < claimed[:, 1]], n).f1}


def _cohesion(truth: Ints, answer: Reconstruction) -> dict[str, Any]:
    cohesion = boundary = None
    if answer.islands is not None:
        cohesion = island_cohesion(truth, answer.edges, answer.islands)
        boundary = boundary_ratio(truth, answer.islands)
    interval = None if cohesion is None or boundary is None else cohesion_recall_interval(cohesion, boundary)
    components = island_cohesion(truth, answer.edges, estimate_components(answer.edges, answer.n_nodes))
    return {"island_cohesion": cohesion, "recall_interval": interval, "component_cohesion": components}


def _cross(truth: Ints, edges: Ints, cross: Ints, n_nodes: int) -> dict[str, Any]:
    """Count the edges between islands by themselves, and together with the claimed ones (global)."""
    alone = count_edges(truth, cross, n_nodes)
    both = count_edges(truth, np.unique(np.concatenate([edges, cross]), axis=0), n_nodes)
    return {"precision": alone.precision, "recall": alone.recall, "f1_together": both.f1}


def _judged(instance: Instance, answer: Reconstruction) -> Judged:
    """Take the judged pairs that share a patch."""
    seen, n = instance.observations, instance.n_nodes
    pairs, scores = answer.ranked
    n_pairs, shared = shared_pairs(n, seen.nodes, seen.ptr, pairs)
    pairs, scores = pairs[shared], scores[shared]
    true = np.isin(edge_keys(pairs, n), edge_keys(instance.truth.edges[instance.co_observed], n))
    return Judged(scores, true, int(instance.co_observed.sum()), n_pairs, answer.unlisted)


def _ranking(judged: Judged) -> dict[str, Any]:
    ranking = Ranking.of(judged.scores, judged.true, judged.n_true, judged.n_pairs)
    values = {
        "average_precision": ranking.average_precision(),
        "auroc": ranking.auroc(),
        "tpr_at_fpr_0.001": ranking.recall_at_false_rate(FALSE_RATE),
        "precision_at_recall_0.5": ranking.precision_at_recall(RECALL),
    }
    return {name: None if np.isnan(value) else value for name, value in values.items()}


def _calibration(parts: list[Judged]) -> dict[str, float | None] | None:
    """Judge the probabilities of all graphs together; None where some answer has none."""
    chances = [part.unlisted for part in parts if part.unlisted is not None]
    if len(chances) < len(parts):
        return None
    others = np.array([part.n_pairs - len(part.scores) for part in parts], dtype=float)
    rest = float(others @ np.array(chances) / max(others.sum(), 1.0))
    scores, true = np.concatenate([part.scores for part in parts]), np.concatenate([part.true for part in parts])
    found = calibration(scores, true, sum(p.n_true for p in parts), sum(p.n_pairs for p in parts), rest)
    return {name: value if np.isfinite(value) else None for name, value in found.items()}


def _patch_scores(instance: Instance, answer: Reconstruction) -> PatchScores:
    """Compare claims and truth inside each patch."""
    seen = instance.observations
    claims = induced_edges(Patches(seen.n_nodes, seen.nodes, seen.ptr),
                           Graph.from_edges("claims", seen.n_nodes, answer.edges))  # fmt: skip
    ptr, ends = instance.patch_edges
    owner = np.repeat(np.arange(seen.n_patches), np.diff(ptr))
    size = max(len(seen.nodes), 1)
    true, claimed = edge_keys(ends + seen.ptr[owner][:, None], size), edge_keys(claims.entries, size)
    found = np.bincount(owner[np.isin(true, claimed)], minlength=seen.n_patches)
    names = seen.patch_names or tuple(map(str, range(seen.n_patches)))
    return PatchScores(names, seen.sizes, np.diff(ptr), found, np.diff(claims.ptr) - found)


def _join_patches(parts: list[PatchScores]) -> PatchScores:
    """Put the patches of several graphs one after the other, each named after its graph too."""
    if len(parts) == 1:
        return parts[0]
    names = tuple(f"{number}/{name}" for number, part in enumerate(parts) for name in part.names)
    return PatchScores(names, *(np.concatenate([getattr(part, what) for part in parts])
                                for what in ("sizes", "edges", "found", "wrong")))  # fmt: skip


EVERYTHING = "claiming all pairs that share a patch"
_KNOWN: WeakKeyDictionary[Instance, list[dict[str, float]]] = WeakKeyDictionary()


def floor_and_ceiling(instance: Instance) -> dict[str, Any]:
    """Give floor and ceiling of an instance, macro-averaged over its graphs; computed once.

    The floor is the score of the best trivial attack, or that of claiming every pair that shares a patch where
    this is more; ``floor_by`` says which. The ceiling claims exactly the true edges that some patch contains.
    """
    return _floor_and_ceiling(_bounds(instance))


def _floor_and_ceiling(bounds: Sequence[dict[str, float]]) -> dict[str, Any]:
    mean = {name: float(np.mean([each[name] for each in bounds])) for name in bounds[0]}
    ceiling = mean.pop("ceiling")
    source = max(mean, key=lambda name: mean[name])
    source_name = EVERYTHING if source == "everything" else source
    return {"floor": mean[source], "floor_by": source_name, "ceiling": ceiling}


def _bounds(instance: Instance) -> list[dict[str, float]]:
    if instance not in _KNOWN:
        many = len(instance) > 1
        _KNOWN[instance] = [graph_bounds(graph, i if many else None) for i, graph in enumerate(instance)]
    return _KNOWN[instance]


def graph_bounds(graph: Instance, number: int | None = None) -> dict[str, float]:
    """Score on one graph the trivial attacks, claiming everything that shares a patch, and the ceiling.

    `number` is that of the graph in a dataset of several. Computed once.
    """
    if graph in _KNOWN:
        return _KNOWN[graph][0]
    everything, ceiling = _reachable(graph)
    found = {"everything": everything, "ceiling": ceiling}
    for name, kind in ATTACKS.items():
        if kind.trivial:
            answer = attack(graph, name, seed=stream_of(0, number))
            found[name] = count_edges(graph.truth.edges, answer.edges, graph.n_nodes).f1
    _KNOWN[graph] = [found]
    return found


def _reachable(instance: Instance) -> tuple[float, float]:
    """Score claiming every pair that shares a patch, and claiming the true edges among them."""
    seen, true, known = instance.observations, len(instance.co_observed), int(instance.co_observed.sum())
    n_pairs, _ = shared_pairs(instance.n_nodes, seen.nodes, seen.ptr, np.empty((0, 2), np.int64))
    return EdgeCounts(n_pairs, true, known).f1, EdgeCounts(known, true, known).f1


def _as_list(answer: Any) -> Sequence[Reconstruction]:
    """Treat the answer about one graph like those about several."""
    return [answer] if isinstance(answer, Reconstruction) else answer


def _mean(scores: list[Any]) -> Any:
    """Average nested scores position by position; None where nothing is defined."""
    present = [s for s in scores if s is not None]
    if not present:
        return None
    if isinstance(present[0], dict):
        return {key: _mean([s[key] for s in present]) for key in present[0]}
    return np.mean(present, axis=0).tolist()
