"""All parameters of AFR in one place, with the paper's values as defaults (hyper-parameter table)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from lograb.attacks.thresholds import TAU, ThresholdName, margins
from lograb.types import Floats, Ints

# The table's adaptive-penalty scaling for the k it was tuned at; between them the nearest k counts.
GAMMA = {16: 30.0, 32: 70.0, 64: 140.0}


class AfrSettings(BaseModel):
    """Parameters of AFR. Those marked * are not named in the paper; the default is ours.

    Attributes
    ----------
    t : time of the heat kernel.
    threshold, tau : * how a kernel becomes a graph; see `lograb.attacks.thresholds`.
    drop_last : * whether complete patches enter without their last eigenpair, k_Q = q - 1: into the ``kernel``,
        ``everywhere`` (into gap and residual too, which makes the filter of core patches bite), or ``no``.
    alpha : weight of the gap-to-truncation ratio in the fidelity score; 1 leaves the ratio alone,
        0 the entropy.
    s_min, delta_min, q_max : what makes a core patch.
    k_base, gamma : the adaptive overlap; gamma None takes the table's value for the shared k.
    align_dim : ``full`` aligns in all k dimensions, as printed, and needs overlaps of k + 1 nodes;
        ``auto`` aligns in the r leading dimensions for which an overlap has twice the nodes that pin them down.
    order : ``fidelity`` stitches the most trustworthy pairs first, ``random`` ablates that.
    adaptive : whether the demanded overlap grows as fidelity falls.
    ransac : whether alignment is robust; plain Procrustes otherwise.
    iterations : samples RANSAC draws.
    inlier_tolerance : * largest residual of an inlier, as a multiple of the overlap's mean row norm.
    connected : * demand on the overlap: ``connected``, ``diameter`` (at most 2) or ``any``.
    bundle : ``joint`` over absolute rotations, ``literal`` as printed (pair by pair), or ``off``.
    bundle_steps : most steps of descent.
    cross_voting, c0, kappa : links between islands by co-occurrence: ``beside`` the claimed edges, as Algorithm 2
        returns them, ``merged`` with them, islands' edges first, or ``off``.
    score : * ``island`` scores a pair by the island's mean positions; ``local`` by the mean of the patches' own
        heat kernels, weighted by fidelity, as if nothing had been stitched.
    top_k : keep an edge if it is among the top_k best of one of its two nodes, so that a node may have more;
        None for no filter.
    output : * ``cap`` filters the edges that pass their threshold; ``fill`` emits the top_k best pairs of every
        node whether they pass or not, and needs a top_k.
    max_size, vote_size : * larger patches are left out, because their pairs would fill the memory: of everything,
        and of cross-voting. The diagnostics count them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    t: float = Field(default=0.8, gt=0)
    threshold: ThresholdName = "noise"
    tau: float = Field(default=TAU, gt=0)
    drop_last: Literal["no", "kernel", "everywhere"] = "kernel"
    alpha: float = Field(default=0.7, ge=0, le=1)
    s_min: float = Field(default=0.6, ge=0, le=1)
    delta_min: float = Field(default=0.1, ge=0)
    q_max: int | None = Field(default=None, ge=1)
    k_base: int = Field(default=5, ge=1)
    gamma: float | None = Field(default=None, ge=0)
    align_dim: Literal["full", "auto"] = "full"
    order: Literal["fidelity", "random"] = "fidelity"
    adaptive: bool = True
    ransac: bool = True
    iterations: int = Field(default=300, ge=1)
    inlier_tolerance: float = Field(default=0.5, gt=0)
    connected: Literal["connected", "diameter", "any"] = "connected"
    bundle: Literal["joint", "literal", "off"] = "joint"
    bundle_steps: int = Field(default=100, ge=0)
    cross_voting: Literal["beside", "merged", "off"] = "beside"
    c0: int = Field(default=2, ge=0)
    kappa: float = Field(default=1.0, gt=0)
    score: Literal["island", "local"] = "island"
    top_k: int | None = Field(default=5, ge=1)
    output: Literal["cap", "fill"] = "cap"
    max_size: int = Field(default=4000, ge=2)
    vote_size: int = Field(default=2000, ge=2)

    @model_validator(mode="after")
    def _fill_needs_a_number(self) -> AfrSettings:
        if self.output == "fill" and self.top_k is None:
            raise ValueError("output=fill without a top_k would claim every pair: set top_k")
        return self

    def margins(self, kernel: Floats, vectors: Floats, values: Floats) -> Floats:
        """Divide the entries of kernels by their thresholds; see `lograb.attacks.thresholds.margins`."""
        return margins(kernel, vectors, values, self.t, self.threshold, self.tau)

    @property
    def passing(self) -> float:
        """Score from which a pair may be claimed."""
        return 0.5 if self.output == "cap" else 0.0

    def gamma_at(self, k: int) -> float:
        """Give the scaling for embeddings of k columns."""
        if self.gamma is not None:
            return self.gamma
        return GAMMA[min(GAMMA, key=lambda tuned: (abs(tuned - k), tuned))]

    def needed_overlap(self, r: Ints | int, k: int, fidelity: Floats | float) -> Floats:
        """Say how many nodes two patches must share to be aligned in r of k dimensions; any shape.

        ``full`` (r = k): max{k + 1, k_base + gamma (1 - fidelity)}. ``auto`` scales gamma with r by
        the rule that the paper derives for it, (r + 1 - k_base) / (1 - s_min), with k_base at most
        r + 1. Without adaptation the floor r + 1 alone counts.
        """
        floor = np.asarray(r + 1.0)
        if not self.adaptive:
            return floor
        if self.align_dim == "full":
            return np.asarray(np.maximum(floor, self.k_base + self.gamma_at(k) * (1 - fidelity)))
        base = np.minimum(self.k_base, floor)
        gamma = (floor - base) / (1 - self.s_min) if self.s_min < 1 else 0.0
        return np.asarray(np.maximum(floor, base + gamma * (1 - fidelity)))
