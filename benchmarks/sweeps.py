"""What a sweep costs beside its runs: the scheduler's share, a second worker, and memory that is given back."""

from __future__ import annotations

import os
import time

from command import Part, parse

if __name__ == "__main__":
    run = parse(__doc__, {
        "overhead": Part(lambda: overhead(), "40 runs of a second, on one worker and on two", "~ 70 s"),
        "memory": Part(lambda: memory(), "PointNetLK on a worker, memory kept or given back", "~ 1 minute"),
    }, default="overhead")  # fmt: skip

import lograb
from lograb.experiments import workers as workers_module
from lograb.experiments.workers import Job, open_client, run_jobs

RUNS = 40


def overhead() -> None:
    """Time the same runs on one and two workers; both in one run, after a first job that starts them.

    Runs wait for a second instead of working, so that a busy machine does not blur the figures.
    """
    print("| workers | seconds of runs per worker | wall seconds | overhead |\n|---|---|---|---|")
    walls = []
    for workers in (1, 2):
        with open_client(workers) as client:
            list(run_jobs(client, jobs(workers, 0.0)))
            start = time.perf_counter()
            list(run_jobs(client, jobs(RUNS, 1.0)))
            walls.append(time.perf_counter() - start)
        ideal = RUNS / workers
        print(f"| {workers} | {ideal:.0f} | {walls[-1]:.2f} | {walls[-1] / ideal - 1:.1%} |", flush=True)
    print(f"two workers: {walls[0] / walls[1]:.2f} times one")


def memory() -> None:
    """Time one attack on a worker that keeps freed memory, as ours do, and on one as Dask starts it."""
    seconds = []
    for kept in (workers_module.KEPT, {"MALLOC_TRIM_THRESHOLD_": 65536}):
        workers_module.KEPT = kept
        for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"):
            os.environ.pop(name, None)  # Dask leaves there what it started workers with
        with open_client(1) as client:
            list(run_jobs(client, [Job(("", 0), attack_once, (), ("warm", int, (0,)))]))
            found = run_jobs(client, [Job(("", i), attack_once, (), (str(i), int, (i,))) for i in range(3)])
            seconds.append(min(result for _, result in found))
    keeping, giving = seconds
    print(f"memory kept {keeping:.2f} s, given back {giving:.2f} s: {giving / keeping:.1f} times")


def attack_once(shared: int) -> float:
    """Attack a graph with a method that makes many large arrays."""
    instance = lograb.generate("citation", p=0.6, sigma=0.05)
    return float(lograb.attack(instance, "pointnetlk").seconds or 0.0)


def jobs(count: int, seconds: float) -> list[Job]:
    return [Job(("", i), wait, (seconds,), (str(i // 4), int, (i,))) for i in range(count)]


def wait(shared: int, seconds: float) -> float:
    """Stand in for a run."""
    time.sleep(seconds)
    return seconds


if __name__ == "__main__":
    run()
