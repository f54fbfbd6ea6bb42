"""Make up an organisation of 300 people in 8 departments, and see what its embeddings would tell.

Writes organisation.csv and departments.csv into the folder that is named; the sample page in docs is made so:

    python examples/organisation.py .
    lograb audit organisation.csv --patches departments.csv -o audit-sample.html
"""

import csv
import sys
import tempfile
from pathlib import Path

import networkx as nx
import numpy as np

import lograb

FIRST = ("Ada Bruno Chloé Dragan Elif Farah Gösta Hana Ines Jonas Kofi Lena Milan Noor Oskar Priya Quentin Rosa "
         "Sven Thea Umut Vera Wim Xenia Yara Zoltán")  # fmt: skip
LAST = "Abel Berg Costa Dahl Engel Fuchs Gallo Horn Ivanova Jung Klein Lind"
UNITS = {"Research": 52, "Production": 60, "Sales": 48, "Finance": 28, "IT": 36, "Legal": 20, "HR": 24,
         "Design": 32}  # fmt: skip

names = [f"{first} {last}" for first in FIRST.split() for last in LAST.split()]
names = np.random.default_rng(7).permutation(names)[: sum(UNITS.values())].tolist()
units = [unit for unit, size in UNITS.items() for _ in range(size)]
known = [[0.12 if a == b else 0.0045 for b in UNITS] for a in UNITS]  # how often people know each other
graph = nx.stochastic_block_model(list(UNITS.values()), known, seed=7)
graph.add_edges_from([(node, node - 1) for node in list(nx.isolates(graph))])

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
with (folder / "organisation.csv").open("w", newline="", encoding="utf-8") as file:
    csv.writer(file).writerows((names[u], names[v]) for u, v in graph.edges)
with (folder / "departments.csv").open("w", newline="", encoding="utf-8") as file:
    csv.writer(file).writerows([("node", "department"), *zip(names, units, strict=True)])

found = lograb.audit(folder / "organisation.csv", patches=folder / "departments.csv", quick=True).findings
print(found["answer"]["headline"])
print(found["recommendation"]["sentence"])
