"""Settings of the methods for Task 3. Nothing here imports torch."""

from __future__ import annotations

from pydantic import Field, field_validator

from lograb.learning.links.fragmented import Where
from lograb.learning.nodes.catalog import find_model
from lograb.learning.nodes.settings import Settings


class NoSettings(Settings):
    """For methods that have nothing to set."""


class CosineSettings(Settings):
    """Settings of `cosine`: the model of Task 2 whose representations are compared, and its most epochs."""

    model: str = "sage"
    epochs: int = Field(default=100, ge=1)

    @field_validator("model")
    @classmethod
    def _is_known(cls, name: str) -> str:
        return find_model(name).name


class PairSettings(Settings):
    """What methods that learn from pairs share: where the pairs come from that are no known edges."""

    train_negatives: Where = "anywhere"


class SealSettings(PairSettings):
    """Settings of SEAL. Those marked * are not named in the paper; the default is ours or SEAL's own.

    Attributes
    ----------
    hops : radius of the enclosing subgraphs.
    epochs, learning_rate, batch_size : of Adam.
    hidden, layers : * widths of the graph convolutions; a last one of width 1 gives the order.
    keep : * share of the training subgraphs that sort pooling leaves uncut.
    dropout : * before the last layer.
    features : * whether nodes also carry their features, beside their labels.
    max_nodes_per_hop : * larger neighbourhoods are drawn from; None for no limit.
    max_edges : * most known edges that are learned from, drawn; None for all.
    """

    hops: int = Field(default=1, ge=1)
    epochs: int = Field(default=20, ge=1)
    learning_rate: float = Field(default=0.001, gt=0)
    batch_size: int = Field(default=64, ge=1)
    hidden: int = Field(default=32, ge=1)
    layers: int = Field(default=3, ge=1)
    keep: float = Field(default=0.6, gt=0, le=1)
    dropout: float = Field(default=0.5, ge=0, lt=1)
    features: bool = False
    max_nodes_per_hop: int | None = Field(default=100, ge=1)
    max_edges: int | None = Field(default=10_000, ge=1)


class NeoGnnSettings(PairSettings):
    """Settings of Neo-GNN; the paper names none. Those of its authors where they have them.

    Attributes
    ----------
    hidden, layers, dropout : of the graph network and of the perceptron on its products.
    power, beta : neighbourhoods are A + β A² + ... + β^(power - 1) A^power.
    edge_width, node_width, overlap_width : hidden widths of f_edge, f_node and g.
    epochs, learning_rate, batch_size : of Adam; a batch holds so many pairs.
    features : whether to use the node features; learned vectors take their place otherwise.
    message_share : share of the known edges, drawn, that are the graph while training; the others are learned
        from, and all are the graph when answering. With 1, as published, all edges are both, so every edge that
        is learned from is in the graph too, which no question's is.
    """

    hidden: int = Field(default=256, ge=1)
    layers: int = Field(default=3, ge=2)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    power: int = Field(default=2, ge=1)
    beta: float = Field(default=0.1, gt=0)
    edge_width: int = Field(default=8, ge=1)
    node_width: int = Field(default=128, ge=1)
    overlap_width: int = Field(default=128, ge=1)
    epochs: int = Field(default=50, ge=1)
    learning_rate: float = Field(default=0.001, gt=0)
    batch_size: int = Field(default=1024, ge=1)
    features: bool = True
    message_share: float = Field(default=1.0, gt=0, le=1)


class LightGcnSettings(PairSettings):
    """Settings of LightGCN; the paper names none, these are ours.

    Attributes
    ----------
    width : of the vectors.
    layers : rounds of smoothing.
    epochs, learning_rate : of Adam; an epoch is one step on all edges.
    decay : weight of the vectors' squared lengths in the loss.
    """

    width: int = Field(default=64, ge=1)
    layers: int = Field(default=3, ge=1)
    epochs: int = Field(default=200, ge=1)
    learning_rate: float = Field(default=0.01, gt=0)
    decay: float = Field(default=1e-4, ge=0)
