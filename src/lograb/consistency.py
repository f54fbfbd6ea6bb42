"""Does the content of an instance hang together?

Checksums show that a file is as it was written; here the parts are held against each other, so
that a file written wrongly, or with intent, is noticed too. What an attack computes with is checked
whenever it is read (`lograb.archive.shown`).
"""

from __future__ import annotations

import numpy as np

from lograb.archive import schema
from lograb.archive.manifest import MANIFEST
from lograb.defences import Withhold, as_defences
from lograb.errors import ArchiveError, LograbError
from lograb.instance import Instance
from lograb.patches import induced_edges, n_observed
from lograb.types import Observations, Patches


def check_graph(instance: Instance) -> None:
    """Build all parts of a single graph and compare what can be; an `ArchiveError` names what does not hold."""
    _check_manifest(instance)
    _ = instance.labels
    for column in (schema.CORE, schema.CO_OBSERVED):
        flags = instance.tables.get(column)
        if flags is not None and (np.asarray(flags[0 : flags.shape[0]]) > 1).any():
            raise ArchiveError(f"{column}.npy", "must hold 0 and 1 only")
    if instance.has_truth:
        _check_edges(instance, instance.observations)


def _check_manifest(instance: Instance) -> None:
    """Hold what the manifest says of an instance against what is there."""
    seen, spec, features = instance.observations, instance.spec, instance.features
    said: dict[str, tuple[object, object]] = {
        "its truth": (instance.manifest.truth, instance.has_truth),
        "eigenvalues": (spec.eigenvalues, seen.values is not None),
        "features": (instance.manifest.n_features, 0 if features is None else features.shape[1]),
    }
    if instance.origin.kind == "packed":  # what its owner observed may be anything else
        said["ranks"] = (spec.k, seen.ranks.max())
    else:
        try:
            defences = as_defences(spec.defences)
        except LograbError as error:
            raise ArchiveError(MANIFEST, str(error)) from None
        withheld = any("centres" in one.what for one in defences if isinstance(one, Withhold))
        renamed = any(one.renames for one in defences)  # then nobody but the key knows how many nodes there are
        cut, shown = spec.strategy, n_observed(seen.n_nodes, spec.p)
        counts = {"d-hop": shown, "global": 1, "random": spec.seed_nodes or max(1, round(shown / 2))}
        said |= {
            "next_values": (spec.eigenvalues, seen.next_values is not None),
            "sigma": (spec.sigma is not None, True),
            "centres": (cut in ("d-hop", "random") and not withheld, seen.centres is not None),
            "cores": (cut == "cluster" and instance.has_truth, schema.CORE in instance.tables),
            "patches": (seen.n_patches if renamed else counts.get(cut, seen.n_patches), seen.n_patches),
            "a key": (renamed and instance.has_truth, schema.KEY in instance.tables),
        }
    for what, (told, found) in said.items():
        if told != found:
            raise ArchiveError(MANIFEST, f"contradicts the parts about {what}: {told} by it, {found} by them")


def _check_edges(instance: Instance, seen: Observations) -> None:
    edges = induced_edges(Patches(seen.n_nodes, seen.nodes, seen.ptr), instance.truth)
    ptr, ends = instance.patch_edges
    local = edges.entries - np.repeat(seen.ptr[:-1], np.diff(edges.ptr))[:, None]
    if not np.array_equal(ptr, edges.ptr) or not np.array_equal(ends, local):
        raise ArchiveError(f"{schema.EDGE_ENDS}.npy", "are not the true edges inside the patches")
    if not np.array_equal(instance.co_observed, edges.co_observed):
        raise ArchiveError(f"{schema.CO_OBSERVED}.npy", "does not mark exactly the edges that some patch contains")
