"""What a sweep costs beside its runs: the share of the scheduler, and how two workers compare with one.

Runs wait for a second instead of working, so that a busy machine does not blur the figures.
"""

from __future__ import annotations

import time

from command import Part, parse

if __name__ == "__main__":
    run = parse(__doc__, {
        "overhead": Part(lambda: overhead(), "40 runs of a second, on one worker and on two", "~ 70 s"),
    }, default="overhead")  # fmt: skip

from lograb.experiments.workers import Job, open_client, run_jobs

RUNS = 40


def overhead() -> None:
    """Time the same runs on one and two workers; both in one run, after a first job that starts them."""
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


def jobs(count: int, seconds: float) -> list[Job]:
    return [Job(("", i), wait, (seconds,), (str(i // 4), int, (i,))) for i in range(count)]


def wait(shared: int, seconds: float) -> float:
    """Stand in for a run."""
    time.sleep(seconds)
    return seconds


if __name__ == "__main__":
    run()
