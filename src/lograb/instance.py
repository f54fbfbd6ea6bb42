"""A benchmark instance: what is shown, how it was made, and (for the judge) the truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from lograb.archive import schema
from lograb.archive.manifest import Manifest
from lograb.archive.shown import read_features, read_names, read_shown
from lograb.archive.tables import Tables, cut
from lograb.archive.writer import Writer
from lograb.errors import ArchiveError, LograbError
from lograb.packed import packed
from lograb.spec import InstanceSpec, Origin
from lograb.types import Graph, Ints, Matrix, Observations, check_labels

Names = tuple[str, ...] | None


class Instance:
    """One graph, or many small ones, fragmented and observed.

    An instance is a sequence of its graphs: ``len(instance)``, ``instance[i]``, iteration. An
    instance of one graph (``len(instance) == 1``) has `observations`, `truth` and the other
    parts; with several graphs take them one at a time. Whatever lies in a file is read, and
    verified, only when asked for. `tables` are the columns behind all parts, in memory or in a file (see
    `lograb.archive.schema`).
    """

    def __init__(self, manifest: Manifest, tables: Tables) -> None:
        self.manifest = manifest
        self.tables = tables

    @classmethod
    def from_observations(
        cls, observations: Observations, truth: Graph | None = None, name: str = "packed"
    ) -> Instance:
        """Make an instance of observations that lograb did not make, to be scored if the truth is at hand.

        See `Observations.from_arrays`. The truth is the graph behind them (`lograb.load_graph` reads one): nodes
        are matched by name, by number where they have none, and take its numbers.
        """
        return cls(*packed(observations, truth, name))

    @property
    def spec(self) -> InstanceSpec:
        """Every choice behind the instance."""
        return self.manifest.spec

    @property
    def origin(self) -> Origin:
        """Where the graph came from."""
        return self.manifest.origin

    @property
    def name(self) -> str:
        """Name of the graph or dataset."""
        return self.manifest.name

    def __len__(self) -> int:
        return int(self.tables[schema.GRAPH_NODES].shape[0]) - 1

    def __getitem__(self, i: int) -> Instance:
        if not -len(self) <= i < len(self):
            raise IndexError(f"graph {i} of an instance with {len(self)} graphs")
        i %= len(self)
        if len(self) == 1:
            return self
        manifest = self.manifest.model_copy(update={"name": f"{self.name}/{i}"})
        return Instance(manifest, cut(self.tables, "graph", i, i + 1))

    def __iter__(self) -> Iterator[Instance]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        spec = self.spec
        return (f"<Instance {self.name}: {len(self)} graph(s), {self.n_nodes} nodes, {self.n_patches} patches, "
                f"{spec.strategy} d={spec.d} p={spec.p} k={spec.k} sigma={spec.sigma}>")  # fmt: skip

    @property
    def n_nodes(self) -> int:
        """Number of nodes, over all graphs."""
        return self._total(schema.GRAPH_NODES)

    @property
    def n_patches(self) -> int:
        """Number of patches, over all graphs."""
        return self._total(schema.GRAPH_PATCHES)

    def _total(self, pointer_column: str) -> int:
        return int(self.tables[pointer_column][len(self) : len(self) + 1][0])

    def _whole(self, column: str) -> Any:
        """Read a column of a single-graph instance, or None where there is none."""
        if len(self) != 1:
            raise LograbError(f"'{self.name}' holds {len(self)} graphs: take one, instance[i], or iterate")
        if column not in self.tables:
            return None
        content = self.tables[column][0 : self.tables[column].shape[0]]
        if column in schema.POINTERS and (np.diff(content) < 0).any():
            raise ArchiveError(f"{column}.npy", "is not a rising pointer")
        return content

    def patch(self, i: int) -> Observations:
        """Read what is shown of one patch, and only that, as observations of a single patch."""
        if not 0 <= i < self.n_patches:
            raise IndexError(f"patch {i} of an instance with {self.n_patches} patches")
        graph = 0
        if len(self) > 1:
            patches = np.asarray(self.tables[schema.GRAPH_PATCHES][0 : len(self) + 1])
            graph = int(np.searchsorted(patches, i, side="right")) - 1
        first, last = self.tables[schema.GRAPH_NODES][graph : graph + 2]
        columns = cut({n: c for n, c in self.tables.items() if schema.part(n) in ("observations", "patches")},
                      "patch", i, i + 1)  # fmt: skip
        return read_shown(self.manifest, int(last - first), columns)

    @cached_property
    def observations(self) -> Observations:
        """What the eavesdropper sees (without the features channel)."""
        parts = ("observations", "nodes", "patches")
        columns = {n: self._whole(n) for n in self.tables if schema.part(n) in parts}
        return read_shown(self.manifest, self.n_nodes, columns)

    def observe(self, *, features: bool = False) -> Observations:
        """Give what the eavesdropper sees, with or without the features of the observed nodes."""
        seen = self.observations
        if not features:
            return seen
        if self.features is None:
            raise LograbError(f"the graph '{self.name}' has no features to observe")
        mask = np.zeros(seen.n_nodes, dtype=self.features.dtype)
        mask[seen.nodes] = 1.0
        shown = (sp.diags_array(mask) @ self.features if sp.issparse(self.features)
                 else self.features * mask[:, None])  # fmt: skip
        return replace(seen, features=shown)

    @cached_property
    def features(self) -> Matrix | None:
        """Node features, dense or CSR, shape (n_nodes, n_features); None where there are none."""
        return read_features(self.manifest, self.n_nodes,
                             {n: self._whole(n) for n in self.tables if schema.part(n) == "features"})  # fmt: skip

    @property
    def labels(self) -> Any:
        """Node classes (n_nodes,), or indicators (n_nodes, n_classes); None where there are none."""
        column = schema.CLASSES if schema.CLASSES in self.tables else schema.INDICATORS
        labels = self._whole(column)
        try:
            check_labels("classes", labels)
        except LograbError as error:
            raise ArchiveError(f"{column}.npy", str(error)) from None
        return labels

    @property
    def node_names(self) -> Names:
        """Names of the nodes; None when they are just numbered."""
        return self._names(schema.NAME_PTR, schema.NAMES)

    @property
    def patch_names(self) -> Names:
        """Names of the patches; None when they are just numbered."""
        return self._names(schema.PATCH_NAME_PTR, schema.PATCH_NAMES)

    def _names(self, *columns: str) -> Names:
        return read_names({name: self._whole(name) for name in columns}, *columns)

    @property
    def core(self) -> Any:
        """For clusters, True on the disjoint core of each patch, one flag per entry; else None."""
        flags = self._whole(schema.CORE)
        return None if flags is None else flags.astype(bool)

    @property
    def patch_edges(self) -> tuple[Ints, Ints]:
        """The induced subgraphs (Task 2's input): pointer and endpoints inside each patch."""
        self._require_truth(", patch edges included")
        ptr, ends = self._whole(schema.EDGE_PTR), self._whole(schema.EDGE_ENDS)
        sizes = np.repeat(self.observations.sizes, np.diff(ptr))
        if ((ends[:, 0] < 0) | (ends[:, 0] >= ends[:, 1]) | (ends[:, 1] >= sizes)).any():
            raise ArchiveError(f"{schema.EDGE_ENDS}.npy", "must be pairs (u, w) of positions in a patch, u < w")
        return ptr, ends

    @property
    def key(self) -> Any:
        """The node that each pseudonym stands for, shape (n_nodes,); None without pseudonyms, or without truth."""
        return self._whole(schema.KEY)

    @property
    def has_truth(self) -> bool:
        """Whether the true edges are there."""
        return schema.TRUTH in self.tables

    def _require_truth(self, more: str = "") -> None:
        if not self.has_truth:
            raise LograbError(f"the instance '{self.name}' was saved without its truth{more}")

    @cached_property
    def truth(self) -> Graph:
        """The graph behind the observations: for whoever scores, never for whoever attacks."""
        self._require_truth()
        edges = self._whole(schema.TRUTH)
        graph = Graph.from_edges(self.name, self.n_nodes, edges, origin=self.origin,
                                 features=self.features, labels=self.labels, node_names=self.node_names)
        if not np.array_equal(graph.edges, edges):
            raise ArchiveError(f"{schema.TRUTH}.npy", "must list every edge once, as sorted pairs (u, w), u < w")
        return graph

    @property
    def co_observed(self) -> Any:
        """For each edge of ``truth.edges``, whether some patch contains it."""
        self._require_truth()
        return self._whole(schema.CO_OBSERVED).astype(bool)

    def save(self, path: str | Path, *, truth: bool = True) -> str:
        """Write the instance to one file and return the file's SHA-256.

        With ``truth=False`` the file lacks whatever would answer Task 1: the true edges, the
        patches' edges, the cores of clusters, and the seed, which would reproduce the noise.
        """
        with Writer(path, truth=truth) as writer:
            for i in range(len(self)):
                writer.append(cut(self.tables, "graph", i, i + 1))
            return writer.finish(self.manifest)

    def summary(self) -> dict[str, Any]:
        """Describe the instance in numbers, ready for JSON; None for what was left out."""
        spec, m = self.spec, self.n_patches
        sizes = np.diff(self.tables[schema.PTR][0 : m + 1])
        ranks = np.diff(self.tables[schema.VALUE_PTR][0 : m + 1])
        n_edges = co_observed = None
        if self.has_truth:
            flags = self.tables[schema.CO_OBSERVED]
            n_edges, co_observed = flags.shape[0], int(flags[0 : flags.shape[0]].sum())
        return {
            "source": self.origin.source,
            "name": self.name,
            "n_graphs": len(self),
            "n_nodes": self.n_nodes,
            "n_edges": n_edges,
            "n_patches": m,
            **spec.model_dump(),
            "patch_sizes": {"min": int(sizes.min()), "median": float(np.median(sizes)),
                            "mean": float(sizes.mean()), "max": int(sizes.max())},
            "complete_share": float((sizes == ranks).mean()),
            "co_observed_edges": co_observed,
            "truth": self.has_truth,
            "notices": list(self.manifest.notices),
        }  # fmt: skip
