"""PointNetLK: register patch point clouds without correspondences (Aoki et al. 2019).

A cloud is described by one vector φ, the maximum over its points of a small neural network (PointNet).
Two clouds are registered by the inverse compositional Lucas-Kanade iteration on φ: the Jacobian of φ
with respect to the twist parameters is taken once, at the template, by finite differences, and every
step solves one least-squares problem.

What is adapted:

- Space has `dim` dimensions, the leading non-trivial eigenvectors, instead of three physical ones;
  a motion is a twist of se(dim): dim (dim - 1) / 2 rotations and dim shifts.
- The network is not trained. An eavesdropper has no registered clouds to train on, so its weights are
  random (He's scale) and fixed. Random features are Lipschitz and permutation-invariant, which the
  iteration needs; they are not adapted to the data, which the original's are.
- Each cloud is multiplied by the root of its size: eigenvectors have length 1 however many points there are.
- Rigid motions cannot undo the signs of eigenvectors. Signs are first fixed by the third moment of each
  column (a column without one, such as (1, -1), cannot be told from its mirror image and is dropped),
  and `reflections` starts the iteration from every combination of signs and keeps the best fit.
- The motion with the smallest feature residual so far is kept, and steps are cut at `max_step`; with
  untrained features the plain iteration may wander off.
- Many patches: clouds are registered along a spanning forest of largest overlaps, motions are composed
  from the largest patch of each component outward, and the copies of a node are averaged. Node
  identities serve to build the forest and to average; the registration itself never sees them.
- Edges are nearest neighbours by distance; the method itself ends at the registration.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Annotated, Any, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field, model_validator

from lograb.attacks.alignment.overlaps import locate_overlaps, padded_coordinates
from lograb.attacks.alignment.partners import choose_pairs, number_components
from lograb.attacks.attack import Attack
from lograb.attacks.baselines.nearest import MetricName, NeighbourRule, join_neighbours
from lograb.parallel import ordered_map
from lograb.progress import Progress, ignore
from lograb.ragged import owners
from lograb.types import Floats, Ints, Observations, Reconstruction

MAX_REFLECTED = 5


class PointNetLK(NeighbourRule, Attack):
    """Registration of patches as rigid point clouds; iterations and step follow the original."""

    name = "pointnetlk"
    uses = ("members", "eigenvectors")
    scenario = "registers patches as rigid point clouds without correspondence"
    cost = "pairs of patches in a forest"

    dim: int = Field(default=3, ge=1, le=16)
    """Dimensions of the point clouds."""
    skip: int = Field(default=1, ge=0)
    """Leading eigenvectors to leave out; the first one only says how many neighbours a node has."""
    widths: tuple[Annotated[int, Field(ge=1, le=4096)], ...] = Field(default=(64, 64, 128), min_length=1)
    """Neurons per layer of the point network; the last is the number of features."""
    iterations: int = Field(default=10, ge=1, le=1000)
    """Lucas-Kanade steps."""
    delta: float = Field(default=1e-2, gt=0, lt=1)
    """Step of the finite differences."""
    max_step: float = Field(default=1.0, gt=0)
    """Longest twist of one step."""
    stop: float = Field(default=1e-7, gt=0)
    """Stop when no pair moves further than this."""
    reflections: bool = True
    """Try all sign changes of the moving cloud; 2 ** dim starts, so dim must be small."""
    clouds: Literal["patch", "overlap"] = "patch"
    """What is registered: whole patches, or the shared nodes only (still as sets)."""
    min_overlap: int = Field(default=2, ge=1)
    """Shared nodes that a pair of patches needs to be registered."""
    metric: MetricName = "euclidean"
    """How nodes are compared; cosines are not invariant under shifts."""

    @model_validator(mode="after")
    def _few_reflections(self) -> PointNetLK:
        if self.reflections and self.dim > MAX_REFLECTED:
            raise ValueError(f"reflections need 2 ** dim starts: dim must be at most {MAX_REFLECTED}, "
                             f"got {self.dim}; lower dim or set reflections=false")  # fmt: skip
        return self

    def reconstruct(
        self, seen: Observations, rng: np.random.Generator, progress: Progress = ignore
    ) -> Reconstruction:
        """Claim the nearest neighbours after registering patch after patch."""
        return join_neighbours(seen, *align(seen, rng, self), self)


def align(
    seen: Observations, rng: np.random.Generator, settings: PointNetLK
) -> tuple[Floats, Ints, dict[str, Any]]:
    """Register all patches of a component onto its largest one: rows, components and diagnostics."""
    network = Network.random(settings.dim, settings.widths, rng)
    points, undecided = signed_points(seen, settings.dim, settings.skip)
    first, second, _ = choose_pairs(seen, settings.min_overlap, 0)
    count, component = number_components(seen.n_patches, first, second)
    levels = rooted_forest(seen.sizes, component, first, second)
    parent, child = (np.concatenate([np.empty(0, np.int64), *(level[i] for level in levels)]) for i in (0, 1))
    motions, residuals, plain = _register_all(seen, points, parent, child, network, settings)
    frames = np.tile(np.eye(settings.dim + 1), (seen.n_patches, 1, 1))
    start = 0
    for parents, children in levels:
        part = slice(start, start + len(parents))
        frames[children] = frames[parents] @ motions[part]
        start += len(parents)
    owner = owners(seen.ptr)
    rows = (frames[owner, :-1, :-1] @ points[:, :, None])[:, :, 0] + frames[owner, :-1, -1]
    diagnostics = {
        "pairs_aligned": len(parent), "components": count, "depth": len(levels), "undecided_signs": undecided,
        "mean_feature_residual": float(residuals.mean()) if len(residuals) else 0.0,
        "mean_feature_residual_before": float(plain.mean()) if len(plain) else 0.0,
        "reflected": int((np.linalg.det(motions[:, :-1, :-1]) < 0).sum()),
    }  # fmt: skip
    return rows, component, diagnostics


def signed_points(seen: Observations, dim: int, skip: int) -> tuple[Floats, int]:
    """Take the leading coordinates (n_entries, dim), scaled by the root of the patch size.

    Their signs do not depend on the published ones. Columns without a third moment are set to zero, and counted.
    """
    owner = owners(seen.ptr)
    points = padded_coordinates(seen, seen.vectors, skip + dim)[:, skip:]
    points = points * np.sqrt(seen.sizes[owner])[:, None]
    shape = (seen.n_patches, len(owner))
    entries = sp.csr_array((np.ones(len(owner)), np.arange(len(owner)), seen.ptr), shape=shape)
    moment, size = entries @ points**3, entries @ np.abs(points) ** 3
    decided = np.abs(moment) > 1e-9 * size
    signs = np.where(decided, np.sign(moment), 0.0)
    return points * signs[owner], int((~decided & (size > 0)).sum())


def rooted_forest(sizes: Ints, component: Ints, first: Ints, second: Ints) -> list[tuple[Ints, Ints]]:
    """Direct a forest away from the largest patch of each component; (parents, children) level by level."""
    n = len(sizes)
    if len(first) == 0:
        return []
    order = np.lexsort((np.arange(n), -sizes, component))
    roots = order[np.flatnonzero(np.diff(component[order], prepend=-1))]
    # One extra vertex above all roots makes the forest a tree: a single search suffices.
    rows = np.concatenate([first, second, np.full(len(roots), n)])
    cols = np.concatenate([second, first, roots])
    tree = sp.csr_array((np.ones(len(rows), dtype=np.int8), (rows, cols)), shape=(n + 1, n + 1))
    visited, above = sp.csgraph.breadth_first_order(tree, n, directed=True)
    depth = np.zeros(n + 1, dtype=np.int64)
    for v in visited[1:]:
        depth[v] = depth[above[v]] + 1
    children = visited[1:][depth[visited[1:]] > 1].astype(np.int64)
    level = depth[children]
    return [(above[c].astype(np.int64), c) for c in np.split(children, np.flatnonzero(np.diff(level)) + 1)]


class Network:
    """A point network with fixed weights: points (..., n, dim) to features (..., widths[-1])."""

    def __init__(self, layers: list[tuple[Floats, Floats]]) -> None:
        self.layers = layers

    @classmethod
    def random(cls, dim: int, widths: tuple[int, ...], rng: np.random.Generator) -> Network:
        """Draw weights with He's scale, and biases that spread the kinks over the unit ball."""
        return cls([(rng.standard_normal((fan_in, fan_out)) * np.sqrt(2 / fan_in), rng.uniform(-1, 1, fan_out))
                    for fan_in, fan_out in zip((dim, *widths), widths)])  # fmt: skip

    def __call__(self, points: Floats) -> Floats:
        """Describe clouds: the same network for every point, then the maximum over points."""
        for weight, bias in self.layers:
            points = np.maximum(points @ weight + bias, 0)
        return np.asarray(points.max(axis=-2))


