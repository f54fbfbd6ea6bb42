"""lograb: what do shared spectral embeddings of local subgraphs reveal about the graph?

The data walks through the package in this order:

``types``, ``pairs``, ``score``   the data types
``pipeline``      the whole flow on one screen: read this first
``graphs``        1  where true graphs come from
``patches``       2  Graph -> Patches
``observations``  3  Patches -> Observations, all that an eavesdropper sees
``fragment``, ``instance``, ``archive``    observations, truth and spec together; one verified file
``defences``      4  what is shared instead, and what that guarantees
``attacks``       5  Observations -> Reconstruction
``learning``      5' what needs torch
``theory``           bounds and certificates
``metrics``       6  truth, estimate -> number
``tasks``         7  what is asked, floor and ceiling included: -> Score
``experiments``   8  many runs: complete, resumable, on this machine or a cluster
``auditing``      9  one graph or one set of embeddings -> findings
``report``        10 results -> tables and pages
``cli``              the command line
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "attack": "lograb.tasks",
    "audit": "lograb.auditing",
    "bound": "lograb.tasks.privacy",
    "compare": "lograb.pipeline",
    "defend": "lograb.tasks.privacy",
    "evaluate": "lograb.tasks",
    "generate": "lograb.pipeline",
    "generate_file": "lograb.pipeline",
    "ledger": "lograb.tasks.privacy",
    "load": "lograb.pipeline",
    "utility": "lograb.tasks.utility",
    "verify": "lograb.pipeline",
    "to_pyg": "lograb.learning.pyg",
    "load_graph": "lograb.graphs",
    "load_graphs": "lograb.graphs",
    "Instance": "lograb.instance",
    "Graph": "lograb.types",
    "Patches": "lograb.types",
    "Observations": "lograb.types",
    "Reconstruction": "lograb.types",
    "Score": "lograb.score",
    "Audit": "lograb.auditing",
    "Comparison": "lograb.report",
    "InstanceSpec": "lograb.spec",
    "LograbError": "lograb.errors",
    "LograbNotice": "lograb.errors",
    "ArchiveError": "lograb.errors",
}

if TYPE_CHECKING:
    from lograb.auditing import Audit, audit
    from lograb.errors import ArchiveError, LograbError, LograbNotice
    from lograb.graphs import load_graph, load_graphs
    from lograb.instance import Instance
    from lograb.learning.pyg import to_pyg
    from lograb.pipeline import compare, generate, generate_file, load, verify
    from lograb.report import Comparison
    from lograb.score import Score
    from lograb.spec import InstanceSpec
    from lograb.tasks import attack, evaluate
    from lograb.tasks.privacy import bound, defend, ledger
    from lograb.tasks.utility import utility
    from lograb.types import Graph, Observations, Patches, Reconstruction

__all__ = [
    "ArchiveError",
    "Audit",
    "Comparison",
    "Graph",
    "Instance",
    "InstanceSpec",
    "LograbError",
    "LograbNotice",
    "Observations",
    "Patches",
    "Reconstruction",
    "Score",
    "attack",
    "audit",
    "bound",
    "compare",
    "defend",
    "evaluate",
    "generate",
    "generate_file",
    "ledger",
    "load",
    "load_graph",
    "load_graphs",
    "to_pyg",
    "utility",
    "verify",
]


_MODULES = ("attacks", "defences", "experiments", "metrics", "tasks", "theory")


def __getattr__(name: str) -> Any:
    """Import public names on first use, so that ``lograb --help`` does not pay for scipy."""
    if name in _MODULES:
        return import_module(f"lograb.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'lograb' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted([*__all__, *_MODULES, "__version__"])
