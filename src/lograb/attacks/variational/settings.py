"""All choices of the variational procedure; the paper names the ingredients and none of the values."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class VariationalSettings(BaseModel):
    """Choices of the variational Bayesian procedure (Proposition 1 and its appendix); all values are ours.

    Attributes
    ----------
    correspondence : ``none`` compares clouds of unlabelled points, as printed; ``known`` uses that row i
        belongs to node i.
    estimator : how the gradient of the expected likelihood is estimated: ``score`` from sampled graphs
        (unbiased, as the printed description of a step suggests), or ``relaxed`` through graphs with
        weights between 0 and 1 and the derivatives of their eigenvectors.
    samples : graphs drawn per step, K.
    steps : steps of stochastic gradient ascent (Adam).
    learning_rate : of Adam, on the log-odds of the edges.
    temperature : of the relaxation; towards 0 its weights become 0 or 1.
    gamma : strength of the likelihood; None for n / (2 σ²), the Gaussian one's, with the σ announced or
        estimated, at least `sigma_floor` / √n.
    sigma_floor : smallest σ assumed, as a multiple of an entry's typical size 1 / √n.
    prior_degree : mean degree under the Erdős–Rényi prior.
    epsilon : entropic term, as a multiple of the mean squared distance between two observed rows.
    debiased : whether the Sinkhorn divergence is used; otherwise the plain entropic transport cost.
    turns : how often plan and gauge take turns for one candidate.
    sinkhorn_iterations, tolerance : of Sinkhorn's iteration.
    max_nodes : largest total number of patch members (nodes, in the global scenario) that is accepted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    correspondence: Literal["none", "known"] = "none"
    estimator: Literal["score", "relaxed"] = "score"
    samples: int = Field(default=16, ge=2)
    steps: int = Field(default=300, ge=0)
    learning_rate: float = Field(default=0.05, gt=0)
    temperature: float = Field(default=0.5, gt=0)
    gamma: float | None = Field(default=None, ge=0)
    sigma_floor: float = Field(default=0.1, gt=0)
    prior_degree: float = Field(default=4.0, gt=0)
    epsilon: float = Field(default=0.1, gt=0)
    debiased: bool = True
    turns: int = Field(default=3, ge=1)
    sinkhorn_iterations: int = Field(default=50, ge=10)
    tolerance: float = Field(default=1e-3, gt=0)
    max_nodes: int = Field(default=300, ge=1)