def generators(dim: int) -> Floats:
    """List the basis of se(dim) as matrices: rotations of coordinate planes, then shifts."""
    upper = np.stack(np.triu_indices(dim, k=1), axis=1)
    basis = np.zeros((len(upper) + dim, dim + 1, dim + 1))
    for g, (i, j) in enumerate(upper):
        basis[g, i, j], basis[g, j, i] = -1.0, 1.0
    basis[len(upper) + np.arange(dim), np.arange(dim), dim] = 1.0
    return basis


def exponential(twists: Floats) -> Floats:
    """Take the matrix exponential of many small matrices (..., m, m) by scaling and squaring."""
    size = float(np.abs(twists).sum(axis=-1).max(initial=0))
    halvings = max(0, int(np.ceil(np.log2(max(size, 1e-300)))) + 2)
    scaled = twists / 2.0**halvings
    out = np.broadcast_to(np.eye(twists.shape[-1]), twists.shape).copy()
    for order in range(14, 0, -1):
        out = np.eye(twists.shape[-1]) + scaled @ out / order
    for _ in range(halvings):
        out = out @ out
    return out


def move(motions: Floats, points: Floats) -> Floats:
    """Apply motions (..., dim + 1, dim + 1) to clouds (..., n, dim)."""
    return np.asarray(points @ motions[..., :-1, :-1].swapaxes(-1, -2) + motions[..., None, :-1, -1])


