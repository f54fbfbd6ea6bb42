"""Does the content of an instance hang together?

Checksums show that a file is as it was written; here the parts are held against each other, so
that a file written wrongly, or with intent, is noticed too.
"""

from __future__ import annotations

import numpy as np

from lograb.archive import schema
from lograb.errors import ArchiveError
from lograb.instance import Instance
from lograb.patches import induced_edges
from lograb.types import Observations, Patches


def check_graph(instance: Instance) -> None:
    """Build all parts of a single graph and compare what can be; an `ArchiveError` names what does not hold."""
    if instance.manifest.truth != instance.has_truth:
        raise ArchiveError("manifest.json", "says the opposite of what the archive holds about its truth")
    seen = instance.observations
    packed = instance.origin.kind == "packed"
    _check_spectra(seen, instance.spec.k, packed)
    _ = instance.features, instance.node_names
    for column in (schema.CORE, schema.INDICATORS, schema.CO_OBSERVED):
        flags = instance.tables.get(column)
        if flags is not None and (np.asarray(flags[0 : flags.shape[0]]) > 1).any():
            raise ArchiveError(f"{column}.npy", "must hold 0 and 1 only")
    labels = instance.labels
    if labels is not None and labels.ndim == 1 and len(labels) and labels.min() < -1:
        raise ArchiveError(f"{schema.CLASSES}.npy", f"must hold classes from 0 on, or -1, got {labels.min()}")
    if instance.has_truth:
        _check_edges(instance, seen)


def _check_spectra(seen: Observations, k: int, packed: bool) -> None:
    if packed and ((seen.ranks < 1).any() or seen.ranks.max() != k):
        raise ArchiveError(f"{schema.VALUE_PTR}.npy", f"ranks must lie in 1 .. k, up to k = {k}")
    if not packed and not np.array_equal(seen.ranks, np.minimum(seen.sizes, k)):
        raise ArchiveError(f"{schema.VALUE_PTR}.npy", f"ranks must be min(k, size) with k = {k}")
    if seen.centre_entries is not None and (seen.centre_entries < 0).any():
        raise ArchiveError(f"{schema.CENTRES}.npy", "a centre must be a member of its patch")
    if seen.values is None:
        return
    steps = np.diff(seen.values)
    inside = np.ones(len(steps), dtype=bool)
    starts = seen.value_ptr[1:-1]
    inside[starts[(starts > 0) & (starts < len(seen.values))] - 1] = False
    if (steps[inside] < 0).any() or (seen.values < 0).any() or (seen.values > 2).any():
        raise ArchiveError(f"{schema.VALUES}.npy", "eigenvalues must ascend inside each patch, from 0 to 2")
    if seen.next_values is None and not packed:
        raise ArchiveError(f"{schema.NEXT_VALUES}.npy", "is missing beside the eigenvalues")
    if seen.next_values is not None and not np.array_equal(np.isnan(seen.next_values), seen.complete):
        raise ArchiveError(f"{schema.NEXT_VALUES}.npy", "must be NaN exactly where a spectrum is complete")


def _check_edges(instance: Instance, seen: Observations) -> None:
    edges = induced_edges(Patches(seen.n_nodes, seen.nodes, seen.ptr), instance.truth)
    ptr, ends = instance.patch_edges
    local = edges.entries - np.repeat(seen.ptr[:-1], np.diff(edges.ptr))[:, None]
    if not np.array_equal(ptr, edges.ptr) or not np.array_equal(ends, local):
        raise ArchiveError(f"{schema.EDGE_ENDS}.npy", "are not the true edges inside the patches")
    if not np.array_equal(instance.co_observed, edges.co_observed):
        raise ArchiveError(f"{schema.CO_OBSERVED}.npy", "does not mark exactly the edges that some patch contains")
