"""The whole flow on one screen: read this first.

    source ──► Graph ──► Patches ──► Observations ──► Instance ──► one file
           graphs/    patches/   observations/   │         archive/
                                                 ▼
                                    attack ──► Reconstruction ──► evaluate ──► Score ──► compare ──► Comparison
                                    attacks/                      tasks/                             report/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from lograb import archive
from lograb.archive.manifest import Manifest
from lograb.archive.tables import Array, join
from lograb.attacks import ATTACKS, label_of
from lograb.consistency import check_graph
from lograb.defences import as_defences, settle
from lograb.errors import LograbError, Notify, unknown_name, warn
from lograb.fragment import fragment
from lograb.graphs import count_graphs, load_graph, load_graphs
from lograb.instance import Instance
from lograb.patches import Bring, Given, bring, choose
from lograb.progress import Progress, ignore
from lograb.report import Comparison, Method
from lograb.score import Score
from lograb.spec import GaugeName, InstanceSpec, Precision, StrategyName
from lograb.tasks import attack as attack
from lograb.tasks import evaluate as evaluate
from lograb.tasks.isolation import choose_attack
from lograb.types import Graph, Patches

INPUTS = ("graph", "patches", "patches_by", "header", "progress")
"""What `generate` takes beside the fields of `InstanceSpec`."""


def generate(
    source: Any,
    *,
    strategy: StrategyName | None = None,
    d: int = 1,
    p: float = 1.0,
    k: int = 32,
    sigma: float = 0.0,
    gauge: GaugeName = "sign",
    seed: int = 0,
    clusters: int | None = None,
    cluster_size: int | None = None,
    seed_nodes: int | None = None,
    eigenvalues: bool = True,
    defences: Any = (),
    releases: int = 1,
    precision: Precision = "float64",
    graph: int | None = None,
    patches: Given | None = None,
    patches_by: str | None = None,
    header: bool | None = None,
    progress: Progress | None = None,
    **unknown: Any,
) -> Instance:
    """Fragment a graph and observe its patches: a benchmark instance in memory.

    Parameters
    ----------
    source : catalog name, path, Graph, networkx graph, scipy sparse matrix, PyG Data, or a list of such objects
    strategy : how patches are cut: d-hop, cluster, random, custom, or global for the whole graph at once; by
        default d-hop, or custom where patches are brought
    d : radius of a patch; for clusters the radius of the halo
    p : fraction of the nodes (custom: of the patches) that is observed
    k : eigenvectors kept per patch
    sigma : standard deviation of the noise on every entry of the embedding
    gauge : what stays undetermined in the embedding: sign, rotation or none
    seed : all randomness follows from it
    clusters, cluster_size : for cluster: how many, or how many observed nodes each has, about; 50 by default
    seed_nodes : for random: how many patches; by default half of the observed nodes
    eigenvalues : whether they are shared beside the embedding
    defences : what is done against it, in this order: names such as "gaussian:epsilon=2", or `lograb.defences`
    releases : how many releases with fresh noise the eavesdropper averages
    precision : how finely numbers are published, after noise: float64, float32, float16, or a number of bits after
        the binary point; the defence "round" by another name
    graph : which graph of a dataset that holds many; all of them by default
    patches : for custom: node lists; a dict of them by group, or of groups by node; or a file, which may also be
        a table node,group. Groups give the patches their names
    patches_by : for custom: an attribute of the nodes, one patch for each of its values; "label" cuts by class
    header : for an edge list: whether its first line is a header; None to find out
    progress : called with the stage, how much of it is done and how much there is

    What was changed in the data on the way is told in warnings of the class `LograbNotice`.

    Examples
    --------
    >>> import lograb
    >>> instance = lograb.generate("karate", d=1, p=0.6, k=8, sigma=0.05)
    >>> instance.observations.n_patches
    20
    """
    parameters = {"strategy": strategy, "d": d, "p": p, "k": k, "sigma": sigma, "gauge": gauge, "seed": seed,
                  "clusters": clusters, "cluster_size": cluster_size, "seed_nodes": seed_nodes,
                  "eigenvalues": eigenvalues, "defences": defences, "releases": releases,
                  "precision": precision}  # fmt: skip
    manifest, pieces = _plan(source, parameters | unknown, bring(patches, patches_by), graph, header, progress)
    tables = list(pieces)
    return Instance(manifest, join(tables) if len(tables) > 1 else tables[0])


def generate_each(graphs: Iterable[Graph], which: range, **parameters: Any) -> Iterator[Instance]:
    """Generate instances of some graphs of a dataset of many, `which` says of which, one in memory at a time.

    Each is the same as that graph in the instance of all, ``generate(source, ...)[i]``.
    """
    spec = InstanceSpec.of(**parameters | {"strategy": choose(parameters.get("strategy"), False)})
    for number, graph in zip(which, graphs):
        manifest = Manifest(name=f"{graph.origin.source}/{number}", spec=spec, origin=graph.origin,
                            notices=graph.notices,
                            n_features=0 if graph.features is None else graph.features.shape[1])  # fmt: skip
        yield from (Instance(manifest, tables) for tables in _fragment_all([graph], number, spec, None, 1, ignore))


def generate_file(
    source: Any,
    path: str | Path,
    *,
    truth: bool = True,
    graph: int | None = None,
    patches: Given | None = None,
    patches_by: str | None = None,
    header: bool | None = None,
    progress: Progress | None = None,
    notify: Notify | None = None,
    **parameters: Any,
) -> str:
    """Like `generate`, but straight into a file, one graph in memory at a time.

    `notify` is called with each notice; without it they are warnings. An archive without truth does not keep them.
    Returns the SHA-256 of the file. With ``truth=False`` whatever would answer Task 1 is left out.
    """
    for name, given in (("source", source), ("patches", patches)):
        file = Path(given) if isinstance(given, str | Path) else None
        if file is not None and file.is_file() and file.resolve() == Path(path).resolve():
            raise LograbError(f"the output '{path}' is the file of the {name}: choose another name")
    with archive.Writer(path, truth=truth) as writer:  # first, so that a bad path fails before work starts
        cut_by, tell = bring(patches, patches_by), warn if notify is None else notify
        manifest, pieces = _plan(source, parameters, cut_by, graph, header, progress, tell)
        for tables in pieces:
            writer.append(tables)
        if progress is not None:
            progress("writing", 0, None)
        return writer.finish(manifest)


def load(path: str | Path) -> Instance:
    """Open an instance's file; its parts are read and verified when they are asked for."""
    return Instance(*archive.read(path))


