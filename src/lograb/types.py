"""The data types of lograb: what flows from stage to stage, and nothing else.

Ragged data is flat: one long array and a *pointer* array, so that item ``i`` is
``flat[ptr[i]:ptr[i + 1]]``. Every type checks itself when it is built; code that holds one need
not check again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from pydantic import BaseModel, ConfigDict, Field, model_validator

from lograb.errors import LograbError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Matrix = Any  # a dense (n, f) array or a scipy CSR array; scipy has no static types

StrategyName = Literal["d-hop", "cluster", "random", "custom"]
GaugeName = Literal["sign", "rotation", "none"]
STRATEGIES: tuple[str, ...] = get_args(StrategyName)
GAUGES: tuple[str, ...] = get_args(GaugeName)


class Origin(BaseModel):
    """Where a graph came from: enough to fetch the same bytes again."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    """Catalog name, file name (never its folder), or the name a user gave."""
    kind: Literal["built-in", "public", "file", "memory"] = "memory"
    revision: str = ""
    sha256: str = ""
    """Checksum of what was read: the SHA-256 of the file, or of the list of file checksums."""
    licence: str = ""
    url: str = ""


@dataclass(frozen=True, eq=False)
class Graph:
    """A simple undirected graph: the truth that a benchmark instance hides.

    Attributes
    ----------
    name : str
    adjacency : scipy.sparse.csr_array, shape (n_nodes, n_nodes), bool
        Symmetric, no diagonal, sorted indices. Build it with `Graph.from_edges`.
    features : array or csr_array, shape (n_nodes, n_features), optional
    labels : int array (n_nodes,), -1 where unknown, or 0/1 array (n_nodes, n_classes), optional
    node_names : tuple of str, optional
        Names the user knows the nodes by; None when they are simply 0 .. n_nodes - 1.
    notices : tuple of str
        What the reader changed (merged directions, dropped loops ...); shown to the user.
    origin : Origin
    """

    name: str
    adjacency: Matrix
    features: Matrix | None = None
    labels: npt.NDArray[Any] | None = None
    node_names: tuple[str, ...] | None = None
    notices: tuple[str, ...] = ()
    origin: Origin = field(default_factory=lambda: Origin(source="graph"))

    def __post_init__(self) -> None:
        n = self.adjacency.shape[0]
        if self.adjacency.shape != (n, n) or n == 0:
            raise LograbError(f"graph '{self.name}' needs a square adjacency with at least one node, "
                              f"got shape {self.adjacency.shape}")
        self.adjacency.sort_indices()
        if self.adjacency.diagonal().any() or (self.adjacency != self.adjacency.T).nnz:
            raise LograbError(f"the adjacency of graph '{self.name}' must be symmetric with an empty "
                              "diagonal: build it with Graph.from_edges")
        for what, value in (("features", self.features), ("labels", self.labels)):
            if value is not None and value.shape[0] != n:
                raise LograbError(f"graph '{self.name}' has {n} nodes but {value.shape[0]} rows of {what}")
        if self.node_names is not None and len(set(self.node_names)) != n:
            raise LograbError(f"graph '{self.name}' needs {n} distinct node names, "
                              f"got {len(set(self.node_names))}")

    @classmethod
    def from_edges(cls, name: str, n_nodes: int, edges: npt.ArrayLike, **rest: Any) -> Graph:
        """Build a graph from node pairs, whatever their direction, multiplicity or loops.

        The rule, everywhere in lograb: an edge exists if it is listed in either direction; a pair
        listed twice is one edge; loops are dropped.
        """
        pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
        if len(pairs) and (pairs.min() < 0 or pairs.max() >= n_nodes):
            raise LograbError(f"edges of graph '{name}' must join nodes 0 .. {n_nodes - 1}, "
                              f"got ids from {pairs.min()} to {pairs.max()}")
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        rows = np.concatenate([pairs[:, 0], pairs[:, 1]])
        cols = np.concatenate([pairs[:, 1], pairs[:, 0]])
        adjacency = sp.csr_array((np.ones(len(rows), dtype=bool), (rows, cols)), shape=(n_nodes, n_nodes))
        adjacency.sum_duplicates()
        return cls(name=name, adjacency=adjacency, **rest)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.adjacency.shape[0])

    @property
    def n_edges(self) -> int:
        """Number of unique undirected edges."""
        return int(self.adjacency.nnz) // 2

    @property
    def edges(self) -> Ints:
        """Unique edges (u, w) with u < w in lexicographic order, shape (n_edges, 2)."""
        rows = np.repeat(np.arange(self.n_nodes), np.diff(self.adjacency.indptr))
        upper = self.adjacency.indices > rows
        return np.stack([rows[upper], self.adjacency.indices[upper]], axis=1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Patches:
    """Overlapping node sets that cover (part of) one graph.

    Attributes
    ----------
    n_nodes : int
        Number of nodes of the graph.
    nodes : int64 array, shape (n_entries,)
        Members of all patches, one after the other, increasing inside each patch.
    ptr : int64 array, shape (n_patches + 1,)
    centres : int64 array, shape (n_patches,), optional
        The node each patch was grown from, where the strategy has one.
    core : bool array, shape (n_entries,), optional
        For clusters: True on the disjoint core, False on the halo.
    """

    n_nodes: int
    nodes: Ints
    ptr: Ints
    centres: Ints | None = None
    core: Bools | None = None

    def __post_init__(self) -> None:
        check_ragged("patches", self.n_nodes, self.nodes, self.ptr)
        if self.centres is not None and self.centres.shape != (self.n_patches,):
            raise LograbError(f"{self.n_patches} patches need as many centres, got {len(self.centres)}")
        if self.core is not None and self.core.shape != self.nodes.shape:
            raise LograbError("core flags must match the patch members one to one")

    @classmethod
    def from_lists(cls, n_nodes: int, lists: Sequence[npt.ArrayLike], **rest: Any) -> Patches:
        """Build patches from one node list each; order and repetition inside a list do not matter."""
        sets = [np.unique(np.asarray(item, dtype=np.int64)) for item in lists]
        nodes = np.concatenate([np.empty(0, np.int64), *sets])
        return cls(n_nodes, nodes, pointer([len(item) for item in sets]), **rest)

    def __len__(self) -> int:
        return self.n_patches

    def __getitem__(self, i: int) -> Ints:
        return self.nodes[self.ptr[i] : self.ptr[i + 1]]

    @property
    def n_patches(self) -> int:
        """Number of patches."""
        return len(self.ptr) - 1

    @property
    def sizes(self) -> Ints:
        """Number of members of each patch."""
        return np.diff(self.ptr)


class Protocol(BaseModel):
    """What everybody, the eavesdropper included, knows about how the patches were shared."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    strategy: StrategyName = "d-hop"
    d: int = Field(1, ge=0, le=64)
    k: int = Field(32, ge=1)
    gauge: GaugeName = "sign"
    sigma: float | None = Field(None, ge=0, allow_inf_nan=False)
    """Standard deviation of the noise; None when it is not announced."""


