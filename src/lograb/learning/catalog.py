"""The models by name. A new one is one file and one line here. Nothing here imports torch."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from lograb.errors import LograbError, unknown_name
from lograb.learning.randomness import require_torch

if TYPE_CHECKING:
    from lograb.learning.models.classifier import Classifier

Encoding = Literal["laplacian", "walks", "distances"]


@dataclass(frozen=True)
class Model:
    """An architecture with the appendix's hyper-parameters (Appendix C).

    Attributes
    ----------
    name : str
    where : str
        Module under ``lograb.learning.models`` and the class in it.
    settings : dict
        Keyword arguments of the class; `build` takes others in their place.
    description : str
    encodings : tuple of str
        What it needs beside features, coordinates and edges (`lograb.learning.encodings`).
    trivial : bool
        Whether it belongs to the floor: it reads the features of a node and nothing of its patch.
    """

    name: str
    where: str
    settings: dict[str, Any]
    description: str
    encodings: tuple[Encoding, ...] = ()
    trivial: bool = False

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
        make = getattr(import_module(f"lograb.learning.models.{module}"), name)
        try:
            made: Classifier = make(n_inputs, n_outputs, **chosen)
        except (AssertionError, RuntimeError, ValueError, ZeroDivisionError) as error:
            raise LograbError(f"{self.name} cannot be built with {chosen}: {error}") from None
        return made

    def choose(self, settings: dict[str, Any] | None) -> dict[str, Any]:
        """Put given settings in the place of the default ones, after a check of names and kinds."""
        for name, value in (settings or {}).items():
            if name not in self.settings:
                raise LograbError(f"{self.name} has no setting '{name}'. Settings: {', '.join(self.settings)}")
            default = self.settings[name]
            fits = isinstance(value, int | float) if isinstance(default, float) else type(value) is type(default)
            if not fits or (isinstance(value, int | float) and value < 0):
                raise LograbError(f"{self.name}: {name} is {default!r} by default, got {value!r}")
        return self.settings | (settings or {})


_SMALL: dict[str, Any] = {"hidden": 64, "layers": 2, "dropout": 0.5}
_TRANSFORMER: dict[str, Any] = {"hidden": 64, "layers": 4, "heads": 4, "dropout": 0.3}
_POSITIONS: dict[str, Any] = {"position_width": 16, "position_layers": 1, "position_heads": 4}
_SAN = _TRANSFORMER | {"gamma": 0.01} | _POSITIONS
MODELS = {
    model.name: model
    for model in (
        Model("sage", "convolutions:Sage", _SMALL | {"pool": False},
              "GraphSAGE: maximum over neighbours, ReLU, l2-normalised"),
        Model("gcn", "convolutions:Gcn", _SMALL, "graph convolution with symmetric normalisation"),
        Model("gat", "convolutions:Gat", {"hidden": 32, "layers": 2, "heads": 4, "dropout": 0.5},
              "graph attention over neighbours, ELU"),
        Model("gin", "convolutions:Gin", _SMALL | {"perceptron": "first"},
              "graph isomorphism network: sums over neighbours, learned epsilon"),
        Model("gps", "gps:Gps", _TRANSFORMER, "GraphGPS: message passing beside full attention"),
        Model("san", "san:San", _SAN,
              "spectral attention: learned Laplacian encoding, full attention with real and virtual edges apart",
              ("laplacian", "distances")),
        Model("graphormer", "graphormer:Graphormer", _TRANSFORMER | {"max_degree": 64, "max_distance": 16},
              "Transformer with centrality, spatial (shortest path) and edge encodings", ("distances",)),
        Model("gin-vn", "virtual_node:GinVirtualNode", _SMALL | {"layers": 3},
              "GIN with a virtual node that all members of a patch share"),
        Model("gps-lappe", "gps:GpsLapPE", _TRANSFORMER,
              "GraphGPS with Laplacian eigenvectors as positions", ("laplacian",)),
        Model("san-lappe", "san:SanLapPE", _SAN,
              "SAN with Laplacian eigenvectors as positions besides", ("laplacian", "distances")),
        Model("san-rwse", "san:SanRwse", _SAN,
              "SAN with random-walk return probabilities besides", ("laplacian", "walks", "distances")),
        Model("attention", "attention:Attention", _TRANSFORMER,
              "plain multi-head attention: what the paper's parameter counts show its SAN to be"),
        Model("mlp", "perceptron:Perceptron", _SMALL, "features only, neither edges nor coordinates: the floor",
              trivial=True),
    )
}  # fmt: skip


def find_model(name: str) -> Model:
    """Look a model up by name."""
    if name not in MODELS:
        raise unknown_name("model", name, MODELS)
    return MODELS[name]
