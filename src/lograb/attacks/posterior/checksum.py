"""Published eigenvalues as a checksum: graphs whose spectrum is exactly the published one.

Noise is put on the eigenvectors only. The eigenvalues of a patch are exact, and a graph with a single wrong pair
has others: whoever guesses a patch can check the guess, and knows when it is right. A guess that fails is mended
(`mending`); one that passes is weighed against the others with the same eigenvalues (`exchanges`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from lograb.attacks.posterior.batches import Batch
from lograb.attacks.posterior.beliefs import Beliefs, Scene, Status
from lograb.attacks.posterior.exchanges import judge
from lograb.attacks.posterior.graphs import EXACT, Patch, passes
from lograb.attacks.posterior.mending import MAX_DESCENT, search
from lograb.attacks.posterior.paths import reconcile
from lograb.pairs import vectors_of
from lograb.parallel import ordered_map
from lograb.types import Bools, Floats, Ints

MAX_COST = 8.0
"""Largest log-odds that other patches lend to a pair: they may err together."""
MAX_SIZE = (200, 400)
"""Members of the largest patch that is checked at first, and again."""
MAX_WRONG = (20.0, 3.0)
"""Expected number of wrong pairs up to which a patch is mended: up to `MAX_DESCENT` members, and beyond."""
FAINT = 1e-4
"""Distance from 0 and 1 from which a pair is open."""
ENOUGH = 6
"""Patches that are asked again about a pair."""
TIMES = 2
"""How often patches are checked again."""


@dataclass(frozen=True)
class Question:
    """What is asked about patches of one batch, at the positions `asked`.

    Attributes
    ----------
    doubtful : bool array, shape (b,)
        Patches with an open pair. The others are checked, but neither mended nor weighed: nothing hangs on it.
    log_odds, cost : float arrays, shape (b, q, q)
        As in `Patch`; the signs are the graph that is checked first.
    known : float array, shape (b, q, q)
        1 and -1 for pairs that are no question, else 0: a graph that has them otherwise does not pass.
    """

    batch: Batch
    asked: Ints
    doubtful: Bools
    log_odds: Floats
    cost: Floats
    known: Floats


def check(scene: Scene, beliefs: Beliefs) -> Beliefs:
    """Check the likeliest graph of each patch against its eigenvalues; mend it if it fails, settle it if not."""
    if not scene.checked:
        return beliefs
    found, passed = _ask(scene, _all(scene, beliefs), len(beliefs.keys), "checking patches")
    n_read = sum(len(batch.which) for batch in scene.batches)
    beliefs = beliefs.tell(passed=[passed], not_passed=n_read - passed)
    return beliefs.settle(beliefs.open & (found != 0), found, Status.WEIGHED)


def _all(scene: Scene, beliefs: Beliefs) -> Iterator[Question]:
    """Ask about all patches that are not too large."""
    open_ = beliefs.open
    for batch in scene.checked:
        if batch.size <= MAX_SIZE[0]:
            places, own = scene.places(batch), batch.matrix(beliefs.own[batch.entries])
            doubtful, given = np.asarray(open_[places].any(axis=1)), batch.matrix(beliefs.log_odds[places])
            cost = np.clip(given - own, -MAX_COST, MAX_COST)
            yield Question(batch, np.arange(len(places)), doubtful, given, cost, np.zeros_like(given))


def again(scene: Scene, beliefs: Beliefs) -> Beliefs:
    """Check patches with open pairs again, the large ones too, given what checks and paths have told by now."""
    for _ in range(TIMES if scene.checked and scene.radius > 1 else 0):
        view = reconcile(scene, beliefs)
        known = view.known
        found, passed = _ask(scene, _with_doubts(scene, view, known), len(known), "checking patches again")
        new = (known == 0) & (found != 0)
        if not new.any():
            break
        beliefs = beliefs.settle(new, found, Status.WEIGHED)
        beliefs = beliefs.tell(passed=[*beliefs.told.get("passed", []), passed])
    return beliefs


def _with_doubts(scene: Scene, beliefs: Beliefs, known: npt.NDArray[np.int8]) -> Iterator[Question]:
    """Ask about patches that hold pairs in doubt, `ENOUGH` for each pair, with the `known` ones (m,) fixed."""
    probability, times = beliefs.probability, np.zeros(len(known), dtype=np.int64)
    doubt = np.where(known == 0, np.minimum(probability, 1.0 - probability), 0.0)
    for batch in scene.checked:
        places, asked = scene.places(batch), []
        open_ = doubt[places] > FAINT
        for at in np.flatnonzero(open_.any(axis=1) & (batch.size <= MAX_SIZE[1])).tolist():
            pairs = places[at, open_[at]]
            if (times[pairs] < ENOUGH).any():
                times[pairs] += 1
                asked.append(at)
        if asked:
            fixed, given = batch.matrix(known[places].astype(float)), batch.matrix(beliefs.log_odds[places])
            doubtful = np.ones(len(places), dtype=bool)
            yield Question(batch, np.array(asked), doubtful, given, MAX_COST * fixed, fixed)


def _ask(scene: Scene, questions: Iterator[Question], size: int, what: str) -> tuple[Floats, int]:
    """Log-odds of the pairs that patches that pass settle, 0 for the others, shape (size,); how many patches pass.

    Where two of them contradict each other, their log-odds cancel.
    """
    low, high, passed, done = np.zeros(size), np.zeros(size), 0, 0
    total = sum(len(batch.which) for batch in scene.batches)

    def one(question: Question) -> tuple[Question, Bools, Floats]:
        return question, *_check(question, vectors_of(scene.seen, question.batch.which))

    for question, right, odds in ordered_map(one, questions):
        batch = question.batch
        entry = scene.entry[batch.entries]
        np.minimum.at(low, entry, batch.pairs(odds))
        np.maximum.at(high, entry, batch.pairs(odds))
        passed += int(right.sum())
        done += len(right)
        scene.progress(what, done, total)
    return low + high, passed


def _check(question: Question, observed: Floats) -> tuple[Bools, Floats]:
    """Check and mend patches: which passed, and the log-odds of pairs where they did."""
    batch, log_odds = question.batch, question.log_odds
    graphs, odds = (log_odds > 0).astype(float), np.zeros(log_odds.shape)
    off_diagonal = ~np.eye(batch.size, dtype=bool)
    if batch.rank > 1:  # only the complete graph has these eigenvalues, whatever noise makes of it
        graphs[np.abs(batch.mu[:, 1:] * (batch.size - 1) + 1.0).max(axis=1) < EXACT] = off_diagonal
    passed = np.zeros(len(graphs), dtype=bool)
    passed[question.asked] = passes(graphs[question.asked], batch.mu[question.asked])
    wrong = expit(-np.abs(log_odds))[:, off_diagonal].sum(axis=1) / 2
    worth = question.doubtful & (passed | (wrong < MAX_WRONG[batch.size > MAX_DESCENT]))
    for at in question.asked[worth[question.asked]].tolist():
        patch = Patch(observed[at], batch.mu[at], float(batch.variance[at]), log_odds[at], question.cost[at])
        if not passed[at]:
            graphs[at], passed[at] = search(patch)
        if passed[at]:
            judged = judge(patch, graphs[at])
            passed[at] = judged is not None and not (question.known[at] * (judged[0] - 0.5) < 0).any()
            if judged is not None and passed[at]:
                odds[at] = judged[1]
    return passed, odds