@dataclass(frozen=True, eq=False)
class Observations:
    """What the eavesdropper sees of one graph, and all that an attack may use.

    There is no path from here back to the graph. Patch ``i`` has ``q = sizes[i]`` members and
    ``ranks[i] = min(k, q)`` eigenvectors of its normalized Laplacian, noise included.

    Attributes
    ----------
    protocol : Protocol
    n_nodes : int
        Node ids run from 0 to n_nodes - 1; not every id need occur.
    nodes : int64 array, shape (n_entries,)
        Members of all patches, increasing inside each patch.
    ptr : int64 array, shape (n_patches + 1,)
        Where each patch starts in `nodes`.
    ranks : int64 array, shape (n_patches,)
        Eigenvectors kept per patch.
    vectors : float64 array, shape (sum of sizes * ranks,)
        The (sizes[i], ranks[i]) blocks, row by row, one after the other; see `block`.
    values : float64 array, shape (sum of ranks,), optional
        The eigenvalues that belong to the columns, ascending; None when withheld.
    next_values : float64 array, shape (n_patches,), optional
        The first eigenvalue that was cut off; NaN where the spectrum is complete.
    centres : int64 array, shape (n_patches,), optional
    features : array or csr_array, shape (n_nodes, n_features), optional
        The side channel that feature-aware attacks use; zero rows for unobserved nodes.
    """

    protocol: Protocol
    n_nodes: int
    nodes: Ints
    ptr: Ints
    ranks: Ints
    vectors: Floats
    values: Floats | None = None
    next_values: Floats | None = None
    centres: Ints | None = None
    features: Matrix | None = None
    value_ptr: Ints = field(init=False, repr=False)
    vector_ptr: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_ragged("observations", self.n_nodes, self.nodes, self.ptr)
        m, sizes = self.n_patches, self.sizes
        if self.ranks.shape != (m,) or (self.ranks < 0).any() or (self.ranks > sizes).any():
            raise LograbError("each patch needs a rank between 0 and its size")
        object.__setattr__(self, "value_ptr", pointer(self.ranks))
        object.__setattr__(self, "vector_ptr", pointer(self.ranks * sizes))
        shapes = {"vectors": (self.vectors, self.vector_ptr[-1]), "values": (self.values, self.value_ptr[-1]),
                  "next_values": (self.next_values, m), "centres": (self.centres, m)}
        for what, (array, length) in shapes.items():
            if array is not None and array.shape != (length,):
                raise LograbError(f"observations need {length} {what}, got shape {array.shape}")
        if not all(np.isfinite(a).all() for a in (self.vectors, self.values) if a is not None):
            raise LograbError("eigenvectors and eigenvalues must be finite; drop the patches that are not")
        if self.next_values is not None and np.isinf(self.next_values).any():
            raise LograbError("the next eigenvalue of a patch must be finite, or NaN where there is none")
        if self.centres is not None and not ((self.centres >= 0) & (self.centres < self.n_nodes)).all():
            raise LograbError(f"centres must be node ids from 0 to {self.n_nodes - 1}")
        if self.features is not None and self.features.shape[0] != self.n_nodes:
            raise LograbError(f"{self.n_nodes} nodes need as many feature rows, got {self.features.shape[0]}")

    @property
    def n_patches(self) -> int:
        """Number of patches."""
        return len(self.ptr) - 1

    @property
    def sizes(self) -> Ints:
        """Number of members of each patch."""
        return np.diff(self.ptr)

    @property
    def complete(self) -> Bools:
        """True where a patch shows its whole spectrum (rank equals size)."""
        return np.equal(self.ranks, self.sizes)

    def members(self, i: int) -> Ints:
        """Node ids of patch i, increasing."""
        return self.nodes[self.ptr[i] : self.ptr[i + 1]]

    def block(self, i: int) -> Floats:
        """Embedding of patch i, shape (sizes[i], ranks[i])."""
        flat = self.vectors[self.vector_ptr[i] : self.vector_ptr[i + 1]]
        return flat.reshape(-1, self.ranks[i]) if self.ranks[i] else np.empty((self.sizes[i], 0))

    def spectrum(self, i: int) -> Floats:
        """Eigenvalues of patch i, shape (ranks[i],)."""
        if self.values is None:
            raise LograbError("the eigenvalues of these observations are withheld")
        return self.values[self.value_ptr[i] : self.value_ptr[i + 1]]


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """An attack's answer: the edges it claims, and how sure it is of each pair it judged.

    Attributes
    ----------
    n_nodes : int
    edges : int64 array, shape (n_edges, 2)
        Claimed edges (u, w) with u < w, no pair twice.
    scores : float64 array, shape (n_edges,)
        Larger is surer; a probability where the method gives one.
    nodes : int64 array
        The nodes the attack claims to have recovered, increasing.
    judged : int64 array, shape (n_judged, 2), optional
        All pairs that got a score, claimed or not, for ranking metrics; pairs that share a patch
        but are not listed count as least likely. By default the claimed edges only.
    judged_scores : float64 array, shape (n_judged,), optional
    islands : int64 array, shape (n_nodes,), optional
        For attacks that assemble patches: the island each node belongs to, -1 for none.
    diagnostics : dict
        Whatever the method wants to tell; JSON-ready.
    """

    n_nodes: int
    edges: Ints
    scores: Floats
    nodes: Ints
    judged: Ints | None = None
    judged_scores: Floats | None = None
    islands: Ints | None = None
    diagnostics: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check_pairs("edges", self.edges, self.scores)
        if (self.judged is None) != (self.judged_scores is None):
            raise LograbError("judged pairs and their scores belong together")
        if self.judged is not None and self.judged_scores is not None:
            self._check_pairs("judged pairs", self.judged, self.judged_scores)
        if self.islands is not None and self.islands.shape != (self.n_nodes,):
            raise LograbError(f"{self.n_nodes} nodes need as many island numbers, got {len(self.islands)}")

    def _check_pairs(self, what: str, pairs: Ints, scores: Floats) -> None:
        if pairs.ndim != 2 or pairs.shape[1] != 2 or scores.shape != (len(pairs),):
            raise LograbError(f"a reconstruction needs (n, 2) {what} and one score each")
        if np.isnan(scores).any():
            raise LograbError(f"the scores of {what} must be numbers")
        if not len(pairs):
            return
        if pairs.min() < 0 or pairs.max() >= self.n_nodes or (pairs[:, 0] >= pairs[:, 1]).any():
            raise LograbError(f"{what} must be pairs (u, w) with 0 <= u < w < {self.n_nodes}")
        keys = np.sort(pairs[:, 0] * self.n_nodes + pairs[:, 1])
        if (keys[1:] == keys[:-1]).any():
            raise LograbError(f"a reconstruction must not list a pair of its {what} twice")


