"""What can be chosen about the posterior attack."""

from __future__ import annotations

from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator

Channel = Literal["membership", "eigenvalues", "eigenvectors"]
Stage = Literal["rows", "judge", "check", "relax", "again", "paths", "temper"]


class PosteriorSettings(BaseModel):
    """Settings of the posterior attack; the defaults were chosen on generated graphs only.

    Attributes
    ----------
    channels : the evidence to use. Without ``membership``, who sits in whose patch says nothing beyond which
        pairs can be judged; without ``eigenvalues`` they are treated as withheld; without ``eigenvectors`` only
        membership is left.
    stages : what is done, in this order: ``rows`` are solved exactly; ``judge`` all pairs; ``check`` patches
        against their eigenvalues; ``relax`` large ones that are not explained; check ``again`` with what is known
        by then; follow ``paths`` of two edges, where much is open all at once and before any check; ``temper``
        probabilities by how well they explain what was seen. Each can be left out.
    iterations : how often all pairs are judged anew given the current estimate of all others.
    damping : share of the old that is kept in each iteration, of evidence and of probabilities.
    misfit : share of pairs on which the model as such is wrong; they get the share of edges among all open pairs,
        or 0.05 where balls of radius 2 or more have ruled out most of them.
    max_entries : pairs in patches that are looked at, counted once per patch, smallest patches first. Patches
        beyond it contribute their membership only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    channels: tuple[Channel, ...] = Field(default=("membership", "eigenvalues", "eigenvectors"))
    stages: tuple[Stage, ...] = Field(default=get_args(Stage))
    iterations: int = Field(default=6, ge=1, le=1000)
    damping: float = Field(default=0.3, ge=0, lt=1)
    misfit: float = Field(default=0.02, ge=0, lt=1)
    max_entries: int = Field(default=20_000_000, ge=0)

    @field_validator("channels", "stages", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        """Accept names with commas between them, as on the command line."""
        return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value
