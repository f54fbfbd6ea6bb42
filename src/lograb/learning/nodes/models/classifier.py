"""What all models have in common: from a batch to embeddings, and from there to class scores."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor, nn

from lograb.learning.nodes.minibatches import Batch


class Classifier(nn.Module):
    """A network that classifies every row of a batch from its own patch alone."""

    width: int  # of the embeddings
    output_layer: nn.Module  # from embeddings to class scores

    @abstractmethod
    def embed(self, batch: Batch) -> Tensor:
        """Represent every row before it is classified, shape (n, width)."""

    def classify(self, embedded: Tensor, batch: Batch) -> Tensor:
        """Turn embeddings into class scores (logits), shape (n, n_outputs)."""
        scores: Tensor = self.output_layer(embedded)
        return scores

    def forward(self, batch: Batch) -> Tensor:
        """Score the classes of every row, shape (n, n_outputs)."""
        return self.classify(self.embed(batch), batch)


def count_parameters(model: nn.Module) -> int:
    """Count the trainable numbers of a network."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