def verify(path: str | Path) -> Manifest:
    """Check every byte of an instance's file, and that its parts fit each other.

    An `ArchiveError` names the first member that does not hold.
    """
    manifest = archive.verify(path)
    for graph in load(path):
        check_graph(graph)
    return manifest


def compare(
    subject: Any,
    attacks: Sequence[Any] | None = None,
    *,
    seeds: int = 1,
    features: bool = False,
    progress: Progress | None = None,
    finished: Callable[[str, Score | None, float], None] | None = None,
    **parameters: Any,
) -> Comparison:
    """Run attacks on the same instances and set them side by side, between one floor and one ceiling.

    Parameters
    ----------
    subject : Instance, or a source with the parameters of `generate`; from a source each seed makes an instance of
        its own, on an instance seeds vary the attacks' draws only
    attacks : list of names (``file.py:function`` too), attack objects and functions; by default all that need no
        optional dependency and take graphs of any size
    seeds : how many; those of instances count up from the parameter ``seed``, those of attacks from 0
    features : whether the attacks that can use features see those of the observed nodes
    progress : called with the attack that runs and its stage, how many runs are done and how many there are
    finished : called after each run with the attack's name, its score (None where it could not run), the seconds
    **parameters : as for `generate`

    Examples
    --------
    >>> import lograb
    >>> lograb.compare("karate", ["membership", "posterior"], seeds=2, sigma=0.05)
    <Comparison of 2 attacks on karate, 2 seed(s): best posterior, F1 1.000>
    """
    chosen = _choose(attacks)
    fresh = not isinstance(subject, Instance)
    first = parameters.pop("seed", 0) if fresh else 0
    if not fresh and parameters:
        raise LograbError(f"an instance has its parameters already, got {', '.join(parameters)} as well: give the "
                          "graph instead of the instance to choose them here")  # fmt: skip
    if not isinstance(seeds, int) or seeds < 1:
        raise LograbError(f"compare needs at least one seed, got {seeds!r}")
    if not fresh and not subject.has_truth:
        raise LograbError(f"the instance '{subject.name}' was saved without its truth: attacks on it can be run "
                          "(lograb.attack), but not compared")  # fmt: skip
    runs: dict[str, list[tuple[Score, float]]] = {name: [] for name in chosen}
    problems: dict[str, str] = {}
    summary: dict[str, Any] = {}
    tell = ignore if progress is None else progress
    for number in range(seeds):
        place = partial(_place, tell, number * len(chosen), seeds * len(chosen))
        instance = generate(subject, seed=first + number, progress=place(""), **parameters) if fresh else subject
        summary = summary or instance.summary()
        for done, (name, attacker) in enumerate(chosen.items()):
            if name in problems:
                continue
            try:
                # An attack can read the seed of its stream: it says nothing of the instance's.
                run = _attack_and_score(instance, attacker, number, features, place(name, done))
                runs[name].append(run)
            except LograbError as error:
                problems[name] = str(error)
            if finished is not None:
                finished(name, *((None, 0.0) if name in problems else runs[name][-1]))
    return Comparison(summary, tuple(_method(n, a, runs[n], problems.get(n, "")) for n, a in chosen.items()),
                      seeds, fresh)  # fmt: skip