def register(
    template: Floats, source: Floats, sizes: tuple[Ints, Ints], network: Network, settings: PointNetLK
) -> tuple[Floats, Floats, Floats]:
    """Register stacks of clouds (b, n, dim): find motions (b, dim + 1, dim + 1) that carry source onto template.

    `sizes` counts the points of each template and each source; the rest repeats one of them. Also gives the
    distance between the features of template and source, at the end and (centred) at the start.
    """
    dim = template.shape[2]
    template_mean, source_mean = (_centres(c, n) for c, n in zip((template, source), sizes))
    template, source = template - template_mean[:, None], source - source_mean[:, None]
    basis = generators(dim)
    target = network(template)
    nudged = network(move(exponential(-settings.delta * basis), template[:, None]))
    jacobian = (target[:, None] - nudged).swapaxes(1, 2) / settings.delta
    inverse = np.asarray(np.linalg.pinv(jacobian, rcond=1e-6), dtype=np.float64)
    before = np.linalg.norm(network(source) - target, axis=1)
    best, least = np.tile(np.eye(dim + 1), (len(source), 1, 1)), np.full(len(source), np.inf)
    for signs in product((1.0, -1.0), repeat=dim) if settings.reflections else ((1.0,) * dim,):
        found, residual = _iterate(np.diag([*signs, 1.0]), source, target, inverse, basis, network, settings)
        # A later start must win clearly: rounding must not choose between mirror images.
        better = residual < least * (1 - 1e-9)
        best[better], least[better] = found[better], residual[better]
    best[:, :-1, -1] += template_mean - (best[:, :-1, :-1] @ source_mean[:, :, None])[:, :, 0]
    return best, least, before


