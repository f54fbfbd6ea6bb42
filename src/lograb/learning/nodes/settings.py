"""Settings of trainings and models; without torch, so that choices can be checked before it is loaded."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Settings(BaseModel):
    """What all settings of learning have in common: no unknown names, no infinite numbers, true is no number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class TrainingSettings(Settings):
    """How all models are trained (Appendix C): by Adam; the paper leaves the patience of early stopping open."""

    learning_rate: float = Field(default=0.01, gt=0)
    weight_decay: float = Field(default=5e-4, ge=0)
    epochs: int = Field(default=100, ge=1)
    patience: int = Field(default=20, ge=1)
    """Epochs without a better validation F1-micro before training stops; the best weights are kept."""
    batch_size: int = Field(default=32, ge=1)
    """Patches per step."""


class LayerSettings(Settings):
    """Settings of `gcn` and `mlp`, and what the other small models share; `hidden` is the width in between."""

    hidden: int = Field(default=64, ge=1)
    layers: int = Field(default=2, ge=1)
    dropout: float = Field(default=0.5, ge=0, lt=1)


class SageSettings(LayerSettings):
    """Settings of `sage`; `pool` adds the printed map of neighbours, for which the counts leave no room."""

    pool: bool = False


class GatSettings(LayerSettings):
    """Settings of `gat`; `hidden` is the width of each of the `heads`."""

    hidden: int = Field(default=32, ge=1)
    heads: int = Field(default=4, ge=1)


class GinSettings(LayerSettings):
    """Settings of `gin`; `perceptron` says which layer has two maps."""

    perceptron: Literal["first", "last"] = "first"


class VirtualNodeSettings(LayerSettings):
    """Settings of `gin-vn`."""

    layers: int = Field(default=3, ge=1)


class TransformerSettings(Settings):
    """Settings of `gps` and `attention`, and what the other Transformers share; all heads are `hidden` wide."""

    hidden: int = Field(default=64, ge=1)
    layers: int = Field(default=4, ge=1)
    heads: int = Field(default=4, ge=1)
    dropout: float = Field(default=0.3, ge=0, lt=1)

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.hidden % self.heads:
            raise ValueError(f"hidden must be a multiple of heads, got {self.hidden} and {self.heads}")
        return self


class GraphormerSettings(TransformerSettings):
    """Settings of `graphormer`; larger degrees, and longer paths, share the last entry."""

    max_degree: int = Field(default=64, ge=1)
    max_distance: int = Field(default=16, ge=1)


class SanSettings(TransformerSettings):
    """Settings of SAN: `gamma` weighs virtual edges against real ones, a Transformer learns positions."""

    gamma: float = Field(default=0.01, ge=0)
    position_width: int = Field(default=16, ge=1)
    position_layers: int = Field(default=1, ge=1)
    position_heads: int = Field(default=4, ge=1)

    @model_validator(mode="after")
    def _heads_share_the_positions(self) -> Self:
        if self.position_width % self.position_heads:
            raise ValueError("position_width must be a multiple of position_heads, "
                             f"got {self.position_width} and {self.position_heads}")  # fmt: skip
        return self