def _place(tell: Progress, before: int, total: int, name: str, done: int = 0) -> Progress:
    """Tell of the stages of one run as part of all runs."""
    tell(name or "preparing", before + done, total)
    return lambda stage, *_: tell(f"{name}: {stage}" if name else stage, before + done, total)


def _attack_and_score(
    instance: Instance, attacker: Any, seed: int, features: bool, progress: Progress
) -> tuple[Score, float]:
    sees = features and "features" in getattr(attacker, "uses", ()) + getattr(attacker, "optional", ("features",))
    answer = attack(instance, attacker, seed=seed, features=sees, progress=progress)
    answers = answer if isinstance(answer, list) else [answer]
    progress("scoring", 0, None)
    return evaluate(instance, answer), float(sum(item.seconds or 0.0 for item in answers))


def _method(name: str, attacker: Any, runs: list[tuple[Score, float]], problem: str) -> Method:
    scores, seconds = (tuple(part) for part in zip(*runs)) if runs and not problem else ((), ())
    return Method(name, getattr(attacker, "trivial", False), scores, seconds, problem)


def _choose(attacks: Sequence[Any] | None) -> dict[str, Any]:
    """Name the attacks of a comparison, each differently."""
    if attacks is None:
        usual = [name for name, kind in ATTACKS.items() if kind.extra is None and not kind.small_only]
        return {name: choose_attack(name) for name in usual}
    if isinstance(attacks, str) or not isinstance(attacks, Iterable):
        raise LograbError("compare takes a list of attacks (names, attack objects, functions), got "
                          f"{attacks!r:.60}: write compare(instance, [{attacks!r:.60}])")  # fmt: skip
    chosen: dict[str, Any] = {}
    for attacker in map(choose_attack, attacks):
        base = label_of(attacker)
        names = chain([base], (f"{base} ({number})" for number in count(2)))
        chosen[next(name for name in names if name not in chosen)] = attacker
    if not chosen:
        raise LograbError("compare needs at least one attack")
    return chosen


def _plan(
    source: Any, parameters: dict[str, Any], cut_by: Bring | None, graph: int | None, header: bool | None,
    progress: Progress | None, notify: Notify = warn,
) -> tuple[Manifest, Iterator[dict[str, Array]]]:  # fmt: skip
    """Check everything that can be checked before work starts; then make the tables lazily."""
    for name in parameters:
        if name not in InstanceSpec.model_fields:
            raise unknown_name("parameter", name, (*InstanceSpec.model_fields, *INPUTS))
    defences = tuple(map(str, as_defences(parameters.get("defences") or ())))
    strategy = choose(parameters.get("strategy"), cut_by is not None)
    spec = settle(InstanceSpec.of(**parameters | {"strategy": strategy, "defences": defences}))
    if spec.seed is None or spec.sigma is None:
        raise LograbError("generating an instance needs a seed and a noise level sigma")
    total = count_graphs(source) if graph is None else 1
    if total > 1 and cut_by is not None:
        raise LograbError("the strategy 'custom' cuts one graph: choose it with graph=I (--graph I)")
    if total > 1:
        graphs = load_graphs(source, progress=progress, notify=notify)
    else:
        graphs = iter([load_graph(source, graph=graph, header=header, progress=progress, notify=notify)])
    first = next(graphs)
    brought, notices = cut_by(first) if cut_by is not None else (None, ())
    for text in notices:
        notify(text)
    manifest = Manifest(
        name=first.origin.source if total > 1 else first.name,
        spec=spec,
        origin=first.origin,
        notices=(*first.notices, *notices),
        n_features=0 if first.features is None else first.features.shape[1],
    )
    tell = ignore if progress is None else progress
    return manifest, _fragment_all(chain([first], graphs), graph or 0, spec, brought, total, tell)


def _fragment_all(
    graphs: Iterable[Graph], start: int, spec: InstanceSpec, own: Patches | None, total: int, progress: Progress
) -> Iterator[dict[str, Array]]:
    """Fragment graph after graph; each draws from a stream of its own, whatever its company."""
    for done, graph in enumerate(graphs):
        if total > 1:
            progress("fragmenting", done, total)
        stream = np.random.SeedSequence(spec.seed, spawn_key=(start + done,))
        yield fragment(graph, spec, stream, own, progress if total == 1 else ignore)
