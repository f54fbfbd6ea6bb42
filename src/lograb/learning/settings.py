"""How models are trained; without torch, so that choices can be checked before it is loaded."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class TrainingSettings(BaseModel):
    """How all models are trained (Appendix C); the paper leaves the patience of early stopping open.

    Attributes
    ----------
    learning_rate, weight_decay : of Adam.
    epochs : at most so many.
    patience : epochs without a better validation F1-micro before training stops; the best weights are kept.
    batch_size : patches per step.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    learning_rate: float = Field(default=0.01, gt=0, allow_inf_nan=False)
    weight_decay: float = Field(default=5e-4, ge=0, allow_inf_nan=False)
    epochs: int = Field(default=100, ge=1)
    patience: int = Field(default=20, ge=1)
    batch_size: int = Field(default=32, ge=1)
