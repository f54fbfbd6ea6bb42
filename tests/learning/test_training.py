"""Splits, batches and the training loop."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from tests.learning.tiny import four_patches

import lograb
from lograb.archive.tables import join
from lograb.errors import LograbError
from lograb.instance import Instance
from lograb.learning.nodes.splits import SPLITS, Split, divide, make_split, seen_share, unseen_rows
from lograb.learning.patchset import patch_set
from lograb.ragged import owners


@pytest.fixture(scope="module")
def patches():
    graph = lograb.load_graph("superpixels", graph=0)
    return patch_set(lograb.generate(graph, d=1, p=0.25, k=8, sigma=0.05, seed=0))


def test_patch_set_is_what_to_pyg_lists(patches):
    pytest.importorskip("torch_geometric")
    instance = lograb.generate("superpixels", graph=0, d=1, p=0.25, k=8, sigma=0.05, seed=0)
    listed = lograb.to_pyg(instance)
    found = patch_set(instance)
    assert found.n_patches == len(listed)
    for i in (0, 7, len(listed) - 1):
        rows, data = slice(found.ptr[i], found.ptr[i + 1]), listed[i]
        assert np.array_equal(found.nodes[rows], data.n_id)
        assert np.array_equal(found.spectral[rows], data.spectral)
        assert np.allclose(found.features[found.nodes[rows]], data.x)
        assert found.centres[i] - found.ptr[i] == data.centre
        assert np.array_equal(found.labels[found.nodes[rows]], data.y)
        edges = found.edges[found.edge_ptr[i] : found.edge_ptr[i + 1]]
        assert {tuple(e) for e in edges} == {tuple(e) for e in data.edge_index.T.tolist() if e[0] < e[1]}


def test_many_graphs_lie_one_after_the_other():
    made = [lograb.generate("superpixels", graph=i, d=1, p=0.1, k=4) for i in range(2)]
    instance = Instance(made[0].manifest, join([one.tables for one in made]))
    whole = patch_set(instance)
    assert whole.n_nodes == instance.n_nodes
    assert whole.n_patches == instance.n_patches
    second = patch_set(instance[1])
    first = patch_set(instance[0])
    rows = slice(first.n_rows, first.n_rows + second.n_rows)
    assert np.array_equal(whole.nodes[rows], second.nodes + first.n_nodes)
    assert np.array_equal(whole.centres[first.n_patches : first.n_patches + second.n_patches],
                          second.centres + first.n_rows)  # fmt: skip
    assert np.array_equal(whole.labels[first.n_nodes :], second.labels)
    assert np.array_equal(whole.features[whole.nodes[rows]], second.features[second.nodes])


@pytest.mark.parametrize("name", SPLITS)
def test_splits_are_disjoint_and_complete(patches, name):
    split = make_split(patches, name, np.random.default_rng(0))
    assert ((split.train.astype(int) + split.valid + split.test) == 1).all()
    unit = owners(patches.ptr) if name == "patch" else patches.nodes
    sides = [set(unit[rows].tolist()) for rows in (split.train, split.valid, split.test)]
    assert not sides[0] & sides[1] | sides[0] & sides[2] | sides[1] & sides[2]
    total = sum(map(len, sides))
    assert [len(side) / total for side in sides] == pytest.approx([0.6, 0.2, 0.2], abs=0.01)


def test_what_training_has_seen_of_the_test(patches):
    by_node = make_split(patches, "node-disjoint", np.random.default_rng(0))
    assert seen_share(patches, by_node) == 0.0
    assert np.array_equal(unseen_rows(patches, by_node), by_node.test)
    by_patch = make_split(patches, "patch", np.random.default_rng(0))
    met = set(patches.nodes[by_patch.train])
    tested = set(patches.nodes[by_patch.test])
    assert seen_share(patches, by_patch) == pytest.approx(len(met & tested) / len(tested))
    assert seen_share(patches, by_patch) > 0.5


def test_unlabelled_nodes_are_left_out():
    labels = np.array([0, 1, 2, 0, -1, 1, -1, 0, 1, 2, 0, 1, 2, 0])
    split = make_split(four_patches(labels=labels), "node-disjoint", np.random.default_rng(0))
    assert not (split.train | split.valid | split.test)[[4, 6]].any()
    assert (split.train | split.valid | split.test).sum() == 12


def test_small_and_unknown_splits():
    assert [len(part) for part in divide(np.arange(3), np.random.default_rng(0))] == [1, 1, 1]
    with pytest.raises(LograbError, match="unknown split"):
        make_split(four_patches(), "nodes", np.random.default_rng(0))
    with pytest.raises(LograbError, match="at least 3 labelled nodes"):
        make_split(four_patches(labels=np.array([0, 1] + [-1] * 12)), "node-disjoint", np.random.default_rng(0))


class TestWithTorch:
    @pytest.fixture(autouse=True)
    def _needs_torch(self):
        pytest.importorskip("torch")
        pytest.importorskip("torch_geometric")

    @staticmethod
    def train(patches, name="gcn", seed=0, split=None, settings=None, **training):
        from lograb.learning.nodes.catalog import find_model
        from lograb.learning.nodes.encodings import encode
        from lograb.learning.nodes.settings import TrainingSettings
        from lograb.learning.nodes.training import train

        model = find_model(name)
        patches = encode(patches, model.encodings, np.random.default_rng(5))
        split = split or make_split(patches, "node-disjoint", np.random.default_rng(1))
        options = TrainingSettings(**({"epochs": 3} | training))
        trained = train(model, patches, split, np.random.default_rng(seed), options, settings)
        return trained, patches

    @pytest.mark.parametrize("name", ["gcn", "san-lappe", "gps"])
    def test_training_twice_gives_the_same(self, patches, name):
        import torch

        from lograb.learning.nodes.training import predict

        before = torch.get_rng_state()
        trained, encoded = self.train(patches, name, epochs=2)
        assert torch.equal(before, torch.get_rng_state())  # nothing is seeded for the caller
        assert not torch.are_deterministic_algorithms_enabled()
        torch.rand(3)
        again, _ = self.train(patches, name, epochs=2)
        other, _ = self.train(patches, name, epochs=2, seed=1)
        found = predict(trained.network, encoded)
        assert np.array_equal(found, predict(again.network, encoded))
        assert trained.losses == again.losses
        assert not np.array_equal(found, predict(other.network, encoded))

    def test_no_test_label_is_used(self, patches):
        from lograb.learning.nodes.training import predict

        split = make_split(patches, "node-disjoint", np.random.default_rng(1))
        labels = patches.labels.copy()
        tested = np.unique(patches.nodes[split.test])
        labels[tested] = (labels[tested] + 1) % patches.n_classes

        def results(split):
            # Long and impatient, with a best epoch somewhere in the middle.
            both = [self.train(replace(patches, labels=by), "gin", split=split, epochs=40, patience=4)[0]
                    for by in (patches.labels, labels)]  # fmt: skip
            return [one.best_epoch for one in both], [predict(one.network, patches) for one in both]

        epochs, scores = results(split)
        assert 1 < epochs[0] == epochs[1] < 36
        assert np.array_equal(*scores)
        # Who stopped by the test labels would be caught.
        epochs, scores = results(replace(split, valid=split.test))
        assert epochs[0] != epochs[1]
        assert not np.array_equal(*scores)

    def test_stops_early_and_keeps_the_best(self, patches):
        from lograb.learning.nodes.training import predict
        from lograb.metrics.classification import f1_scores

        split = make_split(patches, "node-disjoint", np.random.default_rng(1))
        trained, _ = self.train(patches, split=split, epochs=40, patience=3)
        assert trained.epochs < 40
        assert trained.best_epoch == trained.epochs - 3
        assert trained.valid_f1[trained.best_epoch - 1] == max(trained.valid_f1)
        answer = predict(trained.network, patches).argmax(axis=1)
        found = f1_scores(patches.labels[patches.nodes[split.valid]], answer[split.valid], patches.n_classes)
        assert found.micro == pytest.approx(max(trained.valid_f1))

    def test_progress_is_told(self, patches):
        from lograb.learning.nodes.catalog import find_model
        from lograb.learning.nodes.settings import TrainingSettings
        from lograb.learning.nodes.training import train

        told = []
        split = make_split(patches, "patch", np.random.default_rng(1))
        train(find_model("mlp"), patches, split, np.random.default_rng(0), TrainingSettings(epochs=2),
              progress=lambda *args: told.append(args))  # fmt: skip
        assert told == [("training mlp", 0, 2), ("training mlp", 1, 2)]

    def test_batches_are_the_patches(self, patches):
        import torch

        from lograb.learning.nodes.minibatches import Batches

        batches = Batches(patches, torch.device("cpu"))
        batch = batches.take(np.array([5, 2]))
        rows = np.r_[patches.ptr[5] : patches.ptr[6], patches.ptr[2] : patches.ptr[3]]
        assert batch.rows.tolist() == rows.tolist()
        assert np.array_equal(batch.spectral.numpy(), patches.spectral[rows])
        assert np.allclose(batch.features.numpy(), patches.features[patches.nodes[rows]])
        assert batch.inputs.shape == (len(rows), patches.n_inputs)
        assert batch.patch.tolist() == [0] * int(patches.sizes[5]) + [1] * int(patches.sizes[2])
        start = int(patches.sizes[5])
        wanted = {tuple(e) for e in patches.edges[patches.edge_ptr[5] : patches.edge_ptr[6]].tolist()}
        second = patches.edges[patches.edge_ptr[2] : patches.edge_ptr[3]] + start
        wanted |= {tuple(e) for e in second.tolist()}
        found = [tuple(e) for e in batch.edge_index.T.tolist()]
        assert len(found) == 2 * len(wanted)
        assert set(found) == wanted | {(b, a) for a, b in wanted}
        every = np.arange(patches.n_patches)
        for order in (batches.in_size_order(every), batches.shuffled(every, 32, np.random.default_rng(0))):
            seen = torch.cat([b.rows for b in order])
            assert sorted(seen.tolist()) == list(range(patches.n_rows))

    def test_sparse_features_are_the_same(self, patches, monkeypatch):
        import torch

        from lograb.learning.nodes import minibatches as module

        thin = replace(patches, features=sp.csr_array(patches.features))
        dense = module.Batches(patches, torch.device("cpu")).take(np.arange(4))
        monkeypatch.setattr(module, "DENSE_BYTES", 0)
        assert torch.equal(dense.features, module.Batches(thin, torch.device("cpu")).take(np.arange(4)).features)

    def test_embeddings_are_averaged_over_patches(self, patches):
        from lograb.learning.nodes.training import average_over_patches, node_embeddings, patch_embeddings

        trained, _ = self.train(patches, "sage", epochs=1)
        rows = patch_embeddings(trained.network, patches)
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)  # as printed: l2-normalised
        points = node_embeddings(trained.network, patches)
        node = int(patches.nodes[0])
        assert np.allclose(points[node], rows[patches.nodes == node].mean(axis=0), atol=1e-6)
        lonely = replace(patches, n_nodes=patches.n_nodes + 1)
        assert (average_over_patches(lonely, rows)[-1] == 0).all()

    def test_several_labels(self):
        from lograb.learning.nodes.training import predict

        rng = np.random.default_rng(0)
        patches = four_patches(labels=rng.random((14, 5)) < 0.4, n_features=16)
        rows = np.ones(14, dtype=bool)
        trained, _ = self.train(patches, "sage", split=Split("patch", rows, rows, rows), epochs=120, patience=120,
                                settings={"dropout": 0.0}, weight_decay=0.0)  # fmt: skip
        assert max(trained.valid_f1) > 0.9
        assert ((predict(trained.network, patches) > 0) == patches.labels).mean() > 0.85
