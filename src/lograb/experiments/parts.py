"""One large graph on many workers: its patches are cut into parts, each judged apart, and the answers joined.

A part sees its own patches. An attack that uses centres, and so reads members apart from embeddings, also sees who
sits in which patch of the whole graph; embeddings are what takes memory. The cut keeps patches with common members
together, so that few pairs are judged in two parts. Such a pair goes by the part where more patches contain it,
or by the mean of both if the attack averages over patches. Budgets and caps are those of the whole graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
import pymetis
import scipy.sparse as sp

from lograb.attacks import Attack, label_of
from lograb.attacks.cut import promise
from lograb.errors import LograbError
from lograb.experiments.work import alone, clear_peak, peak
from lograb.experiments.workers import Job, open_client, run_jobs
from lograb.pairs import edge_keys, unpair
from lograb.progress import Progress, ignore
from lograb.ragged import pointer, ranges
from lograb.tasks.isolation import choose_attack
from lograb.types import Bools, Floats, Ints, Observations, Reconstruction

ALMOST = 1.0 - 1e-12
"""Largest score that has odds."""


@dataclass(frozen=True)
class InParts:
    """An attack that runs in parts: itself a function of (observations, rng), so `lograb.attack` takes it.

    Parameters
    ----------
    attack : whatever names an attack
    parts : into how many the patches are cut
    workers, scheduler : as for `lograb.experiments.sweep`
    progress : told how many parts are done
    """

    attack: Any
    parts: int
    workers: int | None = None
    scheduler: str | None = None
    progress: Progress = ignore

    @property
    def __name__(self) -> str:
        """What tables call it."""
        return f"{label_of(choose_attack(self.attack))}, {self.parts} parts"

    def __call__(self, seen: Observations, rng: np.random.Generator) -> Reconstruction:
        """Judge all parts and join the answers."""
        if not 1 <= self.parts <= max(1, seen.n_patches):
            raise LograbError(f"{seen.n_patches} patches cannot be cut into {self.parts} parts: choose fewer")
        attacker = choose_attack(self.attack)
        costs = attacker.costs(seen) if isinstance(attacker, Attack) else seen.sizes**2
        part = cut_patches(seen, costs, self.parts, int(rng.integers(2**31 - 1)))
        streams = rng.spawn(self.parts)
        every = "centres" in getattr(attacker, "uses", ())
        jobs = []
        for i, stream in enumerate(streams):
            own = part == i
            mine = attacker.for_part(int(costs[own].sum())) if isinstance(attacker, Attack) else attacker
            jobs.append(Job(("", i), _judge, (mine, stream), (str(i), show, (seen, own, every)), True))
        answers: dict[int, Reconstruction] = {}
        refused: list[LograbError] = []
        with open_client(self.workers, self.scheduler) as client:
            self.progress("judging parts", 0, self.parts)
            for job, found in run_jobs(client, jobs, ahead=1):  # a worker holds one part at a time
                if isinstance(found, LograbError):  # such as a part that holds the largest patches alone
                    refused.append(found)
                    found = _nothing(seen.n_nodes)
                if isinstance(found, Exception):
                    raise LograbError(
                        f"part {job.name[1]} of {self.parts} failed: {type(found).__name__}: {found}"
                    )
                answers[job.name[1]] = found
                self.progress("judging parts", len(answers), self.parts)
        if len(refused) == self.parts:
            raise refused[0]
        averages = getattr(attacker, "averages", False)
        answer = join(seen, part, [answers[i] for i in range(self.parts)], averages)
        if isinstance(attacker, Attack):
            answer = attacker.finish(answer)
        return replace(answer, diagnostics={**answer.diagnostics, "parts_refused": [str(one) for one in refused]})


def cut_patches(seen: Observations, costs: Ints, parts: int, seed: int) -> Ints:
    """Give every patch a part, so that parts cost alike and patches with common members stay together.

    METIS cuts the graph of patches and nodes, where a patch weighs the pairs that are looked at in it.

    Parameters
    ----------
    costs : int64 array, shape (n_patches,)
    """
    m, n = seen.n_patches, seen.n_nodes
    if parts == 1:
        return np.zeros(m, dtype=np.int64)
    owner = np.repeat(np.arange(m), seen.sizes)
    both = sp.csr_array((np.ones(len(owner), np.int8), (owner, m + seen.nodes)), shape=(m + n, m + n))
    both = sp.csr_array(both + both.T)
    weights = np.zeros(m + n, dtype=np.int64)
    weights[:m] = np.maximum(1, costs * 10**9 // max(1, int(costs.sum())))
    _, part = pymetis.part_graph(parts, pymetis.CSRAdjacency(both.indptr, both.indices), vweights=weights.tolist(),
                                 options=pymetis.Options(seed=seed))  # fmt: skip
    return np.asarray(part[:m], dtype=np.int64)


def show(seen: Observations, own: Bools, members: bool) -> Observations:
    """Show some patches; of the others nothing, or the members alone, as patches of rank 0."""
    shown = np.ones(seen.n_patches, dtype=bool) if members else own
    ranks = np.where(own, seen.ranks, 0)[shown]

    def kept(flat: Floats | None, start: Ints, lengths: Ints) -> Floats | None:
        return None if flat is None else flat[ranges(start[:-1][own], lengths[own])]

    vectors = kept(seen.vectors, seen.vector_ptr, seen.ranks * seen.sizes)
    assert vectors is not None
    following = None if seen.next_values is None else np.where(own, seen.next_values, np.nan)[shown]
    sizes = seen.sizes[shown]
    names = seen.patch_names
    return replace(seen, nodes=seen.nodes[ranges(seen.ptr[:-1][shown], sizes)], ptr=pointer(sizes), ranks=ranks,
                   vectors=vectors, values=kept(seen.values, seen.value_ptr, seen.ranks), next_values=following,
                   centres=None if seen.centres is None else seen.centres[shown],
                   patch_names=None if names is None else tuple(compress(names, shown)))  # fmt: skip


def _judge(seen: Observations, attack: Any, rng: np.random.Generator) -> Reconstruction:
    clear_peak()
    with alone():
        found: Reconstruction = attack(seen, rng)
    return replace(found, diagnostics={**found.diagnostics, "peak_memory": peak()})


def _nothing(n_nodes: int) -> Reconstruction:
    none = np.empty(0, dtype=np.int64)
    return Reconstruction(n_nodes, none.reshape(0, 2), np.empty(0), none)


def join(
    seen: Observations, part: Ints, answers: Sequence[Reconstruction], average: bool = False
) -> Reconstruction:
    """Join the answers of parts: every pair goes by the part that has most of the patches that contain it.

    With `average` the odds of a pair that several parts list are their mean, weighted by these patches.
    """
    n = seen.n_nodes
    every = [_listed(answer) for answer in answers]
    keys = np.unique(np.concatenate([listed for listed, _, _ in every]))
    scores, claimed = np.zeros(len(keys)), np.zeros(len(keys), dtype=bool)
    best, twice = np.full(len(keys), -1), np.zeros(len(keys), dtype=np.int64)
    odds, share = np.zeros(len(keys)), np.zeros(len(keys))
    for i, (listed, told_scores, told_claims) in enumerate(every):
        common = _common(seen, part == i, unpair(keys, n))
        here = np.isin(keys, listed)
        place = np.searchsorted(listed, keys[here])
        weight = 2 * common + here  # who has not listed a pair that it has judged has told it apart
        twice += common > 0
        better = weight > best
        best[better] = weight[better]
        scores[better], claimed[better] = 0.0, False
        mine, taken = better & here, better[here]
        scores[mine], claimed[mine] = told_scores[place[taken]], told_claims[place[taken]]
        told = np.minimum(told_scores[place], ALMOST)
        odds[here] += common[here] * told / (1.0 - told)
        share[here] += common[here]
    if average:
        odds /= np.maximum(share, 1.0)
        scores = np.where(twice > 1, odds / (1.0 + odds), scores)
    kept = share > 0 if average else best % 2 == 1
    claimed, scores, pairs = claimed[kept], scores[kept], unpair(keys[kept], n)
    nodes = np.unique(np.concatenate([answer.nodes for answer in answers]))
    chances = [answer.unlisted for answer in answers]
    unlisted = None if None in chances else float(np.mean([chance or 0.0 for chance in chances]))
    highest = max(answer.diagnostics.get("peak_memory") or 0 for answer in answers)
    beside: dict[str, Any] = {"parts": len(answers), "judged_twice": int((twice > 1).sum()),
                              "peak_memory_per_part": highest}
    if unlisted is not None and (rest := _rest(answers)) is not None:
        beside["expected"] = promise(scores[claimed], float(scores.sum()) + rest)
    return Reconstruction(n, pairs[claimed], scores[claimed], nodes, pairs, scores, diagnostics=beside,
                          unlisted=unlisted)  # fmt: skip


def _rest(answers: Sequence[Reconstruction]) -> float | None:
    """Add up the edges that parts expect among pairs they do not list; None where some part does not say.

    Where the graph was sanitised, every part reckons with the same edges that it hides: their sum means nothing.
    """
    told = [answer.diagnostics for answer in answers]
    if any("rest" not in one or "flip_rates" in one for one in told):
        return None
    return float(sum(one["rest"] for one in told))


def _listed(answer: Reconstruction) -> tuple[Ints, Floats, Bools]:
    """Give all pairs of an answer as rising keys, with scores and whether they are claimed."""
    claims = edge_keys(answer.edges, answer.n_nodes)
    if answer.judged is None or answer.judged_scores is None:
        order = np.argsort(claims)
        return claims[order], answer.scores[order], np.ones(len(claims), dtype=bool)
    judged = edge_keys(answer.judged, answer.n_nodes)
    extra = ~np.isin(claims, judged)
    keys, scores = (
        np.concatenate([judged, claims[extra]]),
        np.concatenate([answer.judged_scores, answer.scores[extra]]),
    )
    order = np.argsort(keys)
    return keys[order], scores[order], np.isin(keys[order], claims)


def _common(seen: Observations, own: Bools, pairs: Ints) -> Ints:
    """Count the patches of a part that contain both nodes of each pair."""
    owner = np.repeat(np.arange(seen.n_patches), seen.sizes)
    inside = own[owner]
    rows = sp.csr_array((np.ones(inside.sum(), np.int32), (seen.nodes[inside], owner[inside])),
                        shape=(seen.n_nodes, seen.n_patches))  # fmt: skip
    found = [np.asarray(rows[block[:, 0]].multiply(rows[block[:, 1]]).sum(axis=1)) for block in _blocks(pairs)]
    return np.concatenate([*found, np.empty(0, np.int64)]).astype(np.int64)


def _blocks(pairs: Ints) -> Iterator[Ints]:
    for start in range(0, len(pairs), 1 << 16):
        yield pairs[start : start + (1 << 16)]
