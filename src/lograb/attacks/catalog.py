"""The attacks by name. A new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from lograb.attacks.afr import Afr
from lograb.attacks.attack import Attack
from lograb.attacks.baselines.eigen_sync import EigenSync
from lograb.attacks.baselines.guess import Random
from lograb.attacks.baselines.heat_kernel import HeatKernel
from lograb.attacks.baselines.local2global import Local2Global
from lograb.attacks.baselines.membership import Membership
from lograb.attacks.baselines.neural import Gae, GcnLe, Vgae
from lograb.attacks.baselines.pointnetlk import PointNetLK
from lograb.attacks.posterior import Posterior
from lograb.attacks.variational import Variational
from lograb.errors import LograbError, unknown_name
from lograb.types import Observations, Reconstruction

Function = Callable[[Observations, np.random.Generator], Reconstruction]

ATTACKS: dict[str, type[Attack]] = {
    attack.name: attack
    for attack in (
        Random,
        Membership,
        HeatKernel,
        Afr,
        EigenSync,
        Local2Global,
        PointNetLK,
        Posterior,
        Gae,
        Vgae,
        GcnLe,
        Variational,
    )
}


def find_attack(name: str) -> type[Attack]:
    """Look an attack up by name."""
    if name not in ATTACKS:
        raise unknown_name("attack", name, ATTACKS)
    return ATTACKS[name]


def as_attack(what: Any) -> Attack | Function:
    """Take an attack by name, as an object or as a function of (observations, rng)."""
    if isinstance(what, str):
        return find_attack(what)()
    if isinstance(what, type) and issubclass(what, Attack):
        return what()
    if callable(what) and not isinstance(what, type):
        _check_signature(what)
        return what  # type: ignore[no-any-return]
    raise LograbError("an attack is a name, an attack object such as lograb.attacks.Posterior(), or a function of "
                      f"(observations, rng); got {type(what).__name__} {what!r:.60}")  # fmt: skip


def _check_signature(function: Callable[..., Any]) -> None:
    """Refuse a function that cannot be called with observations and a generator."""
    try:
        taken = signature(function)
    except (TypeError, ValueError):  # of one that is not written in Python
        return
    try:
        taken.bind(None, None)
    except TypeError:
        name = getattr(function, "__name__", type(function).__name__)
        raise LograbError("an attack is called with two arguments, the observations and a random generator, got "
                          f"{name}{taken}: let it take (seen, rng)") from None  # fmt: skip


def label_of(attack: Attack | Function) -> str:
    """Name an attack in tables: with the parameters that differ from their defaults."""
    return attack.label if isinstance(attack, Attack) else getattr(attack, "__name__", type(attack).__name__)
