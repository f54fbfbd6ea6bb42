"""Families: patches that hold the same open pairs are checked together.

Around a hub many patches are nearly equal. Alone, a large one fits many graphs with its eigenvalues: they tell how
many neighbours of the hub are joined in pairs, but hardly which, and what one patch prefers is mostly its noise.
The noise of all of them is independent, while the graph is the same. So one graph is found for all: first mended
until it has the eigenvalues of each patch, then members are exchanged as long as the likelihoods of all patches
together rise. What other exchanges leave possible are the odds of the pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, logit

from lograb.attacks.posterior.checksum import MAX_COST
from lograb.attacks.posterior.descent import descend
from lograb.attacks.posterior.exchanges import GAIN, MAX_GAIN, odds_against, plausible, swaps, visible
from lograb.attacks.posterior.graphs import EXACT, Patch, passes, spectral_error, state_of
from lograb.attacks.posterior.mending import few_wrong
from lograb.pairs import unpair
from lograb.parallel import one_blas_thread, ordered_map
from lograb.progress import Progress, ignore
from lograb.ragged import owners, pointer, ranges
from lograb.types import Bools, Floats, Ints, Observations

FAINT = 1e-4
"""Distance from 0 and 1 from which a pair is open."""
MAX_SIZE = 400
"""Members of the largest patch that is asked."""
MAX_WRONG = 20.0
"""Expected number of wrong pairs up to which a patch is asked."""
MOST_HELD = 20_000_000
"""Patches of both ends of all open pairs, one after the other, up to which families are looked for."""
ENOUGH = 20
"""Patches that are asked about a pair: the noise of so many averages out."""
MOST_NODES = 3000
"""Members of all patches of a family up to which it is checked."""
MOST_TRIED = 6
"""Patches of a family that are mended in vain."""
AT_A_TIME = 6
"""Patches that are mended downhill together."""
MOST_IN_VAIN = 2
"""How often none of them fits afterwards."""
MOST_EXCHANGES = 200
AT_ONCE = 2000
"""Exchanges that are looked at together."""
MOST_DOUBLE = 2000
"""Exchanges of both ends of an edge that are rated."""

Moved = tuple[int, ...]


@dataclass(frozen=True)
class Family:
    """Patches with open pairs in common, and what is thought of the pairs of all their members.

    Attributes
    ----------
    nodes : int64 array, shape (u,), increasing
    members : list of int64 arrays
        For each patch the positions of its members in `nodes`.
    patches : int64 array
        Which patches they are, smallest first.
    log_odds, known : float arrays, shape (u, u), symmetric
        Of all pairs; `known` is 0 for open ones.
    """

    nodes: Ints
    members: list[Ints]
    patches: Ints
    log_odds: Floats
    known: Floats


def check_together(
    seen: Observations,
    asked: Ints,
    variance: Floats,
    keys: Ints,
    probability: Floats,
    known: Floats,
    progress: Progress = ignore,
) -> tuple[Floats, Bools]:
    """Check patches family by family.

    Parameters
    ----------
    seen : Observations, with eigenvalues and their columns
    asked : int64 array
        The patches, smallest first.
    variance : float array, shape (n_patches,)
    keys : int64 array, shape (m,), increasing
    probability : float array, shape (m,)
    known : float array, shape (m,)
        Log-odds of pairs that are no question any more, 0 for open ones.

    Returns
    -------
    found : float array, shape (m,)
        Log-odds of the open pairs that are settled, 0 for the others.
    failed : bool array, shape (m,)
        Open pairs in patches that still fail: some of these are not what they are taken for.
    """
    low, high, failed = np.zeros(len(keys)), np.zeros(len(keys)), np.zeros(len(keys), dtype=bool)
    done = 0
    for family in _families(seen, asked, keys, probability, known):
        progress("checking patches together", done, len(asked))
        done += len(family.patches)
        with one_blas_thread():
            odds, fails = _check(family, [_patch(seen, family, at, variance) for at in range(len(family.patches))])
        one, other = np.nonzero(np.triu((family.known == 0) & ((odds != 0) | fails), k=1))
        place = np.searchsorted(keys, family.nodes[one] * seen.n_nodes + family.nodes[other])
        low[place] = np.minimum(low[place], odds[one, other])
        high[place] = np.maximum(high[place], odds[one, other])
        failed[place] |= fails[one, other]
    found = low + high
    return found, failed & (found == 0)


def patches_to_ask(seen: Observations, which: Ints, keys: Ints, doubt: Floats) -> Ints:
    """Choose patches with open pairs, smallest first: some for every pair, and none in which far too much is open.

    Parameters
    ----------
    which : int64 array
        The patches that were read.
    keys : int64 array, shape (m,), increasing
    doubt : float array, shape (m,)
        Probability that a pair is not what it is taken for; 0 for those that are no question.
    """
    open_ = np.flatnonzero(doubt > FAINT)
    which = which[seen.sizes[which] <= MAX_SIZE]
    held = _held(seen, which, keys[open_])
    if held is None:
        return which[:0]
    fitting = np.flatnonzero((np.diff(held.indptr) > 0) & (held @ doubt[open_] < MAX_WRONG))
    asked, times = [], np.zeros(len(open_), dtype=np.int64)
    for at in fitting[np.argsort(seen.sizes[which[fitting]], kind="stable")].tolist():
        pairs = held.indices[held.indptr[at] : held.indptr[at + 1]]
        if (times[pairs] < ENOUGH).any():
            asked.append(at)
            times[pairs] += 1
    return which[np.array(asked, dtype=np.int64)]


def _held(seen: Observations, which: Ints, pairs: Ints) -> sp.csr_array | None:
    """Say which of some patches hold which pairs, shape (len(which), len(pairs)); None if that is too much."""
    sizes = seen.sizes[which]
    nodes = seen.nodes[ranges(seen.ptr[which], sizes)]
    shape = (len(which), seen.n_nodes)
    holds = sp.csc_array((np.ones(len(nodes)), (owners(pointer(sizes)), nodes)), shape=shape)
    one, other = unpair(pairs, seen.n_nodes).T
    times = np.diff(holds.indptr)
    if times[one].sum() + times[other].sum() > MOST_HELD:
        return None
    return holds[:, one].multiply(holds[:, other]).tocsr()


def _families(seen: Observations, asked: Ints, keys: Ints, probability: Floats, known: Floats) -> Iterator[Family]:
    """Sort patches into families: those that share open pairs, directly or by way of others."""
    open_ = np.flatnonzero((known == 0) & (np.minimum(probability, 1.0 - probability) > FAINT))
    held = _held(seen, asked, keys[open_])
    if held is None:
        return
    _, label = connected_components(held @ held.T, directed=False)
    odds = logit(np.clip(probability, 1e-6, 1.0 - 1e-6))
    for number in range(int(label.max(initial=-1)) + 1):
        patches = asked[label == number]
        lists = [seen.nodes[seen.ptr[i] : seen.ptr[i + 1]] for i in patches]
        nodes = np.unique(np.concatenate(lists))
        if len(nodes) <= MOST_NODES:
            log_odds, fixed = _spread(nodes, seen.n_nodes, keys, odds, known)
            yield Family(nodes, [np.searchsorted(nodes, members) for members in lists], patches, log_odds, fixed)


def _spread(nodes: Ints, n_nodes: int, keys: Ints, odds: Floats, known: Floats) -> tuple[Floats, Floats]:
    """Look up log-odds of all pairs of some nodes, shapes (u, u); pairs that were not judged are no edges."""
    upper = np.triu_indices(len(nodes), k=1)
    wanted = nodes[upper[0]] * n_nodes + nodes[upper[1]]
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found = []
    for values in (odds, known):
        matrix = np.zeros((len(nodes), len(nodes)))
        matrix[upper] = np.where(keys[place] == wanted, values[place], -MAX_COST)
        found.append(matrix + matrix.T)
    return found[0], found[1]


def _patch(seen: Observations, family: Family, at: int, variance: Floats) -> Patch:
    """Take a patch of a family; its costs are what is known, without what patches merely read."""
    patch, inside = int(family.patches[at]), np.ix_(family.members[at], family.members[at])
    mu, cost = 1.0 - seen.spectrum(patch), np.clip(family.known[inside], -MAX_COST, MAX_COST)
    return Patch(seen.block(patch), mu, float(variance[patch]), family.log_odds[inside], cost)


def _check(family: Family, patches: list[Patch]) -> tuple[Floats, Bools]:
    """Find the graph of a family: log-odds of pairs, 0 where nothing is settled, and pairs of failed patches."""
    graph, passed = _mend(family, patches)
    against, confirmed = np.ones(graph.shape), np.zeros(graph.shape, dtype=bool)
    cost = np.clip(family.known, -MAX_COST, MAX_COST)
    if passed:
        held = np.unique(np.concatenate([family.members[at] for at in passed]))
        members = [np.searchsorted(held, family.members[at]) for at in passed]
        block, good = np.ix_(held, held), [patches[at] for at in passed]
        graph[block], against[block] = _exchange(graph[block], cost[block], members, good)
        for at in passed:
            confirmed[np.ix_(family.members[at], family.members[at])] = True
    wrong = (cost != 0) & ((graph > 0) != (cost > 0))
    np.fill_diagonal(wrong, False)
    shown, doubtful, failed = np.zeros((3, *graph.shape), dtype=bool)
    for inside, patch in zip(family.members, patches):
        block = np.ix_(inside, inside)
        state = state_of(patch, graph[block])
        if spectral_error(state.values, patch.mu) >= EXACT:
            failed[block] = True
            doubtful[block] |= confirmed[block].all()  # although each of its pairs is in a patch that passed
        elif confirmed[block].all() and plausible(patch, state) and not wrong[block].any():
            shown[block] |= visible(patch, state)
    settled = shown & ~doubtful & ~np.eye(len(graph), dtype=bool)
    return np.where(settled, np.where(graph > 0, -np.log(against), np.log(against)), 0.0), failed


def _mend(family: Family, patches: list[Patch]) -> tuple[Floats, list[int]]:
    """Change the likeliest graph of a family until it has the eigenvalues of its patches; which ones it has."""
    graph = _descend(family, patches)
    certainty = np.abs(family.log_odds)
    passed, in_vain = [], 0
    for at, (inside, patch) in enumerate(zip(family.members, patches)):
        block = np.ix_(inside, inside)
        state = state_of(patch, graph[block])
        if spectral_error(state.values, patch.mu) >= EXACT:
            mended = few_wrong(patch, state, certainty[block]) if in_vain < MOST_TRIED else None
            if mended is None or np.isinf(certainty[block][mended != graph[block]]).any():
                in_vain += 1
                continue
            graph[block] = mended
        certainty[block] = np.inf
        passed.append(at)
    return graph, passed


def _descend(family: Family, patches: list[Patch]) -> Floats:
    """Go from the likeliest graph of a family downhill, some patches at a time, unless fewer of them fit then."""

    def fits(graph: Floats) -> Bools:
        blocks = ((patch, graph[np.ix_(own, own)]) for own, patch in zip(family.members, patches))
        return np.array([passes(block[None], patch.mu[None])[0] for patch, block in blocks])

    graph = (family.log_odds > 0).astype(float)
    free = (family.known == 0) & (expit(-np.abs(family.log_odds)) > FAINT)
    fit, tried, in_vain = fits(graph), np.zeros(len(patches), dtype=bool), 0
    while len(some := np.flatnonzero(~fit & ~tried)[:AT_A_TIME]) and in_vain < MOST_IN_VAIN:
        tried[some] = True
        members, chosen = [family.members[at] for at in some], [patches[at] for at in some]
        lower = descend(graph, free, members, chosen)
        now = fits(lower)
        in_vain += not now[some].any()
        if now.sum() >= fit.sum():
            graph, fit = lower, now
    return graph


def _exchange(graph: Floats, cost: Floats, members: list[Ints], patches: list[Patch]) -> tuple[Floats, Floats]:
    """Exchange members of a family as long as that is likelier; the graph, and the odds against each pair.

    Returns
    -------
    graph : float array, shape (u, u)
    against : float array, shape (u, u)
        Odds that a pair is not as in the graph, by all exchanges of two members, and by those of both ends of an
        edge; even where exchanges do not come to an end.
    """
    graph = graph.copy()
    held = np.zeros((len(members), len(graph)))
    for at, inside in enumerate(members):
        held[at, inside] = 1.0
    losses: list[Floats | None] = [None] * len(members)
    met = {graph.tobytes()}
    for _ in range(MOST_EXCHANGES):
        stale = [at for at, own in enumerate(losses) if own is None]
        blocks = [(patches[at], graph[np.ix_(members[at], members[at])]) for at in stale]
        for at, own in zip(stale, ordered_map(_losses, blocks)):
            losses[at] = own
        prices = _prices(graph, cost)
        loss = _total(graph, held, members, losses, prices)
        found = _singles(loss + prices)
        if not found or min(found)[0] > -GAIN:
            found += _doubles(graph, cost, held, loss)
        best = min(found, default=(0.0, ()))
        if best[0] > -GAIN:
            break
        flipped = _flipped(graph, best[1])
        graph[flipped] = 1.0 - graph[flipped]
        for at in np.flatnonzero((held[:, flipped[0]] * held[:, flipped[1]]).any(axis=1)).tolist():
            losses[at] = None
        if graph.tobytes() in met:  # what both ends of an edge cost is not exact
            return graph, np.ones(graph.shape)
        met.add(graph.tobytes())
    else:
        return graph, np.ones(graph.shape)
    changes = ((price, _flipped(graph, moved)) for price, moved in found)
    return graph, odds_against(len(graph), ((price, i * len(graph) + j) for price, (i, j) in changes))


def _losses(block: tuple[Patch, Floats]) -> Floats:
    """Log-likelihood that an exchange of two members costs a patch by its eigenvectors, shape (q, q)."""
    patch, graph = block
    plain = replace(patch, cost=np.zeros_like(patch.cost))
    return swaps(plain, state_of(plain, graph))


def _total(
    graph: Floats, held: Floats, members: list[Ints], losses: list[Floats | None], prices: Floats
) -> Floats:
    """Sum the losses of all patches, shape (u, u); infinite where an exchange changes no pair, or a spectrum."""
    loss, apart = np.zeros(graph.shape), np.ones(graph.shape, dtype=bool)
    for inside, own in zip(members, losses):
        block = np.ix_(inside, inside)
        assert own is not None
        loss[block] += np.where(np.isfinite(own), own, 0.0)
        apart[block] = False
    degrees = graph.sum(axis=1)
    same = degrees[:, None] + degrees[None, :] - 2.0 * graph @ graph - 2.0 * graph < 0.5
    loss[apart | same] = np.inf
    # Where a patch holds one of the two and a pair that changes, its spectrum changes.
    one, other = np.nonzero(np.triu(loss + np.minimum(prices, 0.0) < MAX_GAIN))
    for start in range(0, len(one), AT_ONCE):
        i, j = one[start : start + AT_ONCE], other[start : start + AT_ONCE]
        differs = np.abs(graph[i] - graph[j])
        differs[np.arange(len(i)), i] = differs[np.arange(len(i)), j] = 0.0
        changed = differs @ held.T > 0
        broken = (changed & (held[:, i] != held[:, j]).T).any(axis=1)
        loss[i[broken], j[broken]] = loss[j[broken], i[broken]] = np.inf
    return loss


def _prices(graph: Floats, cost: Floats) -> Floats:
    """What an exchange of two members costs by what is known, shape (u, u)."""
    mixed = graph @ cost
    kept = np.diag(mixed)
    return np.asarray(kept[:, None] + kept[None, :] - mixed - mixed.T - 2.0 * graph * cost)


def _singles(price: Floats) -> list[tuple[float, Moved]]:
    """List exchanges of two members with the log-likelihood they cost."""
    i, j = np.nonzero(np.triu(price < MAX_GAIN, k=1))
    return [(value, (one, other)) for value, one, other in zip(price[i, j].tolist(), i.tolist(), j.tolist())]


def _doubles(graph: Floats, cost: Floats, held: Floats, loss: Floats) -> list[tuple[float, Moved]]:
    """List exchanges of both ends of an edge, each with another member; what they cost nearly adds up."""
    prices, moves = [np.empty(0)], [np.empty((0, 4), np.int64)]
    for a, b in np.argwhere(np.triu(graph)):
        one, other = (np.flatnonzero(loss[end] < MAX_GAIN) for end in (a, b))
        both = loss[a, one][:, None] + loss[b, other][None, :]
        apart = (one[:, None] != other[None, :]) & (one[:, None] != b) & (other[None, :] != a)
        i, j = np.nonzero((both < MAX_GAIN) & apart)
        if len(i) > MOST_DOUBLE:
            least = np.argpartition(both[i, j], MOST_DOUBLE)[:MOST_DOUBLE]
            i, j = i[least], j[least]
        prices.append(both[i, j])
        moves.append(np.stack([np.full(len(i), a), one[i], np.full(len(i), b), other[j]], axis=1))
    price, move = np.concatenate(prices), np.concatenate(moves)
    best = np.argsort(price, kind="stable")[:MOST_DOUBLE]
    found: list[tuple[float, Moved]] = []
    for moved, value in zip(map(tuple, move[best].tolist()), price[best].tolist()):
        i, j = _flipped(graph, moved)
        value += float((np.where(graph[i, j] > 0, 1.0, -1.0) * cost[i, j]).sum()) / 2
        # A patch that holds a changed pair, but not all four, would get another spectrum.
        broken = (held[:, i] * held[:, j]).any(axis=1) & ~held[:, moved].all(axis=1)
        if value < MAX_GAIN and len(i) and not broken.any():
            found.append((value, moved))
    return found


def _flipped(graph: Floats, moved: Moved) -> tuple[Ints, Ints]:
    """Find the pairs, in both directions, that change if the members at 0 and 1, 2 and 3 ... change places."""
    here, there = np.array(moved), np.array(moved).reshape(-1, 2)[:, ::-1].ravel()
    order = np.arange(len(graph))
    order[here] = there
    row, other = np.nonzero(graph[there][:, order] != graph[here])
    one = here[row]
    pairs = np.unique(np.concatenate([one * len(graph) + other, other * len(graph) + one]))
    return pairs // len(graph), pairs % len(graph)
