"""Small graphs of many kinds. Ring and windmill made the audit's intervals wider than they had been."""

import networkx as nx


def kinds():
    """Name graphs and how each is shared."""
    ring = nx.circulant_graph(60, [1, 2, 5])
    ladder = nx.convert_node_labels_to_integers(nx.grid_2d_graph(6, 10))
    return {
        "karate": (nx.karate_club_graph(), {"scenario": "ego"}),
        "novel": (nx.les_miserables_graph(), {"scenario": "silos"}),
        "women": (nx.davis_southern_women_graph(), {"scenario": "ego", "d": 2}),
        "families": (nx.florentine_families_graph(), {"scenario": "global"}),
        "ring": (ring, {"scenario": "silos"}),
        "grid": (ladder, {"scenario": "ego", "d": 2, "k": 8}),
        "tree": (nx.balanced_tree(2, 5), {"scenario": "ego", "d": 2, "sigma": 0.1}),
        "lollipop": (nx.lollipop_graph(12, 20), {"scenario": "ego"}),
        "duplication": (nx.duplication_divergence_graph(70, 0.45, seed=3), {"scenario": "silos", "k": 8}),
        "threshold": (nx.random_geometric_graph(70, 0.2, seed=5), {"scenario": "silos", "sigma": 0.05}),
        "hubs": (nx.dual_barabasi_albert_graph(80, 1, 4, 0.6, seed=4), {"scenario": "ego", "sigma": 0.3}),
        "windmill": (nx.windmill_graph(9, 5), {"scenario": "global", "k": 16}),
        "blocks": (nx.gaussian_random_partition_graph(80, 16, 4, 0.35, 0.02, seed=6), {"scenario": "silos"}),
    }  # fmt: skip
