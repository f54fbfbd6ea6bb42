"""One training loop for all models, and what a trained model says about every row.

    patches = patch_set(instance)                        # flat arrays, see patchset.py
    patches = encode(patches, model.encodings, rng)      # where the model needs more
    split = make_split(patches, "patch", rng)            # which rows to train, stop and test on
    trained = train(find_model("sage"), patches, split, rng)
    scores = predict(trained.network, patches)           # (n_rows, n_classes)
    points = node_embeddings(trained.network, patches)   # (n_nodes, width), averaged over patches
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from lograb.learning.nodes.catalog import Model
from lograb.learning.nodes.minibatches import Batch, Batches
from lograb.learning.nodes.models.classifier import Classifier
from lograb.learning.nodes.settings import TrainingSettings
from lograb.learning.nodes.splits import Split
from lograb.learning.patchset import PatchSet, Singles
from lograb.learning.randomness import pick_device, seeded
from lograb.metrics.classification import choose_labels, f1_scores
from lograb.parallel import threads_for
from lograb.progress import Progress, ignore
from lograb.ragged import owners
from lograb.types import Bools, Ints

if TYPE_CHECKING:
    from torch.optim import Optimizer

__all__ = ["Trained", "TrainingSettings", "average_over_patches", "inference_milliseconds", "node_embeddings",
           "patch_embeddings", "patches_with", "predict", "train"]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained network, with the weights of its best epoch."""

    network: Classifier  # in evaluation mode
    epochs: int  # how many were run
    best_epoch: int  # counted from 1
    valid_f1: list[float]  # validation F1-micro after each epoch
    losses: list[float]  # mean training loss of each epoch
    seconds: float


def train(
    model: Model,
    patches: PatchSet,
    split: Split,
    rng: np.random.Generator,
    training: TrainingSettings | None = None,
    settings: dict[str, Any] | None = None,
    progress: Progress = ignore,
) -> Trained:
    """Train one model on the training rows, stop by the validation rows; test rows' labels are not used.

    The patches have labels, and the encodings that the model needs. Initial weights, dropout and the order of
    patches follow from `rng`. `settings` overrides some of the model's hyper-parameters.
    """
    training = training or TrainingSettings()
    if model.trivial:
        patches.require_features(model.name)
    batches = Batches(patches, pick_device())
    start = time.perf_counter()
    with threads_for(training.batch_size * patches.n_rows / max(patches.n_patches, 1)), seeded(rng):
        n_inputs = patches.n_features if model.trivial else patches.n_inputs
        network = model.build(n_inputs, patches.n_classes, settings).to(batches.device)
        optimizer = torch.optim.Adam(
            network.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay, fused=True
        )
        valid_f1, losses = [], []
        best, best_epoch, kept = -1.0, 0, copy.deepcopy(network.state_dict())
        for epoch in range(1, training.epochs + 1):
            progress(f"training {model.name}", epoch - 1, training.epochs)
            order = batches.shuffled(patches_with(patches, split.train), training.batch_size, rng)
            losses.append(_one_epoch(network, optimizer, order, _targets(batches, split.train)))
            valid_f1.append(_score(network, batches, split.valid))
            if valid_f1[-1] > best:
                best, best_epoch, kept = valid_f1[-1], epoch, copy.deepcopy(network.state_dict())
            if best == 1.0 or epoch - best_epoch >= training.patience:
                break  # nothing better can come, or has come for long
    network.load_state_dict(kept)
    network.eval()
    return Trained(network, len(losses), best_epoch, valid_f1, losses, time.perf_counter() - start)


def _one_epoch(
    network: Classifier, optimizer: Optimizer, batches: Iterable[Batch], targets: tuple[Tensor, Tensor]
) -> float:
    """Go once over all patches that have a training row; returns the mean loss over training rows."""
    network.train()
    labels, wanted = targets
    total = count = 0.0
    for batch in batches:
        here = wanted[batch.rows]
        optimizer.zero_grad()
        loss = _loss(network(batch)[here], labels[batch.nodes[here]])
        torch.autograd.backward(loss)
        optimizer.step()
        n = int(here.sum())
        total, count = total + n * float(loss.detach()), count + n
    return total / max(count, 1.0)


def _targets(batches: Batches, rows: Bools) -> tuple[Tensor, Tensor]:
    """Give the labels of all nodes, and which rows are learned from."""
    labels = batches.patches.require_labels()
    labels = labels.astype(np.int64 if labels.ndim == 1 else np.float32)
    return torch.from_numpy(labels).to(batches.device), torch.from_numpy(rows).to(batches.device)


def _loss(scores: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy: over the classes, or per label where a node may have several."""
    if labels.ndim == 1:
        return functional.cross_entropy(scores, labels)
    return functional.binary_cross_entropy_with_logits(scores, labels)


def _score(network: Classifier, batches: Batches, rows: Bools) -> float:
    patches = batches.patches
    scores = _run(network, batches, patches_with(patches, rows), network)
    answer = choose_labels(scores[rows], multi_label=patches.multi_label)
    return f1_scores(patches.require_labels()[patches.nodes[rows]], answer, patches.n_classes).micro


def patches_with(patches: PatchSet, rows: Bools) -> Ints:
    """Number the patches that have at least one of the given rows."""
    return np.unique(owners(patches.ptr)[rows])


def _run(
    network: Classifier, batches: Batches, which: Ints, apply: Callable[[Batch], Tensor]
) -> Singles:
    """Apply something to patches without learning; rows of other patches stay zero."""
    was_training = network.training
    network.eval()
    table = np.zeros((batches.patches.n_rows, 0), np.float32)
    with threads_for(len(table)), torch.no_grad():
        for batch in batches.in_size_order(which):
            values = apply(batch).cpu().numpy()
            if not table.shape[1]:
                table = np.zeros((len(table), values.shape[1]), np.float32)
            table[batch.rows.cpu().numpy()] = values
    network.train(was_training)
    return table


def _batches(network: Classifier, patches: PatchSet) -> Batches:
    return Batches(patches, next(network.parameters()).device)


def predict(network: Classifier, patches: PatchSet, which: Ints | None = None) -> Singles:
    """Score the classes of every row, float32 (n_rows, n_classes); zero outside the patches `which`."""
    which = np.arange(patches.n_patches) if which is None else which
    return _run(network, _batches(network, patches), which, network)


def patch_embeddings(network: Classifier, patches: PatchSet) -> Singles:
    """Represent every (patch, node) occurrence as the trained model sees it, float32 (n_rows, width)."""
    return _run(network, _batches(network, patches), np.arange(patches.n_patches), network.embed)


def node_embeddings(network: Classifier, patches: PatchSet) -> Singles:
    """Average a node's representations over all patches that contain it, zero without any (Appendix A.3)."""
    return average_over_patches(patches, patch_embeddings(network, patches))


def average_over_patches(patches: PatchSet, values: Singles) -> Singles:
    """Average values per occurrence (n_rows, width) to values per node (n_nodes, width)."""
    total = np.zeros((patches.n_nodes, values.shape[1]))
    np.add.at(total, patches.nodes, values)
    count = np.bincount(patches.nodes, minlength=patches.n_nodes)
    return (total / np.maximum(count, 1)[:, None]).astype(np.float32)


def inference_milliseconds(network: Classifier, patches: PatchSet, which: Ints, repeats: int = 3) -> float:
    """Measure one pass over the patches `which`, collating included: the median of some, in milliseconds."""
    batches, times = _batches(network, patches), []
    for _ in range(repeats + 1):  # the first pass warms up
        start = time.perf_counter()
        _run(network, batches, which, network)
        times.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times[1:]))
