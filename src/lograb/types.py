"""The data types of lograb: what flows from stage to stage, and nothing else.

Ragged data is flat: one long array and a *pointer* array, so that item ``i`` is
``flat[ptr[i]:ptr[i + 1]]``. Every type checks itself when it is built; code that holds one need
not check again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from lograb.answer_file import write_answers
from lograb.errors import LograbError
from lograb.own_arrays import pack
from lograb.ragged import Ints as Ints
from lograb.ragged import check_ragged, owners, pointer
from lograb.spec import Origin, Protocol

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Matrix = Any  # a dense (n, f) array or a scipy CSR array; scipy has no static types
MAX_CLASSES, MAX_ENTRY = 10**6, 1e9
"""Far beyond any graph and any embedding; what is larger is nonsense, on which computations break down."""


def check_names(what: str, names: tuple[str, ...] | None, count: int) -> None:
    """Refuse names that are too few, too many, repeated or no text."""
    if names is None:
        return
    if len(names) != count or len(set(names)) != count:
        raise LograbError(f"{count} {what} need as many distinct names, got {len(set(names))}")
    try:
        "".join(names).encode("utf-8")
    except (UnicodeEncodeError, TypeError) as error:
        raise LograbError(f"the names of {what} must be text: {error}") from None


def check_labels(what: str, labels: npt.NDArray[Any] | None) -> None:
    """Refuse labels that are neither one class per node nor indicators."""
    if labels is None or (labels.ndim == 2 and np.isin(labels, (0, 1)).all()):
        return
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or ((labels < -1) | (labels >= MAX_CLASSES)).any():
        raise LograbError(f"{what} must be integers from -1 on below {MAX_CLASSES:,}, one per node, or an "
                          "indicator matrix of 0 and 1")  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A simple undirected graph: the truth that a benchmark instance hides.

    Attributes
    ----------
    adjacency : csr_array of bool (n_nodes, n_nodes), symmetric, no diagonal, sorted indices; see `from_edges`
    features : array or csr_array (n_nodes, n_features), optional
    labels : int array (n_nodes,), -1 where unknown, or 0/1 array (n_nodes, n_classes), optional
    node_names : names the user knows the nodes by; None when they are simply 0 .. n_nodes - 1
    attributes : what else is known of the nodes, as text, one entry per node, None where a node lacks it; only
        ever used to cut the graph into patches by one of them
    notices : what the reader changed (merged directions, dropped loops ...); shown to the user
    """

    name: str
    adjacency: Matrix
    features: Matrix | None = None
    labels: npt.NDArray[Any] | None = None
    node_names: tuple[str, ...] | None = None
    attributes: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    origin: Origin = field(default_factory=lambda: Origin(source="graph"))

    def __post_init__(self) -> None:
        n = self.adjacency.shape[0]
        if not sp.issparse(self.adjacency) or self.adjacency.format != "csr" or self.adjacency.dtype != bool:
            raise LograbError(f"graph '{self.name}' needs a boolean CSR adjacency: build it with Graph.from_edges")
        if self.adjacency.shape != (n, n) or n == 0:
            raise LograbError(f"graph '{self.name}' needs a square adjacency with at least one node, "
                              f"got shape {self.adjacency.shape}")
        if not self.adjacency.has_sorted_indices or not self.adjacency.data.all():
            raise LograbError(f"the adjacency of graph '{self.name}' must be sorted and without stored zeros: "
                              "build it with Graph.from_edges")
        if self.adjacency.diagonal().any() or (self.adjacency != self.adjacency.T).nnz:
            raise LograbError(f"the adjacency of graph '{self.name}' must be symmetric with an empty "
                              "diagonal: build it with Graph.from_edges")
        for what, value in (("features", self.features), ("labels", self.labels)):
            if value is not None and value.shape[0] != n:
                raise LograbError(f"graph '{self.name}' has {n} nodes but {value.shape[0]} rows of {what}")
        check_labels(f"the labels of graph '{self.name}'", self.labels)
        check_names(f"nodes of graph '{self.name}'", self.node_names, n)
        for name, texts in self.attributes.items():
            if len(texts) != n:
                raise LograbError(f"graph '{self.name}' has {n} nodes but {len(texts)} entries of '{name}'")

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {self.n_nodes} nodes, {self.n_edges} edges>"

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


