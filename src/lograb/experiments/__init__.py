"""Stage 8: experiments of any size, complete, resumable and comparable.

``config``      TOML -> `Plan`, a list of `RunSpec`s and their places in a table
``store``       a folder with one `RunResult` per run
``engine``      `sweep`: runs what the store lacks
``workers``     this machine's cores, or a Dask cluster
``work``        what a worker does
``presets``     the experiments that come with lograb: one per table of the paper
"""

from lograb.experiments.config import Plan, make_plan, read_config
from lograb.experiments.engine import sweep
from lograb.experiments.runs import RunResult, RunSpec
from lograb.experiments.store import Store

__all__ = ["Plan", "RunResult", "RunSpec", "Store", "make_plan", "read_config", "sweep"]
