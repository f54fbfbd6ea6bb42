"""Instances of the real public graphs (needs a mirror; see conftest)."""

import pytest

import lograb
from lograb import verify
from lograb.archive import container
from lograb.errors import ArchiveError

CASES = {
    "cora": ({"d": 1}, 1625),
    "citeseer-cluster": ({"strategy": "cluster"}, 40),
    "citeseer-random": ({"strategy": "random"}, 998),
    "proteins": ({"d": 1}, None),
}


@pytest.mark.parametrize("case", CASES)
def test_real_instances_are_reproducible_and_verified(mirror, tmp_path, case):
    parameters, n_patches = CASES[case]
    source, path = case.split("-")[0], tmp_path / "x.lograb"
    lograb.generate_file(source, path, p=0.6, k=32, sigma=0.05, seed=0, **parameters)
    first = path.read_bytes()
    lograb.generate_file(source, path, p=0.6, k=32, sigma=0.05, seed=0, **parameters)
    assert path.read_bytes() == first
    verify(path)
    instance = lograb.load(path)
    if n_patches is not None:
        assert instance.n_patches == n_patches
    with path.open("rb") as file:
        entry = container.read_directory(file)[0]["observations/vectors.npy"]
    damaged = bytearray(first)
    damaged[(entry.start + entry.stop) // 2] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(ArchiveError, match="observations/vectors.npy"):
        verify(path)


def test_large_real_patches_have_the_right_spectrum(mirror):
    """BlogCatalog's largest ego network goes to the sparse solver; check it against its definition."""
    import numpy as np

    graph = lograb.load_graph("blogcatalog")
    hub = int(np.argmax(np.diff(graph.adjacency.indptr)))
    ball = np.append(graph.adjacency[[hub]].indices, hub)
    seen = lograb.generate(graph, strategy="custom", patches=[ball], k=32).observations
    assert seen.sizes[0] == 3993
    nodes = seen.members(0)
    inner = graph.adjacency[nodes][:, nodes].astype(float)
    scale = 1 / np.sqrt(inner.sum(axis=1))
    vectors, values = seen.block(0), seen.spectrum(0)
    product = vectors - scale[:, None] * (inner @ (scale[:, None] * vectors))
    assert np.allclose(product, vectors * values, atol=1e-9)
    assert np.allclose(vectors.T @ vectors, np.eye(32), atol=1e-9)
    assert seen.next_values[0] >= values[-1]
