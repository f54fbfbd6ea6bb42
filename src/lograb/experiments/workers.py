"""Where tasks run: this machine's cores, or a Dask cluster that exists. Dask is imported only when used."""

from __future__ import annotations

import logging
import os
import re
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import resource_tracker
from typing import Any

from lograb.errors import LograbError
from lograb.experiments.work import versions
from lograb.parallel import n_cores

# Dask's own setting gives memory back after every large array: half of a method's time went into page faults.
KEPT = {"MALLOC_TRIM_THRESHOLD_": 1 << 28, "MALLOC_MMAP_THRESHOLD_": 1 << 25}
ADDRESS = re.compile(r"((tcp|tls)://)?(\[[^\s\[\]/]+\]|[^\s\[\]/:]+):\d{1,5}")
AHEAD = 3  # tasks per worker that are submitted before their turn


@dataclass(frozen=True)
class Job:
    """A function to be called on a worker; `share` makes its first argument, once for all jobs that need the same.

    `share` is a key, a function and its arguments. What it returns is kept by the workers as long as jobs with
    the same key wait for it. With `here` it is called in this process, and its result sent. The name is a run's
    key and the number of its part.
    """

    name: tuple[str, int]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    share: tuple[str, Callable[..., Any], tuple[Any, ...]]
    here: bool = False


class Lost(Exception):
    """A job whose worker died."""


@contextmanager
def open_client(workers: int | None = None, scheduler: str | None = None) -> Iterator[Any]:
    """Connect to a scheduler, or start workers on this machine: processes of one thread each."""
    import dask

    distributed: Any = import_module("distributed")
    if scheduler is not None:
        _check_address(scheduler)
        try:
            client = distributed.Client(scheduler, timeout=10, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise LograbError(f"no Dask scheduler answers at '{scheduler}' ({error})") from None
        with client:
            _check(client)
            yield client
        return
    quiet = {"distributed.scheduler.allowed-failures": 0, "distributed.comm.timeouts.connect": "60s",
             "distributed.scheduler.worker-ttl": None,  # long numerics may keep a worker from reporting
             "distributed.worker.memory.terminate": 0.95,
             **{f"distributed.nanny.pre-spawn-environ.{name}": size for name, size in KEPT.items()}}  # fmt: skip
    with (
        dask.config.set(quiet),
        _same_environment(),
        _deaf_to_ctrl_c(lambda: distributed.LocalCluster(
            n_workers=workers or n_cores(), threads_per_worker=1, processes=True,
            dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL)) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        yield client


def _check_address(scheduler: str) -> None:
    """Refuse what no client of Dask can be made for: half made, it prints a traceback when it is forgotten."""
    if not ADDRESS.fullmatch(scheduler):
        raise LograbError("the address of a Dask scheduler must be tcp://HOST:PORT, tls://HOST:PORT or "
                          f"HOST:PORT, got '{scheduler}'")  # fmt: skip
    security = import_module("distributed").Security()
    if scheduler.startswith("tls:") and security.get_connection_args("client").get("ssl_context") is None:
        raise LograbError(f"the scheduler '{scheduler}' needs certificates: name them in Dask's "
                          "configuration, under distributed.comm.tls")  # fmt: skip


def _deaf_to_ctrl_c(start: Callable[[], Any]) -> Any:
    """Start workers that Ctrl-C in a terminal does not reach: this process, which it does reach, ends them.

    Threads and processes inherit which signals are held back, workers that are started anew later included. Here
    Ctrl-C takes effect as soon as the workers are there.
    """
    if not hasattr(signal, "pthread_sigmask"):
        return start()
    resource_tracker.ensure_running()  # starting it would let the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _same_environment() -> Iterator[None]:
    """Give the environment back as it was: Dask sets in this process what its workers are to inherit."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def _check(client: Any) -> None:
    """Refuse workers that are not there, or run another lograb than this process."""
    try:
        client.wait_for_workers(1, timeout=30)
        client.get_versions(check=True)
        codes = client.run(versions)
    except (TimeoutError, ValueError) as error:
        raise LograbError(f"the cluster cannot be used: {error}") from None
    other = {worker: told["code"] for worker, told in codes.items() if told["code"] != versions()["code"]}
    if other:
        worker = next(iter(other))
        raise LograbError(f"the worker {worker} runs other source code of lograb than this process: install the "
                          "same version on both")  # fmt: skip


def run_jobs(client: Any, jobs: list[Job], ahead: int = AHEAD) -> Iterator[tuple[Job, Any]]:
    """Run jobs on the workers; yields each with its result as it is done, or with the exception that ended it.

    A few jobs per worker are submitted at a time: what waits is cheap, and who stops early cancels little. Whoever
    was on a worker that died is a suspect, and runs again when all others are done, alone: only who kills a worker
    then is `Lost`.
    """
    waiting, suspects = deque(jobs), deque[Job]()
    left = Counter(job.share[0] for job in jobs)
    shared: dict[str, Any] = {}
    running: dict[Any, Job] = {}
    done = import_module("distributed").as_completed(loop=client.loop)

    def submit(job: Job) -> None:
        key, make, arguments = job.share
        if key not in shared:
            shared[key] = (client.scatter(make(*arguments), hash=False) if job.here else
                           client.submit(make, *arguments, pure=False))  # fmt: skip
        future = client.submit(job.function, shared[key], *job.arguments, pure=False)
        running[future] = job
        done.add(future)

    while waiting or running or suspects:
        room = ahead * max(1, n_workers(client))
        while waiting and len(running) < room:
            submit(waiting.popleft())
        alone = not running
        if alone:
            submit(suspects.popleft())
        future = next(done)
        job, result = running.pop(future), _result(future)
        if isinstance(result, Lost):
            shared.pop(job.share[0], None)  # it may have been lost as well, or be what kills
        if isinstance(result, Lost) and not alone:
            suspects.append(job)
            continue
        left[job.share[0]] -= 1
        if not left[job.share[0]]:
            shared.pop(job.share[0], None)
        yield job, result


def n_workers(client: Any) -> int:
    """Count the workers that are there."""
    return len(client.scheduler_info(n_workers=-1)["workers"])


def _result(future: Any) -> Any:
    """Take a future's result; an exception is a result too, but for a lost scheduler."""
    from distributed import CancelledError, KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        return Lost(str(error))
    except CancelledError as error:
        if future.client.status == "running":
            return Lost(str(error))  # what was sent to the worker is gone with it
        raise LograbError("the connection to the Dask scheduler is lost: what is done is stored, run the same "
                          "command again") from None  # fmt: skip
    except Exception as error:
        return error
