"""Defences on what is shared of the patches: Observations -> Observations.

The sizes and ranks of patches are part of membership, and public here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from lograb.defences.accounting import mu_of
from lograb.defences.defence import Defence
from lograb.errors import LograbError
from lograb.ragged import owners, pointer, ranges
from lograb.spec import MAX_BITS, Precision
from lograb.types import Floats, Ints, Observations


class Nothing(Defence):
    """No defence: what every table compares with."""

    name = "none"
    touches = ()
    guarantee = "none"
    does = "shares everything as it is"
    exposes = "everything"


class Noisy(Defence):
    """Calibrated Gaussian noise, by (ε, δ) for one embedding or by its standard deviation."""

    guarantee = "formal"
    unit = "embedding"

    epsilon: float | None = Field(None, gt=0)
    delta: float = Field(1e-5, gt=0, lt=1)
    sigma: float | None = Field(None, gt=0)

    @model_validator(mode="after")
    def _one_of_two(self) -> Noisy:
        if (self.epsilon is None) == (self.sigma is None):
            raise ValueError(f"give epsilon or sigma, as in {self.name}:epsilon=2 or {self.name}:sigma=0.1")
        return self

    def level(self, sensitivity: Floats, share: float = 1.0) -> Floats:
        """Noise for some sensitivities, where this is a share of all that is released (in μ²)."""
        if self.epsilon is None:
            return np.full(len(sensitivity), self.sigma if share == 1.0 else 0.0)
        return np.asarray(sensitivity / (mu_of(self.epsilon, self.delta) * np.sqrt(share)))


class Gaussian(Noisy):
    """The mechanism of §6.2: clip each embedding to Frobenius norm R, add calibrated noise.

    Replacing one embedding changes it by 2R at most. With ``eigenvalues=noised`` the spectrum is released too,
    under the same (ε, δ): it gets the share `share` of μ². It is published in its own units, see
    `lograb.defences`.
    """

    name = "gaussian"
    touches = ("eigenvectors", "eigenvalues")
    does = "clips each embedding to norm R and adds Gaussian noise; withholds the eigenvalues, or noises them too"
    exposes = "membership; and edges and nodes that lie in many patches, see the ledger"

    clip: float = Field(1.0, gt=0)
    eigenvalues: Literal["withheld", "noised"] = "withheld"
    share: float = Field(0.5, gt=0, lt=1)

    @model_validator(mode="after")
    def _budget(self) -> Gaussian:
        if self.eigenvalues == "noised" and self.epsilon is None:
            raise ValueError("eigenvalues=noised shares a budget: give epsilon, or add eigenvalue-noise:sigma=...")
        return self

    def changes(self, spec: dict[str, Any]) -> dict[str, Any]:
        """Withhold the eigenvalues: exact ones beside a private embedding void its guarantee."""
        return {"eigenvalues": False} if self.eigenvalues == "withheld" else {}

    def norms(self, ranks: Ints) -> Floats:
        """The norm each embedding is clipped to, in its own units."""
        return np.maximum(np.sqrt(ranks), self.clip)

    def vector_reach(self, sizes: Ints, ranks: Ints) -> Floats:
        """2 max(√r, R)."""
        return 2.0 * self.norms(ranks)

    def vector_noise(self, sizes: Ints, ranks: Ints) -> Floats:
        """2 max(√r, R) / μ."""
        return self.level(2.0 * self.norms(ranks), 1.0 - self.share if self.eigenvalues == "noised" else 1.0)

    def value_noise(self, sizes: Ints, ranks: Ints) -> Floats:
        """Noise of the spectrum where it is shared."""
        if self.eigenvalues == "withheld":
            return np.zeros(len(ranks))
        return self.level(_spectrum_sensitivity(ranks), self.share)

    def apply(self, seen: Observations, rng: np.random.Generator, releases: int) -> Observations:
        """Clip, add noise, and withhold or noise the eigenvalues."""
        noise = self.vector_noise(seen.sizes, seen.ranks) / np.sqrt(releases)
        seen = _noised_vectors(seen, self.norms(seen.ranks), noise, rng)
        if self.eigenvalues == "withheld":
            return replace(seen, values=None, next_values=None)
        return _noised_values(seen, self.value_noise(seen.sizes, seen.ranks) / np.sqrt(releases), rng)


class Subspace(Noisy):
    """Publish the subspace only: a random rotation of all columns, and noise calibrated to what then is left.

    Two patches of one size differ by min over Q of ‖U - U'Q‖ <= √(2 min(r, q - r)), where the Gaussian mechanism
    has to reckon with 2 √r: the release has the same distribution for UQ as for U. Nothing is left of a complete
    patch. That holds for orthonormal columns, so others are made orthonormal first: embeddings made elsewhere, or
    rounded, would keep in their lengths what no rotation hides.
    """

    name = "subspace"
    touches = ("eigenvectors", "eigenvalues")
    does = "rotates all columns at random and adds noise calibrated to the subspace; withholds the eigenvalues"
    exposes = Gaussian.exposes

    def changes(self, spec: dict[str, Any]) -> dict[str, Any]:
        """Rotate, and withhold the eigenvalues."""
        return {"gauge": "rotation", "eigenvalues": False}

    def vector_reach(self, sizes: Ints, ranks: Ints) -> Floats:
        """√(2 min(r, q - r)): columns are made orthonormal first."""
        return subspace_reach(sizes, ranks)

    def vector_noise(self, sizes: Ints, ranks: Ints) -> Floats:
        """√(2 min(r, q - r)) / μ."""
        return self.level(subspace_reach(sizes, ranks))

    def apply(self, seen: Observations, rng: np.random.Generator, releases: int) -> Observations:
        """Take the nearest orthonormal columns, rotate, then add noise."""
        turned = Rotate().apply(_orthonormal(replace(seen, values=None, next_values=None)), rng, releases)
        noise = self.vector_noise(seen.sizes, seen.ranks) / np.sqrt(releases)
        return _noised_vectors(turned, np.sqrt(seen.ranks), noise, rng)


def subspace_reach(sizes: Ints, ranks: Ints) -> Floats:
    """How far apart two embeddings of orthonormal columns can be, up to a rotation; 0 of complete patches."""
    return np.asarray(np.sqrt(2.0 * np.minimum(ranks, sizes - ranks)))


def _of_one_shape(seen: Observations) -> Iterator[tuple[Ints, Floats]]:
    """Stack embeddings of equal size and rank: where their numbers stand (b, q r), and these as (b, q, r)."""
    shapes = np.stack([seen.sizes, seen.ranks], axis=1)
    for q, r in np.unique(shapes[seen.ranks > 0], axis=0).tolist():
        which = np.flatnonzero((shapes == (q, r)).all(axis=1))
        at = seen.vector_ptr[which][:, None] + np.arange(q * r)
        yield at, seen.vectors[at].reshape(-1, q, r)


def _orthonormal(seen: Observations) -> Observations:
    """Replace each embedding by the nearest one with orthonormal columns, whatever its rank."""
    vectors = seen.vectors.copy()
    for at, stack in _of_one_shape(seen):
        left, _, right = np.linalg.svd(stack, full_matrices=False)
        vectors[at] = (left @ right).reshape(len(at), -1)
    return replace(seen, vectors=vectors)


def _noised_vectors(seen: Observations, norms: Floats, noise: Floats, rng: np.random.Generator) -> Observations:
    """Clip embeddings to these norms (orthonormal ones have √r, and stay), and add this noise."""
    owner = owners(seen.vector_ptr)
    found = np.sqrt(np.bincount(owner, seen.vectors**2, minlength=seen.n_patches))
    scale = np.minimum(1.0, norms / np.maximum(found, 1e-300))
    return replace(seen, vectors=seen.vectors * scale[owner] + noise[owner] * rng.standard_normal(len(owner)))


class EigenvalueNoise(Noisy):
    """Gaussian noise on the eigenvalues, which are sorted and held to 0 .. 2 again."""

    name = "eigenvalue-noise"
    touches = ("eigenvalues",)
    does = "adds Gaussian noise to the eigenvalues"
    exposes = "membership and eigenvectors; the guarantee is for the eigenvalues alone"

    def value_noise(self, sizes: Ints, ranks: Ints) -> Floats:
        """2 √r / μ: of r + 1 eigenvalues in 0 .. 2 the first is always 0."""
        return self.level(_spectrum_sensitivity(ranks))

    def apply(self, seen: Observations, rng: np.random.Generator, releases: int) -> Observations:
        """Add noise to the eigenvalues, the first one that was cut off included."""
        return _noised_values(seen, self.value_noise(seen.sizes, seen.ranks) / np.sqrt(releases), rng)


def _spectrum_sensitivity(ranks: Ints) -> Floats:
    return 2.0 * np.sqrt(np.maximum(ranks, 1))


def _noised_values(seen: Observations, noise: Floats, rng: np.random.Generator) -> Observations:
    if seen.values is None:
        raise LograbError("noise on eigenvalues needs eigenvalues, and these are withheld: leave one of them out")
    owner = owners(seen.value_ptr)
    values = np.clip(seen.values + noise[owner] * rng.standard_normal(len(seen.values)), 0.0, 2.0)
    values = values[np.lexsort((values, owner))]
    after = seen.next_values
    if after is not None:
        last = np.append(values, 0.0)[seen.value_ptr[1:] - 1]
        after = np.clip(after + noise * rng.standard_normal(len(after)), last, 2.0)  # NaN stays NaN
    return replace(seen, values=values, next_values=after)


class Withhold(Defence):
    """Leave a channel out."""

    name = "withhold"
    touches = ("eigenvalues", "centres")
    does = "leaves out the eigenvalues, the centres, or both (what=eigenvalues+centres)"
    exposes = "what is left: eigenvectors and membership tell most of it"

    what: Literal["eigenvalues", "centres", "eigenvalues+centres"] = "eigenvalues"

    def changes(self, spec: dict[str, Any]) -> dict[str, Any]:
        """Eigenvalues are a field of the spec; centres are not."""
        return {"eigenvalues": False} if "eigenvalues" in self.what else {}

    def apply(self, seen: Observations, rng: np.random.Generator, releases: int) -> Observations:
        """Leave it out."""
        if "eigenvalues" in self.what:
            seen = replace(seen, values=None, next_values=None)
        return replace(seen, centres=None) if "centres" in self.what else seen


class Truncate(Defence):
    """Share fewer eigenvectors."""

    name = "truncate"
    touches = ("eigenvectors", "eigenvalues")
    does = "shares the first k eigenvectors only"
    exposes = "what k eigenvectors tell; small patches are complete at small k"

    k: int = Field(ge=1)

    def changes(self, spec: dict[str, Any]) -> dict[str, Any]:
        """A smaller k."""
        return {"k": min(self.k, spec["k"])}

    def apply(self, seen: Observations, rng: np.random.Generator, releases: int) -> Observations:
        """Cut columns off."""
        ranks = np.minimum(seen.ranks, self.k)
        if np.array_equal(ranks, seen.ranks):
            return seen
        if seen.protocol.gauge == "rotation":
            raise LograbError("truncate keeps the first eigenvectors, and rotated columns have no order: truncate "
                              "before you rotate")  # fmt: skip
        row = ranges(np.zeros_like(ranks), seen.sizes)
        starts = np.repeat(seen.vector_ptr[:-1], seen.sizes) + row * np.repeat(seen.ranks, seen.sizes)
        vectors = seen.vectors[ranges(starts, np.repeat(ranks, seen.sizes))]
        if seen.values is None:
            return replace(seen, ranks=ranks, vectors=vectors)
        after = None if seen.next_values is None else seen.next_values.copy()
        if after is not None:
            cut = ranks < seen.ranks
            after[cut] = seen.values[(seen.value_ptr[:-1] + ranks)[cut]]
        values = seen.values[ranges(seen.value_ptr[:-1], ranks)]
        return replace(seen, ranks=ranks, vectors=vectors, values=values, next_values=after)


class Round(Defence):
    """Share fewer digits: fixed-point numbers, or floats of fewer bits."""

    name = "round"
    touches = ("eigenvectors", "eigenvalues")
    does = "rounds eigenvectors and eigenvalues to multiples of 2^-bits, or to floats (to=float32)"
    exposes = "much: rounding is no noise, and never a guarantee by itself"

    bits: int | None = Field(default=None, ge=0, le=MAX_BITS)
    to: Literal["float32", "float16"] | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Round:
        if (self.bits is None) == (self.to is None):
            raise ValueError("give bits or to, as in round:bits=8 or round:to=float32")
        return self

    @property
    def precision(self) -> Precision:
        """How the field of a spec says it."""
        return self.to or self.bits or 0

    def changes(self, spec: dict[str, Any]) -> dict[str, Any]:
        """The precision."""
        return {"precision": self.precision}

    def value_blur(self) -> float:
        """Standard deviation of the rounding of numbers from 1 to 2, taken for uniform."""
        bits = (self.bits or 0) if self.to is None else np.finfo(self.to).nmant
        return float(2.0**-bits / np.sqrt(12.0))

    def apply(self, seen: Observations, rng: np.random.Generator, releases: int) -> Observations:
        """Round."""
        arrays = {what: getattr(seen, what) for what in ("vectors", "values", "next_values")}
        kept: dict[str, Any] = {w: self._rounded(array) for w, array in arrays.items() if array is not None}
        return replace(seen, **kept)

    def _rounded(self, array: Floats) -> Floats:
        if self.to is not None:
            return array.astype(self.to).astype(np.float64)
        scale = 2.0 ** (self.bits or 0)
        return np.asarray(np.round(array * scale) / scale)


class Rotate(Defence):
    """The strict gauge: a random rotation of all columns of each patch."""

    name = "rotate"
    touches = ("eigenvectors", "eigenvalues")
    does = "mixes the columns of each patch by a random rotation: only the subspace survives"
    exposes = "the projector onto the subspace, unless the patch is complete"

    def changes(self, spec: dict[str, Any]) -> dict[str, Any]:
        """The gauge ``rotation``."""
        return {"gauge": "rotation"}

    def apply(self, seen: Observations, rng: np.random.Generator, releases: int) -> Observations:
        """Draw rotations by QR of normal matrices, stacked by rank; of a complete patch, publish its rotation.

        A complete patch's columns are an orthogonal matrix, so that the product has the rotation's distribution.
        But computed columns are not quite orthogonal, and their errors, a function of the edges, would survive.
        """
        vectors = seen.vectors.copy()
        for at, stack in _of_one_shape(seen):
            _, q, r = stack.shape
            turn, upper = np.linalg.qr(rng.standard_normal((len(at), r, r)))
            turn = turn * np.sign(np.diagonal(upper, axis1=1, axis2=2))[:, None, :]
            vectors[at] = (turn if q == r else stack @ turn).reshape(len(at), -1)
        return replace(seen, vectors=vectors)


class Pseudonyms(Defence):
    """Fresh names of nodes in every patch, patches and members in random order."""

    name = "pseudonyms"
    touches = ("membership", "centres")
    does = "gives nodes fresh names in every patch, so that patches do not overlap"
    exposes = "each patch's graph without its names; features beside it name the nodes again"
    renames = True

    def order(self, seen: Observations, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Draw an order of patches, and of all members in it, as positions in ``seen.nodes``."""
        patches = rng.permutation(seen.n_patches)
        entries = ranges(seen.ptr[patches], seen.sizes[patches])
        within = np.lexsort((rng.random(len(entries)), np.repeat(np.arange(len(patches)), seen.sizes[patches])))
        return patches, entries[within]

    def rename(self, seen: Observations, patches: Ints, order: Ints) -> Observations:
        """Number members anew in an order: the i-th is called i."""
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        sizes, ranks = seen.sizes[patches], seen.ranks[patches]
        owner = owners(seen.ptr)[order]
        rows = seen.vector_ptr[owner] + (order - seen.ptr[owner]) * seen.ranks[owner]
        centres = None
        if seen.centres is not None:
            own = np.flatnonzero(seen.nodes == seen.centres[owners(seen.ptr)])
            centres = place[own][patches]
        values = None if seen.values is None else seen.values[ranges(seen.value_ptr[patches], ranks)]
        return replace(
            seen, n_nodes=len(order), nodes=np.arange(len(order)), ptr=pointer(sizes), ranks=ranks,
            vectors=seen.vectors[ranges(rows, seen.ranks[owner])], values=values, centres=centres, node_names=None,
            next_values=None if seen.next_values is None else seen.next_values[patches],
            features=None if seen.features is None else seen.features[seen.nodes[order]],
            patch_names=None if seen.patch_names is None else tuple(seen.patch_names[i] for i in patches),
        )  # fmt: skip
