"""PointNetLK: registration without correspondences, and what it cannot do."""

import numpy as np
import pytest
from scipy.linalg import expm
from tests.attacks.clouds import cut_cloud, rng

from lograb.attacks.baselines import pointnetlk
from lograb.attacks.baselines.pointnetlk import (
    Network,
    PointNetLK,
    exponential,
    generators,
    move,
    register,
)


def test_exponential_and_generators():
    for dim in (1, 2, 3, 5):
        basis = generators(dim)
        assert len(basis) == dim * (dim + 1) // 2
        twists = np.tensordot(3 * rng(dim).standard_normal((7, len(basis))), basis, axes=1)
        assert np.abs(exponential(twists) - np.stack([expm(t) for t in twists])).max() < 1e-9


def test_point_network_ignores_order_and_repetition():
    network = Network.random(3, (16, 32), rng())
    cloud = rng(1).standard_normal((20, 3))
    again = np.concatenate([cloud[rng(2).permutation(20)], cloud[:3]])
    assert np.abs(network(cloud) - network(again)).max() < 1e-12


@pytest.mark.parametrize("reflected", [False, True])
def test_registration_finds_a_small_motion_without_correspondences(reflected):
    draw = rng(4)
    source = draw.standard_normal((8, 40, 3))
    motion = exponential(np.tensordot(0.15 * draw.standard_normal((8, 6)), generators(3), axes=1))
    if reflected:
        motion = motion @ np.diag([1.0, -1.0, 1.0, 1.0])
    template = move(motion, source)[:, draw.permutation(40)]
    settings = PointNetLK(iterations=40, reflections=reflected)
    network = Network.random(3, settings.widths, rng())
    found, residual, before = register(template, source, (np.full(8, 40), np.full(8, 40)), network, settings)
    off = np.abs(move(found, source) - move(motion, source)).max(axis=(1, 2))
    assert np.median(off) < 1e-3
    assert (residual <= before + 1e-12).all()


def test_rigid_motions_cannot_undo_a_reflection():
    draw = rng(4)
    source = draw.standard_normal((8, 40, 3))
    template = source * np.array([1.0, -1.0, 1.0])
    network = Network.random(3, (64, 64, 128), rng())
    sizes = (np.full(8, 40), np.full(8, 40))
    mirrored, rigid = (register(template, source, sizes, network, PointNetLK(reflections=r))[1]
                       for r in (True, False))  # fmt: skip
    assert (mirrored < 1e-9).all()
    assert (rigid > 1).all()


def test_pointnetlk_assembles_a_chain_of_identical_frames():
    cloud = rng(1).standard_normal((60, 3))
    seen = cut_cloud([cloud], 12, 55)
    rows, component, report = pointnetlk.align(seen, rng(), PointNetLK(skip=0))
    assert rows.shape == (len(seen.nodes), 3)
    assert (component == 0).all()
    assert report["pairs_aligned"] == 11
    assert report["mean_feature_residual"] <= report["mean_feature_residual_before"]
