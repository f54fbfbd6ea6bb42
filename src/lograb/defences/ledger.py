"""The privacy ledger: what was released, channel by channel, and what it adds up to.

A unit is what two neighbouring inputs differ in: all that is shared of one patch (*embedding*), one *edge*, or one
*node* with all its edges. An edge touches every patch that contains both its ends, a node every patch that
contains it; each of these embeddings may then be any other, so the squares of their μ add up (`accounting`). The
numbers hold for all graphs, whatever the adversary knows. With pseudonyms nobody can see who sits where, and one
edge or node may touch all patches.

Who sits in which patch depends on the edges. Unless the graph was sanitised before it was cut, statements about
edges and nodes hold only as far as membership is public anyway, and say so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from lograb.defences.accounting import NOTHING, compose, epsilon_of, largest_tpr, largest_tpr_at
from lograb.defences.catalog import as_defences, erased, mechanisms, noise_of
from lograb.errors import LograbError
from lograb.ragged import owners
from lograb.types import Floats, Observations

DELTA = 1e-5
MOST_PAIRS = 30_000_000
"""Pairs in patches up to which the worst edge is found; beyond, that of the worst node stands for it."""
UNITS = ("embedding", "edge", "node")


def ledger(seen: Observations, delta: float = DELTA, *, given: bool = False) -> dict[str, Any]:
    """Compose what observations of one graph release.

    Parameters
    ----------
    seen : Observations
    delta : float
    given : bool
        Whether lograb did not compute the columns: then nothing shows that they are orthonormal to the last bit.

    Returns
    -------
    dict, ready for JSON
        ``channels``: for each, its mechanism, its guarantee ("formal", "none", "public", "-"), sensitivity and
        noise of one release (ranges over patches). ``units``: for each, how many patches touch one at most, μ, ε
        at δ, and the largest true-positive rate at a false-positive rate of 0.1 %; None for no guarantee.
        ``whole``: "formal", "none", or "conditional": formal if membership is treated as public. ``sentence``: the
        same in words.
    """
    if not 0 < delta < 1:
        raise LograbError(f"delta must lie between 0 and 1, got {delta}")
    pure = [d for d in as_defences(seen.protocol.defences) if d.on_graph]
    channels, mu = (_sanitised(seen, pure) if pure else _released(seen, given))
    unprotected = [c["channel"] for c in channels if c["guarantee"] == "none" and c["channel"] != "membership"]
    epsilon = min(d.edge_epsilon() for d in pure) if pure else None
    units = {} if unprotected else _units(seen, mu, epsilon, delta)
    public = channels[0]["guarantee"] in ("formal", "-")
    whole = "none" if unprotected else "formal" if public else "conditional"
    told = {"delta": delta, "releases": seen.protocol.releases, "channels": channels, "unprotected": unprotected,
            "units": {unit: units.get(unit) for unit in UNITS}, "whole": whole}  # fmt: skip
    return told | {"sentence": _sentence(told, channels[0])}


def allows(tpr: float) -> str:
    """Say what a largest true-positive rate at a false-positive rate of 0.1 % allows: the one rule for every ε."""
    if tpr > NOTHING:
        return "which rules out nothing"
    return f"a test with a false-positive rate of 0.1 % finds it with probability {tpr:.2g} at most"


def total(parts: list[dict[str, Any]], delta: float = DELTA) -> dict[str, Any]:
    """Compose the ledgers of several releases about one graph: ε of its worst edge, and what that allows."""
    edges = [part["units"]["edge"] for part in parts]
    if any(edge is None for edge in edges):
        return {"whole": "none", "epsilon": None, "tpr": None, "delta": delta, "files": len(parts)}
    mus = [edge["mu"] for edge in edges if edge["mu"] is not None]
    pure = [edge["epsilon"] for edge in edges if edge["mu"] is None]
    epsilon = compose(mus, pure, delta)
    tpr = largest_tpr_at(epsilon, delta if mus else 0.0) if pure else largest_tpr(float(np.linalg.norm(mus)))
    whole = "formal" if all(part["whole"] == "formal" for part in parts) else "conditional"
    return {"whole": whole, "epsilon": epsilon, "tpr": tpr, "delta": delta, "files": len(parts)}


def _line(
    channel: str, mechanism: str, guarantee: str, sensitivity: Any = None, noise: Any = None
) -> dict[str, Any]:
    def span(values: Floats | None) -> list[float] | None:
        return None if values is None or not len(values) else [float(values.min()), float(values.max())]

    return {"channel": channel, "mechanism": mechanism, "guarantee": guarantee, "sensitivity": span(sensitivity),
            "noise": span(noise)}  # fmt: skip


def _features(seen: Observations) -> dict[str, Any]:
    there = "no function of the edges; nothing protects the nodes' own"
    return _line("features", "not shared" if seen.features is None else there, "-")


def _sanitised(seen: Observations, pure: list[Any]) -> tuple[list[dict[str, Any]], Floats]:
    """Everything is made of a graph that is private already."""
    names = " and ".join(map(str, pure))
    given = seen.protocol.strategy == "custom"
    lines = [_line("membership", "given by the user, taken as public" if given else names,
                   "public" if given else "formal"),
             _line("eigenvalues", names if seen.values is not None else "withheld",
                   "formal" if seen.values is not None else "-"),
             _line("eigenvectors", names, "formal"), _features(seen)]  # fmt: skip
    return lines, np.zeros(seen.n_patches)


def _released(seen: Observations, given: bool) -> tuple[list[dict[str, Any]], Floats]:
    """Say what each channel releases, and give μ of each patch, all channels together."""
    sizes, ranks = seen.sizes, seen.ranks
    noise = noise_of(seen.protocol, sizes, ranks, formal=True)
    spectrum = 2.0 * np.sqrt(np.maximum(ranks, 1))
    (vectors, reach, added), values = _best(seen, given), _mu(spectrum, noise.values)
    at_once = np.sqrt(seen.protocol.releases)
    lines = [_membership(seen)]
    if seen.values is None:
        values = np.zeros(len(sizes))
        lines.append(_line("eigenvalues", "withheld", "-"))
    else:
        exact = "rounded, without noise" if noise.blur else _unproved(seen, "values") or "exact"
        lines.append(_line("eigenvalues", "Gaussian noise" if np.isfinite(values).all() else exact,
                           "formal" if np.isfinite(values).all() else "none", spectrum, noise.values * at_once))
    turned = seen.protocol.gauge == "rotation"
    shown = ("Gaussian noise" if added.any() else "only complete subspaces, which say nothing") \
        if np.isfinite(vectors).all() else _unproved(seen, "vectors") or (
            "rotated, without noise" if turned else "no noise")  # fmt: skip
    lines.append(_line("eigenvectors", shown, "formal" if np.isfinite(vectors).all() else "none", reach,
                       added * at_once))  # fmt: skip
    return [*lines, _features(seen)], np.sqrt(vectors**2 + values**2)


def _best(seen: Observations, given: bool) -> tuple[Floats, Floats, Floats]:
    """Give μ of each patch's eigenvectors, by the mechanism that says most, with its sensitivity and its noise."""
    what = seen.protocol, seen.sizes, seen.ranks
    found = mechanisms(*what, given=given)
    mus = np.array([_mu(reach, noise) for reach, noise in found])
    best, patch = np.argmin(mus, axis=0), np.arange(seen.n_patches)
    mu, reach, noise = (np.array(part)[best, patch] for part in (mus, *zip(*found)))
    gone = erased(*what, given=given)
    return np.where(gone, 0.0, mu), np.where(gone, 0.0, reach), noise


