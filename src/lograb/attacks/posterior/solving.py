"""Rows that can be solved exactly settle their pairs, in patches of any size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import logit

from lograb.attacks.posterior.beliefs import Beliefs, Scene, Status
from lograb.attacks.posterior.precision import rounding_error
from lograb.attacks.posterior.rows import BUDGET, VALUE_ERROR, RowFacts, solve_rows
from lograb.attacks.posterior.withheld import CALM, VALUES_TO
from lograb.types import Floats, Ints

SOLVED = 13.0
"""Log-odds of pairs in rows that are solved."""


def rows(scene: Scene, beliefs: Beliefs) -> Beliefs:
    """Solve rows of truncated patches with little noise, and settle the pairs in them."""
    if scene.seen.protocol.gauge == "rotation":
        return beliefs
    seen, where = scene.seen, dict[int, tuple[int, int]]()
    for number, batch in enumerate(scene.batches):
        where |= {int(patch): (number, at) for at, patch in enumerate(batch.which)}
    fitting = (seen.ranks > 1) & (seen.sizes > seen.ranks) & (scene.variance * seen.sizes < CALM**2)
    budget = BUDGET
    told = {"patches": 0, "solved": 0, "members": 0}
    beyond_keys, beyond, missing = [beliefs.beyond[0]], [beliefs.beyond[1]], beliefs.beyond[2]
    for patch in np.flatnonzero(fitting).tolist():
        block = seen.block(patch)
        error = np.maximum(rounding_error(block), np.sqrt(scene.variance[patch]))
        if np.median(error) * np.sqrt(len(block)) > CALM:
            continue
        value_error = float(scene.blur[patch])
        if value_error <= VALUES_TO:
            values = seen.spectrum(patch)
        elif patch in scene.found:
            columns, values, value_error = scene.found[patch]
            block, error = block[:, columns], error[:, columns]
        else:
            continue
        value_error = max(value_error, VALUE_ERROR, float(rounding_error(values[values > 0]).max(initial=0.0)))
        if not values.any() or value_error > VALUES_TO:  # components and degrees only, or too vague
            continue
        facts = solve_rows(block, values, error, value_error, budget, scene.progress)
        if facts is None:
            continue
        budget = facts.left
        told = {"patches": told["patches"] + 1, "solved": told["solved"] + int(facts.solved.sum()),
                "members": told["members"] + len(facts.solved)}  # fmt: skip
        if patch in where:
            number, at = where[patch]
            batch = scene.batches[number]
            entry = scene.entry[batch.entries].reshape(len(batch.which), -1)[at]
            odds = np.zeros(len(beliefs.keys))
            odds[entry] = _odds(facts)
            beliefs = beliefs.settle(beliefs.open & (odds != 0), odds, Status.WEIGHED)
        else:
            members = seen.nodes[seen.ptr[patch] : seen.ptr[patch + 1]]
            beyond_keys.append(members[facts.pairs[:, 0]] * seen.n_nodes + members[facts.pairs[:, 1]])
            beyond.append(facts.probability)
            missing += max(float(facts.degrees.clip(0).sum() / 2 - facts.probability.sum()), 0.0)
    keys, index = np.unique(np.concatenate(beyond_keys), return_inverse=True)
    probability = np.zeros(len(keys))
    np.maximum.at(probability, index, np.concatenate(beyond))
    new = ~np.isin(keys, beliefs.keys)
    return replace(beliefs.tell(rows=told), beyond=(keys[new], probability[new], missing))


def _odds(facts: RowFacts) -> Floats:
    """Log-odds of all pairs i < j of a patch, flat; 0 where nothing is known."""
    q = len(facts.solved)
    apart = facts.component[:, None] != facts.component[None, :]
    odds = np.where(apart | facts.solved[:, None] | facts.solved[None, :], -SOLVED, 0.0)
    i, j = facts.pairs.T
    odds[i, j] = np.clip(logit(facts.probability), -SOLVED, SOLVED)
    # Ties of even odds are settled too: as far as they can be.
    odds[i, j] = np.where(odds[i, j] == 0, 1e-9, odds[i, j])
    upper: tuple[Ints, Ints] = np.triu_indices(q, k=1)
    return np.asarray(odds[upper])
