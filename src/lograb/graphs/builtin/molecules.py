"""Stand-ins for PCQM-Contact: small organic molecules that nobody has made.

Heavy atoms form rings of five or six and branched chains; double bonds and aromatic rings use up
valences; hydrogens, explicit as in PCQM-Contact, take what is left. Averages, as in the real data:
30.1 atoms and 30.5 bonds; no atom has more than four neighbours. There are no node labels. The nine
features keep the layout of OGB's atom features: element, chirality, degree, charge, hydrogens,
radical electrons, hybridisation, aromatic, in a ring; all are whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lograb.spec import Origin
from lograb.types import Graph, Ints

MOLECULES_COUNT = 1000
N_FEATURES = 9

_SEED = 30_141
_CARBON, _NITROGEN, _OXYGEN, _FLUORINE = 6, 7, 8, 9
_VALENCE = {_CARBON: 4, _NITROGEN: 3, _OXYGEN: 2, _FLUORINE: 1}
_RING_COUNTS = (0, 1, 1, 1, 1, 2, 2, 2, 2, 2)


@dataclass
class _Skeleton:
    """Heavy atoms while they are being put together."""

    bonds: list[tuple[int, int]] = field(default_factory=list)
    degree: list[int] = field(default_factory=list)
    in_ring: list[bool] = field(default_factory=list)
    aromatic: list[bool] = field(default_factory=list)

    def add_atom(self, in_ring: bool, aromatic: bool) -> int:
        self.degree.append(0)
        self.in_ring.append(in_ring)
        self.aromatic.append(aromatic)
        return len(self.degree) - 1

    def bond(self, a: int, b: int) -> None:
        self.bonds.append((a, b))
        self.degree[a] += 1
        self.degree[b] += 1


def molecules() -> Iterator[Graph]:
    """Generate the 1,000 graphs one after the other."""
    return map(molecule_graph, range(MOLECULES_COUNT))


def molecule_graph(index: int) -> Graph:
    """Generate graph number `index`; it depends on nothing else."""
    rng = np.random.default_rng(np.random.SeedSequence(_SEED, spawn_key=(index,)))
    skeleton = _draw_skeleton(rng)
    element = _draw_elements(skeleton, rng)
    doubles = _draw_double_bonds(skeleton, element, rng)
    valence = np.array([_VALENCE[int(atom)] for atom in element])
    aromatic = np.array(skeleton.aromatic, dtype=np.int64)
    hydrogens = np.maximum(valence - np.array(skeleton.degree) - doubles - aromatic, 0)
    n_heavy, n_nodes = len(element), len(element) + int(hydrogens.sum())
    leaves = np.stack([np.repeat(np.arange(n_heavy), hydrogens), np.arange(n_heavy, n_nodes)], axis=1)
    edges = np.concatenate([np.array(skeleton.bonds, dtype=np.int64).reshape(-1, 2), leaves])
    features = _describe(skeleton, element, doubles, hydrogens, n_nodes)
    return Graph.from_edges(f"molecules/{index}", n_nodes, edges, features=features,
                            origin=Origin(source="molecules", kind="built-in", revision="1", licence="MIT"))


def _draw_skeleton(rng: np.random.Generator) -> _Skeleton:
    """Rings first, each tied to what is there by one bond or a short chain; then single atoms."""
    skeleton = _Skeleton()
    n_heavy = int(np.clip(np.rint(13.9 + 2.5 * rng.standard_normal()), 5, 22))
    for _ in range(_RING_COUNTS[rng.integers(len(_RING_COUNTS))]):
        size = 6 if rng.random() < 0.65 else 5
        if len(skeleton.degree) + size <= n_heavy:
            _add_ring(skeleton, size, rng)
    while len(skeleton.degree) < n_heavy:
        tie = _open_atom(skeleton, rng)
        atom = skeleton.add_atom(in_ring=False, aromatic=False)
        if tie is not None:
            skeleton.bond(tie, atom)
    return skeleton


def _add_ring(skeleton: _Skeleton, size: int, rng: np.random.Generator) -> None:
    tie = _open_atom(skeleton, rng)
    aromatic = size == 6 and rng.random() < 0.7
    ring = [skeleton.add_atom(in_ring=True, aromatic=aromatic) for _ in range(size)]
    for i, atom in enumerate(ring):
        skeleton.bond(atom, ring[(i + 1) % size])
    if tie is not None:
        skeleton.bond(tie, ring[0])


def _open_atom(skeleton: _Skeleton, rng: np.random.Generator) -> int | None:
    """Choose an atom with at most two heavy neighbours, chain ends twice as often."""
    atoms = [atom for atom, degree in enumerate(skeleton.degree) for _ in range(2 if degree < 2 else 1)
             if degree < 3]
    return atoms[rng.integers(len(atoms))] if atoms else None


def _draw_elements(skeleton: _Skeleton, rng: np.random.Generator) -> Ints:
    """Mostly carbon; other elements only where their valence suffices."""
    element = np.full(len(skeleton.degree), _CARBON, dtype=np.int64)
    for atom, draw in enumerate(rng.random(len(element))):
        wanted = (_NITROGEN if draw < 0.15 else _OXYGEN if draw < 0.30 else _FLUORINE if draw < 0.34
                  else _CARBON)
        if skeleton.degree[atom] + skeleton.aromatic[atom] <= _VALENCE[wanted]:
            element[atom] = wanted
    return element


def _draw_double_bonds(skeleton: _Skeleton, element: Ints, rng: np.random.Generator) -> Ints:
    """Double some bonds outside aromatic rings; return how many each atom takes part in (0 or 1)."""
    doubles = np.zeros(len(element), dtype=np.int64)
    for (a, b), draw in zip(skeleton.bonds, rng.random(len(skeleton.bonds)), strict=True):
        free = [_VALENCE[int(element[atom])] - skeleton.degree[atom] - skeleton.aromatic[atom] - doubles[atom]
                for atom in (a, b)]
        untouched = not (skeleton.aromatic[a] or skeleton.aromatic[b] or doubles[a] or doubles[b])
        if draw < 0.25 and min(free) > 0 and untouched:
            doubles[[a, b]] += 1
    return doubles


def _describe(skeleton: _Skeleton, element: Ints, doubles: Ints, hydrogens: Ints,
              n_nodes: int) -> npt.NDArray[np.float32]:
    n_heavy = len(element)
    features = np.zeros((n_nodes, N_FEATURES), dtype=np.float32)
    features[:, 0] = 1
    features[:, 2] = 1
    features[:n_heavy, 0] = element
    features[:n_heavy, 2] = np.array(skeleton.degree) + hydrogens
    features[:n_heavy, 4] = hydrogens
    flat = np.array(skeleton.aromatic) | (doubles > 0)
    features[:n_heavy, 6] = np.where(flat, 2, 3)
    features[:n_heavy, 7] = skeleton.aromatic
    features[:n_heavy, 8] = skeleton.in_ring
    return features
