"""Runs what is not stored yet, and stores it: plan -> jobs on workers -> results in the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lograb.errors import LograbError, warn
from lograb.experiments.runs import RunResult, RunSpec
from lograb.experiments.store import Store
from lograb.experiments.work import Piece, is_split, join_pieces, make_instances, run_piece
from lograb.experiments.workers import Job, n_workers, open_client, run_jobs
from lograb.graphs import count_graphs
from lograb.progress import Progress, ignore

PIECES = 4  # into how many parts per worker the graphs of a dataset are cut
LARGEST = 200  # and how many graphs a part has at most: they are in memory together


def sweep(
    specs: list[RunSpec],
    store: Store,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    timeout: float | None = None,
    retry_failed: bool = False,
    rescore: bool = False,
    progress: Progress = ignore,
    finished: Callable[[RunResult], None] = lambda result: None,
) -> dict[str, RunResult]:
    """Give the results of runs by their keys: those in the store as they are, the others after running them.

    Parameters
    ----------
    specs : list of RunSpec
        Those on the same instance best side by side: it is generated once and shared.
    store : Store
        Every run is kept as soon as it is done.
    workers : int, optional
        Processes on this machine; by default one per core.
    scheduler : str, optional
        Address of a Dask scheduler whose workers do the work instead.
    timeout : float, optional
        Seconds after which a run is ended.
    retry_failed : bool
        Whether to run again what failed or was too slow.
    rescore : bool
        Whether to compute all scores of stored answers anew. Where that fails, a notice says so and the run stays
        as it is.
    progress, finished : callables, optional
        Called with how far the work is, and with each new result.
    """
    again = ("failed", "timed-out") if retry_failed else ()
    known = {spec.key: result for spec in specs if (result := store.get(spec.key)) is not None}
    todo = {spec.key: spec for spec in specs if _wanted(known.get(spec.key), again, rescore)}
    if rescore:  # published runs have no answers to score
        todo = {key: spec for key, spec in todo.items() if store.path(key).is_file()}
    total = len(todo)
    progress("running", 0, total)
    if not todo:
        return known
    with open_client(workers, scheduler) as client:
        count = max(1, n_workers(client))
        old, unreadable = _answers(todo, store) if rescore else (dict.fromkeys(todo), {})
        todo = {key: spec for key, spec in todo.items() if key not in unreadable}
        kept = list(unreadable.values())
        jobs = [job for group in _groups(todo.values()) for job in _jobs(group, count, timeout, old)]
        expected = Counter(job.name[0] for job in jobs)
        pieces: dict[str, dict[int, Piece]] = {key: {} for key in todo}
        done = len(kept)
        for job, found in run_jobs(client, jobs):
            key, number = job.name
            pieces[key][number] = found if isinstance(found, Piece) else Piece("failed", _died(found))
            if len(pieces[key]) == expected[key]:
                parts_in_order = [piece for _, piece in sorted(pieces.pop(key).items())]
                result, arrays = join_pieces(todo[key], parts_in_order, known.get(key) if rescore else None)
                done += 1
                if rescore and result.status != "done":
                    kept.append(f"{result.label}: {result.status}: {result.reason}")
                else:
                    known[key] = store.put(result, None if rescore else arrays)
                    finished(known[key])
                progress("running", done, total)
    if kept:
        warn(f"{len(kept)} of {total} runs could not be scored again and keep their earlier scores, such as "
             f"{kept[0]}")  # fmt: skip
    return known


def _answers(specs: Iterable[str], store: Store) -> tuple[dict[str, dict[str, Any] | None], dict[str, str]]:
    """Read the stored answers of runs; and say of which they cannot be read, and why."""
    found: dict[str, dict[str, Any] | None] = {}
    unreadable: dict[str, str] = {}
    for key in specs:
        try:
            found[key] = store.arrays(key)
        except LograbError as error:
            unreadable[key] = str(error)
    return found, unreadable


def _wanted(result: RunResult | None, again: tuple[str, ...], rescore: bool) -> bool:
    if rescore:
        return result is not None and result.status == "done"
    return result is None or result.status in again


def _groups(specs: Iterable[RunSpec]) -> list[list[RunSpec]]:
    """Put runs on one instance together, those whose graphs can be spread apart from the others."""
    found: dict[tuple[str, bool], list[RunSpec]] = {}
    for spec in specs:
        found.setdefault((spec.instance_key, is_split(spec)), []).append(spec)
    return list(found.values())


def _jobs(
    specs: list[RunSpec], workers: int, timeout: float | None, old: Mapping[str, dict[str, Any] | None]
) -> list[Job]:
    """Cut runs on one instance into jobs: one each, or one for each part of the graphs where there are many.

    All runs on a part come before those on the next: what is generated is used, and forgotten.
    """
    first, parts = specs[0], list[range | None]([None])
    if is_split(first):
        total = count_graphs(first.source)
        size = min(LARGEST, -(-total // (PIECES * workers)))
        parts = [range(start, min(start + size, total)) for start in range(0, total, size)]
    return [Job((spec.key, i), run_piece, (spec, timeout, old[spec.key]),
                (f"{first.instance_key}/{is_split(first)}/{i}", make_instances, (first, part)))
            for i, part in enumerate(parts) for spec in specs]  # fmt: skip


def _died(error: Any) -> str:
    return f"{type(error).__name__}: {error}; a worker that dies has often run out of memory"
