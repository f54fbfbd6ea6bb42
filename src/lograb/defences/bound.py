"""What nobody can exceed on this graph: the informed adversary.

He knows the whole graph but for one edge e, and how everything is made. With and without e the releases are noise
around two known embeddings, so any test he makes has TPR <= Φ(Φ⁻¹(FPR) + μ_e), and

    μ_e² = Σ over patches that contain e of D²(L, L') / σ²,

with L and L' the patch's Laplacians with and without e. D is the distance that remains when both releases draw
their gauges *together* in the best way: any such coupling gives an upper bound, because to be told what was drawn
can only help him.

Gauge ``none`` draws nothing. Otherwise let E (dimension b) and E' (b') be eigenspaces of L and L' that share c of
the published columns. Each release shows a uniformly random c-frame of its eigenspace there, and the two may be
turned into each other: D² = 2c - 2 ‖FᵀF'‖_*, at worst over the frames drawn. Compression moves singular values s_i
of EᵀE' up by at most (b - c) + (b' - c) places, hence

    D² <= Σ over such pairs of 2c - 2 Σ_{i <= c} s_{i + (b - c) + (b' - c)}.

Simple eigenvalues give 2 - 2 |uᵀu'|: the best sign. Taking the best basis inside a repeated eigenvalue would be
wrong where e breaks the repetition: a random basis of a plane and two fixed vectors in it can be told apart. Gauge
``rotation`` is one such pair for all columns: Procrustes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from lograb.defences.accounting import FALSE_RATE, largest_tpr_at
from lograb.defences.catalog import as_defences, erased, noise_of, noise_of_columns
from lograb.eigen import eigh
from lograb.observations.gauges import choose_basis, fixed_reference
from lograb.observations.spectra import REPEAT_TOLERANCE
from lograb.pairs import edge_keys
from lograb.progress import Progress, ignore
from lograb.theory.heat import normalized_laplacian
from lograb.theory.stacks import adjacency_of
from lograb.types import Bools, Floats, Graph, Ints, Observations

STACK_BYTES = 1 << 23
SAME_VALUES, SAME_VECTORS = 1e-20, 1e-16
"""Squared distances up to which what is shared without noise counts as the same: rounding errors."""


@dataclass(frozen=True, eq=False, repr=False)
class Bound:
    """What any test of one edge can reach, edge by edge; membership taken as public.

    Attributes
    ----------
    n_nodes, n_edges : int
        Of the graph; edges that lie in some patch.
    edges : int64 array, shape (m, 2)
        Those that were looked at: all, or a random sample.
    mu : float array, shape (m,)
        Infinite where something exact differs.
    distance : float array, shape (m,)
        √(Σ D²) over the patches of each edge: the noise-free distance of the eigenvectors.
    epsilon : float, optional
        Where the graph was sanitised before it was cut: ε of that, which bounds everything instead.
    """

    n_nodes: int
    n_edges: int
    edges: Ints
    mu: Floats
    distance: Floats
    epsilon: float | None = None

    def __repr__(self) -> str:
        what = f"ε {self.epsilon:g}" if self.epsilon is not None else f"median μ {np.median(self.mu):.3g}"
        return f"<Bound: {len(self.edges):,} of {self.n_edges:,} edges, {what}>"

    def tpr(self, fpr: float = FALSE_RATE) -> Floats:
        """Largest true-positive rate of a test of each edge."""
        if self.epsilon is not None:
            return np.full(len(self.edges), largest_tpr_at(self.epsilon, 0.0, fpr))
        return np.asarray(ndtr(ndtri(fpr) + self.mu))

    def per_node(self) -> Floats:
        """The largest μ among each node's edges, shape (n_nodes,); 0 for nodes without one here."""
        worst = np.zeros(self.n_nodes)
        for end in self.edges.T:
            np.maximum.at(worst, end, self.mu)
        return worst


