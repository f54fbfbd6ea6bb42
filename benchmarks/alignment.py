"""How fast patches are aligned: ratios within one run, because machines are noisy."""

from __future__ import annotations

import resource
from typing import Any
from unittest import mock

from command import Part, parse

if __name__ == "__main__":
    run = parse(__doc__, {
        "procrustes": Part(lambda: procrustes(),
                           "all pairs of patches at once against a Python loop of single SVDs", "20 s"),
        "ransac": Part(lambda: ransac(),
                       "all samples of an overlap at once against a loop over them, on made-up points", "30 s"),
        "calls": Part(lambda: calls(), "the same on the overlaps that AFR hands to RANSAC", "20 s"),
        "assembly": Part(lambda: assembly(),
                         "AFR with align_dim=auto, as a whole and without bundle adjustment", "~ 1 minute"),
        "synchronisation": Part(lambda: synchronisation(),
                                "the sparse solver against dense eigenvectors of the same patches", "30 s"),
        "disconnected": Part(lambda: disconnected(), "the same two where the patch graph falls apart", "2 s"),
        "many": Part(lambda: many(),
                     "three rival attacks on 1,625 patches, where a dense matrix would not fit", "~ 2 minutes"),
        "real": Part(lambda: calls((("cora", 2, 0.6),)),
                     "calls on Cora, which must be at hand (LOGRAB_MIRROR or the cache)", "~ 1 minute"),
    })  # fmt: skip

import numpy as np
from threadpoolctl import threadpool_limits
from timing import both, seconds

import lograb
from lograb.attacks import Afr, EigenSync, Local2Global, PointNetLK
from lograb.attacks.afr import islands
from lograb.attacks.alignment.overlaps import Overlaps, locate_overlaps, padded_coordinates
from lograb.attacks.alignment.partners import choose_pairs, number_components
from lograb.attacks.alignment.ransac import Alignment, ransac_align
from lograb.attacks.alignment.relative_maps import relative_maps
from lograb.attacks.alignment.synchronisation import PatchGraph, round_blocks, synchronise
from lograb.types import Floats, Ints


def loop_of_svds(coordinates: Floats, overlaps: Overlaps) -> list[Floats]:
    """What one would write first: one SVD per pair of patches."""
    maps = []
    for p in range(len(overlaps)):
        shared = slice(overlaps.ptr[p], overlaps.ptr[p + 1])
        a, b = coordinates[overlaps.in_first[shared]], coordinates[overlaps.in_second[shared]]
        left, _, right = np.linalg.svd(b.T @ a)
        maps.append(left @ right)
    return maps


def procrustes() -> None:
    for d, k, p in ((1, 32, 1.0), (1, 8, 1.0), (2, 8, 0.3), (2, 32, 0.1)):
        seen = lograb.generate("citation", d=d, p=p, k=k, sigma=0.05).observe(features=False)
        coordinates = padded_coordinates(seen, seen.vectors, k)
        first, second, _ = choose_pairs(seen, 2, 20)
        overlaps = locate_overlaps(seen, first, second)
        ours = seconds(lambda c=coordinates, o=overlaps: relative_maps(c, o), 2)
        loop = seconds(lambda c=coordinates, o=overlaps: loop_of_svds(c, o), 1)
        print(f"procrustes d={d} k={k}: {len(overlaps):,} pairs, mean overlap {overlaps.sizes.mean():.1f}: "
              f"batched {ours:.3f} s, loop of SVDs {loop:.2f} s = {loop / ours:.1f} x")  # fmt: skip


