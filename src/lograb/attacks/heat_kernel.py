"""The heat kernel of each patch by itself (Stage 1 of Algorithm 2, without alignment).

H = U exp(-t Λ) Uᵀ decays with the distance between nodes, so large off-diagonal entries mark
edges. Its entries carry the factor 1 / sqrt(d_i d_j), so no fixed threshold fits all patches: each
patch is split where its own entries fall into two groups (Otsu's rule), without the truth.
"""

from __future__ import annotations

import numpy as np

from lograb.attacks.pairs import mean_by_key, members_of, pair_keys, patches_by_size, unpair
from lograb.errors import LograbError
from lograb.types import Floats, Observations, Reconstruction

TIME = 0.8
MAX_SIZE = 2000


def heat_kernel(seen: Observations, rng: np.random.Generator) -> Reconstruction:
    """Claim the pairs that most of their patches place among the edges."""
    if seen.values is None:
        raise LograbError("the heat kernel needs the eigenvalues, and these observations withhold them")
    keys, votes = [np.empty(0, np.int64)], [np.empty(0)]
    for which, q in patches_by_size(seen, MAX_SIZE):
        rank = int(seen.ranks[which[0]])
        vectors = seen.vectors[seen.vector_ptr[which][:, None] + np.arange(q * rank)].reshape(-1, q, rank)
        values = seen.values[seen.value_ptr[which][:, None] + np.arange(rank)]
        kernel = (vectors * np.exp(-TIME * values)[:, None, :]) @ vectors.swapaxes(1, 2)
        pairs, upper = pair_keys(members_of(seen, which, q), seen.n_nodes)
        entries = kernel[:, upper[0], upper[1]]
        keys.append(pairs.ravel())
        votes.append((entries > two_groups(entries)[:, None]).ravel().astype(float))
    unique, share = mean_by_key(np.concatenate(keys), np.concatenate(votes))
    kept = share >= 0.5
    return Reconstruction(seen.n_nodes, unpair(unique[kept], seen.n_nodes), share[kept], np.unique(seen.nodes))


def two_groups(entries: Floats) -> Floats:
    """Split each row into two groups with the least variance inside them (Otsu).

    Parameters
    ----------
    entries : float array, shape (b, m)

    Returns
    -------
    float array, shape (b,)
        A threshold between the groups; below every entry where all are equal, as in a clique.
    """
    ordered = np.sort(entries, axis=1)
    m = ordered.shape[1]
    spread = ordered[:, -1] - ordered[:, 0]
    below = ordered[:, 0] - 1.0
    if m == 1:
        return below
    count = np.arange(1, m)
    total = np.cumsum(ordered, axis=1)
    left = total[:, :-1] / count
    right = (total[:, -1:] - total[:, :-1]) / (m - count)
    between = count * (m - count) * (right - left) ** 2
    cut = np.argmax(between, axis=1)
    rows = np.arange(len(ordered))
    return np.where(spread > 1e-9, (ordered[rows, cut] + ordered[rows, cut + 1]) / 2, below)
