"""Defend an instance, and say what is guaranteed about it: `defend`, `ledger`, `bound`."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from lograb.archive import schema
from lograb.archive.manifest import Manifest
from lograb.archive.tables import Array, join
from lograb.defences import as_defences, settle, share
from lograb.defences.accounting import FALSE_RATE
from lograb.defences.bound import Bound, membership_differs
from lograb.defences.bound import bound as bound_graph
from lograb.defences.ledger import DELTA, allows, total
from lograb.defences.ledger import ledger as ledger_of_graph
from lograb.errors import LograbError, warn
from lograb.fragment import lay_out_shared
from lograb.instance import Instance
from lograb.parallel import one_blas_thread
from lograb.patches import induced_edges
from lograb.progress import Progress, ignore
from lograb.spec import InstanceSpec
from lograb.types import Patches

CURVE = (1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.2, 0.5)
"""False-positive rates of the curve."""
MOST_BALLS = 2000
"""Edges for which it is asked whether membership differs; a sample beyond."""


def defend(instance: Instance, defences: Any, *, seed: int | None = None, releases: int = 1) -> Instance:
    """Apply defences to what an instance shares.

    Parameters
    ----------
    instance : Instance
    defences : names such as "gaussian:epsilon=2", or objects of `lograb.defences`, in this order
        Those that act on the graph before it is cut go with `lograb.generate`.
    seed : int, optional
        By default fresh randomness of the system: a seed that somebody can guess gives the noise away.
    releases : int
        How many releases with fresh noise the eavesdropper averages.

    Examples
    --------
    >>> import lograb
    >>> instance = lograb.generate("karate", d=1)
    >>> lograb.defend(instance, "gaussian:epsilon=5", seed=1).spec.eigenvalues
    False
    """
    if not isinstance(instance, Instance):
        raise LograbError(f"defend needs an instance (generate, load), got {type(instance).__name__}")
    chosen = as_defences(defences)
    for one in chosen:
        if one.on_graph:
            raise LograbError(f"'{one.name}' acts on the graph before it is cut: use it with generate, as in "
                              f"lograb generate GRAPH --defence {one} -o FILE")  # fmt: skip
    spec = instance.spec
    if releases != spec.releases and (spec.sigma or spec.defences) and spec.releases * releases > 1:
        raise LograbError(f"the instance has noise of {spec.releases} release(s) already, got releases={releases}"
                          ": all noise is released equally often")  # fmt: skip
    spec = settle(InstanceSpec.of(**spec.model_dump() | {"defences": (*spec.defences, *map(str, chosen)),
                                                         "releases": max(releases, spec.releases), "seed": None}))
    tables = [_defend_graph(graph, chosen, spec, seed, number) for number, graph in enumerate(instance)]
    manifest: Manifest = instance.manifest.model_copy(update={"spec": spec})
    return Instance(manifest, join(tables) if len(tables) > 1 else tables[0])


def _defend_graph(
    graph: Instance, chosen: tuple[Any, ...], spec: InstanceSpec, seed: int | None, number: int
) -> dict[str, Array]:
    seen = replace(graph.observations, features=None if graph.has_truth else graph.features)
    # As everywhere, noise depends on all that is shared: two files with one seed must not have the same.
    content = sha256(spec.model_dump_json().encode() + seen.vectors.tobytes() + seen.nodes.tobytes()).digest()
    key = (number, *np.frombuffer(content, dtype="<u4").tolist())
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
    shared = share(seen, chosen, rng, spec)
    truth = graph.truth if graph.has_truth else None
    edges = None if truth is None else induced_edges(Patches(seen.n_nodes, seen.nodes, seen.ptr), truth)
    return lay_out_shared(seen, shared, truth, edges, graph.core, graph.key)


def ledger(*instances: Instance, delta: float = DELTA) -> dict[str, Any]:
    """Compose what was released: see `lograb.defences.ledger`; of several graphs the one whose edges fare worst.

    Several instances are releases about one graph: each has its ledger, and all together the sum. Where they
    differ as graphs do, there is a notice. One that shares to the last bit what an earlier one does, as a copy
    without the truth, tells nothing new: it counts once, and a notice says so.
    """
    if not instances or not all(isinstance(one, Instance) for one in instances):
        raise LograbError("a ledger is about instances (lograb.generate, lograb.load)")
    for other in instances[1:]:
        if differs := _differs(instances[0], other):
            warn(f"a ledger adds up releases about one graph, and '{instances[0].name}' and '{other.name}' differ "
                 f"in {differs}: if these are two graphs, take one ledger for each")  # fmt: skip
    parts: list[dict[str, Any]] = []
    seen: dict[str, int] = {}
    for number, instance in enumerate(instances):
        found = [ledger_of_graph(graph.observe(features=graph.features is not None), delta, given=_given(instance))
                 for graph in instance]  # fmt: skip
        worst = max(found, key=lambda part: np.inf if part["units"]["edge"] is None
                    else part["units"]["edge"]["epsilon"])  # fmt: skip
        seed = instance.spec.seed
        parts.append(worst | {"name": instance.name, "seed_in_file": seed is not None,
                              "truth_in_file": instance.has_truth})  # fmt: skip
        if len(instances) > 1:
            content = _content(instance)
            first = seen.setdefault(content, number)
            parts[-1]["repeats"] = None if first == number else first + 1
            if first != number:
                warn(f"number {number + 1} shares the same as number {first + 1} (SHA-256 {content[:12]}...), "
                     "which counts once")  # fmt: skip
    if len(parts) == 1:
        return parts[0]
    together = total([part for part in parts if part["repeats"] is None], delta)
    return {"parts": parts, "total": together | {"repeated": len(parts) - together["files"]}}


def _content(instance: Instance) -> str:
    """SHA-256 of what is shared about the edges and how: of two files with the same, the second tells nothing."""
    found = sha256(instance.spec.model_dump_json(exclude={"seed"}).encode())
    for name in sorted(instance.tables):
        if schema.part(name) in ("graphs", "nodes", "patches", "observations"):
            column = instance.tables[name]
            content = np.ascontiguousarray(column[0 : column.shape[0]])
            found.update(f"{name} {content.dtype.str} {content.shape} ".encode() + content.tobytes())
    return found.hexdigest()


def _given(instance: Instance) -> bool:
    """Whether lograb did not compute what is shared."""
    return instance.origin.kind == "packed"


def _differs(one: Instance, other: Instance) -> str:
    """Say what suggests that two instances are about different graphs; empty where nothing does."""
    if "packed" not in (one.origin.kind, other.origin.kind) and one.origin.source != other.origin.source:
        return "the source of the graph"
    if any(defence.startswith("pseudonyms") for defence in one.spec.defences + other.spec.defences):
        return ""
    if [graph.n_nodes for graph in one] != [graph.n_nodes for graph in other]:
        return "the number of nodes"
    differ = any(a.node_names != b.node_names for a, b in zip(one, other))
    return "the names of the nodes" if differ else ""


def bound(
    instance: Instance, *, seed: int = 0, effort: float = 2e10, progress: Progress | None = None
) -> tuple[dict[str, Any], list[Bound]]:
    """Say what nobody can exceed about this graph's edges: see `lograb.defences.bound`.

    Returns
    -------
    summary : dict, ready for JSON
    bounds : list of Bound
        One per graph, edge by edge.
    """
    if not isinstance(instance, Instance) or not instance.has_truth:
        raise LograbError("a bound is about the true edges: it needs an instance with its truth")
    rng, tell = np.random.default_rng(seed), progress or ignore
    bounds, differs = [], []
    for graph in instance:
        if graph.key is not None:
            raise LograbError("a bound reckons with known names, and this instance has pseudonyms: leave them out"
                              ", they can only help the defender")  # fmt: skip
        with one_blas_thread():  # many small matrices: threads would wait for each other
            found = bound_graph(graph.observations, graph.patch_edges, rng, effort / len(instance), tell,
                                given=_given(instance))
        bounds.append(found)
        some = np.sort(rng.permutation(len(found.edges))[:MOST_BALLS])
        differs.append(None if found.epsilon is not None
                       else membership_differs(graph.observations, graph.truth, found.edges[some]))  # fmt: skip
    return _summary(bounds, differs, instance.spec.strategy == "custom"), bounds


def _summary(bounds: list[Bound], differs: list[Any], given: bool) -> dict[str, Any]:
    mu = np.concatenate([found.mu for found in bounds])
    rates = {fpr: np.concatenate([found.tpr(fpr) for found in bounds]) for fpr in CURVE}
    pure = [found.epsilon for found in bounds if found.epsilon is not None]
    known = None if any(flags is None for flags in differs) else np.concatenate(differs)
    finite = mu[np.isfinite(mu)]
    told: dict[str, Any] = {
        "edges": sum(found.n_edges for found in bounds),
        "looked_at": len(mu),
        "epsilon": min(pure) if pure else None,
        "infinite": int(np.isinf(mu).sum()),
        "mu": None if not len(finite) else {"median": float(np.median(finite)), "largest": float(finite.max()),
                                            "quantile_95": float(np.quantile(finite, 0.95))},
        "membership_differs": None if known is None else float(known.mean()) if len(known) else 0.0,
        "curve": [{"fpr": fpr, "mean": float(rate.mean()), "median": float(np.median(rate)),
                   "largest": float(rate.max())} for fpr, rate in rates.items() if len(rate)],
    }  # fmt: skip
    return told | {"sentence": _sentence(told, rates[FALSE_RATE], given)}


def _sentence(told: dict[str, Any], rate: Any, given: bool) -> str:
    if told["epsilon"] is not None:
        public = "membership, which was given, treated as public" if given else "membership included"
        return f"Every edge is protected with ε = {told['epsilon']:g}, {public}: {allows(rate.max(initial=0.0))}."
    if not told["looked_at"]:
        return "No patch contains an edge: there is nothing to bound."
    if told["infinite"] == told["looked_at"]:
        return "No guarantee: what is shared without noise gives every edge away to whoever knows the others."
    some = "" if told["looked_at"] == told["edges"] else f" (a random sample of {told['edges']:,})"
    often = (f"for {told['infinite']:,} of {told['looked_at']:,} edges{some} there is no bound; for the others, "
             if told["infinite"] else f"for {told['looked_at']:,} edges{some}, ")  # fmt: skip
    part = told["membership_differs"]
    public = {None: "With membership treated as public, ", 0.0: ""}.get(
        part, f"Membership alone gives {100 * (part or 0):.0f} % of the edges away. Besides, ")  # fmt: skip
    said = (f"{public}{often}whoever knows all others finds one with probability {np.median(rate):.2g} at most in "
            f"the median, {rate.mean():.2g} in the mean, at a false-positive rate of 0.1 %.")  # fmt: skip
    return said[0].upper() + said[1:]
