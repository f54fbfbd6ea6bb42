"""What every defence has: settings with defaults, what it promises, and what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from lograb.errors import LograbError, unknown_name
from lograb.spec import first_problem
from lograb.types import Floats, Graph, Ints, Observations

Guarantee = Literal["formal", "heuristic", "none"]


class Defence(BaseModel):
    """A way to share less. Its fields are its settings, given by name to the constructor.

    Attributes
    ----------
    name : str
    touches : tuple of str
        The channels it acts on: membership, centres, eigenvalues, eigenvectors.
    guarantee : {"formal", "heuristic", "none"}
        Only noise of a formal defence, Gaussian on what it has clipped, counts in the ledger and the bound.
    unit : str
        What a formal guarantee protects: an embedding (all that is shared of one patch), an edge.
    does : str
        What it does, in a few words.
    exposes : str
        What it does not protect.
    on_graph : bool
        Whether it acts on the graph before that is cut.
    renames : bool
        Whether it gives nodes fresh names per patch.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: ClassVar[str]
    touches: ClassVar[tuple[str, ...]]
    guarantee: ClassVar[Guarantee] = "heuristic"
    unit: ClassVar[str] = "-"
    does: ClassVar[str]
    exposes: ClassVar[str]
    on_graph: ClassVar[bool] = False
    renames: ClassVar[bool] = False

    if not TYPE_CHECKING:  # a type checker reads the parameters off the fields

        def __init__(self, **settings: Any) -> None:
            known = type(self).model_fields
            for key in settings:
                if key not in known:
                    raise unknown_name(f"{self.name} setting", key, known or ["none"])
            try:
                super().__init__(**settings)
            except ValidationError as error:
                told = ", ".join(known) or "none"
                raise LograbError(f"{self.name}: {first_problem(error)}. Settings: {told}") from None

    def __str__(self) -> str:
        given = [f"{key}={getattr(self, key)}" for key in type(self).model_fields
                 if getattr(self, key) is not None]  # fmt: skip
        return self.name + (":" + ",".join(given) if given else "")

    def changes(self, spec: dict[str, Any]) -> dict[str, Any]:
        """Give the fields of a spec that follow: a smaller k, another gauge, no eigenvalues."""
        return {}

    def sanitise(self, graph: Graph, rng: np.random.Generator) -> Graph:
        """Give the graph that is cut instead of the true one; only for defences on graphs."""
        raise NotImplementedError

    def apply(self, seen: Observations, rng: np.random.Generator, releases: int) -> Observations:
        """Give what is shared instead; only for defences on what is shared."""
        return seen

    def vector_noise(self, sizes: Ints, ranks: Ints) -> Floats:
        """Standard deviation of the noise that each patch's eigenvectors get in one release."""
        return np.zeros(len(ranks))

    def vector_reach(self, sizes: Ints, ranks: Ints) -> Floats:
        """How far apart two embeddings can be that this noise is added to, whatever the columns that were given.

        2 √r, for those that are clipped to norm √r; a formal defence that clips to another norm says so here.
        """
        return np.asarray(2.0 * np.sqrt(ranks))

    def value_noise(self, sizes: Ints, ranks: Ints) -> Floats:
        """Standard deviation of the noise that each patch's eigenvalues get in one release."""
        return np.zeros(len(ranks))

    def value_blur(self) -> float:
        """Standard deviation of what is wrong with eigenvalues besides noise."""
        return 0.0

    def flip_rates(self, density: float, n_pairs: int) -> tuple[float, float]:
        """Probabilities that a pair is an edge of the sanitised graph: if it is one of the true graph, if not."""
        return 1.0, 0.0

    def edge_epsilon(self) -> float:
        """ε of a purely ε-private mechanism on edges."""
        return float("inf")
