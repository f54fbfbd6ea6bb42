"""How kernels become edges: degrees per component, what noise hides, and claims wherever a patch is core."""

import dataclasses

import networkx as nx
import numpy as np
import pytest

import lograb
from lograb.attacks import Afr, HeatKernel
from lograb.attacks.afr.core import fidelity
from lograb.attacks.afr.kernel import damping
from lograb.attacks.afr.settings import AfrSettings
from lograb.attacks.thresholds import components, margins


def one_patch(graph, sigma=0.0, seed=0):
    return lograb.generate(graph, strategy="global", k=graph.number_of_nodes(), sigma=sigma, seed=seed)


def stars(number, alone=0):
    """Disjoint stars of four nodes, and nodes without neighbours."""
    return nx.disjoint_union_all([nx.star_graph(3)] * number + [nx.empty_graph(1)] * alone)


@pytest.mark.parametrize("attack", [Afr, HeatKernel])
@pytest.mark.parametrize("alone", [0, 3])
def test_degrees_are_scaled_by_component(attack, alone):
    instance = one_patch(stars(4, alone))
    answer = lograb.attack(instance, attack(threshold="half-edge", top_k=None))
    assert np.array_equal(answer.edges, instance.truth.edges)


@pytest.mark.parametrize("seed", range(3))
def test_many_components_under_noise_are_kept_apart(seed):
    instance = one_patch(stars(10), 0.05, seed)
    answer = lograb.attack(instance, HeatKernel(threshold="half-edge", top_k=None))
    assert (answer.edges // 4)[:, 0].tolist() == (answer.edges // 4)[:, 1].tolist()
    assert lograb.evaluate(instance, answer).f1 > 0.85


def test_components_are_those_of_the_graph():
    graph = nx.disjoint_union_all([nx.path_graph(5), nx.complete_graph(4), nx.empty_graph(2), nx.star_graph(6)])
    seen = one_patch(graph).observations
    vectors, still = seen.block(0), seen.spectrum(0) < 1e-9
    found = components((vectors * still)[None], int(still.sum()))[0]
    expected = {frozenset(part) for part in nx.connected_components(graph)}
    assert {frozenset(np.flatnonzero(found == part).tolist()) for part in np.unique(found)} == expected


@pytest.mark.parametrize("sigma", [0.0, 0.05, 0.3])
def test_the_noise_rule_claims_as_many_pairs_as_a_patch_has_edges_at_least(sigma):
    for seed in range(5):
        graph = nx.gnp_random_graph(25, 0.12, seed=seed)
        graph.remove_edges_from(list(graph.edges(0)))  # one member at least has no neighbour
        seen = one_patch(graph, sigma, seed).observations
        vectors, values = seen.block(0)[None], seen.spectrum(0)[None]
        kernel = (vectors * np.exp(-0.8 * values)[:, None, :]) @ vectors.swapaxes(1, 2)
        claimed = np.triu(margins(kernel, vectors, values, 0.8, "noise")[0] >= 1, 1)
        assert claimed.sum() >= 25 - nx.number_connected_components(graph)
        assert np.allclose(claimed, np.triu(margins(3 * kernel, vectors, values, 0.8, "noise")[0] >= 1, 1))


@pytest.mark.parametrize("sigma", [0.0, 0.3])
def test_a_patch_without_edges_claims_none(sigma):
    assert not len(lograb.attack(one_patch(nx.empty_graph(12), sigma), Afr()).edges)


def test_the_last_pair_is_dropped_where_it_is_one_of_a_kind():
    star, clique = nx.star_graph(5), nx.complete_graph(6)  # eigenvalues 0 1 1 1 1 2, and 0 then 1.2 five times
    for graph, dropped in ((star, True), (clique, False)):
        seen = one_patch(graph).observations
        kept, cut = damping(seen, 0.8, drop_last=False), damping(seen, 0.8, drop_last=True)
        assert np.allclose(kept, np.exp(-0.4 * seen.values))
        assert np.array_equal(kept[:-1], cut[:-1])
        assert (cut[-1] == 0) == dropped
    truncated = lograb.generate(star, strategy="global", k=5).observations
    assert damping(truncated, 0.8, drop_last=True).all()


def test_used_everywhere_the_last_pair_makes_gap_and_residual_finite():
    seen = one_patch(nx.star_graph(5)).observations
    everywhere = fidelity(seen, np.zeros(1), AfrSettings(drop_last="everywhere"))
    assert everywhere.gap[0] == pytest.approx(2 - 1)
    assert everywhere.residual[0] == pytest.approx(np.exp(-0.8 * 2))
    kernel = fidelity(seen, np.zeros(1), AfrSettings())
    assert (kernel.gap[0], kernel.residual[0]) == (np.inf, 0)


# None of these was looked at when the constants of the rule were chosen.
UNSEEN = {
    "dense": lambda: nx.complete_multipartite_graph(5, 6, 7),
    "clique": lambda: nx.complete_graph(25),
    "rings of cliques": lambda: nx.ring_of_cliques(6, 12),
    "sparse": lambda: nx.random_lobster(60, 0.5, 0.4, seed=3),
    "tree": lambda: nx.full_rary_tree(3, 60),
    "hubs": lambda: nx.dorogovtsev_goltsev_mendes_graph(4),
    "windmill": lambda: nx.windmill_graph(8, 4),
    "people": nx.les_miserables_graph,
    "hexagons": lambda: nx.hexagonal_lattice_graph(5, 5),
    "cube": lambda: nx.hypercube_graph(5),
    "torus": lambda: nx.grid_2d_graph(6, 7, periodic=True),
    "small": nx.icosahedral_graph,
    "smaller": nx.bull_graph,
    "one edge": lambda: nx.path_graph(2),
    "clubs": nx.davis_southern_women_graph,
    "bells": lambda: nx.barbell_graph(18, 6),
    "intervals": lambda: nx.circulant_graph(40, [1, 2, 3, 5]),
    "wheel": lambda: nx.wheel_graph(30),
    "dense and random": lambda: nx.gnp_random_graph(40, 0.7, seed=11),
}
CUTS = [{"d": 1}, {"d": 1, "sigma": 0.05}, {"d": 1, "k": 8, "sigma": 0.1}, {"d": 2, "sigma": 0.05},
        {"strategy": "cluster", "cluster_size": 20, "sigma": 0.05}, {"strategy": "global"}]  # fmt: skip


@pytest.mark.parametrize("name", UNSEEN)
def test_afr_claims_edges_wherever_a_patch_is_core_and_else_says_why(name):
    graph = nx.convert_node_labels_to_integers(UNSEEN[name]())
    bare = nx.Graph(graph.edges())
    for cut in CUTS:
        instance = lograb.generate(bare, **cut)
        answer = lograb.attack(instance, "afr")
        told = answer.diagnostics
        if told["core_patches"]:
            assert len(answer.edges), cut
            assert lograb.evaluate(instance, answer).precision >= nx.density(bare), cut
            assert "nothing_claimed" not in told
        else:
            assert not len(answer.edges)
            assert f"none of {instance.observations.n_patches} patches is core" in told["nothing_claimed"]
            assert sum(told["not_core"].values()) >= instance.observations.n_patches


def test_patches_that_are_too_large_are_a_reason_not_to_be_core():
    seen = lograb.generate("karate", d=1, k=40).observations
    told = lograb.attack(seen, Afr(q_max=2)).diagnostics
    assert told["not_core"] == {"fidelity below 0.6": 0, "gap below 0.1": 0,
                                "too many members": int((seen.sizes > 2).sum())}  # fmt: skip


def test_the_answer_does_not_depend_on_the_scale_of_the_noise_rule_but_on_its_entries():
    """A fixed threshold does: weaker embeddings pass it no more."""
    instance = lograb.generate("karate", d=1, k=40, sigma=0.02)
    weak = dataclasses.replace(instance.observations, vectors=0.3 * instance.observations.vectors)
    plain, scaled = (lograb.attack(seen, "heat-kernel") for seen in (instance.observations, weak))
    assert np.array_equal(plain.edges, scaled.edges)
    assert len(lograb.attack(weak, HeatKernel(threshold="fixed")).edges) < len(plain.edges)
