"""The attacks by name. A new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from lograb.attacks.afr import AfrSettings, afr
from lograb.attacks.baselines.eigen_sync import EigenSyncSettings, eigen_sync
from lograb.attacks.baselines.guess import guess
from lograb.attacks.baselines.heat_kernel import HeatKernelSettings, heat_kernel
from lograb.attacks.baselines.local2global import Local2GlobalSettings, local2global
from lograb.attacks.baselines.membership import membership
from lograb.attacks.baselines.neural import EigenmapSettings, NeuralSettings, gae, gcn_le, vgae
from lograb.attacks.baselines.pointnetlk import PointNetLKSettings, pointnetlk
from lograb.attacks.posterior import PosteriorSettings, posterior
from lograb.attacks.variational import VariationalSettings, variational
from lograb.errors import LograbError, unknown_name
from lograb.spec import first_problem
from lograb.types import Observations, Reconstruction


class NoSettings(BaseModel):
    """For attacks that have nothing to set."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Attack:
    """A way to rebuild the graph, and what it needs.

    Attributes
    ----------
    name : str
    run : callable (observations, rng, settings) -> Reconstruction
    settings : the class of its settings
    channels : tuple of str
        The parts of the observations it uses: members, centres, eigenvalues, eigenvectors, features.
    trivial : bool
        Whether it belongs to the floor: an attacker without any spectral skill.
    scenario : str
        Who attacks, with what.
    cost : str
        What its time grows with.
    optional : tuple of str
        Parts that it uses where the observations carry them.
    extra : str, optional
        The optional dependency that it needs.
    small_only : bool
        Whether it refuses all but small graphs; such an attack runs only where it is asked for by name.
    """

    name: str
    run: Callable[[Observations, np.random.Generator, Any], Reconstruction]
    settings: type[BaseModel]
    channels: tuple[str, ...]
    trivial: bool
    scenario: str
    cost: str
    optional: tuple[str, ...] = ()
    extra: str | None = None
    small_only: bool = False

    def reconstruct(
        self, seen: Observations, rng: np.random.Generator, settings: dict[str, Any] | None = None
    ) -> Reconstruction:
        """Run the attack; `settings` overrides some of its defaults by name."""
        for key in settings or {}:
            if key not in self.settings.model_fields:
                raise unknown_name(f"{self.name} setting", key, self.settings.model_fields or ["none"])
        try:
            chosen = self.settings(**(settings or {}))
        except ValidationError as error:
            known = ", ".join(self.settings.model_fields) or "none"
            raise LograbError(f"{self.name}: {first_problem(error)}. Settings: {known}") from None
        return self.run(seen, rng, chosen)


SPECTRAL = ("members", "eigenvalues", "eigenvectors")
ATTACKS = {
    attack.name: attack
    for attack in (
        Attack("random", guess, NoSettings, ("members",), True,
               "guesses for every node one companion from a patch that contains it", "members"),
        Attack("membership", membership, NoSettings, ("members", "centres"), True,
               "ignores the embeddings and reads who sits in whose patch", "members, or their pairs"),
        Attack("heat-kernel", heat_kernel, HeatKernelSettings, SPECTRAL, False,
               "inverts each patch by itself with a thresholded heat kernel, without alignment",
               "pairs in patches"),
        Attack("afr", afr, AfrSettings, SPECTRAL, False,
               "the paper's attack: trusts patches by fidelity, stitches them into islands, adjusts, cross-votes",
               "pairs in patches, and stitches tried"),
        Attack("eigen-sync", eigen_sync, EigenSyncSettings, ("members", "eigenvectors"), False,
               "turns all patches into one frame by eigenvectors, joins nearest neighbours", "pairs of patches"),
        Attack("local2global", local2global, Local2GlobalSettings, ("members", "eigenvectors"), False,
               "weighted synchronisation of rotations and shifts, joins nearest neighbours", "pairs of patches"),
        Attack("pointnetlk", pointnetlk, PointNetLKSettings, ("members", "eigenvectors"), False,
               "registers patches as rigid point clouds without correspondence", "pairs of patches in a forest"),
        Attack("posterior", posterior, PosteriorSettings, ("members", "centres", *SPECTRAL[1:]), False,
               "weighs all evidence on every pair and gives it a probability: the strongest here",
               "pairs in patches, times patch sizes"),
        Attack("gae", gae, NeuralSettings, SPECTRAL, False,
               "trains a graph autoencoder on a guessed graph, joins the nodes it embeds closest",
               "edges of the guess, and pairs of nodes", ("features",), "gnn"),
        Attack("vgae", vgae, NeuralSettings, SPECTRAL, False,
               "the same with a variational autoencoder", "edges of the guess, and pairs of nodes",
               ("features",), "gnn"),
        Attack("gcn-le", gcn_le, EigenmapSettings, SPECTRAL, False,
               "the same with Laplacian eigenmaps of the guess as inputs",
               "edges of the guess, and pairs of nodes", ("features",), "gnn"),
        Attack("variational", variational, VariationalSettings, ("members", "eigenvectors"), False,
               "the procedure behind Proposition 1, for small graphs: a mean field under a Sinkhorn likelihood",
               "steps, and cubes of patch sizes", ("eigenvalues",), small_only=True),
    )
}  # fmt: skip


def find_attack(name: str) -> Attack:
    """Look an attack up by name."""
    if name not in ATTACKS:
        raise unknown_name("attack", name, ATTACKS)
    return ATTACKS[name]
