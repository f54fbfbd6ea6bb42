"""The stages of AFR in order, and what it claims in the end.

Inside an island a node's position x_u is the mean of its aligned rows of φ, and a pair that shares
one of the island's patches is scored by ⟨x_u, x_w⟩, the island's version of the heat kernel. A pair
is claimed where that exceeds the pair's threshold. The margin m = score / threshold becomes
m / (1 + m), which is comparable with the probabilities of cross-voting; a pair judged by several
islands keeps the mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lograb.attacks.afr.bundle import adjust, eligible_pairs
from lograb.attacks.afr.fidelity import Fidelity, fidelity
from lograb.attacks.afr.islands import Assembler, Assembly
from lograb.attacks.afr.kernel import local_graphs, pair_margins
from lograb.attacks.afr.ransac import survivable_inlier_fraction
from lograb.attacks.afr.settings import AfrSettings
from lograb.attacks.afr.voting import cross_votes
from lograb.attacks.alignment import padded_coordinates
from lograb.attacks.pairs import mean_by_key, unpair
from lograb.errors import LograbError
from lograb.ragged import owners
from lograb.types import Floats, Ints, Observations, Reconstruction

DEFAULTS = AfrSettings()


def afr(seen: Observations, rng: np.random.Generator, settings: AfrSettings = DEFAULTS) -> Reconstruction:
    """Rebuild the graph by AFR."""
    if seen.values is None or seen.next_values is None:
        raise LograbError("AFR needs the eigenvalues, and these observations withhold them")
    local = local_graphs(seen, settings)
    trust = fidelity(seen, local.entropy, settings)
    coordinates = padded_coordinates(seen, local.features, seen.protocol.k)
    core = np.flatnonzero(trust.core)
    assembly = Assembler(seen, local, coordinates, trust.score, core, settings, rng).run()
    adjusted = _adjust_islands(seen, coordinates, trust, assembly, settings)
    keys, margins = pair_margins(seen, _aligned(seen, coordinates, assembly), assembly.island_of, settings)
    island = assign_nodes(seen, assembly.island_of)
    edges, scores, judged, judged_scores = _claims(seen, keys, margins, island, settings)
    nodes = np.unique(seen.nodes[np.isin(owners(seen.ptr), core)])
    told = _diagnostics(trust, assembly, adjusted, settings)
    return Reconstruction(seen.n_nodes, edges, scores, nodes, judged, judged_scores, island, told)


def _aligned(seen: Observations, coordinates: Floats, assembly: Assembly) -> Floats:
    """Carry the coordinates of every entry into the frame of its island."""
    out = coordinates.copy()
    moved = np.flatnonzero((assembly.frames != np.eye(coordinates.shape[1])).any(axis=(1, 2)))
    for i in moved:
        span = slice(seen.ptr[i], seen.ptr[i + 1])
        out[span] = coordinates[span] @ assembly.frames[i]
    return out


def assign_nodes(seen: Observations, island_of: Ints) -> Ints:
    """Assign every node to one island: the one with most of its patches, then the larger, then the first.

    Parameters
    ----------
    island_of : int64 array, shape (n_patches,), -1 outside the core

    Returns
    -------
    int64 array, shape (n_nodes,), -1 for nodes in no core patch
    """
    entry_island = island_of[owners(seen.ptr)]
    kept = entry_island >= 0
    out = np.full(seen.n_nodes, -1, dtype=np.int64)
    if not kept.any():
        return out
    keys, votes = np.unique(seen.nodes[kept] * seen.n_patches + entry_island[kept], return_counts=True)
    node, island = keys // seen.n_patches, keys % seen.n_patches
    size = np.bincount(island, minlength=seen.n_patches)
    order = np.lexsort((-island, size[island], votes))
    out[node[order]] = island[order]  # the last assignment wins: most votes, then size, then number
    return out


def _adjust_islands(
    seen: Observations, coordinates: Floats, trust: Fidelity, assembly: Assembly, settings: AfrSettings
) -> dict[str, dict[str, float]]:
    """Adjust the frames of all stitched islands at once; tell objective and consistency before and after.

    As printed (``literal``) every pair has a rotation of its own, plain Procrustes on its consensus,
    which is what stitching used: the objective falls to its pairwise optimum and no frame moves.

    Cycle consistency is Σ tr(R_vᵀ C R_w) over Σ ‖C‖_*: 1 where the frames meet every pair's own optimum,
    which is possible around all cycles only if the pairwise rotations agree.
    """
    if settings.bundle == "off" or not assembly.stitches:
        return {}
    first, second, cross, constant = eligible_pairs(
        seen, coordinates, trust.score, assembly.frames, assembly.island_of, settings
    )
    if not len(first):
        return {}
    optimum = float(np.linalg.svd(cross, compute_uv=False).sum())

    def consistency() -> float:
        met = np.einsum("mij,mij->", assembly.frames[first], cross @ assembly.frames[second])
        return float(met) / optimum

    before = consistency()
    objective = {"before": constant - 2 * before * optimum, "after": constant - 2 * optimum}
    if settings.bundle == "joint":
        result = adjust(assembly.frames, first, second, cross, constant, settings.bundle_steps)
        assembly.frames = result.frames
        objective["after"] = result.objective[-1]
    return {"bundle_objective": objective, "cycle_consistency": {"before": before, "after": consistency()}}


def _claims(
    seen: Observations, keys: Ints, margins: Floats, island: Ints, settings: AfrSettings
) -> tuple[Ints, Floats, Ints, Floats]:
    """Combine islands and votes into claimed edges and judged pairs, each with its score."""
    keys, margins = mean_by_key(keys, margins)
    scores = np.maximum(margins, 0.0) / (1.0 + np.maximum(margins, 0.0))
    if settings.cross_voting:
        pairs, chance = cross_votes(seen, island, settings.c0, settings.kappa)
        keys = np.concatenate([keys, pairs[:, 0] * seen.n_nodes + pairs[:, 1]])
        scores = np.concatenate([scores, chance])
        order = np.lexsort((-scores, keys))
        first = np.diff(keys[order], prepend=-1) > 0
        keys, scores = keys[order][first], scores[order][first]
    judged = unpair(keys, seen.n_nodes)
    claimed = scores >= (0.5 if settings.output == "cap" else 0.0)
    edges, strength = judged[claimed], scores[claimed]
    if settings.top_k is not None:
        kept = among_best(edges, strength, settings.top_k, seen.n_nodes)
        edges, strength = edges[kept], strength[kept]
    return edges, strength, judged, scores


def among_best(edges: Ints, scores: Floats, top: int, n_nodes: int) -> np.ndarray:
    """Keep an edge if it is among the `top` strongest of one of its endpoints; ties by pair."""
    ends = np.concatenate([edges[:, 0], edges[:, 1]])
    index = np.tile(np.arange(len(edges)), 2)
    order = np.lexsort((index, -scores[index], ends))
    counts = np.bincount(ends, minlength=n_nodes)
    rank = np.arange(len(ends)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = np.zeros(len(edges), dtype=bool)
    kept[index[order[rank < top]]] = True
    return kept


def _diagnostics(
    trust: Fidelity, assembly: Assembly, adjusted: dict[str, dict[str, float]], settings: AfrSettings
) -> dict[str, Any]:
    islands = np.unique(assembly.island_of[assembly.island_of >= 0])
    sample = max(assembly.samples, default=None)
    return {
        "core_patches": int(trust.core.sum()),
        "stitches_tried": assembly.tried,
        "stitches_accepted": len(assembly.stitches),
        "stitches_rejected": dict(assembly.rejected),
        "islands": len(islands),
        "bundle_objective": None,
        "cycle_consistency": None,
        **adjusted,
        "survivable_inlier_fraction": None if sample is None or not settings.ransac
        else survivable_inlier_fraction(settings.iterations, sample),
    }  # fmt: skip
