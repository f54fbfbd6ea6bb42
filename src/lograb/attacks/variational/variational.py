"""The eavesdropper of Proposition 1: a variational Bayesian posterior over all graphs, for small graphs.

The procedure is stated for one embedding of a whole graph. Where there are several patches each is treated
as a graph of its own, and a pair's probability is the mean over the patches that contain it; a pair is
claimed from one half on. All patches of one size and rank are treated together.

Nodes are renumbered inside each patch by what no gauge changes, so that neither their numbers nor the signs
of the published columns can influence the random draws.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field
from scipy.special import expit, logit

from lograb.attacks.attack import Attack
from lograb.attacks.variational.ascent import Ascent, Problem, ascend
from lograb.attacks.variational.likelihood import Target, block_lengths
from lograb.attacks.variational.sinkhorn import squared_distances
from lograb.errors import LograbError
from lograb.pairs import mean_by_key, members_of, patches_by_size, unpair
from lograb.progress import Progress, ignore
from lograb.types import Floats, Ints, Observations, Reconstruction

# Published eigenvalues closer than this are one repeated eigenvalue.
REPEATED = 1e-7
MAX_PRIOR = 0.5


class Variational(Attack):
    """The procedure behind Proposition 1; the paper names its ingredients and none of the values."""

    name = "variational"
    uses = ("members", "eigenvectors")
    scenario = "the procedure behind Proposition 1, for small graphs: a mean field under a Sinkhorn likelihood"
    cost = "steps, and cubes of patch sizes"
    optional = ("eigenvalues",)
    small_only = True

    correspondence: Literal["none", "known"] = "none"
    """Compare clouds of unlabelled points, as printed, or use that row i belongs to node i."""
    estimator: Literal["score", "relaxed"] = "score"
    """Estimate the gradient of the expected likelihood from sampled graphs (unbiased, as the printed description
    of a step suggests), or through graphs with weights between 0 and 1 and derivatives of their eigenvectors."""
    samples: int = Field(default=16, ge=2)  # graphs drawn per step, K
    steps: int = Field(default=300, ge=0)  # of stochastic gradient ascent (Adam)
    learning_rate: float = Field(default=0.05, gt=0)  # of Adam, on the log-odds of the edges
    temperature: float = Field(default=0.5, gt=0)  # of the relaxation; towards 0 its weights become 0 or 1
    gamma: float | None = Field(default=None, ge=0)
    """Strength of the likelihood; None for n / (2 σ²), the Gaussian one's, with the σ announced or estimated."""
    sigma_floor: float = Field(default=0.1, gt=0)  # smallest σ assumed, times an entry's typical size 1 / √n
    prior_degree: float = Field(default=4.0, gt=0)  # mean degree under the Erdős–Rényi prior
    epsilon: float = Field(default=0.1, gt=0)  # entropic term, times the mean squared distance of observed rows
    debiased: bool = True  # the Sinkhorn divergence; otherwise the plain entropic transport cost
    turns: int = Field(default=3, ge=1)  # how often plan and gauge take turns for one candidate
    sinkhorn_iterations: int = Field(default=50, ge=10)
    tolerance: float = Field(default=1e-3, gt=0)  # of Sinkhorn's iteration
    max_nodes: int = Field(default=300, ge=1)  # most patch members in all (nodes, in the global scenario)

    def reconstruct(
        self, seen: Observations, rng: np.random.Generator, progress: Progress = ignore
    ) -> Reconstruction:
        """Claim the pairs to which the mean field gives at least one half."""
        if len(seen.nodes) > self.max_nodes:
            raise LograbError("the variational attack is for small graphs: it takes patches with at most "
                              f"{self.max_nodes} members in all, got {len(seen.nodes)}. Raise max_nodes if you "
                              "can wait: each step costs the cube of a patch's size")  # fmt: skip
        keys, chances = [np.empty(0, np.int64)], [np.empty(0)]
        elbo = np.zeros(2)
        for which in patches_by_size(seen, self.max_nodes):
            for group in alike(seen, which):
                found, pairs = _infer(seen, group, rng, self)
                keys.append(pairs.ravel())
                chances.append(expit(found.log_odds).ravel())
                elbo += found.elbo.sum(axis=1)
        unique, chance = mean_by_key(np.concatenate(keys), np.concatenate(chances))
        pairs = unpair(unique, max(seen.n_nodes, 1))
        claimed = chance >= 0.5
        told = {"elbo": {"start": float(elbo[0]), "end": float(elbo[1])}, "steps": self.steps,
                "expected_edges": float(chance.sum())}  # fmt: skip
        return Reconstruction(seen.n_nodes, pairs[claimed], chance[claimed], np.unique(seen.nodes), pairs, chance,
                              diagnostics=told)  # fmt: skip