def _unproved(seen: Observations, what: str) -> str:
    """Say that there is noise which guarantees nothing; empty where there is none."""
    every = getattr(noise_of(seen.protocol, seen.sizes, seen.ranks), what)
    formal = getattr(noise_of(seen.protocol, seen.sizes, seen.ranks, formal=True), what)
    return "noise of a defence that guarantees nothing" if every.any() and not formal.any() else ""


def _mu(sensitivity: Floats, noise: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sensitivity > 0, sensitivity / noise, 0.0)


def _membership(seen: Observations) -> dict[str, Any]:
    if seen.protocol.strategy == "global":
        return _line("membership", "does not depend on the edges", "-")
    if seen.protocol.strategy == "custom":
        return _line("membership", "given by the user, taken as public", "public")
    return _line("membership", "none: who sits in a patch depends on the edges", "none")


def _units(seen: Observations, mu: Floats, epsilon: float | None, delta: float) -> dict[str, dict[str, Any]]:
    """Compose over the patches that touch each unit; `epsilon` is that of a sanitised graph."""
    if epsilon is not None:
        rate, group = largest_tpr_at(epsilon, 0.0), epsilon * (seen.n_nodes - 1)
        return {"edge": {"patches": None, "mu": None, "epsilon": epsilon, "tpr": rate},
                "node": {"patches": None, "mu": None, "epsilon": group, "tpr": largest_tpr_at(group, 0.0)}}
    inside = sp.csr_array((np.ones(len(seen.nodes)), (owners(seen.ptr), seen.nodes)),
                          shape=(seen.n_patches, seen.n_nodes))  # fmt: skip
    squares = {"embedding": (float((mu**2).max(initial=0.0)), 1),
               "node": (float((inside.T @ mu**2).max(initial=0.0)), int(inside.sum(axis=0).max()))}  # fmt: skip
    if any(defence.renames for defence in as_defences(seen.protocol.defences)):
        squares["node"] = float((mu**2).sum()), seen.n_patches
        squares["edge"] = squares["node"]
    elif (seen.sizes**2).sum() <= MOST_PAIRS:
        weighted = sp.triu(inside.T @ (sp.diags_array(mu**2) @ inside), k=1)
        counted = sp.triu(inside.T @ inside, k=1)
        squares["edge"] = (float(weighted.max()), int(counted.max())) if counted.nnz else (0.0, 0)
    else:
        squares["edge"] = squares["node"]
    return {unit: {"patches": count, "mu": float(np.sqrt(square)), "epsilon": epsilon_of(np.sqrt(square), delta),
                   "tpr": largest_tpr(np.sqrt(square))} for unit, (square, count) in squares.items()}  # fmt: skip


def _sentence(told: dict[str, Any], membership: dict[str, Any]) -> str:
    if told["whole"] == "none":
        names = " and ".join(told["unprotected"])
        return f"No guarantee: nothing protects the {names} (see 'lograb list defences')."
    edge = told["units"]["edge"]
    at = f" at δ = {told['delta']:g}" if edge["mu"] is not None else ""
    often = f" over {told['releases']:,} releases" if told["releases"] > 1 else ""
    says = f"ne edge is protected with ε = {edge['epsilon']:.3g}{at}{often}: {allows(edge['tpr'])}."
    if membership["guarantee"] == "none":
        return ("No guarantee as it stands: who sits in a patch depends on the edges, and nothing protects that. "
                f"With membership treated as public, o{says}")  # fmt: skip
    return ("With membership treated as public, o" if membership["guarantee"] == "public" else "O") + says
