"""The whole flow on one screen: read this first.

    source ──► Graph ──► Patches ──► Observations ──► Instance ──► one file
           graphs/    patches/   observations/   │         archive/
                                                 ▼
                                    attack ──► Reconstruction ──► evaluate ──► Score ──► compare ──► Comparison
                                    attacks/                      tasks/                             report/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from lograb import archive
from lograb.archive.manifest import Manifest
from lograb.archive.tables import Array, join
from lograb.attacks import ATTACKS, as_attack, label_of
from lograb.consistency import check_graph
from lograb.errors import LograbError
from lograb.fragment import NodeLists, fragment
from lograb.graphs import count_graphs, load_graph, load_graphs
from lograb.instance import Instance
from lograb.patches import read_node_lists
from lograb.progress import Progress
from lograb.report import Comparison, Method
from lograb.score import Score
from lograb.spec import GaugeName, InstanceSpec, StrategyName
from lograb.tasks import attack as attack
from lograb.tasks import evaluate as evaluate
from lograb.types import Graph


def generate(
    source: Any,
    *,
    strategy: StrategyName = "d-hop",
    d: int = 1,
    p: float = 1.0,
    k: int = 32,
    sigma: float = 0.0,
    gauge: GaugeName = "sign",
    seed: int = 0,
    clusters: int | None = None,
    seed_nodes: int | None = None,
    eigenvalues: bool = True,
    graph: int | None = None,
    patches: NodeLists | str | Path | None = None,
    header: bool | None = None,
    progress: Progress | None = None,
    **unknown: Any,
) -> Instance:
    """Fragment a graph and observe its patches: a benchmark instance in memory.

    Parameters
    ----------
    source : catalog name, path, Graph, networkx graph, scipy sparse matrix or PyG Data
    strategy : how patches are cut: d-hop, cluster, random, custom, or global for the whole graph at once
    d : radius of a patch; for clusters the radius of the halo
    p : fraction of the nodes (custom: of the patches) that is observed
    k : eigenvectors kept per patch
    sigma : standard deviation of the noise on every entry of the embedding
    gauge : what stays undetermined in the embedding: sign, rotation or none
    seed : all randomness follows from it
    clusters : for cluster: how many; by default about one per 50 observed nodes
    seed_nodes : for random: how many patches; by default half of the observed nodes
    eigenvalues : whether they are shared beside the embedding
    graph : which graph of a dataset that holds many; all of them by default
    patches : for custom: node lists, or a file of them
    header : for an edge list: whether its first line is a header; None to find out
    progress : called with the stage, how much of it is done and how much there is

    Examples
    --------
    >>> import lograb
    >>> instance = lograb.generate("karate", d=1, p=0.6, k=8, sigma=0.05)
    >>> instance.observations.n_patches
    20
    """
    parameters = {"strategy": strategy, "d": d, "p": p, "k": k, "sigma": sigma, "gauge": gauge, "seed": seed,
                  "clusters": clusters, "seed_nodes": seed_nodes, "eigenvalues": eigenvalues}  # fmt: skip
    manifest, pieces = _plan(source, graph, patches, header, progress, parameters | unknown)
    tables = list(pieces)
    return Instance(manifest, join(tables) if len(tables) > 1 else tables[0])


def generate_file(
    source: Any,
    path: str | Path,
    *,
    truth: bool = True,
    graph: int | None = None,
    patches: NodeLists | str | Path | None = None,
    header: bool | None = None,
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
    **parameters: Any,
) -> str:
    """Like `generate`, but straight into a file, one graph in memory at a time.

    `notify` is called with each notice of the reader; an archive without truth does not keep them.
    Returns the SHA-256 of the file. With ``truth=False`` whatever would answer Task 1 is left out.
    """
    for name, given in (("source", source), ("patches", patches)):
        file = Path(given) if isinstance(given, str | Path) else None
        if file is not None and file.is_file() and file.resolve() == Path(path).resolve():
            raise LograbError(f"the output '{path}' is the file of the {name}: choose another name")
    with archive.Writer(path, truth=truth) as writer:  # first, so that a bad path fails before work starts
        manifest, pieces = _plan(source, graph, patches, header, progress, parameters)
        if notify is not None:
            for text in manifest.notices:
                notify(text)
        for tables in pieces:
            writer.append(tables)
        return writer.finish(manifest)


def load(path: str | Path) -> Instance:
    """Open an instance's file; its parts are read and verified when they are asked for."""
    return Instance(*archive.read(path))


