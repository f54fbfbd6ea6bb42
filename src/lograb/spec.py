"""Choices and provenance: what was asked for, and where the graph came from."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from lograb.errors import LograbError, unknown_name

StrategyName = Literal["d-hop", "cluster", "random", "custom", "global"]
GaugeName = Literal["sign", "rotation", "none"]
Defences = Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=32)]
Precision = Literal["float64", "float32", "float16"] | int
Kind = TypeVar("Kind", bound=BaseModel)
MAX_BITS = 52
MAX_SIGMA = 1000.0
"""Entries of eigenvectors are at most 1: with noise like this nothing of them is left."""


class Origin(BaseModel):
    """Where a graph came from: enough to fetch the same bytes again."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    """Catalog name, file name (never its folder), or the name a user gave."""
    kind: Literal["built-in", "public", "file", "memory", "packed"] = "memory"
    """A packed instance was observed by its owner; the others by lograb."""
    revision: str = ""
    sha256: str = ""
    """Checksum of what was read: the SHA-256 of the file, or of the list of file checksums."""
    licence: str = ""
    url: str = ""


class _Choices(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def of(cls, **parameters: Any) -> Self:
        """Validate parameters; an error names the parameter, the rule and the value received."""
        for name in parameters:
            if name not in cls.model_fields:
                raise unknown_name("parameter", name, cls.model_fields)
        return checked(cls, parameters)


class Protocol(_Choices):
    """What everybody, the eavesdropper included, knows about how the patches were shared."""

    strategy: StrategyName = "d-hop"
    d: int = Field(1, ge=0, le=64)
    k: int = Field(32, ge=1, le=1_000_000)
    gauge: GaugeName = "sign"
    sigma: float | None = Field(None, ge=0, le=MAX_SIGMA)
    """Standard deviation of the noise, of the mean of all releases; None when it is not announced."""
    defences: Defences = ()
    """What was done to the graph and to what is shared, each as NAME:key=value,... (see lograb.defences)."""
    releases: int = Field(1, ge=1, le=1_000_000)
    """How many releases with fresh noise the observations are the mean of."""


class InstanceSpec(_Choices):
    """Every choice behind a benchmark instance, the seed included (§4.2 and Algorithm 1).

    Attributes
    ----------
    strategy : how patches are cut: d-hop, cluster, random, custom, or global for the whole graph at once.
    d : radius of a patch; for clusters the radius of the halo; without meaning for custom and global.
    p : coverage: the fraction of nodes (custom: of patches) that is observed.
    k : eigenvectors kept per patch (fewer where the patch is smaller).
    sigma : standard deviation of the Gaussian noise on every entry of the embedding; None where it is unknown.
    gauge : what is left undetermined in the embedding (see lograb.observations.gauges).
    seed : all randomness follows from it; None where it is withheld or unknown.
    clusters : number of METIS clusters; None to follow cluster_size.
    cluster_size : observed nodes per METIS cluster, about; None for 50, or for what clusters says.
    seed_nodes : number of random seed nodes; None for half of the observed nodes.
    eigenvalues : whether the eigenvalues are shared beside the embedding.
    defences : what is done to the graph and to what is shared, each as NAME:key=value,...
    releases : how many releases with fresh noise the eavesdropper averages.
    precision : how finely numbers are published: a float type, or a number of bits after the binary point.
    """

    strategy: StrategyName = "d-hop"
    d: int = Field(1, ge=0, le=64)
    p: float = Field(1.0, gt=0, le=1)
    k: int = Field(32, ge=1, le=1_000_000)
    sigma: float | None = Field(0.0, ge=0, le=MAX_SIGMA)
    gauge: GaugeName = "sign"
    seed: int | None = Field(0, ge=0)
    clusters: int | None = Field(None, ge=1)
    cluster_size: int | None = Field(None, ge=1)
    seed_nodes: int | None = Field(None, ge=1)
    eigenvalues: bool = True
    defences: Defences = ()
    releases: int = Field(1, ge=1, le=1_000_000)
    precision: Precision = "float64"

    @field_validator("precision", mode="before")
    @classmethod
    def _read_precision(cls, given: Any) -> Any:
        """Take bits as a number or as text."""
        if given in ("float64", "float32", "float16"):
            return given
        try:
            bits = int(given)
        except (TypeError, ValueError):
            bits = -1
        if isinstance(given, bool | float) or not 0 <= bits <= MAX_BITS:
            raise ValueError(f"is float64, float32, float16 or a number of bits from 0 to {MAX_BITS}")
        return bits

    @model_validator(mode="after")
    def _refuse_parameters_of_other_strategies(self) -> InstanceSpec:
        for name in ("clusters", "cluster_size"):
            if getattr(self, name) is not None and self.strategy != "cluster":
                raise ValueError(f"{name} belongs to the strategy 'cluster', not '{self.strategy}'")
        if self.clusters is not None and self.cluster_size is not None:
            raise ValueError("clusters and cluster_size both say how many clusters there are: leave one out")
        if self.seed_nodes is not None and self.strategy != "random":
            raise ValueError(f"seed_nodes belongs to the strategy 'random', not '{self.strategy}'")
        return self

    @property
    def protocol(self) -> Protocol:
        """The public part: what an eavesdropper knows of these choices."""
        sigma = None if self.sigma is None else self.sigma / self.releases**0.5
        return Protocol(**self.model_dump(include=set(Protocol.model_fields)) | {"sigma": sigma})


def checked(kind: type[Kind], parameters: dict[str, Any], who: str = "") -> Kind:
    """Build settings; what is wrong with the first parameter that is becomes one line, after `who`."""
    try:
        return kind(**parameters)
    except ValidationError as error:
        raise LograbError(who + first_problem(error)) from None


def first_problem(error: ValidationError) -> str:
    """Put the first thing that a validation found wrong into one line."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    problem = first["msg"].removeprefix("Value error, ")
    return f"{where}: {problem}, got {first['input']!r:.80}" if where else problem
