"""What is audited: from whatever the user names to a plan, and to whatever might be shared instead of it."""

from __future__ import annotations

import hashlib
import warnings
import zipfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lograb import pipeline
from lograb.auditing.grid import PLAN, Setting
from lograb.errors import LograbError, LograbNotice, unknown_name
from lograb.graphs import count_graphs, load_graph
from lograb.instance import Instance
from lograb.observations.own_files import read_embeddings
from lograb.patches.silo_file import GROUP_WORDS
from lograb.tasks.privacy import defend
from lograb.types import Graph, Observations

Kind = Literal["graph", "archive", "embeddings"]
SCENARIOS = ("ego", "silos", "global")


@dataclass(frozen=True, eq=False)
class Subject:
    """What is audited.

    Attributes
    ----------
    name : what the user calls it
    path : the file, folder or catalog's name behind it; empty for what lives in memory only
    reading : options of the command line with which a graph's file is read
    kind : whether it is a graph, of which anything can be shared, or something that is made already
    scenario : ego, silos, global, or given
    plan : what is about to be shared
    graph : for a graph: itself
    parameters : for a graph: those of `lograb.generate` behind the plan
    groups : what silos are called, such as "department"; empty where they have no such name
    seed, releases : as for `lograb.generate`
    """

    name: str
    kind: Kind
    scenario: str
    plan: Instance
    graph: Graph | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    groups: str = ""
    seed: int = 0
    releases: int = 1
    path: str = ""
    reading: tuple[str, ...] = ()

    @cached_property
    def node_names(self) -> tuple[str, ...]:
        """Names of the nodes, or their numbers."""
        return self.plan.node_names or tuple(map(str, range(self.plan.n_nodes)))

    @cached_property
    def patch_names(self) -> tuple[str, ...]:
        """Names of the patches: their own, after their centres, or numbers."""
        seen = self.plan.observations
        if seen.patch_names is not None:
            return seen.patch_names
        if seen.centres is not None:
            return tuple(f"around {self.node_names[i]}" for i in seen.centres)
        if seen.n_patches == 1:
            return ("everything",)
        return tuple(f"patch {i}" for i in range(seen.n_patches))

    @cached_property
    def exact(self) -> Observations:
        """The embeddings of the plan without noise and defences; the plan's own where there is no graph."""
        if self.graph is None or not (self.plan.spec.sigma or self.plan.spec.defences):
            return self.plan.observations
        return self._generate({"sigma": 0.0, "defences": (), "eigenvalues": True, "releases": 1}).observations

    def draws_noise(self, group: str) -> bool:
        """Whether another draw of a setting of some group differs."""
        return group in ("noise", "defence", "graph") or (
            self.graph is not None and bool(self.plan.spec.sigma or self.plan.spec.defences))  # fmt: skip

    def _generate(self, changed: dict[str, Any]) -> Instance:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LograbNotice)  # told once, of the plan
            return pipeline.generate(self.graph, **self.parameters | changed)

    def make(self, setting: Setting, draw: int = 0) -> Instance:
        """Make what would be shared; every draw has its own noise."""
        if setting is PLAN and draw == 0:
            return self.plan
        if self.graph is not None:
            defences = (*self.plan.spec.defences, *setting.parameters.get("defences", ()))
            return self._generate(setting.parameters | {"defences": defences, "seed": self.seed + draw})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LograbNotice)
            if setting.defences is None:
                raise LograbError("it acts on the graph before that is cut, and what is here is cut already: "
                                  "audit the graph instead of what was made of it")  # fmt: skip
            return defend(self.plan, setting.defences, seed=self.seed + draw, releases=self.releases)

    @property
    def hash(self) -> str:
        """SHA-256 of all that the plan holds."""
        found = hashlib.sha256(self.plan.spec.model_dump_json().encode())
        for name in sorted(self.plan.tables):
            column = self.plan.tables[name]
            content = np.ascontiguousarray(column[0 : column.shape[0]])
            found.update(f"{name} {content.dtype.str} {content.shape} ".encode() + content.tobytes())
        return found.hexdigest()


