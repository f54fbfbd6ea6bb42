"""For which patches is exact recovery of all edges guaranteed, by which statement, and who can know?

Statements without the truth rest on the observation alone, given that it is what the protocol promises
(eigenpairs of the patch, columns in order, no noise; orthonormality is checked). Statements with the truth
say that heat-kernel thresholding would succeed, but an eavesdropper could not know it, nor which
threshold to take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lograb.eigen import eigh
from lograb.errors import LograbError
from lograb.parallel import ordered_map
from lograb.theory.certified_heat import certified_edges, certified_threshold, orthonormal
from lograb.theory.elimination import eliminate
from lograb.theory.exactness import complete_adjacency
from lograb.theory.heat import normalized_laplacian
from lograb.theory.heat_scan import PAPER_TIME, HeatScan, promising_times, scan_heat
from lograb.theory.stacks import Stack, adjacency_of, stacks_of
from lograb.types import Bools, Floats, Ints, Observations


@dataclass(frozen=True)
class Certificate:
    """One statement about one patch."""

    name: str
    statement: str  # what is guaranteed where it holds
    needs_truth: bool  # whether only somebody who knows the edges can tell
    holds: bool
    t: float | None = None  # for heat kernels: where to look
    threshold: float | None = None  # and where to cut


STATEMENTS: dict[str, tuple[str, bool]] = {
    "complete-spectrum": ("the whole spectrum is there without noise: L = U Λ Uᵀ shows every edge", False),
    "complete-heat-kernel": ("the heat kernel at the certified time and threshold shows every edge", False),
    "elimination": ("bounds, degrees and eigenvector equations leave one graph only (truncated patches)", False),
    "edge-recovery-0.8": ("the edge-recovery theorem, γ_t > 2 η, at the paper's t = 0.8", True),
    "edge-recovery": ("the edge-recovery theorem, γ_t > 2 η, at the best t", True),
    "edge-recovery-by-pair": ("the same with the residual of each pair, η √(c_i c_j), at the best t", True),
    "separates-0.8": ("some threshold on the observed heat kernel at t = 0.8 is exact", True),
    "separates": ("some threshold on the observed heat kernel at the best t is exact", True),
}
"""Name: what it says, whether it needs the truth."""

OBSERVED = ("separates-0.8", "separates")
"""Statements that are no theorems: they report what the observed kernel happens to do."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """One statement about the patches of a stack: arrays of shape (b,), NaN where there is no such number."""

    holds: Bools
    t: Floats
    threshold: Floats


def without_truth(stack: Stack) -> tuple[dict[str, Verdict], Bools]:
    """Judge a stack by the observation alone.

    Returns
    -------
    verdicts : dict from statement to Verdict
    edges : bool array, shape (b, q, q)
        The proved edges, where a statement holds.
    """
    b, q, _ = stack.vectors.shape
    nothing = np.full(b, np.nan)
    if not stack.complete:
        edges, holds = np.zeros((b, q, q), dtype=bool), np.zeros(b, dtype=bool)
        for i in np.flatnonzero(~np.isnan(stack.next_values)):
            hub = int(stack.hubs[i]) if stack.hubs[i] >= 0 else None
            found = eliminate(stack.vectors[i], stack.values[i], float(stack.next_values[i]), hub)
            if found is not None:
                edges[i], holds[i] = found, True
        return {"elimination": Verdict(holds, nothing, nothing)}, edges
    edges, holds = complete_adjacency(stack.vectors, stack.values)
    rule, same = certified_threshold(q), np.zeros(b, dtype=bool)
    if holds.any():
        by_heat = certified_edges(stack.vectors[holds], stack.values[holds])
        same[holds] = (by_heat == edges[holds]).all(axis=(1, 2))
    heat = Verdict(same, np.full(b, rule.t), np.full(b, rule.threshold))
    return {"complete-spectrum": Verdict(holds, nothing, nothing), "complete-heat-kernel": heat}, edges


def with_truth(stack: Stack, adjacency: Bools) -> dict[str, Verdict]:
    """Judge a stack whose edges, shape (b, q, q), are known."""
    clean = orthonormal(stack.vectors) & (stack.complete | ~np.isnan(stack.next_values))
    values, vectors = eigh(normalized_laplacian(adjacency))
    fixed = scan_heat(stack, adjacency, (values, vectors), np.full((len(stack.which), 1), PAPER_TIME))
    best = scan_heat(stack, adjacency, (values, vectors), promising_times(stack))

    def verdict(scan: HeatScan, kind: str, only: Bools | bool = True) -> Verdict:
        margin, t, threshold = scan[kind]
        return Verdict((margin > 1e-9) & only, t, threshold)

    return {
        "edge-recovery-0.8": verdict(fixed, "theorem", clean),
        "edge-recovery": verdict(best, "theorem", clean),
        "edge-recovery-by-pair": verdict(best, "by-pair", clean),
        "separates-0.8": verdict(fixed, "observed"),
        "separates": verdict(best, "observed"),
    }


def certify_patch(
    vectors: Floats, values: Floats, next_value: float = np.nan, adjacency: Bools | None = None, hub: int = -1
) -> list[Certificate]:
    """Judge one patch by every statement that applies.

    Parameters
    ----------
    vectors : float array, shape (q, k), q at least 2
    values : float array, shape (k,)
    next_value : float
        λ_{k+1}; NaN for a complete spectrum.
    adjacency : bool array, shape (q, q), optional
        The truth.
    hub : int
        Position of a member known to be joined to all others; -1 for none.
    """
    stack = Stack(np.zeros(1, np.int64), vectors[None], values[None], np.array([next_value]), np.array([hub]))
    verdicts, _ = without_truth(stack)
    if adjacency is not None:
        verdicts |= with_truth(stack, adjacency[None])

    def number(x: float) -> float | None:
        return float(x) if np.isfinite(x) else None

    return [Certificate(name, *STATEMENTS[name], bool(v.holds[0]), number(v.t[0]), number(v.threshold[0]))
            for name, v in verdicts.items()]  # fmt: skip


def certify(
    seen: Observations,
    patch_edges: tuple[Ints, Ints] | None = None,
    max_size: int = 400,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Count the patches whose edges are all guaranteed to be recovered exactly.

    Parameters
    ----------
    seen : Observations
    patch_edges : (ptr, ends), optional
        The truth: edges of each patch as positions inside it (see `Instance.patch_edges`).
    max_size : int
        Larger patches are left out and counted as `unchecked`.
    progress : callable, optional
        Called with the number of patches done and of all patches.

    Returns
    -------
    dict, ready for JSON
        ``statements`` lists name, says, needs_truth, applies_to and holds (numbers of patches). ``guaranteed``
        counts patches with at least one theorem, without and with the truth (that a threshold happens to
        separate an observed kernel, ``separates``, is no theorem); the single-node ones, which have no pair,
        are among them. ``contradicted`` counts proved edge sets that differ
        from the truth: it is 0 unless the observation is not what the protocol promises.
    """
    if patch_edges is not None and len(patch_edges[0]) != seen.n_patches + 1:
        raise LograbError(f"{seen.n_patches} patches need as many edge lists, got {len(patch_edges[0]) - 1}")
    reason, truth, single = unreadable(seen), patch_edges is not None, seen.sizes <= 1
    applies, holds = Counter[str](), Counter[str]()
    free, guaranteed = single.copy(), single.copy()  # without, and with the truth
    checked = noiseless = contradicted = 0
    stacks = iter(()) if reason else stacks_of(seen, max_size)
    for stack, verdicts, proved, wrong in ordered_map(partial(_judge, patch_edges=patch_edges), stacks):
        free[stack.which] = proved
        guaranteed[stack.which] = np.any([v.holds for name, v in verdicts.items() if name not in OBSERVED], axis=0)
        applies.update(dict.fromkeys(verdicts, len(stack.which)))
        holds.update({name: int(verdict.holds.sum()) for name, verdict in verdicts.items()})
        checked += len(stack.which)
        noiseless += int(orthonormal(stack.vectors).sum())
        contradicted += wrong
        if progress is not None:
            progress(checked, seen.n_patches)
    return {
        "n_patches": seen.n_patches,
        "complete": int(seen.complete.sum()),
        "single_node": int(single.sum()),
        "unchecked": seen.n_patches - checked - int(single.sum()),
        "noiseless": noiseless,
        "reason": reason,
        "guaranteed": {"without_truth": int(free.sum()), "with_truth": int(guaranteed.sum()) if truth else None},
        "contradicted": contradicted if truth else None,
        "statements": [{"name": name, "says": says, "needs_truth": needs, "applies_to": applies[name],
                        "holds": holds[name]} for name, (says, needs) in STATEMENTS.items() if truth or not needs],
    }  # fmt: skip


def _judge(stack: Stack, patch_edges: tuple[Ints, Ints] | None) -> tuple[Stack, dict[str, Verdict], Bools, int]:
    """Judge a stack: its verdicts, where edges are proved without the truth, and how often wrongly."""
    verdicts, edges = without_truth(stack)
    proved = np.any([verdict.holds for verdict in verdicts.values()], axis=0)
    if patch_edges is None:
        return stack, verdicts, proved, 0
    truth = adjacency_of(patch_edges, stack.which, edges.shape[1])
    wrong = int((proved & (edges != truth).any(axis=(1, 2))).sum())
    return stack, verdicts | with_truth(stack, truth), proved, wrong


def unreadable(seen: Observations) -> str:
    """Say why no statement can apply to these observations; empty where some can."""
    if seen.values is None:
        return "the eigenvalues are withheld"
    if seen.protocol.gauge == "rotation":
        return "the columns are rotated, so they no longer belong to their eigenvalues"
    return ""
