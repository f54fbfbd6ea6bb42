"""The stages of AFR in order, and what it claims in the end.

Inside an island a node's position x_u is the mean of its aligned rows of φ, and a pair that shares
one of the island's patches is scored by ⟨x_u, x_w⟩, the island's version of the heat kernel. The mean
is taken over patches that share a frame, dimension by dimension; what was not aligned is the patch's own. A pair
is claimed where its score exceeds its threshold. The margin m = score / threshold, with means over the
core patches that contain the pair, becomes m / (1 + m): claimed pairs have at least a half.

Algorithm 2 returns the islands, whose edges are the claimed ones, and beside them the probable edges between
islands (Ê_cross). Merged, these follow the islands' edges, with half of their probability for a score, and never
displace one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lograb.attacks.afr.bundle import adjust, eligible_pairs
from lograb.attacks.afr.core import Fidelity, fidelity
from lograb.attacks.afr.cross_votes import cross_votes
from lograb.attacks.afr.islands import Assembler, Assembly
from lograb.attacks.afr.kernel import LocalGraphs, group_means, local_graphs, pair_margins
from lograb.attacks.afr.settings import AfrSettings
from lograb.attacks.alignment.overlaps import padded_coordinates
from lograb.attacks.attack import SPECTRAL, Attack
from lograb.attacks.thresholds import among_best
from lograb.errors import LograbError
from lograb.pairs import edge_keys, patches_by_size, too_large, unpair
from lograb.progress import Progress, ignore
from lograb.ragged import owners
from lograb.theory.inliers import survivable_inliers
from lograb.types import Floats, Ints, Observations, Reconstruction

DEFAULTS = AfrSettings()


class Afr(AfrSettings, Attack):
    """The paper's attack; its parameters are those of `AfrSettings`."""

    name = "afr"
    uses = SPECTRAL
    scenario = "the paper's attack: trusts patches by fidelity, stitches them into islands, adjusts, cross-votes"
    cost = "pairs in patches, and stitches tried"
    averages = True

    def reconstruct(
        self, seen: Observations, rng: np.random.Generator, progress: Progress = ignore
    ) -> Reconstruction:
        """Rebuild the graph by AFR."""
        return afr(seen, rng, self)

    def costs(self, seen: Observations) -> Ints:
        """Count the pairs of each patch; none in those that are too large."""
        return np.where(seen.sizes <= self.max_size, super().costs(seen), 0)

    def for_part(self, entries: int) -> Attack:
        """Leave the cap on a node's edges to the joined answer: a node may lie in several parts."""
        return self.model_copy(update={"top_k": None})

    def finish(self, joined: Reconstruction) -> Reconstruction:
        """Claim what passes, and of that the best edges of each node, by the ranking of the whole."""
        assert joined.judged is not None
        assert joined.judged_scores is not None
        claimed = joined.judged_scores >= self.passing
        if self.cross_voting == "merged":  # votes pass no threshold
            claimed |= np.isin(edge_keys(joined.judged, joined.n_nodes), edge_keys(joined.edges, joined.n_nodes))
        edges, scores = joined.judged[claimed], joined.judged_scores[claimed]
        if self.top_k is not None:
            kept = among_best(edges, scores, self.top_k, joined.n_nodes)
            edges, scores = edges[kept], scores[kept]
        return replace(joined, edges=edges, scores=scores)


def afr(seen: Observations, rng: np.random.Generator, settings: AfrSettings = DEFAULTS) -> Reconstruction:
    """Rebuild the graph by AFR."""
    if seen.values is None or seen.next_values is None:
        raise LograbError("AFR needs the eigenvalues and the first one that was cut off (next_values), and these "
                          "observations withhold them")  # fmt: skip
    skipped = too_large(seen, settings.max_size)
    local = local_graphs(seen, settings)
    trust = fidelity(seen, local.entropy, settings)
    # Columns beyond the largest rank would hold zeros only.
    coordinates = padded_coordinates(seen, local.features, min(seen.protocol.k, int(seen.ranks.max(initial=0))))
    core = np.flatnonzero(trust.core)
    assembly = Assembler(seen, local, coordinates, trust.score, core, settings, rng).run()
    adjusted = _adjust_islands(seen, local, trust, assembly, settings)
    if settings.score == "local":
        keys, margins = _judge(seen, trust, coordinates, np.maximum(trust.score, 1e-12), settings)
    else:
        keys, margins = _judge(seen, trust, group_means(seen, assembly.positions, assembly.group), None, settings)
    scores = np.maximum(margins, 0.0) / (1.0 + np.maximum(margins, 0.0))
    judged = unpair(keys, max(seen.n_nodes, 1))
    claimed = scores >= settings.passing
    if settings.top_k is not None:
        claimed[claimed] = among_best(judged[claimed], scores[claimed], settings.top_k, seen.n_nodes)
    nodes = np.unique(seen.nodes[np.isin(owners(seen.ptr), core)])
    told = {"skipped_patches": skipped, **trust.why(settings), **_diagnostics(trust, assembly, adjusted, settings)}
    found = Reconstruction(seen.n_nodes, judged[claimed], scores[claimed], nodes, judged, scores,
                           assign_nodes(seen, assembly.island_of), told)  # fmt: skip
    return found if settings.cross_voting == "off" else _vote(seen, found, settings)


