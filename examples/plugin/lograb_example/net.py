"""The model, apart: importing torch takes time, and the attack does not need it."""

from torch import nn

from lograb.learning.nodes.models.classifier import Classifier


class Linear(Classifier):
    """One layer."""

    def __init__(self, n_inputs, n_outputs, settings):
        super().__init__()
        self.width, self.output_layer = n_inputs, nn.Linear(n_inputs, n_outputs)

    def embed(self, batch):
        """Take features and coordinates as they are."""
        return batch.inputs
