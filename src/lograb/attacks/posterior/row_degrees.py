"""Components and degrees of a patch, from the columns with eigenvalue 0.

Their projector has the entries √(d_i d_j) / vol inside a component and 0 between components. So rows of one
component are parallel, rows of two are orthogonal, and the squared length of row i is d_i / vol. Degrees are whole
numbers: the right volume is the smallest one that makes them so.
"""

from __future__ import annotations

import numpy as np

from lograb.types import Floats, Ints

STEPS = 4001
LOWEST = 60
"""Members with the smallest degrees, which show the scale best."""
MAX_DEGREE = 12
"""Largest degree that the least connected members may have."""
FIT = 1.5
"""Mean squared departure from whole numbers, in units of the error, up to which a volume fits."""
CERTAIN = 0.16
"""Error of a degree, in edges, up to which it is taken for known."""


def components(kernel: Floats) -> Ints:
    """Number the components of a patch, shape (q,); rows of the kernel (q, c) that are 0 get -1.

    A leader of each component is the longest row that is orthogonal to the leaders so far.
    """
    lengths = np.linalg.norm(kernel, axis=1)
    directions = kernel / np.maximum(lengths, 1e-300)[:, None]
    leaders: list[int] = []
    overlap = np.zeros((len(kernel), 0))
    for _ in range(kernel.shape[1]):
        free = lengths * (np.abs(overlap).max(axis=1, initial=0.0) < 0.5)
        if not free.any():
            break
        leaders.append(int(free.argmax()))
        overlap = directions @ directions[leaders].T
    return np.where(lengths > 0, np.abs(overlap).argmax(axis=1), -1)


def whole_degrees(kernel: Floats, error: Floats) -> tuple[Ints, Ints]:
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
        A degree is -1 where the numbers do not tell.
    """
    component = components(kernel)
    degrees = np.full(len(kernel), -1)
    weights = (kernel**2).sum(axis=1)
    for number in range(component.max(initial=-1) + 1):
        inside = np.flatnonzero(component == number)
        if len(inside) == 1:
            degrees[inside] = 0
        else:
            spread = 2.0 * np.sqrt(weights[inside]) * error[inside] + 1e-9 * weights[inside]
            degrees[inside] = _whole(weights[inside], spread)
    return component, degrees


def _whole(weights: Floats, spread: Floats) -> Ints:
    """Find the smallest factor that makes all weights whole numbers from 1 on, given their errors."""
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
            return np.where(sure, whole, -1).astype(np.int64)
    return np.full(len(weights), -1)