def _judge(
    seen: Observations, trust: Fidelity, positions: Floats, weights: Floats | None, settings: AfrSettings
) -> tuple[Ints, Floats]:
    """Judge the pairs inside core patches by inner products of positions, shape (n_entries, dims)."""

    def kernels(which: Ints) -> Floats:
        rows = positions[seen.ptr[which][:, None] + np.arange(seen.sizes[which[0]])]
        return np.asarray(rows @ rows.swapaxes(1, 2))

    batches = [kept for which in patches_by_size(seen, settings.max_size)
               if len(kept := which[trust.core[which]])]  # fmt: skip
    keys, _, margins = pair_margins(seen, batches, kernels, settings.margins, weights)
    return keys, margins


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
    seen: Observations, local: LocalGraphs, trust: Fidelity, assembly: Assembly, settings: AfrSettings
) -> dict[str, dict[str, float]]:
    """Adjust all stitched islands at once, in `assembly`; tell objective and consistency before and after.

    As printed (``literal``) every pair has a rotation of its own, plain Procrustes on its consensus,
    which is what stitching used: the objective falls to its pairwise optimum and nothing moves.

    Cycle consistency is Σ tr(R_vᵀ C R_w) over Σ ‖C‖_*: 1 where the frames meet every pair's own optimum,
    which is possible around all cycles only if the pairwise rotations agree. Both are left out where no
    eligible pair agrees on anything.
    """
    if settings.bundle == "off" or not assembly.stitches:
        return {}
    first, second, cross, constant = eligible_pairs(seen, local, assembly, trust.score, settings)
    optimum = float(np.linalg.svd(cross, compute_uv=False).sum())
    if optimum <= 0:
        return {}
    patches, ends = np.unique(np.concatenate([first, second]), return_inverse=True)
    first, second = np.split(ends, 2)
    before = float(np.einsum("mii->", cross)) / optimum
    objective = {"before": constant - 2 * before * optimum, "after": constant - 2 * optimum}
    after = before
    if settings.bundle == "joint":
        frames = np.repeat(np.eye(cross.shape[1])[None], len(patches), axis=0)
        result = adjust(frames, first, second, cross, constant, settings.bundle_steps)
        for i, frame in zip(patches.tolist(), result.frames):
            span = slice(seen.ptr[i], seen.ptr[i + 1])
            assembly.positions[span, : len(frame)] = assembly.positions[span, : len(frame)] @ frame
        objective["after"] = result.objective[-1]
        after = (constant - result.objective[-1]) / (2 * optimum)
    return {"bundle_objective": objective, "cycle_consistency": {"before": before, "after": after}}


def _vote(seen: Observations, found: Reconstruction, settings: AfrSettings) -> Reconstruction:
    """Add the edges between islands that votes suggest: beside the islands' edges, or after them."""
    assert found.islands is not None
    assert found.judged is not None
    assert found.judged_scores is not None
    pairs, chance = cross_votes(seen, found.islands, settings.c0, settings.kappa, settings.vote_size)
    claimed = np.isin(edge_keys(pairs, seen.n_nodes), edge_keys(found.edges, seen.n_nodes))
    pairs, chance = pairs[~claimed], chance[~claimed]
    told = found.diagnostics | {"cross_edges": len(pairs),
                                "patches_without_vote": int((seen.sizes > settings.vote_size).sum())}  # fmt: skip
    if settings.cross_voting == "beside":
        return replace(found, cross=pairs, cross_scores=chance, diagnostics=told)
    edges, scores = np.concatenate([found.edges, pairs]), np.concatenate([found.scores, chance / 2])
    if settings.top_k is not None:
        kept = among_best(edges, scores + (np.arange(len(edges)) < len(found.edges)), settings.top_k, seen.n_nodes)
        edges, scores = edges[kept], scores[kept]
    # A pair that was judged in an island keeps the better of its two scores.
    keys = edge_keys(np.concatenate([found.judged, pairs]), seen.n_nodes)
    every = np.concatenate([found.judged_scores, chance / 2])
    order = np.lexsort((-every, keys))
    order = order[np.diff(keys[order], prepend=-1) > 0]
    return replace(found, edges=edges, scores=scores, judged=unpair(keys[order], max(seen.n_nodes, 1)),
                   judged_scores=every[order], diagnostics=told)  # fmt: skip


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
        else survivable_inliers(sample, settings.iterations),
    }  # fmt: skip
