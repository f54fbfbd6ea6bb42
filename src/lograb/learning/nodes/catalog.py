"""The models by name. A new one is one file and one line here. Nothing here imports torch."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from lograb.errors import LograbError, unknown_name
from lograb.learning.nodes.settings import (
    GatSettings,
    GinSettings,
    GraphormerSettings,
    LayerSettings,
    SageSettings,
    SanSettings,
    Settings,
    TransformerSettings,
    VirtualNodeSettings,
)
from lograb.learning.randomness import require_torch
from lograb.plugins import find_plugin, plugins
from lograb.spec import first_problem

if TYPE_CHECKING:
    from lograb.learning.nodes.models.classifier import Classifier

Encoding = Literal["laplacian", "walks", "distances"]


@dataclass(frozen=True)
class Model:
    """An architecture with the appendix's hyper-parameters (Appendix C).

    Attributes
    ----------
    name : str
    where : str
        Module under ``lograb.learning.nodes.models`` and the class in it; of another package with dots, ``a.b:C``.
    accepts : the class of its settings
        The keyword arguments of the model's class, with their defaults; `build` takes others in their place.
    description : str
    encodings : tuple of str
        What it needs beside features, coordinates and edges (`lograb.learning.nodes.encodings`).
    trivial : bool
        Whether it belongs to the floor: it reads the features of a node and nothing of its patch.
    version : str
        Part of the identity of stored runs: it changes whenever the answers do.
    """

    name: str
    where: str
    accepts: type[Settings]
    description: str
    encodings: tuple[Encoding, ...] = ()
    trivial: bool = False
    version: str = "1"

    @property
    def settings(self) -> dict[str, Any]:
        """All settings with their defaults."""
        return self.accepts().model_dump()

    def build(self, n_inputs: int, n_outputs: int, settings: dict[str, Any] | None = None) -> Classifier:
        """Make the network; initial weights come from torch's current stream (see `seeded`).

        Parameters
        ----------
        n_inputs : int
            Width of the input: features and spectral coordinates (``PatchSet.n_inputs``), or features
            alone where the model is trivial.
        n_outputs : int
            Number of classes.
        settings : dict, optional
            Overrides some hyper-parameters by name.
        """
        require_torch(f"the model '{self.name}'")
        chosen = self.choose(settings)
        module, _, name = self.where.partition(":")
        place = module if "." in module else f"lograb.learning.nodes.models.{module}"
        make = getattr(import_module(place), name)
        made: Classifier = make(n_inputs, n_outputs, **chosen)
        return made

    def choose(self, settings: dict[str, Any] | None) -> dict[str, Any]:
        """Put given settings in the place of the default ones, after a check."""
        for name in settings or {}:
            if name not in self.accepts.model_fields:
                known = ", ".join(self.accepts.model_fields)
                raise LograbError(f"{self.name} has no setting '{name}'. Settings: {known}")
        try:
            return self.accepts(**(settings or {})).model_dump()
        except ValidationError as error:
            raise LograbError(f"{self.name}: {first_problem(error)}") from None


MODELS = {
    model.name: model
    for model in (
        Model("sage", "convolutions:Sage", SageSettings,
              "GraphSAGE: maximum over neighbours, ReLU, l2-normalised"),
        Model("gcn", "convolutions:Gcn", LayerSettings, "graph convolution with symmetric normalisation"),
        Model("gat", "convolutions:Gat", GatSettings,
              "graph attention over neighbours, ELU"),
        Model("gin", "convolutions:Gin", GinSettings,
              "graph isomorphism network: sums over neighbours, learned epsilon"),
        Model("gps", "gps:Gps", TransformerSettings, "GraphGPS: message passing beside full attention"),
        Model("san", "san:San", SanSettings,
              "spectral attention: learned Laplacian encoding, full attention with real and virtual edges apart",
              ("laplacian", "distances")),
        Model("graphormer", "graphormer:Graphormer", GraphormerSettings,
              "Transformer with centrality, spatial (shortest path) and edge encodings", ("distances",)),
        Model("gin-vn", "virtual_node:GinVirtualNode", VirtualNodeSettings,
              "GIN with a virtual node that all members of a patch share"),
        Model("gps-lappe", "gps:GpsLapPE", TransformerSettings,
              "GraphGPS with Laplacian eigenvectors as positions", ("laplacian",)),
        Model("san-lappe", "san:SanLapPE", SanSettings,
              "SAN with Laplacian eigenvectors as positions besides", ("laplacian", "distances")),
        Model("san-rwse", "san:SanRwse", SanSettings,
              "SAN with random-walk return probabilities besides", ("laplacian", "walks", "distances")),
        Model("attention", "attention:Attention", TransformerSettings,
              "plain multi-head attention: what the paper's parameter counts show its SAN to be"),
        Model("mlp", "perceptron:Perceptron", LayerSettings,
              "features only, neither edges nor coordinates: the floor",
              trivial=True),
    )
}  # fmt: skip


def find_model(name: str) -> Model:
    """Look a model up by name."""
    found: Model | None = MODELS.get(name) or find_plugin("models", name)
    if found is None:
        raise unknown_name("model", name, [*MODELS, *plugins("models")])
    return found