def _centres(clouds: Floats, sizes: Ints) -> Floats:
    """Average the true points of each cloud."""
    inside = np.arange(clouds.shape[1]) < sizes[:, None]
    return np.asarray((clouds * inside[:, :, None]).sum(axis=1) / np.maximum(sizes, 1)[:, None])


def _iterate(
    start: Floats, source: Floats, target: Floats, inverse: Floats, basis: Floats, network: Network,
    settings: PointNetLK,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Run Lucas-Kanade from one start; return the motions with the least residual on the way."""
    motions = np.tile(start, (len(source), 1, 1))
    best, least = motions.copy(), np.full(len(source), np.inf)
    for step in range(settings.iterations + 1):
        gap = network(move(motions, source)) - target
        residual = np.linalg.norm(gap, axis=1)
        better = residual < least
        best[better], least[better] = motions[better], residual[better]
        if step == settings.iterations:
            break
        twist = -(inverse @ gap[:, :, None])[:, :, 0]
        length = np.linalg.norm(twist, axis=1)
        if length.max(initial=0) < settings.stop:
            break
        twist *= np.minimum(1, settings.max_step / np.maximum(length, 1e-300))[:, None]
        motions = exponential(np.tensordot(twist, basis, axes=1)) @ motions
    return best, least


def _register_all(
    seen: Observations, points: Floats, parent: Ints, child: Ints, network: Network, settings: PointNetLK
) -> tuple[Floats, Floats, Floats]:
    """Register every child onto its parent, clouds of similar size at a time."""
    motions = np.zeros((len(parent), settings.dim + 1, settings.dim + 1))
    residuals, before = np.zeros(len(parent)), np.zeros(len(parent))
    if settings.clouds == "overlap":
        shared = locate_overlaps(seen, parent, child)
        both = (shared.sizes, shared.sizes)
        lists, starts = (shared.in_first, shared.in_second), (shared.ptr[:-1], shared.ptr[:-1])
    else:
        both = (seen.sizes[parent], seen.sizes[child])
        lists, starts = (np.arange(len(seen.nodes)),) * 2, (seen.ptr[parent], seen.ptr[child])

    def work(part: Ints) -> None:
        still, moving = (points[_padded(s[part], n[part], flat)] for s, n, flat in zip(starts, both, lists))
        motions[part], residuals[part], before[part] = register(
            still, moving, (both[0][part], both[1][part]), network, settings
        )

    n_numbers = 8 * max(settings.widths) * len(generators(settings.dim))
    for _ in ordered_map(work, _similar(np.maximum(*both), n_numbers)):
        pass
    return motions, residuals, before


def _padded(starts: Ints, lengths: Ints, flat: Ints) -> Ints:
    """Lay out ragged clouds as a rectangle by repeating their first point, which no maximum notices."""
    place = np.arange(lengths.max(initial=1))
    return np.asarray(flat[starts[:, None] + np.where(place < lengths[:, None], place, 0)])


def _similar(sizes: Ints, n_bytes_per_point: int, n_bytes: int = 1 << 24) -> Iterator[Ints]:
    """Yield runs of pairs of similar size, small enough for the memory."""
    order = np.argsort(sizes, kind="stable")
    start = 0
    while start < len(order):
        at_once = max(1, int(n_bytes // (n_bytes_per_point * max(2 * sizes[order[start]], 1))))
        stop = min(start + at_once, int(np.searchsorted(sizes[order], 2 * sizes[order[start]], side="right")))
        yield order[start:stop]
        start = stop