def bound(
    seen: Observations,
    patch_edges: tuple[Ints, Ints],
    rng: np.random.Generator,
    effort: float = 2e10,
    progress: Progress = ignore,
    *,
    given: bool = False,
) -> Bound:
    """Bound what any test can tell about each true edge.

    Parameters
    ----------
    seen : Observations
        For membership, ranks, protocol, and whether eigenvalues are shared; what was drawn is not used.
    patch_edges : pointer, and the ends of the true edges inside each patch
    rng : numpy.random.Generator
        For the sample.
    effort : float
        Cubed sizes of patches to decompose, once per edge and patch; beyond it edges are sampled. 2e10 are half a
        minute.
    given : bool
        Whether lograb did not compute the columns: what is shared of them without noise may then tell anything.
    """
    ptr, ends = patch_edges
    owner = np.repeat(np.arange(seen.n_patches), np.diff(ptr))
    keys = edge_keys(np.sort(seen.nodes[seen.ptr[owner][:, None] + ends], axis=1), seen.n_nodes)
    found, index = np.unique(keys, return_inverse=True)
    edges = np.stack([found // seen.n_nodes, found % seen.n_nodes], axis=1)
    pure = [defence.edge_epsilon() for defence in as_defences(seen.protocol.defences) if defence.on_graph]
    if pure:
        nothing = np.full(len(edges), np.nan)
        return Bound(seen.n_nodes, len(edges), edges, nothing, nothing, float(min(pure)))
    order = rng.permutation(len(found))
    cost = np.cumsum(np.bincount(index, seen.sizes[owner].astype(float) ** 3, minlength=len(found))[order])
    chosen = np.sort(order[: max(1, int(np.searchsorted(cost, effort, side="right")))])
    place = np.full(len(found), -1)
    place[chosen] = np.arange(len(chosen))
    wanted = np.flatnonzero(place[index] >= 0)
    squares, distances = np.zeros(len(chosen)), np.zeros(len(chosen))
    noise = noise_of(seen.protocol, seen.sizes, seen.ranks, formal=True)
    columns = noise_of_columns(seen.protocol, seen.sizes, seen.ranks)
    gone = erased(seen.protocol, seen.sizes, seen.ranks, given=given)
    table = fixed_reference(seen.n_nodes, int(seen.ranks.max())) if seen.protocol.gauge == "none" else None
    done = 0
    for some in _stacks(seen.sizes[owner], wanted):
        which, at = owner[some], place[index[some]]
        vectors, values = _differences(seen, patch_edges, which, ends[some], table)
        np.add.at(distances, at, vectors)
        signal = _signal(vectors, columns[which], -1.0 if given else SAME_VECTORS)
        np.add.at(squares, at, np.where(gone[which], 0.0, signal))
        if seen.values is not None:
            np.add.at(squares, at, _signal(values, noise.values[which], SAME_VALUES))
        done += len(some)
        progress("edges in patches", done, len(wanted))
    return Bound(seen.n_nodes, len(found), edges[chosen], np.sqrt(squares), np.sqrt(distances))


def _signal(squares: Floats, noise: Floats, same: float) -> Floats:
    """D² / σ²; without noise, nothing or everything."""
    exact = np.where(squares > same, np.inf, 0.0)
    return np.where(noise > 0, squares / np.where(noise > 0, noise, 1.0) ** 2, exact)


def _stacks(sizes: Ints, wanted: Ints) -> list[Ints]:
    """Sort edges in patches into stacks of equal size, patch by patch."""
    order = wanted[np.argsort(sizes[wanted], kind="stable")]
    stacks = []
    for group in np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1):
        at_once = max(1, STACK_BYTES // (8 * int(sizes[group[0]]) ** 2)) if len(group) else 1
        stacks += [group[i : i + at_once] for i in range(0, len(group), at_once)]
    return stacks


def _differences(
    seen: Observations, patch_edges: tuple[Ints, Ints], which: Ints, ends: Ints, table: Floats | None
) -> tuple[Floats, Floats]:
    """D² of the eigenvectors, and squared distance of the eigenvalues, with and without an edge of each patch."""
    q, rank = int(seen.sizes[which[0]]), int(seen.ranks[which[0]])
    patches, back = np.unique(which, return_inverse=True)
    full = adjacency_of(patch_edges, patches, q)
    values, vectors = (part[back] for part in eigh(normalized_laplacian(full)))
    without = full[back]
    row = np.arange(len(which))
    without[row, ends[:, 0], ends[:, 1]] = without[row, ends[:, 1], ends[:, 0]] = False
    other_values, other_vectors = eigh(normalized_laplacian(without))
    shown = min(rank + 1, q)
    spectrum = np.square(values[:, :shown] - other_values[:, :shown]).sum(axis=1)
    if table is not None:
        reference = table[seen.nodes[seen.ptr[which][:, None] + np.arange(q)]][:, :, :rank]
        here = choose_basis(values, vectors, reference)
        there = choose_basis(other_values, other_vectors, reference)
        return np.square(here - there).sum(axis=(1, 2)), spectrum
    mixed = seen.protocol.gauge == "rotation"
    blocks, other_blocks = _blocks(values, rank, mixed), _blocks(other_values, rank, mixed)
    if mixed:
        squares = np.zeros(len(which))
        simple = (blocks[:, 0] == rank - 1) & (other_blocks[:, 0] == rank - 1)
        squares[simple] = _procrustes(vectors[simple, :, :rank], other_vectors[simple, :, :rank])
        left = np.flatnonzero(~simple)
    else:
        here, there = vectors[:, :, :rank], other_vectors[:, :, :rank]
        signed = np.minimum(*(np.square(here + sign * there).sum(axis=1) for sign in (1, -1)))
        columns = np.arange(rank)
        alone = _alone(blocks, columns) & _alone(other_blocks, columns)
        squares = np.where(alone, signed, 0.0).sum(axis=1)
        left = np.flatnonzero(~alone.all(axis=1))
    for i in left.tolist():
        squares[i] += _of_repeated(vectors[i], other_vectors[i], blocks[i], other_blocks[i], rank)
    return np.maximum(squares, 0.0), spectrum


def _procrustes(here: Floats, there: Floats) -> Floats:
    """min over Q of ‖U - U'Q‖²: 2c - 2 Σ s, without its rounding errors of 1e-15."""
    left, _, right = np.linalg.svd(there.swapaxes(-1, -2) @ here, full_matrices=False)
    return np.asarray(np.square(here - there @ (left @ right)).sum(axis=(-2, -1)))


def _blocks(values: Floats, rank: int, mixed: bool) -> Ints:
    """Give for each column the last one of its eigenspace; mixed columns are one, with all that the cut splits."""
    b, q = values.shape
    ends = np.where(np.diff(values, axis=1) > REPEAT_TOLERANCE, np.arange(q - 1), q)
    last = np.minimum(np.minimum.accumulate(np.append(ends, np.full((b, 1), q - 1), axis=1)[:, ::-1],
                                            axis=1)[:, ::-1], q - 1)  # fmt: skip
    if mixed:
        last[:, :rank] = last[:, rank - 1 : rank]
    return np.asarray(last)


def _alone(last: Ints, columns: Ints) -> Bools:
    """Whether columns are eigenspaces by themselves."""
    before = np.concatenate([np.full((len(last), 1), -1), last[:, :-1]], axis=1)[:, columns]
    return np.asarray((last[:, columns] == columns) & (before < columns))


def _of_repeated(u: Floats, w: Floats, last: Ints, other: Ints, rank: int) -> float:
    """Sum 2c - 2 Σ s over pairs of eigenspaces that share columns and are not both simple."""
    total, column = 0.0, 0
    while column < rank:
        stop = min(int(last[column]), int(other[column]), rank - 1) + 1
        first, first_other = (int(np.searchsorted(ends, ends[column])) for ends in (last, other))
        here, there = u[:, first : last[column] + 1], w[:, first_other : other[column] + 1]
        c, b, b_other = stop - column, here.shape[1], there.shape[1]
        if b == b_other == c > 1:
            total += float(_procrustes(here, there))
        elif max(b, b_other) > 1:
            found = np.linalg.svd(here.T @ there, compute_uv=False)
            total += 2 * c - 2 * float(found[(b - c) + (b_other - c) :][:c].sum())
        column = stop
    return total


def membership_differs(seen: Observations, graph: Graph, edges: Ints) -> Bools | None:
    """Tell for which edges some ball would have other members without it; None where nobody can say.

    Membership that differs gives the edge away, whatever is done to embeddings. Patches that are given, or the
    whole graph, do not depend on edges; for clusters, and for balls without centres, it is not known.
    """
    if seen.protocol.strategy in ("custom", "global"):
        return np.zeros(len(edges), dtype=bool)
    if seen.centres is None or seen.protocol.strategy not in ("d-hop", "random"):
        return None
    d, members = seen.protocol.d, dict(zip(seen.centres.tolist(), seen.sizes.tolist()))
    ptr, cols = graph.adjacency.indptr, graph.adjacency.indices
    near = [cols[ptr[i] : ptr[i + 1]].tolist() for i in range(graph.n_nodes)]

    def ball(start: int, radius: int, u: int, w: int) -> set[int]:
        """Nodes within a radius once the edge (u, w) is gone."""
        found, rim = {start}, [start]
        for _ in range(radius):
            rim = list({b for a in rim for b in near[a] if (a, b) not in ((u, w), (w, u))} - found)
            found.update(rim)
        return found

    def differs(u: int, w: int) -> bool:
        close = (ball(u, d - 1, u, w) | ball(w, d - 1, u, w)) if d else set()
        return any(len(ball(c, d, u, w)) < members[c] for c in close if c in members)

    return np.array([differs(u, w) for u, w in edges.tolist()], dtype=bool)