class Ragged:
    """What all that is laid out patch by patch has in common: ``ptr`` says where each patch starts."""

    ptr: Ints

    @property
    def n_patches(self) -> int:
        """Number of patches."""
        return len(self.ptr) - 1

    @property
    def sizes(self) -> Ints:
        """Number of members of each patch."""
        return np.diff(self.ptr)


@dataclass(frozen=True, eq=False, repr=False)
class Patches(Ragged):
    """Overlapping node sets that cover (part of) one graph.

    Attributes
    ----------
    n_nodes : number of nodes of the graph
    nodes : int64 (n_entries,), members of all patches, one after the other, increasing inside each patch
    ptr : int64 (n_patches + 1,)
    centres : int64 (n_patches,), the node each patch was grown from, where the strategy has one
    core : bool (n_entries,), for clusters: True on the disjoint core, False on the halo
    names : what the user calls the patches; None when they are simply 0 .. n_patches - 1
    """

    n_nodes: int
    nodes: Ints
    ptr: Ints
    centres: Ints | None = None
    core: Bools | None = None
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_names("patches", self.names, self.n_patches)
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

    def __repr__(self) -> str:
        return f"<Patches: {self.n_patches} of {self.n_nodes} nodes>"

    def __len__(self) -> int:
        return self.n_patches

    def __getitem__(self, i: int) -> Ints:
        return self.nodes[self.ptr[i] : self.ptr[i + 1]]


