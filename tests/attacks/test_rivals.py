"""Eigen-sync, Local2Global and PointNetLK: what their answers may and may not depend on."""

import json

import numpy as np
import pytest
from tests.attacks.clouds import by_pair, odd_inputs, orthogonal, pack, rng, same_answer, unpack

from lograb.attacks.baselines.eigen_sync import EigenSync
from lograb.attacks.baselines.local2global import Local2Global
from lograb.attacks.baselines.pointnetlk import PointNetLK
from lograb.errors import LograbError

SETTINGS = {
    "eigen-sync": EigenSync,
    "local2global": Local2Global,
    "pointnetlk": PointNetLK,
}
RIVALS = {name: attack() for name, attack in SETTINGS.items()}


def flip(seen, seed=5):
    members, blocks = unpack(seen)
    draw = rng(seed)
    return pack(seen.n_nodes, members, [b * draw.choice([-1.0, 1.0], b.shape[1]) for b in blocks])


@pytest.mark.parametrize("name", RIVALS)
def test_signs_do_not_matter(name, noisy):
    same_answer(RIVALS[name](noisy, rng()), RIVALS[name](flip(noisy), rng()))


@pytest.mark.parametrize("name", RIVALS)
def test_the_rule_of_output_is_a_setting(name, noisy):
    patches = [set(m.tolist()) for m in unpack(noisy)[0]]
    ten, three, shared = (
        SETTINGS[name](**rule)(noisy, rng()) for rule in ({}, {"top_k": 3}, {"candidates": "shared"})
    )
    assert by_pair(three).items() < by_pair(ten).items()
    assert all(any({u, w} <= patch for patch in patches) for u, w in shared.edges.tolist())
    assert not all(any({u, w} <= patch for patch in patches) for u, w in ten.edges.tolist())


@pytest.mark.parametrize("name", ["eigen-sync", "local2global"])
def test_rotations_do_not_matter_with_polar_rounding(name, noisy):
    members, blocks = unpack(noisy)
    draw = rng(6)
    turned = pack(noisy.n_nodes, members, [b @ orthogonal(b.shape[1], draw) for b in blocks])
    settings = SETTINGS[name](rounding="polar")
    same_answer(settings(noisy, rng()), settings(turned, rng()))


@pytest.mark.parametrize("name", RIVALS)
def test_names_of_nodes_do_not_matter(name, noisy):
    new = rng(7).permutation(noisy.n_nodes)
    members, blocks = unpack(noisy)
    one = RIVALS[name](noisy, rng())
    other = RIVALS[name](pack(noisy.n_nodes, [new[m] for m in members], blocks), rng())
    renamed = {tuple(sorted(new[list(e)].tolist())): s for e, s in by_pair(one).items()}
    found = by_pair(other)
    assert renamed.keys() == found.keys()
    assert max(abs(renamed[e] - found[e]) for e in found) < 1e-5
    assert (other.islands[new] == one.islands).all()


@pytest.mark.parametrize("name", RIVALS)
def test_the_same_seed_gives_the_same_answer(name, noisy):
    one, other = RIVALS[name](noisy, rng(3)), RIVALS[name](noisy, rng(3))
    assert (one.edges == other.edges).all()
    assert (one.scores == other.scores).all()
    assert one.diagnostics == other.diagnostics
    json.dumps(one.diagnostics, allow_nan=False)


@pytest.mark.parametrize("name", RIVALS)
@pytest.mark.parametrize("seen", [pytest.param(s, id=what) for what, s in odd_inputs()])
def test_odd_inputs_give_valid_answers(name, seen):
    answer = RIVALS[name](seen, rng())
    assert answer.nodes.tolist() == sorted(set(seen.nodes.tolist()))
    assert np.isfinite(answer.scores).all()
    assert np.isin(answer.edges, answer.nodes).all()
    assert ((answer.islands >= 0) == np.isin(np.arange(seen.n_nodes), seen.nodes)).all()
    json.dumps(answer.diagnostics, allow_nan=False)
    if seen.n_patches == 0 or seen.sizes.max() <= 1:
        assert len(answer.edges) == 0


@pytest.mark.parametrize(("name", "bad"), [
    ("eigen-sync", {"neighbours": 0}), ("eigen-sync", {"rounding": "svd"}), ("eigen-sync", {"tolerance": 0}),
    ("local2global", {"min_overlap": 1}), ("local2global", {"unknown": 1}),
    ("pointnetlk", {"dim": 6}), ("pointnetlk", {"widths": ()}), ("pointnetlk", {"delta": 0}),
])  # fmt: skip
def test_settings_refuse_what_makes_no_sense(name, bad):
    with pytest.raises(LograbError):
        SETTINGS[name](**bad)
