"""The models by name. A new one is one file and one line here. Nothing here imports torch."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from lograb.errors import unknown_name
from lograb.learning.nodes import settings as accept
from lograb.learning.randomness import require_torch
from lograb.plugins import find_plugin, plugins
from lograb.spec import checked

if TYPE_CHECKING:
    from lograb.learning.nodes.models.classifier import Classifier

Encoding = Literal["laplacian", "walks", "distances"]


@dataclass(frozen=True)
class Model:
    """An architecture with the appendix's hyper-parameters (Appendix C)."""

    name: str
    where: str
    """Module under ``lograb.learning.nodes.models`` and the class in it; elsewhere with dots, ``a.b:C``."""
    accepts: type[accept.Settings]
    """Its settings with their defaults; `build` takes others in their place."""
    description: str
    encodings: tuple[Encoding, ...] = ()
    """What it needs beside features, coordinates and edges (`lograb.learning.nodes.encodings`)."""
    trivial: bool = False
    """Whether it belongs to the floor: it reads the features of a node and nothing of its patch."""
    version: str = "1"
    """Part of the identity of stored runs: it changes whenever the answers do."""

    @property
    def settings(self) -> dict[str, Any]:
        """All settings with their defaults."""
        return self.accepts().model_dump()

    def build(self, n_inputs: int, n_outputs: int, settings: dict[str, Any] | None = None) -> Classifier:
        """Make the network; initial weights come from torch's current stream (see `seeded`).

        Its input is features and spectral coordinates (``PatchSet.n_inputs``), or features alone where it is
        trivial. `settings` overrides some hyper-parameters by name.
        """
        require_torch(f"the model '{self.name}'")
        chosen = self.accepts(**self.choose(settings))
        module, _, name = self.where.partition(":")
        place = module if "." in module else f"lograb.learning.nodes.models.{module}"
        made: Classifier = getattr(import_module(place), name)(n_inputs, n_outputs, chosen)
        return made

    def choose(self, settings: dict[str, Any] | None) -> dict[str, Any]:
        """Put given settings in the place of the default ones, after a check."""
        for name in settings or {}:
            if name not in self.accepts.model_fields:
                known = [*self.accepts.model_fields, *accept.TrainingSettings.model_fields]
                raise unknown_name(f"setting of {self.name}", name, dict.fromkeys(known))
        return checked(self.accepts, settings or {}, f"{self.name}: ").model_dump()


MODELS = {
    model.name: model
    for model in (
        Model("sage", "convolutions:Sage", accept.SageSettings,
              "GraphSAGE: maximum over neighbours, ReLU, l2-normalised"),
        Model("gcn", "convolutions:Gcn", accept.LayerSettings, "graph convolution with symmetric normalisation"),
        Model("gat", "convolutions:Gat", accept.GatSettings,
              "graph attention over neighbours, ELU"),
        Model("gin", "convolutions:Gin", accept.GinSettings,
              "graph isomorphism network: sums over neighbours, learned epsilon"),
        Model("gps", "gps:Gps", accept.TransformerSettings, "GraphGPS: message passing beside full attention",
              version="2"),
        Model("san", "san:San", accept.SanSettings,
              "spectral attention: learned Laplacian encoding, full attention with real and virtual edges apart",
              ("laplacian", "distances"), version="2"),
        Model("graphormer", "graphormer:Graphormer", accept.GraphormerSettings,
              "Transformer with centrality, spatial (shortest path) and edge encodings", ("distances",),
              version="2"),
        Model("gin-vn", "virtual_node:GinVirtualNode", accept.VirtualNodeSettings,
              "GIN with a virtual node that all members of a patch share"),
        Model("gps-lappe", "gps:GpsLapPE", accept.TransformerSettings,
              "GraphGPS with Laplacian eigenvectors as positions", ("laplacian",), version="2"),
        Model("san-lappe", "san:SanLapPE", accept.SanSettings,
              "SAN with Laplacian eigenvectors as positions besides", ("laplacian", "distances"), version="2"),
        Model("san-rwse", "san:SanRwse", accept.SanSettings,
              "SAN with random-walk return probabilities besides", ("laplacian", "walks", "distances"),
              version="2"),
        Model("attention", "attention:Attention", accept.TransformerSettings,
              "plain multi-head attention: what the paper's parameter counts show its SAN to be",
              version="2"),
        Model("mlp", "convolutions:Perceptron", accept.LayerSettings,
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
