"""The methods for Task 3 by name. A new one is one file and one line here. Nothing here imports torch."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from pydantic import ValidationError

from lograb.errors import LograbError, unknown_name
from lograb.learning.links.fragmented import FragmentedGraph
from lograb.learning.links.settings import (
    CosineSettings,
    LightGcnSettings,
    NeoGnnSettings,
    NoSettings,
    SealSettings,
)
from lograb.learning.nodes.settings import Settings
from lograb.learning.randomness import require_torch
from lograb.plugins import find_plugin, plugins
from lograb.progress import Progress, ignore
from lograb.spec import first_problem
from lograb.types import Floats, Ints


@dataclass(frozen=True)
class LinkMethod:
    """A way to score pairs of nodes from different fragments.

    Attributes
    ----------
    name : str
    where : str
        Module under ``lograb.learning``, and the function (graph, pairs, rng, settings, progress) -> scores
        in it.
    settings : the class of its settings
    description : str
    sees : tuple of str
        What it looks at, all of it inside fragments: edges, patches (who shares one), centres, features,
        coordinates, labels.
    trivial : bool
        Whether it belongs to the floor: it learns nothing.
    version : str
        Part of the identity of stored runs: it changes whenever the answers do.
    follows : {"", "adjacency", "co_occurrence"}
        The graph (attribute of `FragmentedGraph`) along which it relates two nodes, where it can do so in no other
        way but by features.
    """

    name: str
    where: str
    settings: type[Settings]
    description: str
    sees: tuple[str, ...]
    trivial: bool = False
    follows: str = ""
    version: str = "1"

    def is_blind(self, graph: FragmentedGraph, settings: dict[str, Any] | None = None) -> bool:
        """Tell whether nothing relates nodes of different fragments in what it reads: no path, and no features."""
        if not self.follows or (getattr(self.choose(settings), "features", False) and graph.patches.n_features):
            return False
        rows, columns = getattr(graph, self.follows).nonzero()
        return not (graph.fragment[rows] != graph.fragment[columns]).any()

    def choose(self, settings: dict[str, Any] | None) -> Settings:
        """Put given settings in the place of the default ones; checks them, and that torch is there if needed."""
        try:
            chosen = self.settings(**(settings or {}))
        except ValidationError as error:
            known = ", ".join(self.settings.model_fields) or "none"
            raise LograbError(f"{self.name}: {first_problem(error)}. Settings: {known}") from None
        if not self.trivial:
            require_torch(f"the link method '{self.name}'")
        return chosen

    def score(
        self,
        graph: FragmentedGraph,
        pairs: Ints,
        rng: np.random.Generator,
        settings: dict[str, Any] | None = None,
        progress: Progress = ignore,
    ) -> Floats:
        """Score pairs; larger means likelier. `settings` overrides some defaults by name."""
        chosen = self.choose(settings)
        module, _, function = self.where.partition(":")
        run = getattr(import_module(module if "." in module else f"lograb.learning.links.{module}"), function)
        scores: Floats = run(graph, pairs, rng, chosen, progress)
        wrong = len(scores) - np.count_nonzero(np.isfinite(scores))
        if wrong:
            raise LograbError(f"{self.name}: {wrong:,} of {len(scores):,} scores are not finite; look for such "
                              "features, or try a smaller learning rate")  # fmt: skip
        return scores


LINKS = {
    method.name: method
    for method in (
        LinkMethod("features", "similarity:feature_similarity", NoSettings,
                   "cosine of both nodes' features, nothing learned", ("features",), True),
        LinkMethod("degree", "similarity:degree_product", NoSettings,
                   "product of both nodes' known degrees", ("edges",), True),
        LinkMethod("co-occurrence", "similarity:co_occurrence", NoSettings,
                   "number of patches that both nodes share", ("patches",), True),
        LinkMethod("centres", "similarity:centres", NoSettings,
                   "whether a link is possible: none between fragments touches a centre", ("centres",), True),
        LinkMethod("cosine", "similarity:cosine", CosineSettings,
                   "cosine of GraphSAGE representations from Task 2, averaged over patches",
                   ("edges", "features", "coordinates", "labels")),
        LinkMethod("seal", "seal:seal", SealSettings,
                   "SEAL: DGCNN on labelled enclosing subgraphs of the co-occurrence graph", ("edges", "patches"),
                   follows="co_occurrence"),
        LinkMethod("neo-gnn", "neo_gnn:neo_gnn", NeoGnnSettings,
                   "Neo-GNN: learned overlap of neighbourhoods beside a graph network on features",
                   ("edges", "features"), follows="adjacency"),
        LinkMethod("lightgcn", "lightgcn:lightgcn", LightGcnSettings,
                   "LightGCN: free vectors smoothed over the known edges", ("edges",), follows="adjacency"),
    )
}  # fmt: skip


def find_link_method(name: str) -> LinkMethod:
    """Look a method up by name."""
    found: LinkMethod | None = LINKS.get(name) or find_plugin("links", name)
    if found is None:
        raise unknown_name("link method", name, [*LINKS, *plugins("links")])
    return found