def verify(path: str | Path) -> Manifest:
    """Check every byte of an instance's file, and that its parts fit each other.

    Raises
    ------
    ArchiveError
        Naming the first member that does not hold.
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
    **parameters: Any,
) -> Comparison:
    """Run attacks on the same instances and set them side by side, between one floor and one ceiling.

    Parameters
    ----------
    subject : Instance, or a source with the parameters of `generate`
        From a source each seed makes an instance of its own; on an instance seeds vary the attacks' draws only.
    attacks : list of names, attack objects and functions
        By default all that need no optional dependency and take graphs of any size.
    seeds : int
        How many; they count up from the parameter ``seed``.
    features : bool
        Whether the attacks that can use features see those of the observed nodes.
    progress : callable, optional
    **parameters
        As for `generate`.

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
    runs: dict[str, list[tuple[Score, float]]] = {name: [] for name in chosen}
    problems: dict[str, str] = {}
    summary: dict[str, Any] = {}
    for number in range(seeds):
        instance = generate(subject, seed=first + number, **parameters) if fresh else subject
        summary = summary or instance.summary()
        for done, (name, attacker) in enumerate(chosen.items()):
            if progress is not None:
                progress(name, number * len(chosen) + done, seeds * len(chosen))
            try:
                runs[name].append(_attack_and_score(instance, attacker, first + number, features))
            except LograbError as error:
                problems[name] = str(error)
    return Comparison(summary, tuple(_method(n, a, runs[n], problems.get(n, "")) for n, a in chosen.items()),
                      seeds, fresh)  # fmt: skip


def _attack_and_score(instance: Instance, attacker: Any, seed: int, features: bool) -> tuple[Score, float]:
    sees = features and "features" in getattr(attacker, "uses", ()) + getattr(attacker, "optional", ("features",))
    answer = attack(instance, attacker, seed=seed, features=sees)
    answers = answer if isinstance(answer, list) else [answer]
    return evaluate(instance, answer), float(sum(item.seconds or 0.0 for item in answers))


def _method(name: str, attacker: Any, runs: list[tuple[Score, float]], problem: str) -> Method:
    scores, seconds = (tuple(part) for part in zip(*runs)) if runs and not problem else ((), ())
    return Method(name, getattr(attacker, "trivial", False), scores, seconds, problem)


def _choose(attacks: Sequence[Any] | None) -> dict[str, Any]:
    """Name the attacks of a comparison, each differently."""
    if attacks is None:
        usual = [name for name, kind in ATTACKS.items() if kind.extra is None and not kind.small_only]
        return {name: as_attack(name) for name in usual}
    if isinstance(attacks, str) or not isinstance(attacks, Iterable):
        raise LograbError("compare takes a list of attacks (names, attack objects, functions), got "
                          f"{attacks!r:.60}: write compare(instance, [{attacks!r:.60}])")  # fmt: skip
    chosen: dict[str, Any] = {}
    for item in attacks:
        attacker = as_attack(item)
        name = base = label_of(attacker)
        number = 2
        while name in chosen:
            name, number = f"{base} ({number})", number + 1
        chosen[name] = attacker
    if not chosen:
        raise LograbError("compare needs at least one attack")
    return chosen


def _plan(
    source: Any,
    graph: int | None,
    patches: NodeLists | str | Path | None,
    header: bool | None,
    progress: Progress | None,
    parameters: dict[str, Any],
) -> tuple[Manifest, Iterator[dict[str, Array]]]:
    """Check everything that can be checked before work starts; then make the tables lazily."""
    spec = InstanceSpec.of(**parameters)
    if spec.seed is None or spec.sigma is None:
        raise LograbError("generating an instance needs a seed and a noise level sigma")
    lists = read_node_lists(patches) if isinstance(patches, str | Path) else patches
    lists = None if lists is None else [list(item) for item in lists]
    total = count_graphs(source) if graph is None else 1
    if total > 1 and lists is not None:
        raise LograbError("the strategy 'custom' cuts one graph: choose it with graph=I (--graph I)")
    if total > 1:
        graphs = load_graphs(source, progress=progress)
    else:
        graphs = iter([load_graph(source, graph=graph, header=header, progress=progress)])
    first = next(graphs)
    manifest = Manifest(
        name=first.origin.source if total > 1 else first.name,
        spec=spec,
        origin=first.origin,
        notices=first.notices,
        n_features=0 if first.features is None else first.features.shape[1],
    )
    numbered = enumerate(chain([first], graphs), start=graph or 0)
    return manifest, _fragment_all(numbered, spec, spec.seed, lists, total, progress)


def _fragment_all(
    numbered: Iterable[tuple[int, Graph]],
    spec: InstanceSpec,
    seed: int,
    node_lists: NodeLists | None,
    total: int,
    progress: Progress | None,
) -> Iterator[dict[str, Array]]:
    """Fragment graph after graph; each draws from a stream of its own, whatever its company."""
    for done, (number, graph) in enumerate(numbered):
        if progress is not None:
            progress("fragmenting", done, total if total > 1 else None)
        yield fragment(graph, spec, np.random.SeedSequence(seed, spawn_key=(number,)), node_lists)
