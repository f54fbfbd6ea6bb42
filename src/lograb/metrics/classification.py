"""How well predicted classes match true ones: F1 pooled over classes, and averaged over them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Labels = npt.NDArray[Any]


class F1(NamedTuple):
    """F1 of a classification, micro (all decisions pooled) and macro (classes weigh the same)."""

    micro: float
    macro: float


def f1_scores(truth: Labels, answer: Labels, n_classes: int) -> F1:
    """Compare classes, or sets of labels.

    With one class per item micro F1 is the accuracy. Macro F1 averages over the classes that occur
    in the truth or in the answer; a class that is never hit counts zero.

    Parameters
    ----------
    truth, answer : int arrays (n,) of classes, or bool arrays (n, n_classes) of labels
    n_classes : int

    Returns
    -------
    F1, with NaN in both where there is nothing to compare
    """
    if truth.ndim == 1:
        hits = np.bincount(truth[truth == answer], minlength=n_classes)
        true, claimed = (np.bincount(part, minlength=n_classes) for part in (truth, answer))
    else:
        hits, true, claimed = ((part).sum(axis=0) for part in (truth & answer, truth, answer))
    both = true + claimed
    present = both > 0
    if not present.any():
        return F1(float("nan"), float("nan"))
    return F1(float(2 * hits.sum() / both.sum()), float((2 * hits[present] / both[present]).mean()))


def choose_labels(scores: npt.NDArray[Any], *, multi_label: bool) -> Labels:
    """Turn class scores (logits) into an answer.

    One class: the largest score. Several labels: those more likely than not (score above 0), and the
    likeliest one where there is none; the true number of labels of a node is not used.

    Parameters
    ----------
    scores : float array, shape (n, n_classes)

    Returns
    -------
    int64 array (n,), or bool array (n, n_classes)
    """
    best = scores.argmax(axis=1)
    if not multi_label:
        return np.asarray(best)
    chosen = scores > 0
    chosen[np.arange(len(scores)), best] |= ~chosen.any(axis=1)
    return np.asarray(chosen)
