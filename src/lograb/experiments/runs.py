"""One run of an experiment: every choice behind it, and what came out."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from lograb.spec import InstanceSpec, Origin

Task = Literal["reconstruction", "classification", "links", "statistics", "protection"]
Status = Literal["done", "failed", "not-applicable", "timed-out"]


class RunSpec(BaseModel):
    """Every choice behind a run, its seed and the version of what runs included.

    Attributes
    ----------
    task : what is asked
    source : the dataset's name or file, by which a worker loads it; not part of the identity, `origin` is
    name : what the method is called in tables, with the settings that were given; not part of the identity either
    origin : where the graph came from, with its revision and the SHA-256 of what was read
    instance : the choices behind the instance; its seed is also that of the method's draws
    method : name of the attack, model or link method
    version : of the method; it changes when its answers do
    settings : all settings of the method, defaults written out
    options : choices of the task: features; split; halo and negatives
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: Task
    source: str
    name: str
    origin: Origin
    instance: InstanceSpec
    method: str
    version: str = "1"
    settings: dict[str, Any] = Field(default_factory=dict)
    options: dict[str, Any] = Field(default_factory=dict)

    @property
    def key(self) -> str:
        """The run's identity: 32 hexadecimal digits of the SHA-256 of all choices."""
        return digest(self.identity())

    @property
    def instance_key(self) -> str:
        """The same for all runs on one instance."""
        told = self.identity()
        return digest({name: told[name] for name in ("origin", "instance")})

    def identity(self) -> dict[str, Any]:
        """Lay all choices out as JSON; what is at its default in an instance is left out.

        So a field that instances get later does not change the identity of runs without it.
        """
        told = self.model_dump(mode="json", exclude={"source", "name", "origin", "instance"})
        told["origin"] = self.origin.model_dump(include={"source", "kind", "revision", "sha256"})
        told["instance"] = self.instance.model_dump(mode="json", exclude_defaults=True)
        told["instance"] |= {"seed": self.instance.seed}
        return told


def digest(content: dict[str, Any]) -> str:
    """Hash choices laid out as JSON."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class RunResult:
    """What came of a run; its arrays lie beside it in the store.

    Attributes
    ----------
    key : the identity of its spec
    name : what the method is called in tables
    spec : as from `RunSpec.identity`
    status : done, failed, not-applicable or timed-out
    reason : why it is not done; for a failure the error, then where it was raised
    scores : every number by name
    diagnostics : what the method tells of itself
    seconds : for the method alone, and for scoring
    peak_memory : bytes of the process while it ran; None where the system does not tell
    versions : of lograb, of its source code, of Python and of the libraries
    """

    key: str
    name: str
    spec: dict[str, Any]
    status: Status
    reason: str = ""
    scores: dict[str, Any] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    peak_memory: int | None = None
    versions: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, ready for JSON."""
        return asdict(self)

    @property
    def label(self) -> str:
        """Name the run on one line."""
        i = InstanceSpec(**self.spec["instance"])
        return (f"{self.name} on {self.spec['origin']['source']} {i.strategy} (d={i.d}, p={i.p:g}, "
                f"k={i.k}, sigma={i.sigma:g}) seed {i.seed}")  # fmt: skip