def alike(seen: Observations, which: Ints) -> list[Ints]:
    """Group patches of one size by the columns that belong together in their gauge; none without columns."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for i in which[seen.ranks[which] > 0].tolist():
        groups.setdefault(tuple(gauge_blocks(seen, i).tolist()), []).append(i)
    return [np.array(group) for group in groups.values()]


def gauge_blocks(seen: Observations, patch: int) -> Ints:
    """Split the columns of a patch into blocks that are published up to an orthogonal turn, as a pointer."""
    rank = int(seen.ranks[patch])
    if seen.protocol.gauge == "rotation":
        return np.array([0, rank])
    if seen.values is None:
        return np.arange(rank + 1)
    return np.concatenate([[0], 1 + np.flatnonzero(np.diff(seen.spectrum(patch)) > REPEATED), [rank]])


def _infer(
    seen: Observations, which: Ints, rng: np.random.Generator, settings: Variational
) -> tuple[Ascent, Ints]:
    """Run the ascent for patches of one size and gauge; returns it with the pairs it is about, as keys."""
    blocks = gauge_blocks(seen, int(which[0]))
    rows = np.stack([seen.block(int(i)) for i in which])
    order = canonical_order(rows, blocks)
    rows = np.take_along_axis(rows, order[:, :, None], axis=1)
    # The ascent enlarges differences in the last bit: columns start with the sign that their largest entry gives.
    rows = rows * np.sign(np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1) + 1e-300)
    members = np.take_along_axis(members_of(seen, which), order, axis=1)
    problem = state_problem(rows, blocks, seen.protocol.sigma, settings)
    start = np.full((len(which), problem.n_pairs), logit(problem.prior))
    found = ascend(problem, start, rng, settings.steps, settings.samples, settings.learning_rate)
    upper = np.triu_indices(members.shape[1], k=1)
    first, second = members[:, upper[0]], members[:, upper[1]]
    return found, np.minimum(first, second) * seen.n_nodes + np.maximum(first, second)


def canonical_order(rows: Floats, blocks: Ints) -> Ints:
    """Sort the rows of stacked embeddings by their lengths inside each block, first block first."""
    lengths = block_lengths(rows, blocks)
    return np.stack([np.lexsort(patch.T[::-1]) for patch in lengths])


def state_problem(rows: Floats, blocks: Ints, sigma: float | None, settings: Variational) -> Problem:
    """Fix everything that the paper leaves open, from the settings and the data (b, n, k).

    Sigma is the noise as announced; None to estimate it.
    """
    _, n, _ = rows.shape
    gamma = np.full(len(rows), settings.gamma)
    if settings.gamma is None:
        noise = estimate_noise(rows) if sigma is None else np.full(len(rows), sigma)
        gamma = n / (2 * np.maximum(noise, settings.sigma_floor / np.sqrt(n)) ** 2)
    spread = squared_distances(rows, rows).mean(axis=(1, 2))
    target = Target(rows, blocks, settings.epsilon * np.maximum(spread, 1e-12),
                    settings.correspondence == "known", settings.debiased, settings.turns,
                    settings.sinkhorn_iterations, settings.tolerance).prepare()  # fmt: skip
    prior = min(MAX_PRIOR, settings.prior_degree / (n - 1))
    return Problem(target, gamma, prior, settings.estimator, settings.temperature)


def estimate_noise(rows: Floats) -> Floats:
    """Estimate σ from the departure from orthonormality: the columns' mean square is (1 + n σ²) / n."""
    _, n, k = rows.shape
    return np.asarray(np.sqrt(np.maximum((rows**2).sum(axis=(1, 2)) / k - 1, 0) / n))
