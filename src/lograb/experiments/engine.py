"""Runs what is not stored yet, and stores it: plan -> jobs on workers -> results in the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lograb.experiments.cluster import Job, open_client, run_jobs
from lograb.experiments.runs import RunResult, RunSpec
from lograb.experiments.store import Store
from lograb.experiments.work import Piece, is_split, join_pieces, make_instance, run_piece
from lograb.graphs import count_graphs
from lograb.progress import Progress, ignore

PIECES = 16  # into how many the graphs of a dataset are cut per worker


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
        Whether to compute all scores of stored answers anew.
    progress, finished : callables, optional
        Called with how far the work is, and with each new result.
    """
    again = ("failed", "timed-out") if retry_failed else ()
    known = {spec.key: result for spec in specs if (result := store.get(spec.key)) is not None}
    todo = {spec.key: spec for spec in specs if _wanted(known.get(spec.key), again, rescore)}
    progress("running", 0, len(todo))
    if not todo:
        return known
    with open_client(workers, scheduler) as client:
        parts = PIECES * max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
        jobs = [job for spec in todo.values()
                for job in _jobs(spec, parts, timeout, store.arrays(spec.key) if rescore else None)]  # fmt: skip
        expected = {key: sum(job.name[0] == key for job in jobs) for key in todo}  # type: ignore[index]
        pieces: dict[str, dict[int, Piece]] = {key: {} for key in todo}
        done = 0
        for job, found in run_jobs(client, jobs):
            key, number = job.name  # type: ignore[misc]
            pieces[key][number] = found if isinstance(found, Piece) else Piece("failed", _died(found))
            if len(pieces[key]) == expected[key]:
                parts_in_order = [piece for _, piece in sorted(pieces.pop(key).items())]
                result, arrays = join_pieces(todo[key], parts_in_order, known.get(key) if rescore else None)
                store.put(result, None if rescore else arrays)
                known[key], done = result, done + 1
                finished(result)
                progress("running", done, len(todo))
    return known


def _wanted(result: RunResult | None, again: tuple[str, ...], rescore: bool) -> bool:
    if rescore:
        return result is not None and result.status == "done"
    return result is None or result.status in again


def _jobs(spec: RunSpec, parts: int, timeout: float | None, old: dict[str, Any] | None) -> list[Job]:
    """Cut a run into jobs: one, or where a dataset has many graphs, one for each part of them."""
    if not is_split(spec):
        share = (spec.instance_key, make_instance, (spec,))
        return [Job((spec.key, 0), run_piece, (spec, None, timeout, old), share)]
    total = count_graphs(spec.source)
    parts = min(parts, total)
    cuts = [total * i // parts for i in range(parts + 1)]
    return [Job((spec.key, i), run_piece, (None, spec, range(cuts[i], cuts[i + 1]), timeout, old))
            for i in range(parts)]  # fmt: skip


def _died(error: Any) -> str:
    return f"{type(error).__name__}: {error}; a worker that dies has often run out of memory"
