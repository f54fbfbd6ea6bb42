"""Fragments: what is connected by what was shared, and the questions between them (§4.4.3). Two readings.

*Components*: nodes that share a patch belong together, so a fragment is a connected component of the union of the
patches (d-hop, random, custom). Clusters hang together by their halos; with ``halo="drop"``, the default, they are
cut and observed anew without, with the same parameters and seed. No path runs between fragments then.

*Haloed clusters* (§4.1, Appendix A.4), ``halo="keep"``: the fragments are the clusters without their halos, but
what was shared stays as it is. Edges between fragments are taken out of the patches; who sits in whose halo, which
is what the co-occurrence graph shows, still gives them away, and so do the spectra.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy.sparse as sp

from lograb.archive.tables import join
from lograb.defences import as_defences
from lograb.errors import LograbError
from lograb.fragment import fragment
from lograb.instance import Instance
from lograb.learning.links.fragmented import FragmentedGraph, pairs_between
from lograb.learning.patchset import PatchSet, patch_set
from lograb.ragged import owners, pointer
from lograb.spec import InstanceSpec
from lograb.types import Bools, Ints, Patches

Halo = Literal["drop", "keep"]
Negatives = Literal["uniform", "possible"]


@dataclass(frozen=True, eq=False)
class Questions:
    """What Task 3 asks of one instance, and what may be known beforehand.

    Attributes
    ----------
    known : FragmentedGraph
        All that a method sees.
    positives : int64 array, shape (m, 2)
        All true edges (u, w), u < w, between fragments of one graph.
    truth : int64 array
        All true edges as u * n_nodes + w, increasing, to keep negatives apart from them.
    sanitised : str
        The defence that changed the graph before it was cut, if any.
    """

    known: FragmentedGraph
    positives: Ints
    truth: Ints
    sanitised: str = ""

    @property
    def n_fragments(self) -> int:
        """Number of fragments."""
        return int(self.known.fragment.max(initial=-1)) + 1

    @property
    def reason(self) -> str | None:
        """Why there is nothing to ask; None where there is."""
        if self.sanitised:
            return (f"the patches were grown in a sanitised graph ({self.sanitised}): they say nothing about "
                    "which true edges are known, and which run between fragments")  # fmt: skip
        if len(self.positives):
            return None
        sizes = np.bincount(self.known.fragment[self.known.fragment >= 0], minlength=1)
        if self.n_fragments <= len(np.unique(self.known.graph)):
            return ("the patches hang together: every graph is one fragment (cut it into clusters, as with "
                    "generate --strategy cluster --clusters 3, or into silos that share no node)")  # fmt: skip
        return (f"no true edge runs between the {self.n_fragments:,} fragments "
                f"(the largest has {int(sizes.max()):,} nodes)")  # fmt: skip

    def negatives(self, rng: np.random.Generator, kind: Negatives = "uniform") -> Ints:
        """Draw as many pairs between fragments that are no edges, graph by graph.

        ``uniform`` draws from all such pairs. ``possible`` leaves out nodes that no edge between fragments
        can touch, which every edge between fragments avoids too: centres of balls.
        """
        fragment, graph, n = self.known.fragment, self.known.graph, self.known.n_nodes
        asked = fragment >= 0 if kind == "uniform" else (fragment >= 0) & ~self.known.settled
        found = [np.empty((0, 2), np.int64)]
        graphs, counts = np.unique(graph[self.positives[:, 0]], return_counts=True)
        for number, count in zip(graphs, counts):
            first, last = np.searchsorted(graph, [number, number + 1])  # graphs come one after the other
            nodes = first + np.flatnonzero(asked[first:last])
            taken = self.truth[slice(*np.searchsorted(self.truth, [first * n, last * n]))]
            found.append(pairs_between(nodes, fragment, taken, n, int(count), rng))
        return np.concatenate(found)


def ask(instance: Instance, halo: Halo = "drop", seed: int = 0) -> Questions:
    """Find the fragments of an instance and the true edges between them; `seed` as for `without_halos`."""
    if not instance.has_truth:
        raise LograbError(f"the instance '{instance.name}' was saved without its truth: Task 3 needs it")
    sanitised = " and ".join(str(one) for one in as_defences(instance.spec.defences) if one.on_graph)
    if instance.spec.strategy == "cluster" and halo == "drop" and not sanitised:
        instance = without_halos(instance, seed)
    patches = patch_set(instance)
    sizes = [graph.n_nodes for graph in instance]
    shift = pointer(sizes)
    label = _cores(instance, patches) if instance.spec.strategy == "cluster" else components(patches)
    edges = np.concatenate([graph.truth.edges + start for graph, start in zip(instance, shift)])
    ends = label[edges]
    between = (ends >= 0).all(axis=1) & (ends[:, 0] != ends[:, 1])
    graph = np.repeat(np.arange(len(sizes)), sizes)
    known = FragmentedGraph(hide(patches, label), label, _settled(instance.spec, patches), graph)
    truth = edges[:, 0] * patches.n_nodes + edges[:, 1]
    return Questions(known, edges[between], truth, sanitised)


def components(patches: PatchSet) -> Ints:
    """Number the connected components of the union of the patches, by their first node; -1 outside all."""
    m, n = patches.n_patches, patches.n_nodes
    links = sp.csr_array((np.ones(patches.n_rows, dtype=np.int8), (owners(patches.ptr), m + patches.nodes)),
                         shape=(m + n, m + n))  # fmt: skip
    component = sp.csgraph.connected_components(links, directed=False)[1][m:]
    label = np.full(n, -1, dtype=np.int64)
    present = np.unique(patches.nodes)
    label[present] = renumber_by_first(component[present])
    return label


def renumber_by_first(values: Ints) -> Ints:
    """Give equal values equal numbers 0, 1, ... in the order of their first occurrence."""
    _, first, index = np.unique(values, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[index], dtype=np.int64)


def _cores(instance: Instance, patches: PatchSet) -> Ints:
    """Take the disjoint clusters as fragments, whatever their halos."""
    flags = [graph.core for graph in instance]
    if any(flag is None for flag in flags):
        raise LograbError("the clusters of this instance do not tell their cores from their halos")
    core = np.concatenate(flags)
    label = np.full(patches.n_nodes, -1, dtype=np.int64)
    label[patches.nodes[core]] = owners(patches.ptr)[core]
    present = label >= 0
    label[present] = renumber_by_first(label[present])
    return label


def without_halos(instance: Instance, seed: int = 0) -> Instance:
    """Cut the clusters of an instance anew without their halos, and observe them with the same parameters.

    `seed` stands in where the instance does not tell its own, as after `lograb.defend`.
    """
    spec = instance.spec.model_copy(update={"strategy": "custom", "p": 1.0, "clusters": None, "cluster_size": None,
                                             "d": 0})
    tables = []
    for number, graph in enumerate(instance):
        if graph.core is None:
            raise LograbError("the clusters of this instance do not tell their cores from their halos")
        seen = graph.observations
        lists = [seen.members(i)[graph.core[seen.ptr[i] : seen.ptr[i + 1]]] for i in range(seen.n_patches)]
        stream = np.random.SeedSequence(seed if spec.seed is None else spec.seed, spawn_key=(number,))
        cores = Patches.from_lists(graph.n_nodes, [item for item in lists if len(item)])
        tables.append(fragment(graph.truth, spec, stream, cores))
    manifest = instance.manifest.model_copy(update={"spec": spec})
    return Instance(manifest, join(tables) if len(tables) > 1 else tables[0])


def hide(patches: PatchSet, label: Ints) -> PatchSet:
    """Take the edges between fragments out of all patches."""
    patch = owners(patches.edge_ptr)
    ends = label[patches.nodes[patches.edges + patches.ptr[patch][:, None]]]
    kept = (ends[:, 0] == ends[:, 1]) & (ends[:, 0] >= 0)
    counts = np.bincount(patch[kept], minlength=patches.n_patches)
    return replace(patches, edge_ptr=pointer(counts), edges=patches.edges[kept])


def _settled(spec: InstanceSpec, patches: PatchSet) -> Bools:
    """Mark the nodes whose neighbours all share their patch: the centres of balls of radius 1 or more."""
    marks = np.zeros(patches.n_nodes, dtype=bool)
    if patches.centres is not None and spec.d >= 1:
        marks[patches.nodes[patches.centres]] = True
    return marks
