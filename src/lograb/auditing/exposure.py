"""Who is exposed by the plan: nodes, edges and patches by the user's names, worst first; and what proves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from lograb.auditing.checks import certify_patches, check_patches
from lograb.auditing.measuring import MEMBERSHIP, OURS, Evidence
from lograb.auditing.subject import Subject
from lograb.pairs import edge_keys, unpair
from lograb.patches import induced_edges
from lograb.ragged import owners
from lograb.types import Bools, Floats, Graph, Ints, Patches

MOST_NODES, MOST_EDGES, MOST_PATCHES = 50, 100, 50


@dataclass(frozen=True, eq=False)
class Exposure:
    """All pairs worth telling, surest first.

    Attributes
    ----------
    pairs : int array (n, 2)
    chances : their probabilities, by posterior
    true : whether they are edges; None without truth
    read : whether they are among the claims that count as readable
    by_membership : whether the attack that reads no embedding reads them too
    """

    pairs: Ints
    chances: Floats
    true: Bools | None
    read: Bools
    by_membership: Bools


def expose(subject: Subject, evidence: Evidence) -> Exposure:
    """List the pairs that some attack reads or posterior thinks possible."""
    n = max(subject.plan.n_nodes, 1)
    best = _read_keys(subject, evidence, evidence.best)
    plain = _read_keys(subject, evidence, MEMBERSHIP)
    keys = np.union1d(np.union1d(evidence.chances[0], best), plain)
    chances = evidence.chance(keys)
    read = np.isin(keys, best)
    order = np.lexsort((keys, -chances, ~read))
    keys = keys[order]
    true = None if evidence.truth is None else np.isin(keys, evidence.truth)
    return Exposure(unpair(keys, n), chances[order], true, read[order], np.isin(keys, plain))


def _read_keys(subject: Subject, evidence: Evidence, name: str) -> Ints:
    pairs, scores = evidence.answers[name].ranked
    keys = edge_keys(pairs, max(subject.plan.n_nodes, 1))
    return np.sort(keys[scores >= evidence.readings[name].cut])


def list_exposed(subject: Subject, evidence: Evidence, found: Exposure) -> dict[str, Any]:
    """Write nodes, edges and patches with their names, worst first."""
    seen = subject.plan.observations
    checked, certified = check_patches(seen, evidence.answers[OURS].edges), certify_patches(seen)
    nodes, counts = _nodes(subject, evidence, found)
    return {"nodes": nodes,
            "counts": counts,
            "edges": _edges(subject, found, checked),
            "patches": _patches(subject, found, checked, certified)}  # fmt: skip


def _nodes(
    subject: Subject, evidence: Evidence, found: Exposure
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """List the most exposed nodes, and count all."""
    n = subject.plan.n_nodes

    def count(pairs: Ints, weights: Floats | None = None) -> Floats:
        twice = None if weights is None else np.repeat(weights, 2)
        return np.bincount(pairs.ravel(), twice, minlength=n).astype(float)

    pairs, seen = found.pairs[found.read], subject.plan.observations
    right = found.chances[found.read] if found.true is None else found.true[found.read].astype(float)
    readable = count(pairs, right)
    wrong = count(pairs) - readable
    total = None if evidence.truth is None else count(unpair(evidence.truth, max(n, 1)))
    patches = np.bincount(seen.nodes, minlength=n)
    share = np.zeros(n) if total is None else readable / np.maximum(total, 1.0)
    order = np.lexsort((np.arange(n), -share, -np.round(readable, 6)))[:MOST_NODES]
    rows = [{"name": subject.node_names[i], "patches": int(patches[i]),
             "edges": None if total is None else int(total[i]), "readable": round(float(readable[i])),
             "wrong": round(float(wrong[i])), "share": None if total is None else float(share[i])}
            for i in order.tolist() if readable[i] >= 0.5]  # fmt: skip
    counts = {"nodes": n, "in_several_patches": int((patches > 1).sum()), "touched": int((readable >= 0.5).sum()),
              "fully": None if total is None else int(((readable == total) & (total > 0)).sum())}  # fmt: skip
    return rows, counts


def _edges(subject: Subject, found: Exposure, checked: Bools | None) -> list[dict[str, Any]]:
    seen, names, patch_names = subject.plan.observations, subject.node_names, subject.patch_names
    inside = sp.csc_array((np.ones(len(seen.nodes), bool), (owners(seen.ptr), seen.nodes)),
                          shape=(seen.n_patches, max(seen.n_nodes, 1)))  # fmt: skip
    rows = []
    for i in range(min(MOST_EDGES, int(found.read.sum()))):
        u, w = found.pairs[i].tolist()
        both = np.intersect1d(*(inside.indices[inside.indptr[x] : inside.indptr[x + 1]] for x in (u, w)))
        home = int(both[np.argmin(seen.sizes[both])]) if len(both) else None
        rows.append({"u": names[u], "v": names[w], "probability": float(found.chances[i]),
                     "true": None if found.true is None else bool(found.true[i]),
                     "by": "membership" if found.by_membership[i] else "embedding",
                     "patch": None if home is None else patch_names[home],
                     "checked": bool(checked is not None and checked[both].any())})  # fmt: skip
    return rows


def _patches(
    subject: Subject, found: Exposure, checked: Bools | None, certified: Bools | None
) -> list[dict[str, Any]]:
    seen, instance = subject.plan.observations, subject.plan
    inside = Patches(seen.n_nodes, seen.nodes, seen.ptr)

    def per_patch(pairs: Ints) -> Ints:
        return np.diff(induced_edges(inside, Graph.from_edges("claims", seen.n_nodes, pairs)).ptr)

    claims = per_patch(found.pairs[found.read])
    hits, edges = claims, None
    if found.true is not None:
        hits, edges = per_patch(found.pairs[found.read & found.true]), np.diff(instance.patch_edges[0])
    wrong = claims - hits
    exact = np.zeros(len(claims), bool) if edges is None else (hits == edges) & (wrong == 0)
    order = np.lexsort((-seen.sizes, wrong, -hits, ~exact))[:MOST_PATCHES]
    return [{"name": subject.patch_names[i], "members": int(seen.sizes[i]),
             "edges": None if edges is None else int(edges[i]), "found": int(hits[i]), "wrong": int(wrong[i]),
             "exact": None if edges is None else bool(exact[i]),
             "checked": None if checked is None else bool(checked[i]),
             "certified": None if certified is None else bool(certified[i])} for i in order.tolist()]  # fmt: skip


def certificates(subject: Subject, evidence: Evidence) -> dict[str, Any]:
    """Count certificates and passed checks, and say what they mean."""
    seen = subject.plan.observations
    checked = check_patches(seen, evidence.answers[OURS].edges)
    proved = certify_patches(seen)
    n, passed = seen.n_patches, 0 if checked is None else int(checked.sum())
    certified = None if proved is None else int(proved.sum())
    if checked is None:
        said = "No exact eigenvalues are shared: an attacker cannot check a guess."
    else:
        said = (f"In {passed:,} of {n:,} patches what is claimed reproduces the published eigenvalues: an "
                "attacker can tell that the guess is right.")  # fmt: skip
    if certified:
        said += f" For {certified:,} the edges follow with certainty from what is shared."
    return {"patches": n, "certified": certified, "checked": passed, "sentence": said}
