"""The defences by name, and how a list of them is applied. A new one is one class and one line here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lograb.defences.defence import Defence
from lograb.defences.on_graph import EdgeRand, LapGraph
from lograb.defences.on_shared import (
    EigenvalueNoise,
    Gaussian,
    Noisy,
    Nothing,
    Pseudonyms,
    Rotate,
    Round,
    Subspace,
    Truncate,
    Withhold,
    subspace_reach,
)
from lograb.errors import LograbError, unknown_name
from lograb.plugins import find_plugin, plugins
from lograb.spec import InstanceSpec, Precision, Protocol
from lograb.types import Bools, Floats, Ints, Observations

DEFENCES: dict[str, type[Defence]] = {
    defence.name: defence
    for defence in (
        Nothing,
        EdgeRand,
        LapGraph,
        Gaussian,
        Subspace,
        EigenvalueNoise,
        Withhold,
        Truncate,
        Round,
        Rotate,
        Pseudonyms,
    )
}


def parse(text: str) -> Defence:
    """Read ``NAME`` or ``NAME:key=value,...``."""
    name, _, rest = text.partition(":")
    found = DEFENCES.get(name) or find_plugin("defences", name)
    if found is None:
        raise unknown_name("defence", name, [*DEFENCES, *plugins("defences")])
    if not (isinstance(found, type) and issubclass(found, Defence)):
        raise LograbError(f"the plugin '{name}' is no class of lograb.defences.Defence, but {found!r:.60}")
    settings: dict[str, str] = {}
    for part in rest.split(",") if rest else []:
        key, equals, value = part.partition("=")
        if not equals or not key or key in settings:
            raise LograbError(f"a defence is written NAME:key=value,... with every key once, got '{text}'")
        settings[key] = value
    return found(**settings)


def as_defences(what: Any) -> tuple[Defence, ...]:
    """Take one defence or a list of them, as text or as objects."""
    single = isinstance(what, str | Defence) or not isinstance(what, Iterable)
    items = [what] if single else list(what)
    if not all(isinstance(item, str | Defence) for item in items):
        raise LograbError("defences are a list of names such as 'gaussian:epsilon=2' or of objects such as "
                          f"lograb.defences.Gaussian(epsilon=2), got {what!r:.60}")  # fmt: skip
    found = tuple(parse(item) if isinstance(item, str) else item for item in items)
    return tuple(item for item in found if not isinstance(item, Nothing))


def settle(spec: InstanceSpec) -> InstanceSpec:
    """Write the defences of a spec in full, and what follows from them into its other fields."""
    fields = spec.model_dump()
    found = _with_precision(as_defences(spec.defences), spec.precision)
    rounded, noised = False, ""
    for defence in found:
        if noised and isinstance(defence, Truncate):
            raise LograbError(f"'truncate' after '{noised}' leaves noise that was made for more columns than are "
                              "shared: truncate first, then add noise")  # fmt: skip
        noised = defence.name if _adds_noise(defence) else noised
        if rounded and isinstance(defence, Noisy | Rotate):
            raise LograbError(f"'{defence.name}' after 'round' guarantees nothing: it reckons with exact "
                              "eigenvectors and eigenvalues, and these are rounded; round last")  # fmt: skip
        rounded = rounded or isinstance(defence, Round)
        fields |= defence.changes(fields)
    return InstanceSpec.of(**fields | {"defences": tuple(map(str, found))})


def _adds_noise(defence: Defence) -> bool:
    """Whether a defence reports noise, which depends on how many columns there are."""
    kind = type(defence)
    return (kind.vector_noise is not Defence.vector_noise or kind.value_noise is not Defence.value_noise)


def _with_precision(found: tuple[Defence, ...], precision: Precision) -> tuple[Defence, ...]:
    """Round last, to a precision, unless that is among the defences already."""
    rounds = [one.precision for one in found if isinstance(one, Round)]
    if precision == "float64" or precision in rounds:
        return found
    if rounds:
        raise LograbError(f"precision={precision} and the defence 'round' ({rounds[-1]}) both say how numbers are "
                          "rounded: leave one out")  # fmt: skip
    return (*found, Round(bits=precision) if isinstance(precision, int) else Round(to=precision))


@dataclass(frozen=True)
class Shared:
    """What is shared in the end; with fresh names, also the old patches and entries in their new order."""

    seen: Observations
    patches: Ints | None = None
    entries: Ints | None = None


def share(seen: Observations, defences: Sequence[Defence], rng: np.random.Generator, spec: InstanceSpec) -> Shared:
    """Apply those defences that act on what is shared, in order; `spec` is settled, and says what follows."""
    patches, entries = np.arange(seen.n_patches), np.arange(len(seen.nodes))
    renamed = False
    for defence in defences:
        if isinstance(defence, Pseudonyms):
            order = defence.order(seen, rng)
            seen, renamed = defence.rename(seen, *order), True
            patches, entries = patches[order[0]], entries[order[1]]
        else:
            seen = defence.apply(seen, rng, spec.releases)
            gauge = defence.changes(spec.model_dump()).get("gauge", seen.protocol.gauge)
            seen = replace(seen, protocol=seen.protocol.model_copy(update={"gauge": gauge}))
    seen = replace(seen, protocol=spec.protocol)
    return Shared(seen, patches, entries) if renamed else Shared(seen)


@dataclass(frozen=True)
class Noise:
    """What is known about the noise on each patch, all releases together; arrays of shape (n_patches,).

    Attributes
    ----------
    vectors : float array
        Standard deviation of the noise on the eigenvectors; the largest where there are several, as further
        noise can only help.
    values : float array
        The same of eigenvalues.
    blur : float
        What else is wrong with eigenvalues, by rounding: evidence is no sharper, but nothing is guaranteed.
    """

    vectors: Floats
    values: Floats
    blur: float


def noise_of(protocol: Protocol, sizes: Ints, ranks: Ints, *, formal: bool = False) -> Noise:
    """Read from a protocol how much noise each patch carries; on request only what counts for a guarantee."""
    found = as_defences(protocol.defences)
    scale = 1.0 / np.sqrt(protocol.releases)
    vectors = np.full(len(sizes), protocol.sigma or 0.0)  # σ of a protocol is that of the mean already
    values = np.zeros(len(sizes))
    for defence in found:
        if formal and defence.guarantee != "formal":
            continue
        vectors = np.maximum(vectors, scale * defence.vector_noise(sizes, ranks))
        values = np.maximum(values, scale * defence.value_noise(sizes, ranks))
    return Noise(vectors, values, max([0.0, *(defence.value_blur() for defence in found)]))


def noise_of_columns(protocol: Protocol, sizes: Ints, ranks: Ints) -> Floats:
    """Say how much formal noise stands against the distance of true columns, the largest of each patch.

    `subspace` makes columns orthonormal, which may take noisy ones further apart: where there was noise before it,
    only that noise counts.
    """
    found = np.full(len(sizes), protocol.sigma or 0.0)
    for defence in as_defences(protocol.defences):
        if defence.guarantee == "formal":
            noise = defence.vector_noise(sizes, ranks) / np.sqrt(protocol.releases)
            found = np.where((found > 0) & isinstance(defence, Subspace), found, np.maximum(found, noise))
    return found


def mechanisms(protocol: Protocol, sizes: Ints, ranks: Ints, *, given: bool) -> list[tuple[Floats, Floats]]:
    """List for each noise on the eigenvectors how far apart what it is added to can be, and its size.

    Each of them bounds what is published by itself. Columns that lograb computed are orthonormal before any noise,
    and stay as near to each other whatever follows. Those that were `given` may be anything: only what a mechanism
    itself makes sure of counts, and an announced σ is one of orthonormal columns. So it is after a defence of
    another package.
    """
    chosen = as_defences(protocol.defences)
    given = given or any(type(one) not in DEFENCES.values() for one in chosen)
    own = subspace_reach(sizes, ranks) if protocol.gauge == "rotation" else 2.0 * np.sqrt(ranks)
    found = [(2.0 * np.sqrt(ranks) if given else own, np.full(len(sizes), protocol.sigma or 0.0))]
    for defence in chosen:
        noise = defence.vector_noise(sizes, ranks) / np.sqrt(protocol.releases)
        if defence.guarantee == "formal" and noise.any():
            found.append((defence.vector_reach(sizes, ranks) if given else own, noise))
    return found


def erased(protocol: Protocol, sizes: Ints, ranks: Ints, *, given: bool) -> Bools:
    """Tell of which patches no eigenvector entered what is published: complete ones that lograb has rotated."""
    ours = protocol.gauge == "rotation" and not given
    turned = ours or any(isinstance(one, Rotate | Subspace) for one in as_defences(protocol.defences))
    return np.asarray((sizes == ranks) & turned)