def ring(n_patches: int, k: int, rings: int = 1, noise: float = 0.0) -> tuple[PatchGraph, Floats]:
    """Make relative maps between neighbours on rings of patches with known frames, shape (m, k, k)."""
    rng = np.random.default_rng(0)
    m = n_patches * rings
    frames = np.linalg.qr(rng.standard_normal((m, k, k)))[0]
    start = np.arange(m)
    ends = [start // n_patches * n_patches + (start + step) % n_patches for step in (1, 2, 3)]
    first, second = np.concatenate([start] * 3), np.concatenate(ends)
    first, second = np.minimum(first, second), np.maximum(first, second)
    # A ≈ B Q: coordinates times frame agree, so Q = R_second R_firstᵀ
    exact = frames[second] @ frames[first].swapaxes(1, 2)
    left, _, right = np.linalg.svd(exact + noise * rng.standard_normal(exact.shape))
    component = number_components(m, first, second)[1]
    return PatchGraph(first, second, left @ right, np.ones(len(first)), np.full(m, k), component), frames


def plain_dense(graph: PatchGraph) -> Floats:
    """Synchronise with one dense matrix and all its eigenvectors, components or not."""
    m, k = len(graph.ranks), graph.maps.shape[2]
    blocks = np.zeros((m, k, m, k))
    blocks[graph.second, :, graph.first] = graph.maps
    blocks[graph.first, :, graph.second] = graph.maps.swapaxes(1, 2)
    vectors = np.linalg.eigh(blocks.reshape(m * k, m * k))[1][:, -k:]
    return round_blocks(vectors.reshape(m, k, k), "polar")


def sparse(graph: PatchGraph) -> Floats:
    return synchronise(graph, "polar", 1e-8, 600, np.random.default_rng(0))[0]


def error(graph: PatchGraph, frames: Floats, truth: Floats) -> float:
    """Compare relative frames of random patches inside components: root mean square per entry."""
    rng = np.random.default_rng(1)
    total = []
    for c in np.unique(graph.component):
        mine: Ints = np.flatnonzero(graph.component == c)
        i, j = rng.choice(mine, 200), rng.choice(mine, 200)
        gap = frames[i] @ frames[j].swapaxes(1, 2) - truth[i] @ truth[j].swapaxes(1, 2)
        total.append((gap**2).mean())
    return float(np.sqrt(np.mean(total)))


def synchronisation() -> None:
    for m, k in ((50, 16), (100, 16), (100, 32)):
        graph, truth = ring(m, k, noise=0.02)
        ours, dense = seconds(lambda g=graph: sparse(g), 2), seconds(lambda g=graph: plain_dense(g), 1)
        print(f"synchronisation of {m} patches, k={k}: sparse {ours:.2f} s, dense {dense:.2f} s = "
              f"{dense / ours:.1f} x; error {error(graph, sparse(graph), truth):.4f} and "
              f"{error(graph, plain_dense(graph), truth):.4f}")  # fmt: skip


def disconnected() -> None:
    for rings in (1, 2, 4):
        graph, truth = ring(30, 8, rings=rings)
        ours, dense = (error(graph, solve(graph), truth) for solve in (sparse, plain_dense))
        print(f"{rings} ring(s) of 30 patches, k=8, no noise: error sparse {ours:.1e}, dense {dense:.1e}")


def many() -> None:
    for d in (1, 2):
        seen = lograb.generate("citation", d=d, p=0.6, k=32, sigma=0.05).observe(features=False)
        for attack in (EigenSync(), Local2Global(), PointNetLK()):
            taken = lograb.attack(seen, attack).seconds
            print(f"{attack.name} on citation d={d} p=0.6 k=32, {seen.n_patches:,} patches: {taken:.1f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    dense = (1625 * 32) ** 2 * 8 / 2**30
    print(f"peak memory {peak:.2f} GiB; a dense matrix of 1,625 patches with k=32 alone takes {dense:.0f} GiB")


Points = tuple[Floats, Floats, float]


def loop_of_samples(first: Floats, second: Floats, tolerance: float, iterations: int = 300) -> int:
    """What one would write first: gather, multiply, decompose and measure, sample after sample."""
    m, r = first.shape
    most = 0
    for rows in np.argsort(np.random.default_rng(0).random((iterations, m)), axis=1)[:, : r + 1]:
        left, _, right = np.linalg.svd(second[rows].T @ first[rows])
        agree = np.linalg.norm(first - second @ (left @ right), axis=1) <= tolerance
        most = max(most, int(agree.sum()))
    return most


def all_samples(first: Floats, second: Floats, tolerance: float, iterations: int = 300) -> int:
    return int(ransac_align(first, second, tolerance, iterations, np.random.default_rng(0)).inliers.sum())


def compare(what: str, overlaps: list[Points], repeats: int) -> tuple[float, float]:
    """Time both on some overlaps: seconds of ours and of the loop."""
    with threadpool_limits(1):
        ours = both(lambda: [all_samples(*points) for points in overlaps], repeats)
        loop = both(lambda: [loop_of_samples(*points) for points in overlaps], max(1, repeats // 4))
    each = 1e3 / len(overlaps)
    print(f"RANSAC, 300 samples, {what}: {each * ours[0]:.1f} ms, loop {each * loop[0]:.1f} ms = "
          f"{loop[0] / ours[0]:.1f} x; processor time {each * ours[1]:.1f} and {each * loop[1]:.1f} ms = "
          f"{loop[1] / ours[1]:.1f} x", flush=True)  # fmt: skip
    return ours[0], loop[0]


def ransac() -> None:
    """All samples of one overlap at once, against a loop that aligns sample after sample."""
    rng, taken = np.random.default_rng(0), []
    for r in (3, 8, 16, 32):
        for m in (r + 6, 3 * r):
            second = rng.standard_normal((m, r))
            first = second @ np.linalg.qr(rng.standard_normal((r, r)))[0] + 0.1 * rng.standard_normal((m, r))
            first[m // 2 :] = rng.standard_normal((m - m // 2, r))
            taken.append(compare(f"r={r}, {m} points, half of them right", [(first, second, 0.5 * r**0.5)], 40))
    ours, loop = np.sum(taken, axis=0)
    print(f"RANSAC, 300 samples, these eight together: {1e3 * ours:.1f} ms, loop {1e3 * loop:.1f} ms = "
          f"{loop / ours:.1f} x", flush=True)  # fmt: skip


def calls(instances: tuple[tuple[str, int, float], ...] = (("citation", 1, 0.6), ("citation", 2, 0.3))) -> None:
    """The same on the overlaps that AFR hands to RANSAC."""
    for source, d, p in instances:
        overlaps: list[Points] = []

        def record(first: Floats, second: Floats, tolerance: float, *rest: Any, to=overlaps) -> Alignment:
            to.append((first, second, tolerance))
            return ransac_align(first, second, tolerance, *rest)

        seen = lograb.generate(source, d=d, p=p, k=32, sigma=0.05).observe(features=False)
        with mock.patch.object(islands, "ransac_align", record):
            lograb.attack(seen, Afr(align_dim="auto", connected="any", bundle="off"))
        shapes = np.array([first.shape for first, *_ in overlaps])
        what = f"{len(overlaps):,} overlaps of {source} d={d} p={p}, median r={np.median(shapes[:, 1]):.0f}"
        compare(f"{what} (at most {shapes[:, 1].max()}) of {np.median(shapes[:, 0]):.0f} points", overlaps, 3)


def assembly() -> None:
    """AFR with alignment, and without Stage 3a."""
    for d in (1, 2):
        seen = lograb.generate("citation", d=d, p=0.6, k=32, sigma=0.05).observe(features=False)
        for bundle in ("joint", "off"):
            attack = Afr(align_dim="auto", bundle=bundle)
            taken = both(lambda s=seen, a=attack: lograb.attack(s, a), 3)
            print(f"AFR (auto, bundle {bundle}) on citation d={d} p=0.6 k=32: {taken[0]:.1f} s, "
                  f"processor time {taken[1]:.1f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    run()
