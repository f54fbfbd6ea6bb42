"""How far a candidate graph's embedding lies from the observed one: the likelihood of Proposition 1.

The likelihood of a candidate A is exp(-γ S_ε), with S_ε the Sinkhorn divergence between two clouds of n
points: the rows of the observed embedding P and those of the candidate's embedding U(A).

Eigenvectors are published up to a gauge, so U is first turned by the orthogonal Q that brings it closest:
one sign per column, an orthogonal block per repeated eigenvalue, or all of O(k) where the published
columns were rotated. Plan and Q are found in turns, starting from what no gauge changes, the lengths of the
rows inside each block. At the minimum the derivative of neither is needed (envelope theorem).

A cloud of points has no labels. As printed, the divergence is the same for A and for every renumbering of A
(``correspondence="none"``). With ``known`` the eavesdropper uses that row i belongs to node i: mass must not
move from one row to another, the plan is the identity, and S_ε is the mean squared distance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from lograb.attacks.variational.sinkhorn import Transport, sinkhorn, squared_distances
from lograb.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class Target:
    """What is observed of patches of one size and rank, and how candidates are compared with it."""

    rows: Floats  # (b, n, k), the embeddings
    blocks: Ints  # (n_blocks + 1,), where each block of columns starts that is known up to an orthogonal turn only
    epsilon: Floats  # (b,), strength of the entropic term, in units of squared distance
    labelled: bool = False  # whether row i of a candidate is compared with row i only
    debiased: bool = True  # whether the transport costs of each cloud with itself are subtracted
    turns: int = 3  # how often plan and gauge take turns
    iterations: int = 100  # of Sinkhorn
    tolerance: float = 1e-4  # of Sinkhorn
    own_cost: Floats | None = None  # (b,), of each observed cloud with itself, see `prepare`; 0 until then

    def prepare(self) -> Target:
        """Solve once and for all what does not depend on a candidate."""
        if self.labelled or not self.debiased:
            return self
        return replace(self, own_cost=self.transport(self.rows, self.rows).cost)

    def repeat(self, times: int) -> Target:
        """Face every patch with several candidates: patch i with those from i * times on."""
        rows, epsilon = np.repeat(self.rows, times, axis=0), np.repeat(self.epsilon, times)
        own_cost = None if self.own_cost is None else np.repeat(self.own_cost, times)
        return replace(self, rows=rows, epsilon=epsilon, own_cost=own_cost)

    def transport(self, first: Floats, second: Floats) -> Transport:
        """Solve the transport problems between stacked clouds."""
        return sinkhorn(squared_distances(first, second), self.epsilon, self.iterations, self.tolerance)


def divergence(target: Target, embedding: Floats) -> tuple[Floats, Floats]:
    """Compute S_ε of each candidate, shape (b,), and its derivative with respect to the embedding (b, n, k)."""
    n = embedding.shape[1]
    if target.labelled:
        turn = align(embedding.swapaxes(1, 2) @ target.rows, target.blocks)
        residual = embedding @ turn - target.rows
        return (residual**2).sum(axis=(1, 2)) / n, 2 / n * residual @ turn.swapaxes(1, 2)
    turn, solved = match(target, embedding)
    turned, cost = embedding @ turn, solved.cost
    slope = 2 * (turned / n - solved.plan.swapaxes(1, 2) @ target.rows)
    if target.debiased:
        own = target.transport(turned, turned)
        cost = cost - 0.5 * (own.cost + (0.0 if target.own_cost is None else target.own_cost))
        # OT_ε of a cloud with itself depends on each point twice, which cancels the factor one half.
        plan = 0.5 * (own.plan + own.plan.swapaxes(1, 2))
        slope = slope - 2 * (plan.sum(axis=2, keepdims=True) * turned - plan @ turned)
    return cost, np.asarray(slope @ turn.swapaxes(1, 2))


def match(target: Target, embedding: Floats) -> tuple[Floats, Transport]:
    """Find in turns the orthogonal Q (b, k, k) that carries the embedding to the observed rows, and the plan.

    The cost never rises from one turn to the next.
    """
    solved = target.transport(*(block_lengths(points, target.blocks) for points in (target.rows, embedding)))
    for _ in range(target.turns):
        turn = align(embedding.swapaxes(1, 2) @ solved.plan.swapaxes(1, 2) @ target.rows, target.blocks)
        solved = target.transport(target.rows, embedding @ turn)
    return turn, solved


def align(cross: Floats, blocks: Ints) -> Floats:
    """Find the orthogonal Q that minimises ‖P - U Q‖, from the cross products UᵀP, shape (b, k, k).

    Q is zero outside the diagonal blocks, which start at `blocks` and end at its last entry.
    """
    turn = np.zeros_like(cross)
    for start, stop in pairwise(blocks.tolist()):
        part = cross[:, start:stop, start:stop]
        if stop == start + 1:
            turn[:, start, start] = np.where(part[:, 0, 0] < 0, -1.0, 1.0)
        else:
            left, _, right = np.linalg.svd(part)
            turn[:, start:stop, start:stop] = left @ right
    return turn


def block_lengths(points: Floats, blocks: Ints) -> Floats:
    """Measure each row inside each block, shape (b, n, n_blocks): what no gauge changes."""
    return np.asarray(np.sqrt(np.add.reduceat(points**2, blocks[:-1], axis=2)))