@dataclass(frozen=True, eq=False, repr=False)
class Observations(Ragged):
    """What the eavesdropper sees of one graph, and all that an attack may use.

    There is no path from here back to the graph. Patch ``i`` has ``q = sizes[i]`` members and
    ``ranks[i] <= min(k, q)`` eigenvectors of its normalized Laplacian, noise included.

    Attributes
    ----------
    protocol : what is publicly known of how patches were shared
    n_nodes : node ids run from 0 to n_nodes - 1; not every id need occur
    nodes : int64 (n_entries,), members of all patches, increasing inside each patch
    ptr : int64 (n_patches + 1,), where each patch starts in `nodes`
    ranks : int64 (n_patches,), eigenvectors kept per patch
    vectors : float64 (sum of sizes * ranks,), the (sizes[i], ranks[i]) blocks, row by row; see `block`
    values : float64 (sum of ranks,), the eigenvalues of the columns, ascending; None when withheld
    next_values : float64 (n_patches,), the first eigenvalue that was cut off; NaN where the spectrum is complete;
        None wherever the eigenvalues are withheld
    centres : int64 (n_patches,), where they are known
    features : array or csr_array (n_nodes, n_features), the side channel that feature-aware attacks use; zero rows
        for unobserved nodes
    node_names, patch_names : what nodes and patches are called; None when they are simply numbered
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
    node_names: tuple[str, ...] | None = None
    patch_names: tuple[str, ...] | None = None
    value_ptr: Ints = field(init=False, repr=False)
    vector_ptr: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.values is None:
            object.__setattr__(self, "next_values", None)  # an exact eigenvalue, and eigenvalues are withheld
        for what in ("nodes", "ptr", "ranks", "vectors", "values", "next_values", "centres"):
            if (array := getattr(self, what)) is not None:  # no attack may alter what the next one sees
                array = array.view()
                array.flags.writeable = False
                object.__setattr__(self, what, array)
        check_ragged("observations", self.n_nodes, self.nodes, self.ptr)
        m, sizes = self.n_patches, self.sizes
        if self.ranks.shape != (m,) or (self.ranks < 0).any() or (self.ranks > sizes).any():
            raise LograbError("each patch needs a rank between 0 and its size")
        for what, lengths in (("value_ptr", self.ranks), ("vector_ptr", self.ranks * sizes)):
            object.__setattr__(self, what, starts := pointer(lengths))
            starts.flags.writeable = False
        shapes = {"vectors": (self.vectors, self.vector_ptr[-1]), "values": (self.values, self.value_ptr[-1]),
                  "next_values": (self.next_values, m), "centres": (self.centres, m)}
        for what, (array, length) in shapes.items():
            if array is not None and array.shape != (length,):
                raise LograbError(f"observations need {length} {what}, got shape {array.shape}")
        if not all((np.abs(a) <= MAX_ENTRY).all() for a in (self.vectors, self.values) if a is not None):
            raise LograbError("eigenvectors and eigenvalues must be finite, and at most a billion in size; drop "
                              "the patches that are not")  # fmt: skip
        if self.next_values is not None and np.isinf(self.next_values).any():
            raise LograbError("the next eigenvalue of a patch must be finite, or NaN where there is none")
        if self.centres is not None and not ((self.centres >= 0) & (self.centres < self.n_nodes)).all():
            raise LograbError(f"centres must be node ids from 0 to {self.n_nodes - 1}")
        if self.features is not None and self.features.shape[0] != self.n_nodes:
            raise LograbError(f"{self.n_nodes} nodes need as many feature rows, got {self.features.shape[0]}")
        check_names("nodes", self.node_names, self.n_nodes)
        check_names("patches", self.patch_names, m)

    @classmethod
    def from_arrays(
        cls,
        members: Any,
        vectors: Any,
        values: Any = None,
        next_values: Any = None,
        centres: Any = None,
        names: Sequence[str] | None = None,
        *,
        laplacian: str = "symmetric",
        degrees: Any = None,
        n_nodes: int | None = None,
        strategy: str = "custom",
        d: int = 0,
        sigma: float | None = None,
        gauge: str = "sign",
    ) -> Observations:
        """Take embeddings that were made elsewhere: the smallest eigenpairs of each patch's normalised Laplacian.

        What is certainly something else (the unnormalised Laplacian, the largest eigenvalues ...) is refused with
        its name; what only looks odd is a `LograbNotice`.

        Parameters
        ----------
        members : one list of nodes per patch, in the order of the rows, as ids or names; or a mapping from the
            names of patches, as all other arguments then; or, with one matrix as `vectors`, one list
        vectors : one (q, r) array per patch, the first eigenvector included
        values : one array of r eigenvalues per patch; None when withheld
        next_values : the first eigenvalue that was cut off of each patch; None or NaN where it is complete;
            left out where values are withheld
        centres : the node each patch was grown from
        names : names of the patches
        laplacian : "symmetric", "random-walk", "similarity" or "unnormalised", what `vectors` are eigenvectors of;
            anything but "symmetric" is converted, see `lograb.conversions`
        degrees : one array per patch, for "random-walk" with few columns
        n_nodes : for ids, how many there are; by default one more than the largest
        strategy, d, sigma, gauge : what is publicly known, see `lograb.spec.Protocol`

        Examples
        --------
        >>> import numpy as np, scipy.sparse.csgraph, lograb
        >>> triangle = np.ones((3, 3)) - np.eye(3)
        >>> values, vectors = np.linalg.eigh(scipy.sparse.csgraph.laplacian(triangle, normed=True))
        >>> lograb.Observations.from_arrays(["ann", "bob", "eve"], vectors, values).node_names
        ('ann', 'bob', 'eve')
        """
        protocol = Protocol.of(strategy=strategy, d=d, sigma=sigma, gauge=gauge)
        given = {"members": members, "vectors": vectors, "values": values, "next_values": next_values,
                 "centres": centres, "degrees": degrees}  # fmt: skip
        fields = pack(given, names, laplacian=laplacian, n_nodes=n_nodes, sigma=sigma, gauge=gauge)
        return cls(protocol.model_copy(update={"k": int(fields["ranks"].max())}), **fields)

    @property
    def complete(self) -> Bools:
        """True where a patch shows its whole spectrum (rank equals size)."""
        return np.equal(self.ranks, self.sizes)

    @property
    def centre_entries(self) -> Ints | None:
        """Where the centre of each patch stands in `nodes`; -1 where it is no member."""
        if self.centres is None:
            return None
        keys = owners(self.ptr) * self.n_nodes + self.nodes  # increasing
        wanted = np.arange(self.n_patches) * self.n_nodes + self.centres
        place = np.searchsorted(keys, wanted)
        return np.where(np.append(keys, -1)[place] == wanted, place, -1)

    def __repr__(self) -> str:
        return f"<Observations: {self.n_patches} patches of {self.n_nodes} nodes, {self.protocol!r}>"

    def _check(self, i: int) -> None:
        if not 0 <= i < self.n_patches:
            raise IndexError(f"patch {i} of observations with {self.n_patches} patches")

    def members(self, i: int) -> Ints:
        """Node ids of patch i, increasing."""
        self._check(i)
        return self.nodes[self.ptr[i] : self.ptr[i + 1]]

    def block(self, i: int) -> Floats:
        """Embedding of patch i, shape (sizes[i], ranks[i])."""
        self._check(i)
        flat = self.vectors[self.vector_ptr[i] : self.vector_ptr[i + 1]]
        return flat.reshape(-1, self.ranks[i]) if self.ranks[i] else np.empty((self.sizes[i], 0))

    def spectrum(self, i: int) -> Floats:
        """Eigenvalues of patch i, shape (ranks[i],)."""
        self._check(i)
        if self.values is None:
            raise LograbError("the eigenvalues of these observations are withheld")
        return self.values[self.value_ptr[i] : self.value_ptr[i + 1]]


def _as_array(name: str, values: Any) -> Ints | Floats:
    """Take arrays and lists: scores as numbers, all else as whole numbers; no pairs have two columns."""
    scores = name.endswith("scores")
    try:
        array = np.asarray(values, dtype=np.float64 if scores else None)
    except (ValueError, TypeError):
        raise LograbError(f"the {name} of a reconstruction must be an array of numbers") from None
    if scores:
        return array
    if not array.size and array.ndim == 1:
        return np.empty((0, 2) if name in ("edges", "judged", "cross") else 0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise LograbError(f"the {name} of a reconstruction must be whole numbers, got {array.dtype}")
    return array


@dataclass(frozen=True, eq=False, repr=False)
class Reconstruction:
    """An attack's answer: the edges it claims, and how sure it is of each pair it judged.

    Attributes
    ----------
    edges : int64 (n_edges, 2), claimed edges (u, w) with u < w, no pair twice
    scores : float64 (n_edges,), larger is surer; a probability where the method gives one
    nodes : int64, the nodes the attack claims to have recovered, increasing; the ends of all claims among them
    judged : int64 (n_judged, 2), all pairs that got a score, claimed or not, for ranking metrics; pairs that share
        a patch but are not listed count as least likely. By default the claimed edges only
    judged_scores : float64 (n_judged,)
    islands : int64 (n_nodes,), for attacks that assemble patches: the island of each node, -1 for none
    cross : int64 (n_cross, 2), probable edges between islands, none of them claimed (Algorithm 2's second output)
    cross_scores : float64 (n_cross,)
    diagnostics : whatever the method wants to tell; JSON-ready
    unlisted : where scores are probabilities: the mean probability of the pairs that share a patch and are not
        listed; None says that scores only rank
    method : which attack this is the answer of, where known
    seconds : how long it took
    """

    n_nodes: int
    edges: Ints
    scores: Floats
    nodes: Ints
    judged: Ints | None = None
    judged_scores: Floats | None = None
    islands: Ints | None = None
    diagnostics: dict[str, Any] = field(default_factory=dict)
    unlisted: float | None = None
    node_names: tuple[str, ...] | None = None
    method: str = ""
    seconds: float | None = None
    cross: Ints | None = None
    cross_scores: Floats | None = None

    def __post_init__(self) -> None:
        for name in ("edges", "scores", "nodes", "judged", "judged_scores", "islands", "cross", "cross_scores"):
            if getattr(self, name) is not None or name in ("edges", "scores", "nodes"):
                object.__setattr__(self, name, _as_array(name, getattr(self, name)))
        self._check_pairs("edges", self.edges, self.scores)
        for what, pairs, scores in (("judged pairs", self.judged, self.judged_scores),
                                    ("edges between islands", self.cross, self.cross_scores)):  # fmt: skip
            if (pairs is None) != (scores is None):
                raise LograbError(f"{what} and their scores belong together")
            if pairs is not None and scores is not None:
                self._check_pairs(what, pairs, scores)
        nodes = self.nodes
        if nodes.ndim != 1:
            raise LograbError(f"recovered nodes must be a list of ids, got shape {nodes.shape}")
        if len(nodes) and (nodes.min() < 0 or nodes.max() >= self.n_nodes or (np.diff(nodes) <= 0).any()):
            raise LograbError(f"recovered nodes must be distinct, increasing ids from 0 to {self.n_nodes - 1}")
        if self.islands is not None and self.islands.shape != (self.n_nodes,):
            raise LograbError(f"{self.n_nodes} nodes need as many island numbers, got shape {self.islands.shape}")
        if not np.isin(self.edges, nodes).all():
            raise LograbError("claimed edges must join recovered nodes")
        chances = () if self.unlisted is None else (self.scores, self.ranked[1], np.array([self.unlisted]))
        if not all(((s >= 0) & (s <= 1)).all() for s in chances):
            raise LograbError("with unlisted given, scores are probabilities, between 0 and 1; leave it "
                              "out where scores only rank")  # fmt: skip
        check_names("nodes", self.node_names, self.n_nodes)

    def __repr__(self) -> str:
        judged = "" if self.judged is None else f", {len(self.judged):,} pairs judged"
        kind = "" if self.unlisted is None else ", with probabilities"
        by = f" by {self.method}" if self.method else ""
        return f"<Reconstruction{by}: {len(self.edges):,} edges of {self.n_nodes:,} nodes claimed{judged}{kind}>"

    @property
    def ranked(self) -> tuple[Ints, Floats]:
        """All pairs that got a score, and the scores: the judged pairs, or where none are given the claims."""
        if self.judged is None or self.judged_scores is None:
            return self.edges, self.scores
        return self.judged, self.judged_scores

    def save(self, path: str | Path) -> None:
        """Write the answer: everything to .npz, a table of all judged pairs to .csv, .tsv or .txt."""
        write_answers(Path(path), [self])

    def _check_pairs(self, what: str, pairs: Ints, scores: Floats) -> None:
        if pairs.ndim != 2 or pairs.shape[1] != 2 or scores.shape != (len(pairs),):
            raise LograbError(f"a reconstruction needs (n, 2) {what} and one score each, got {pairs.shape} and "
                              f"{scores.shape}")  # fmt: skip
        if np.isnan(scores).any():
            raise LograbError(f"the scores of {what} must be numbers")
        if not len(pairs):
            return
        if pairs.min() < 0 or pairs.max() >= self.n_nodes or (pairs[:, 0] >= pairs[:, 1]).any():
            bad = (pairs < 0).any(1) | (pairs >= self.n_nodes).any(1) | (pairs[:, 0] >= pairs[:, 1])
            u, w = pairs[bad][0].tolist()
            remedy = ": put the smaller node first" if 0 <= w < u < self.n_nodes else ""
            raise LograbError(f"{what} must be pairs (u, w) with 0 <= u < w < {self.n_nodes}, got ({u}, {w}) "
                              f"among {int(bad.sum()):,} that are not{remedy}")  # fmt: skip
        keys = np.sort(pairs[:, 0] * self.n_nodes + pairs[:, 1])
        if (twice := keys[1:] == keys[:-1]).any():
            u, w = divmod(int(keys[1:][twice][0]), self.n_nodes)
            raise LograbError(f"a reconstruction must not list a pair of its {what} twice, got ({u}, {w}) again")
