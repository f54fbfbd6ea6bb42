"""What every attack has: parameters with defaults, and one method from observations to a reconstruction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from lograb.errors import LograbError, unknown_name
from lograb.progress import Progress, ignore
from lograb.spec import first_problem
from lograb.types import Ints, Observations, Reconstruction

SPECTRAL = ("members", "eigenvalues", "eigenvectors")


class Attack(BaseModel):
    """A way to rebuild the graph. Its fields are its parameters, given by name to the constructor.

    Attributes
    ----------
    version : part of the identity of stored runs: it changes whenever the answers do
    uses : the parts of the observations it needs: members, centres, eigenvalues, eigenvectors, features
    optional : parts that it uses where the observations carry them
    trivial : whether it belongs to the floor: a trivial attacker, fast and without any spectral skill
    scenario : who attacks, with what
    cost : what its time grows with
    extra : the optional dependency that it needs
    averages : whether its odds on a pair, score / (1 - score), are a mean over the patches that contain it: so are
        then those of an answer joined from parts
    together : whether it takes many graphs at once, in less time than one after the other; see `reconstruct_each`
    small_only : whether it refuses all but small graphs; such an attack runs only where it is asked for by name
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    uses: ClassVar[tuple[str, ...]]
    scenario: ClassVar[str]
    cost: ClassVar[str]
    optional: ClassVar[tuple[str, ...]] = ()
    trivial: ClassVar[bool] = False
    extra: ClassVar[str | None] = None
    averages: ClassVar[bool] = False
    together: ClassVar[bool] = False
    small_only: ClassVar[bool] = False

    if not TYPE_CHECKING:  # a type checker reads the parameters off the fields

        def __init__(self, **parameters: Any) -> None:
            known = type(self).model_fields
            for key in parameters:
                if key not in known:
                    raise unknown_name(f"{self.name} setting", key, known or ["none"])
            try:
                super().__init__(**parameters)
            except ValidationError as error:
                raise LograbError(f"{self.name}: {first_problem(error)}. Settings: {', '.join(known)}") from None

    def reconstruct(
        self, seen: Observations, rng: np.random.Generator, progress: Progress = ignore
    ) -> Reconstruction:
        """Rebuild the graph from what is seen."""
        raise NotImplementedError(f"{type(self).__name__} must define reconstruct(seen, rng, progress)")

    def reconstruct_each(
        self, seen: Sequence[Observations], rngs: Sequence[np.random.Generator]
    ) -> list[Reconstruction]:
        """Rebuild several graphs; none has a say in the answer about another."""
        return [self.reconstruct(one, rng) for one, rng in zip(seen, rngs, strict=True)]

    def __call__(self, seen: Observations, rng: np.random.Generator) -> Reconstruction:
        """Rebuild the graph; so an attack is also a function of observations and a generator."""
        return self.reconstruct(seen, rng)

    def costs(self, seen: Observations) -> Ints:
        """Count the pairs that it looks at in each patch; 0 in those that it leaves out because of their size."""
        return np.asarray(seen.sizes * (seen.sizes - 1) // 2)

    def for_part(self, entries: int) -> Attack:
        """Give the attack that judges one part of the patches, with so many pairs to look at by `costs`."""
        return self

    def finish(self, joined: Reconstruction) -> Reconstruction:
        """Do to the joined answer of all parts what has to see all pairs of a node at once."""
        return joined

    @property
    def label(self) -> str:
        """The name, and the parameters that differ from their defaults."""
        changed = ", ".join(f"{key}={_plain(value)}" for key, value in self._changed().items())
        return f"{self.name}({changed})" if changed else self.name

    def _changed(self) -> dict[str, Any]:
        return {key: value for key, field in type(self).model_fields.items()
                if (value := getattr(self, key)) != field.default}  # fmt: skip

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._changed().items())})"


def _plain(value: Any) -> str:
    return "+".join(map(str, value)) if isinstance(value, tuple) else str(value)
