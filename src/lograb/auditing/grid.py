"""What might be shared instead: a small grid around the plan, in groups of one kind of change each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lograb.types import Observations

NOISE = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Noise in units of the size 1/√q of an entry."""
COLUMNS = (2, 4, 8, 16)
DIGITS = {23: "float32", 10: "float16", 7: "8 bits"}
"""Binary digits behind the point that are left, about, by these formats."""
EMBEDDING_EPSILONS = (10, 1)
GRAPH_EPSILONS = (8, 6, 4)
DENSEST = 60.0
"""Mean degree of the densest sanitised graph that is tried."""
KNOBS = ("sigma", "columns", "digits", "eigenvalues", "centres", "turned", "gaussian", "subspace")
"""What a recipient can spoil by himself; less noise, more columns ... is more informative."""


@dataclass(frozen=True)
class Setting:
    """One point of the grid.

    Attributes
    ----------
    id, group, label : str
    x : position on the axis of its group: σ, k, digits, ε
    parameters : what differs in `lograb.generate`
    defences : what is added, in `generate` or in `lograb.defend`; None where the setting needs the graph
    informative : for settings that a recipient of more could make by himself: how much each knob tells
    """

    id: str
    group: str
    label: str
    x: float | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    defences: tuple[str, ...] | None = ()
    informative: dict[str, float] | None = None

    def change(self, of_graph: bool) -> str:
        """Write what differs from the plan as options of the command line."""
        names = {"sigma": "--sigma", "k": "-k"}
        if of_graph:
            given = [f"{names[key]} {value:g}" for key, value in self.parameters.items() if key in names]
            given += ["--no-eigenvalues"] if self.parameters.get("eigenvalues") is False else []
            return " ".join([*given, *(f"--defence {one}" for one in self.parameters.get("defences", ()))])
        return " ".join(f"--method {one}" for one in self.defences or ())

    def tells_more_than(self, other: Setting) -> bool:
        """Whether a recipient of this one can make the other by himself."""
        mine, others = self.informative, other.informative
        if mine is None or others is None:
            return False
        full = dict.fromkeys(KNOBS, np.inf)
        return all((full | mine)[knob] >= (full | others)[knob] for knob in KNOBS)


PLAN = Setting("plan", "plan", "as planned", informative={})


def grid(seen: Observations, *, of_graph: bool, quick: bool) -> list[Setting]:
    """List what is tried, the plan first, by what is shared of the plan.

    Of what is made already, noise on the eigenvectors comes with withheld eigenvalues: there is no defence that
    leaves exact ones beside it.
    """
    return [PLAN, *_noise(seen, of_graph, quick), *_columns(seen, quick), *([] if quick else _digits()),
            *_withheld(seen, quick), *_mechanisms(quick), *_on_graph(seen, of_graph, quick)]  # fmt: skip


def _made(
    id: str, group: str, label: str, x: float | None, parameters: dict[str, Any], defences: tuple[str, ...],
    **informative: float,
) -> Setting:  # fmt: skip
    return Setting(id, group, label, x, parameters, defences, informative)


def _noise(seen: Observations, of_graph: bool, quick: bool) -> list[Setting]:
    entry = 1.0 / np.sqrt(float(np.median(seen.sizes)))
    planned = (seen.protocol.sigma or 0.0) * np.sqrt(seen.protocol.releases)  # the protocol tells that of the mean
    bare = {} if of_graph else {"eigenvalues": 0.0}
    more = ", no eigenvalues" if bare and seen.values is not None else ""
    found = {}
    for times in (0.2, 1.0) if quick else NOISE:
        sigma = float(f"{times * entry:.1g}")
        if sigma > planned * (1 + 1e-9):
            found[sigma] = _made(f"noise-{sigma:g}", "noise", f"noise σ = {sigma:g}{more}", sigma,
                                 {"sigma": sigma}, (f"gaussian:sigma={sigma:g}",), sigma=-sigma,
                                 **bare)  # fmt: skip
    return list(found.values())


def _columns(seen: Observations, quick: bool) -> list[Setting]:
    most = int(seen.ranks.max(initial=0))
    return [_made(f"columns-{k}", "columns", f"{k} eigenvectors", k, {"k": k}, (f"truncate:k={k}",), columns=k)
            for k in ((8,) if quick else COLUMNS) if k < most]  # fmt: skip


def _digits() -> list[Setting]:
    return [_made(f"digits-{bits}", "precision", f"{name} ({bits} binary digits)", bits,
                  {"defences": (f"round:bits={bits}",)}, (f"round:bits={bits}",), digits=bits)
            for bits, name in DIGITS.items()]  # fmt: skip


def _withheld(seen: Observations, quick: bool) -> list[Setting]:
    found = []
    if seen.values is not None:
        fewer = [k for k in ((4,) if quick else (8, 4)) if k < int(seen.ranks.max(initial=0))]
        if not quick or not fewer:
            found.append(_made("no-eigenvalues", "withhold", "no eigenvalues", None, {"eigenvalues": False},
                               ("withhold",), eigenvalues=0))  # fmt: skip
        for k in fewer:
            found.append(_made(f"no-eigenvalues-{k}", "withhold", f"{k} eigenvectors, no eigenvalues", None,
                               {"eigenvalues": False, "k": k}, (f"truncate:k={k}", "withhold"), eigenvalues=0,
                               columns=k))  # fmt: skip
    if seen.centres is not None and not quick:
        found.append(_made("no-centres", "withhold", "no centres", None, {"defences": ("withhold:what=centres",)},
                           ("withhold:what=centres",), centres=0))  # fmt: skip
    return found


def _mechanisms(quick: bool) -> list[Setting]:
    def one(id: str, label: str, x: float | None, defence: str, **informative: float) -> Setting:
        return _made(id, "defence", label, x, {"defences": (defence,)}, (defence,), **informative)

    found = []
    if not quick:
        found.append(one("rotate", "columns rotated", None, "rotate", turned=0))
    for epsilon in (1,) if quick else EMBEDDING_EPSILONS:
        found.append(one(f"subspace-{epsilon}", f"subspace mechanism, ε = {epsilon} a patch", epsilon,
                         f"subspace:epsilon={epsilon}", turned=0, eigenvalues=0, subspace=epsilon))  # fmt: skip
        if not quick:
            found.append(one(f"gaussian-{epsilon}", f"Gaussian mechanism, ε = {epsilon} a patch", epsilon,
                             f"gaussian:epsilon={epsilon}", eigenvalues=0, gaussian=epsilon))  # fmt: skip
    if not quick:
        found.append(Setting("pseudonyms", "defence", "fresh names per patch", None,
                             {"defences": ("pseudonyms",)}, ("pseudonyms",)))  # fmt: skip
    return found


def _on_graph(seen: Observations, of_graph: bool, quick: bool) -> list[Setting]:
    if not of_graph:
        return [Setting("graph", "graph", "a sanitised graph", defences=None)]
    found = []
    for name in ("edge-rand",) if quick else ("edge-rand", "lap-graph"):
        for epsilon in (6,) if quick else GRAPH_EPSILONS:
            if name == "edge-rand" and seen.n_nodes / (1 + np.exp(epsilon)) > DENSEST:
                continue
            found.append(Setting(f"{name}-{epsilon}", "graph", f"{name}, ε = {epsilon}", epsilon,
                                 {"defences": (f"{name}:epsilon={epsilon}",)}, None))  # fmt: skip
    return found
