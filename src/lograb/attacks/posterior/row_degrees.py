"""Components and degrees of a patch, from the columns with eigenvalue 0.

In these columns the row of i is √d_i times a vector that all members of a component share: rows of one component
are parallel, and their squared lengths are as their degrees. Degrees are whole numbers of connected graphs, which
leaves few scales.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lograb.types import Bools, Floats, Ints

STEPS = 4001
LOWEST = 60
"""Members with the smallest degrees, which show the scale best."""
MAX_DEGREE = 12
"""Largest degree that the least connected members may have."""
FIT = 1.5
"""Mean squared departure from whole numbers, in units of the error, up to which a volume fits."""
CERTAIN = 0.16
"""Error of a degree, in edges, up to which it is taken for known."""
PARALLEL = 10.0
"""How much farther than their errors say rows of a component may point apart, squared."""
ALIKE = 8.0
"""Errors by which entries of members that cannot be told apart may differ, and up to which a row says nothing."""
MOST_DOUBTFUL = 0.5
"""Share of the members whose degrees may be in doubt."""
ALIVE = 30.0
"""Errors that the largest entry of a column must exceed to say something about a component."""


def telling(vectors: Floats, error: Floats) -> Bools:
    """Tell the columns (q, k) that are not empty on a component, shape (k,)."""
    return np.asarray((np.abs(vectors) > ALIVE * error).any(axis=0))


def points(vectors: Floats, error: Floats, degrees: Ints, doubt: Floats) -> tuple[Floats, Floats]:
    """Compute x_i = u_i / √d_i and the standard deviations of its entries, both (q, k).

    Parameters
    ----------
    vectors, error : float arrays, shape (q, k)
        Entries, and the standard deviations of their errors.
    degrees, doubt : arrays, shape (q,)
        As `whole_degrees` gives them.
    """
    root = np.sqrt(degrees)[:, None]
    x = vectors / root
    return x, np.hypot(error / root, 0.5 * x * (doubt / degrees)[:, None])


def components(kernel: Floats, error: Floats) -> Ints:
    """Number the components of a patch, shape (q,), by the directions of the rows of its kernel (q, c).

    A leader of each component is the longest row that is parallel to none so far; `error` (q,) is that of entries.
    All are -1 if some row is empty: the column that shows its component is missing.
    """
    lengths = np.linalg.norm(kernel, axis=1)
    if (lengths < ALIKE * error).any():
        return np.full(len(kernel), -1)
    directions = kernel / np.maximum(lengths, 1e-300)[:, None]
    doubt = kernel.shape[1] * (error / np.maximum(lengths, 1e-300)) ** 2 + 1e-16
    label, number = np.full(len(kernel), -1), 0
    while (label < 0).any():
        leader = int(np.where(label < 0, lengths, -1.0).argmax())
        apart = ((directions - directions[leader]) ** 2).sum(axis=1)
        label[(label < 0) & (apart < np.minimum(PARALLEL * (doubt + doubt[leader]), 1.0))] = number
        label[leader] = number
        number += 1
    return label


def whole_degrees(kernel: Floats, error: Floats) -> tuple[Ints, Ints, Floats]:
    """Find the components and degrees of all members.

    Parameters
    ----------
    kernel : float array, shape (q, c)
        The columns with eigenvalue 0.
    error : float array, shape (q,)
        Standard deviation of an entry's error.

    Returns
    -------
    component, degrees : int arrays, shape (q,)
        The smallest whole numbers in their ratio, see `scales`; -1 where the numbers do not tell.
    doubt : float array, shape (q,)
        Standard deviation of degrees that may be others; 0 where they are certain.
    """
    component = components(kernel, error)
    degrees, doubt = np.full(len(kernel), -1), np.zeros(len(kernel))
    weights = (kernel**2).sum(axis=1)
    for number in range(component.max(initial=-1) + 1):
        inside = np.flatnonzero(component == number)
        if len(inside) == 1:
            degrees[inside] = 0
        else:
            spread = 2.0 * np.sqrt(weights[inside]) * error[inside] + 1e-9 * weights[inside]
            found, deviation = _whole(weights[inside], spread)
            degrees[inside], doubt[inside] = found, deviation
    return component, degrees, doubt


class Kernel(NamedTuple):
    """How many columns have eigenvalue 0; the components, as many; degrees of members, and their doubt."""

    zeros: int
    component: Ints
    degrees: Ints
    doubt: Floats


def kernel_of(vectors: Floats, error: Floats) -> Kernel | None:
    """Find the columns with eigenvalue 0 of nearly exact eigenvectors (q, k); `error` is that of entries."""
    zeros = 1
    while zeros <= vectors.shape[1]:
        kernel, blur = vectors[:, :zeros], error[:, :zeros].max(axis=1)
        count = int(components(kernel, blur).max()) + 1
        if count == zeros:
            component, degrees, doubt = whole_degrees(kernel, blur)
            if (degrees >= 0).all() and (doubt > 0).mean() < MOST_DOUBTFUL:
                return Kernel(zeros, component, degrees, doubt)
        zeros = max(zeros + 1, count)  # columns may split components further, and never join them
    return None


def scales(degrees: Ints) -> list[int]:
    """List the factors that make degrees those of a connected graph without loops."""
    n, total = len(degrees), int(degrees.sum())
    most = (n - 1) // int(degrees.max())
    return [factor for factor in range(1, most + 1) if factor * total % 2 == 0 and factor * total >= 2 * (n - 1)]


def _whole(weights: Floats, spread: Floats) -> tuple[Ints, Floats]:
    """Find the smallest factor that makes all weights whole numbers from 1 on, and what is doubtful."""
    low = np.argsort(weights)[:LOWEST]
    least = float(np.quantile(weights, 0.02))
    for degree in range(1, MAX_DEGREE):
        near = degree / least * np.exp(np.linspace(-0.35, 0.35, STEPS) / degree)
        factors = np.concatenate([near, degree / weights[low]])  # exact numbers need no search
        scaled = factors[:, None] * weights[low]
        away = (scaled - np.maximum(np.round(scaled), 1.0)) / (factors[:, None] * spread[low])
        factor = factors[np.minimum(away**2, 25.0).mean(axis=1).argmin()]
        for _ in range(8):  # regression on the whole numbers found
            whole = np.maximum(np.round(factor * weights), 1.0)
            factor = (whole * weights / spread**2).sum() / (weights**2 / spread**2).sum()
        whole = np.maximum(np.round(factor * weights), 1.0)
        sure = factor * spread < CERTAIN
        away = (factor * weights - whole) / (factor * spread)
        if 4 * sure.sum() >= len(weights) and np.minimum(away[sure] ** 2, 25.0).mean() < FIT:
            return whole.astype(np.int64), np.where(sure, 0.0, factor * spread)
    return np.full(len(weights), -1), np.zeros(len(weights))
