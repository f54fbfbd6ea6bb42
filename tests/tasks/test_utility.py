"""What defended embeddings are good for."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import lograb
from lograb.tasks.utility import RIDGE, logistic_regression


def test_logistic_regression_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    inputs, classes = rng.standard_normal((200, 5)), rng.integers(3, size=200)
    inputs[:, 0] += classes
    ours = inputs @ logistic_regression(inputs, np.eye(3)[classes])
    theirs = LogisticRegression(C=1 / (RIDGE * 200), fit_intercept=False, max_iter=1000, tol=1e-8)
    theirs = theirs.fit(inputs, classes).decision_function(inputs)
    ours, theirs = (x - x.mean(axis=1, keepdims=True) for x in (ours, theirs))
    assert np.allclose(ours, theirs, atol=0.02)


@pytest.fixture(scope="module")
def silos():
    return {text: lograb.generate("citation", strategy="cluster", clusters=60, k=16, defences=[text])
            for text in ("none", "rotate", "gaussian:sigma=0.1", "gaussian:epsilon=1")}  # fmt: skip


def test_noise_costs_utility(silos):
    told = {text: lograb.utility(instance, repeats=1) for text, instance in silos.items()}
    plain = told["none"]
    assert plain["accuracy"] > plain["without_embeddings"] + 0.05 > plain["majority"]
    assert plain["subspace"] == pytest.approx(1.0)
    assert told["rotate"]["subspace"] == pytest.approx(1.0)
    assert plain["subspace"] > told["gaussian:sigma=0.1"]["subspace"] > told["gaussian:epsilon=1"]["subspace"]
    assert told["gaussian:epsilon=1"]["subspace"] == pytest.approx(plain["subspace_chance"], abs=0.05)
    assert plain["clustering"] > 0.9 > told["gaussian:epsilon=1"]["clustering"]
    assert plain["accuracy"] > told["gaussian:epsilon=1"]["accuracy"]


def test_what_is_missing_is_none_or_said():
    told = lograb.utility(lograb.generate("karate", d=2, k=4), repeats=1)
    assert told["accuracy"] is None or 0 <= told["accuracy"] <= 1
    with pytest.raises(lograb.LograbError, match="instance"):
        lograb.utility("karate")


def test_several_graphs_and_pseudonyms():
    rng = np.random.default_rng(0)
    graphs = []
    for name in "ab":
        classes = np.arange(60) % 3
        linked = np.triu(rng.random((60, 60)) < np.where(classes[:, None] == classes, 0.3, 0.02), 1)
        graphs.append(lograb.Graph.from_edges(name, 60, np.argwhere(linked), labels=classes))
    told = lograb.utility(lograb.generate(graphs, d=1, k=4, defences=["pseudonyms"]), repeats=1)
    assert told["accuracy"] > told["majority"] + 0.2