@dataclass(frozen=True)
class Score:
    """One measured value between what a trivial attacker gets and what is reachable at all."""

    metric: str
    value: float
    floor: float | None = None
    ceiling: float | None = None
    interval: tuple[float, float] | None = None


class InstanceSpec(BaseModel):
    """Every choice behind a benchmark instance, the seed included (§4.2 and Algorithm 1).

    Attributes
    ----------
    strategy : how patches are cut: d-hop, cluster, random or custom.
    d : radius of a patch; for clusters the radius of the halo.
    p : coverage: the fraction of nodes (custom: of patches) that is observed.
    k : eigenvectors kept per patch (fewer where the patch is smaller).
    sigma : standard deviation of the Gaussian noise on every entry of the embedding.
    gauge : what is left undetermined in the embedding (see lograb.observations.gauge).
    seed : all randomness follows from it; None in an archive that withholds it.
    clusters : number of METIS clusters; None for about one per 50 observed nodes.
    seed_nodes : number of random seed nodes; None for half of the observed nodes.
    eigenvalues : whether the eigenvalues are shared beside the embedding.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    strategy: StrategyName = "d-hop"
    d: int = Field(1, ge=0, le=64)
    p: float = Field(1.0, gt=0, le=1)
    k: int = Field(32, ge=1, le=1_000_000)
    sigma: float = Field(0.0, ge=0, allow_inf_nan=False)
    gauge: GaugeName = "sign"
    seed: int | None = Field(0, ge=0)
    clusters: int | None = Field(None, ge=1)
    seed_nodes: int | None = Field(None, ge=1)
    eigenvalues: bool = True

    @model_validator(mode="after")
    def _refuse_parameters_of_other_strategies(self) -> InstanceSpec:
        if self.clusters is not None and self.strategy != "cluster":
            raise ValueError(f"clusters belongs to the strategy 'cluster', not '{self.strategy}'")
        if self.seed_nodes is not None and self.strategy != "random":
            raise ValueError(f"seed_nodes belongs to the strategy 'random', not '{self.strategy}'")
        return self

    @property
    def protocol(self) -> Protocol:
        """The public part: what an eavesdropper knows of these choices."""
        return Protocol(strategy=self.strategy, d=self.d, k=self.k, gauge=self.gauge, sigma=self.sigma)


def pointer(lengths: npt.ArrayLike) -> Ints:
    """Turn item lengths into a pointer array: 0 and the running totals."""
    lengths = np.asarray(lengths, dtype=np.int64)
    ptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ptr[1:])
    return ptr


def check_ragged(what: str, n_nodes: int, nodes: Ints, ptr: Ints) -> None:
    """Refuse flat node lists that are not increasing inside every item or out of range."""
    if ptr.ndim != 1 or len(ptr) == 0 or ptr[0] != 0 or ptr[-1] != len(nodes) or (np.diff(ptr) < 0).any():
        raise LograbError(f"{what}: the pointer must rise from 0 to the number of entries ({len(nodes)})")
    if len(nodes) == 0:
        return
    if nodes.min() < 0 or nodes.max() >= n_nodes:
        raise LograbError(f"{what}: node ids must lie in 0 .. {n_nodes - 1}, "
                          f"got {nodes.min()} .. {nodes.max()}")
    rises = np.diff(nodes) > 0
    starts = ptr[1:-1]
    rises[starts[(starts > 0) & (starts < len(nodes))] - 1] = True
    if not rises.all():
        at = int(np.flatnonzero(~rises)[0])
        patch = int(np.searchsorted(ptr, at, side="right")) - 1
        raise LograbError(f"{what}: the members of a patch must be distinct and increasing, "
                          f"patch {patch} has {nodes[at]} before {nodes[at + 1]}")
