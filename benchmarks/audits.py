"""Whether an audit without the truth says what one with the truth says: one row per graph."""

from __future__ import annotations

from typing import Any

from command import Part, parse

if __name__ == "__main__":
    run = parse(__doc__, {
        "seen": Part(lambda: agreement(SEEN), "kinds that were looked at when the interval was chosen",
                     "~ 2 minutes"),
        "unseen": Part(lambda: agreement(UNSEEN), "kinds that were not", "~ 2 minutes"),
        "real": Part(lambda: agreement(REAL), "public datasets, which must be at hand (LOGRAB_MIRROR or cache)",
                     "~ 10 minutes"),
    })  # fmt: skip

import tempfile

import networkx as nx

import lograb

EGO, BALLS, SILOS, WHOLE = ({"d": 1}, {"d": 2}, {"strategy": "cluster", "d": 0}, {"strategy": "global"})
SEEN: list[tuple[str, Any, dict[str, Any]]] = [
    ("karate", nx.karate_club_graph, EGO),
    ("characters of a novel", nx.les_miserables_graph, SILOS),
    ("women at events", nx.davis_southern_women_graph, BALLS),
    ("marriages", nx.florentine_families_graph, WHOLE),
    ("ring", lambda: nx.circulant_graph(200, [1, 2, 5]), SILOS),
    ("grid", lambda: nx.convert_node_labels_to_integers(nx.grid_2d_graph(12, 15)), BALLS | {"k": 8}),
    ("tree", lambda: nx.balanced_tree(3, 4), BALLS | {"sigma": 0.1}),
    ("duplication", lambda: nx.duplication_divergence_graph(200, 0.45, seed=3), SILOS | {"k": 8}),
    ("neighbours in the plane", lambda: nx.random_geometric_graph(200, 0.12, seed=5), SILOS | {"sigma": 0.05}),
    ("hubs", lambda: nx.dual_barabasi_albert_graph(200, 1, 4, 0.6, seed=4), EGO | {"sigma": 0.3}),
    ("windmill", lambda: nx.windmill_graph(20, 5), WHOLE | {"k": 16}),
    ("blocks", lambda: nx.gaussian_random_partition_graph(200, 25, 6, 0.3, 0.01, seed=6), SILOS),
    ("cliques on a path", lambda: nx.connected_caveman_graph(20, 8), SILOS | {"sigma": 0.1}),
    ("citation", lambda: "citation", SILOS),
]
UNSEEN: list[tuple[str, Any, dict[str, Any]]] = [
    ("internet", lambda: nx.random_internet_as_graph(200, seed=1), EGO),
    ("lobster", lambda: nx.convert_node_labels_to_integers(nx.random_lobster(60, 0.6, 0.5, seed=2)), BALLS),
    ("Waxman", lambda: nx.waxman_graph(150, 0.6, 0.1, seed=3), SILOS),
    ("hypercube", lambda: nx.convert_node_labels_to_integers(nx.hypercube_graph(7)), SILOS),
    ("barbell", lambda: nx.barbell_graph(15, 10), BALLS | {"sigma": 0.1}),
    ("Turan", lambda: nx.turan_graph(40, 5), WHOLE | {"k": 8}),
    ("Mycielski", lambda: nx.mycielski_graph(6), WHOLE | {"k": 16}),
    ("communities", lambda: nx.Graph(nx.LFR_benchmark_graph(250, 3, 1.5, 0.1, average_degree=6, min_community=20,
                                                            seed=10)), SILOS | {"k": 8}),
    ("soft plane", lambda: nx.soft_random_geometric_graph(150, 0.2, seed=4), SILOS | {"sigma": 0.1}),
    ("common interests", lambda: nx.general_random_intersection_graph(120, 40, [0.05] * 40, seed=5), BALLS),
    ("triangles of a lattice", lambda: nx.convert_node_labels_to_integers(nx.triangular_lattice_graph(10, 16)),
     WHOLE | {"k": 12, "sigma": 0.02}),
    ("power-law degrees", lambda: nx.expected_degree_graph([40 / (i + 1) ** 0.6 for i in range(180)], seed=6,
                                                           selfloops=False), SILOS | {"eigenvalues": False}),
]  # fmt: skip
REAL = [
    ("cora, neighbourhoods", lambda: "cora", EGO),
    ("cora, silos", lambda: "cora", SILOS),
    ("citeseer, silos", lambda: "citeseer", SILOS),
    ("citeseer, silos, noise", lambda: "citeseer", SILOS | {"sigma": 0.05}),
    *((f"proteins/{i}", lambda i=i: lograb.load_graph("proteins", graph=i), WHOLE) for i in (0, 5, 9)),
    *((f"msrc-21/{i}", lambda i=i: lograb.load_graph("msrc-21", graph=i), BALLS | {"k": 16}) for i in (0, 7)),
]  # fmt: skip


NOTHING = {"allow": []}
"""A policy that recommends nothing, and so draws nothing more than once: both audits see the same draw."""


def agreement(rows: list[tuple[str, Any, dict[str, Any]]]) -> None:
    """Audit each instance twice, and say of how many settings the interval holds the truth."""
    print("| graph | patches | share read | estimate | interval | settings that agree |")
    print("|---|---|---|---|---|---|")
    agreed = settings = 0
    for name, make, parameters in rows:
        instance = lograb.generate(make(), **{"k": 32} | parameters)
        with tempfile.TemporaryDirectory() as folder:
            instance.save(f"{folder}/shared.lograb", truth=False)
            blind = lograb.audit(f"{folder}/shared.lograb", quick=True, policy=NOTHING).findings["settings"]
        known = {row["id"]: row for row in lograb.audit(instance, quick=True, policy=NOTHING).findings["settings"]}
        pairs = [(known[row["id"]]["share"], row["share_interval"]) for row in blind if row["status"] == "done"]
        fine = sum(low - 1e-9 <= share <= high + 1e-9 for share, (low, high) in pairs)
        agreed, settings = agreed + fine, settings + len(pairs)
        share, (low, high) = pairs[0]
        mark = "" if low - 1e-9 <= share <= high + 1e-9 else " (missed)"
        print(f"| {name} | {instance.n_patches:,} | {share:.3f} | {blind[0]['share']:.3f} | {low:.3f} .. "
              f"{high:.3f}{mark} | {fine} of {len(pairs)} |", flush=True)  # fmt: skip
    print(f"\n{agreed} of {settings} settings agree.")


if __name__ == "__main__":
    run()
