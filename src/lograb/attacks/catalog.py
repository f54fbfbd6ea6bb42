"""The attacks by name. A new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lograb.attacks.guess import guess
from lograb.attacks.heat_kernel import heat_kernel
from lograb.attacks.membership import membership
from lograb.errors import unknown_name
from lograb.types import Observations, Reconstruction


@dataclass(frozen=True)
class Attack:
    """A way to rebuild the graph, and what it needs.

    Attributes
    ----------
    name : str
    reconstruct : callable (observations, rng) -> Reconstruction
    channels : tuple of str
        The parts of the observations it uses: members, centres, eigenvalues, eigenvectors, features.
    trivial : bool
        Whether it belongs to the floor: an attacker without any spectral skill.
    scenario : str
        Who attacks, with what.
    """

    name: str
    reconstruct: Callable[[Observations, np.random.Generator], Reconstruction]
    channels: tuple[str, ...]
    trivial: bool
    scenario: str


ATTACKS = {
    attack.name: attack
    for attack in (
        Attack("random", guess, ("members",), True,
               "guesses for every node one companion from a patch that contains it"),
        Attack("membership", membership, ("members", "centres"), True,
               "ignores the embeddings and reads who sits in whose patch"),
        Attack("heat-kernel", heat_kernel, ("members", "eigenvalues", "eigenvectors"), False,
               "inverts each patch by itself with a thresholded heat kernel, without alignment"),
    )
}  # fmt: skip


def find_attack(name: str) -> Attack:
    """Look an attack up by name."""
    if name not in ATTACKS:
        raise unknown_name("attack", name, ATTACKS)
    return ATTACKS[name]