def find_subject(
    source: Any, scenario: str | None, *, patches: Any = None, patches_by: str | None = None, d: int | None = None,
    k: int | None = None, sigma: float | None = None, defences: Any = (), releases: int = 1, seed: int = 0,
    graph: int | None = None, header: bool | None = None,
) -> Subject:  # fmt: skip
    """Take a source: a graph in any form that `generate` takes, an instance or its file, or embeddings."""
    if scenario is not None and scenario not in SCENARIOS:
        raise unknown_name("scenario", scenario, SCENARIOS)
    made = _made_already(source)
    if made is not None:
        given = {"scenario": scenario, "patches": patches, "patches_by": patches_by, "d": d, "k": k,
                 "sigma": sigma}  # fmt: skip
        if wrote := [name for name, value in given.items() if value is not None]:
            raise LograbError(f"what is shared already has its form, got {', '.join(wrote)} as well: name the "
                              "graph to choose them here")  # fmt: skip
        return _of_instance(source, *made, graph, defences, seed, releases)
    if graph is None and (many := count_graphs(source)) > 1:
        raise LograbError(f"an audit is about one graph, '{source}' holds {many}: choose one with graph=I "
                          "(--graph I)")  # fmt: skip
    found = load_graph(source, graph=graph, header=header)
    if isinstance(source, str | Path) and isinstance(patches, str | Path) and Path(source) == Path(patches):
        raise LograbError(f"'{patches}' is the graph itself: groups are a table node,group of their own")
    cut, scenario, groups = _cut(scenario, patches, patches_by, d)
    parameters = cut | {"k": 32 if k is None else k, "sigma": sigma or 0.0, "defences": defences or (),
                        "releases": releases, "seed": seed}  # fmt: skip
    plan = pipeline.generate(found, **parameters)
    reading = [] if graph is None else ["--graph", str(graph)]
    reading += [] if header is None else ["--header" if header else "--no-header"]
    return Subject(_called(source, found.name), "graph", scenario, plan, found, parameters, groups, seed, releases,
                   _path(source), tuple(reading))  # fmt: skip


def _cut(
    scenario: str | None, patches: Any, patches_by: str | None, d: int | None
) -> tuple[dict[str, Any], str, str]:
    """Say how a scenario cuts the graph, which one it is, and what its groups are called."""
    if patches is not None and patches_by is not None:
        raise LograbError("groups come from a table (patches, --patches) or from an attribute of the nodes "
                          "(patches_by, --patches-by), got both: leave one out")  # fmt: skip
    brought = patches is not None or patches_by is not None
    scenario = scenario or ("silos" if brought else "ego")
    if brought and scenario != "silos":
        raise LograbError(f"patches are the groups of the scenario silos, got the scenario {scenario} as well")
    if brought and d is not None:
        raise LograbError("patches that you bring are shared as they are: leave d (-d) out")
    if scenario == "global":
        return {"strategy": "global"}, scenario, ""
    if scenario == "ego":
        return {"strategy": "d-hop", "d": 1 if d is None else d}, scenario, ""
    if patches_by is not None:
        return {"patches_by": patches_by}, scenario, patches_by
    if patches is not None:
        stem = Path(patches).stem.lower() if isinstance(patches, str | Path) else ""
        word = stem.removesuffix("s")
        return {"patches": patches}, scenario, word if word in GROUP_WORDS else ""
    return {"strategy": "cluster", "d": d or 0}, scenario, ""


def _made_already(source: Any) -> tuple[Instance, Kind] | None:
    """Take what is made already: an instance, observations, or files of them; None for graphs."""
    if isinstance(source, Observations):
        source = Instance.from_observations(source)
    if isinstance(source, str | Path) and Path(source).suffix.lower() == ".lograb":
        source = pipeline.load(source)
    if isinstance(source, Instance):
        return source, "embeddings" if source.origin.kind == "packed" else "archive"
    if isinstance(source, str | Path) and _holds_embeddings(Path(source)):
        seen = Observations.from_arrays(**read_embeddings(source))
        return Instance.from_observations(seen, name=Path(source).stem), "embeddings"
    return None


def _holds_embeddings(path: Path) -> bool:
    """Tell embeddings from graphs by what their files hold."""
    if path.is_dir():
        return True
    if path.suffix.lower() != ".npz" or not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as arrays:
            return any("vectors" in name for name in arrays.namelist())
    except zipfile.BadZipFile:
        return False


def _of_instance(
    source: Any, instance: Instance, kind: Kind, graph: int | None, defences: Any, seed: int, releases: int
) -> Subject:
    if graph is None and len(instance) > 1:
        raise LograbError(f"an audit is about one graph, '{instance.name}' holds {len(instance)}: choose one with "
                          "graph=I (--graph I)")  # fmt: skip
    if not 0 <= (graph or 0) < len(instance):
        raise LograbError(f"the graph of '{instance.name}' must be from 0 to {len(instance) - 1}, got {graph}")
    plan = instance[graph or 0]
    if defences:
        plan = defend(plan, defences, seed=seed, releases=releases)
    return Subject(_called(source, plan.name), kind, "given", plan, seed=seed, releases=releases,
                   path=_path(source))  # fmt: skip


def _path(source: Any) -> str:
    return str(source) if isinstance(source, str | Path) else ""


def _called(source: Any, otherwise: str) -> str:
    return Path(source).name if isinstance(source, str | Path) else otherwise
