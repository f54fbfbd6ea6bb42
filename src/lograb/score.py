"""What an answer is worth: one number in front, its interval, floor and ceiling, and the rest by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from lograb.types import Bools, Ints

# The number in front of each task, and the name of its interval.
HEADLINES = {"reconstruction": ("f1", "f1_interval"), "classification": ("f1_micro", "f1_micro_interval"),
             "links": ("auroc", "interval")}  # fmt: skip
METRICS = {"reconstruction": "F1", "classification": "F1-micro", "links": "AUROC"}
"""What the number in front is called."""


@dataclass(frozen=True, eq=False, repr=False)
class PatchScores:
    """What was found inside each patch; arrays of shape (n_patches,)."""

    names: tuple[str, ...]  # the patches' names, or their numbers
    sizes: Ints  # members of a patch
    edges: Ints  # its true edges
    found: Ints  # those that are claimed
    wrong: Ints  # claimed pairs that are no edges

    def __len__(self) -> int:
        return len(self.sizes)

    def __repr__(self) -> str:
        return f"<PatchScores: {int(self.exact.sum())} of {len(self)} patches exact>"

    @property
    def exact(self) -> Bools:
        """True where the claims inside a patch are exactly its edges."""
        return np.asarray((self.found == self.edges) & (self.wrong == 0))

    def rows(self, at_most: int | None = None) -> list[dict[str, Any]]:
        """List patches as dicts, those with most edges read first (exact ones before others)."""
        order = np.lexsort((-self.sizes, self.wrong, -self.found, ~self.exact))[:at_most]
        return [{"patch": self.names[i], "members": int(self.sizes[i]), "edges": int(self.edges[i]),
                 "found": int(self.found[i]), "wrong": int(self.wrong[i]), "exact": bool(self.exact[i])}
                for i in order.tolist()]  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Score:
    """What an answer to a task is worth, between its floor and its ceiling.

    Attributes
    ----------
    task : {"reconstruction", "classification", "links"}
    values : dict
        Every number by name, ready for JSON: the same as `to_dict`. ``score["auroc"]`` is short for one of them.
    patches : for reconstruction: what was found in each patch
    raw : for learning: the answers behind the numbers, so that other numbers can be made of them
    """

    task: str
    values: dict[str, Any]
    patches: PatchScores | None = None
    raw: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def value(self) -> float | None:
        """The number in front: global F1, F1-micro or AUROC; None where the task does not apply."""
        found = self.values.get(HEADLINES[self.task][0])
        return found["global"] if isinstance(found, dict) else found

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the number in front."""
        found = self.values.get(HEADLINES[self.task][1])
        return None if found is None else (found[0], found[1])

    @property
    def floor(self) -> float | None:
        """What an attacker (or learner) without any skill reaches."""
        return self.values.get("floor")

    @property
    def ceiling(self) -> float | None:
        """What is reachable at all from what was shared; None where no such bound is known."""
        return self.values.get("ceiling")

    @property
    def f1(self) -> float:
        """F1 over all true edges of the graph."""
        return float(self.values["f1"]["global"])

    @property
    def recovered(self) -> float:
        """F1 over the true edges among the nodes that the answer claims to have recovered (the paper's scope)."""
        return float(self.values["f1"]["recovered"])

    @property
    def precision(self) -> float:
        """Share of the claims that are right."""
        return float(self.values["precision"])

    @property
    def recall(self) -> float:
        """Share of all true edges that are claimed."""
        return float(self.values["recall"])

    @property
    def calibration(self) -> dict[str, float] | None:
        """Whether the probabilities mean what they say; None where the scores are no probabilities."""
        return self.values.get("calibration")

    @property
    def fails(self) -> bool:
        """Whether an attacker without any skill does better."""
        return self.value is not None and self.floor is not None and self.value < self.floor

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain numbers, ready for JSON."""
        return dict(self.values)

    def sentence(self) -> str:
        """Say in words what an attack found."""
        v = self.values
        if not v["claimed"]:
            return f"claims nothing; some patch contains {v['co_observed']:,} of the {v['edges']:,} edges"
        named = v.get("named_f1")
        hidden = "" if named is None else f"; names are removed, and with them put back F1 is {named:.3f}"
        share = f" ({percent(v['found'] / v['co_observed'])})" if v["co_observed"] else ""
        return (f"finds {v['found']:,} of the {v['co_observed']:,} edges that some patch contains{share}, "
                f"{percent(v['hits'] / v['claimed'])} of its claims are right{hidden}")  # fmt: skip

    def __repr__(self) -> str:
        parts = [f"{label} {_number(value)}" for label, value in self._headline()]
        return f"<Score {self.task}: {', '.join(parts)}>"

    def _headline(self) -> list[tuple[str, Any]]:
        rows = [(METRICS[self.task], self.value), ("95 % interval", self.interval), ("floor", self.floor),
                ("ceiling", self.ceiling), ("precision", self.values.get("precision")),
                ("recall", self.values.get("recall"))]  # fmt: skip
        return [(label, value) for label, value in rows if value is not None]

    def _repr_html_(self) -> str:
        cells = "".join(f"<tr><th style='text-align:left'>{escape(label)}</th><td>{_number(value)}</td></tr>"
                        for label, value in self._headline())  # fmt: skip
        return f"<table><caption>{escape(self.task)}</caption>{cells}</table>"


def percent(share: float) -> str:
    """Write a share in percent; only 0 is 0 %, and only all of it is 100 %."""
    text = f"{100 * share:.0f}"
    if text in ("0", "100") and share not in (0.0, 1.0):
        text = f"{min(max(100 * share, 0.1), 99.9):.1f}"
    return f"{text} %"


def _number(value: Any) -> str:
    return f"{value[0]:.3f} to {value[1]:.3f}" if isinstance(value, tuple) else f"{value:.3f}"
