"""How fast instances are made: ratios within one run, because machines are noisy.

``cora`` needs the real data (LOGRAB_MIRROR or the cache); ``global`` takes Cora and PubMed in if LOGRAB_MIRROR is
set; the others need nothing.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from command import Part, parse

if __name__ == "__main__":
    run = parse(__doc__, {
        "cora": Part(lambda: against_the_plain_loop("cora"),
                     "Cora in patches, against networkx and numpy patch by patch", "~ 20 s"),
        "citation": Part(lambda: against_the_plain_loop("citation"), "the same on the generated graph", "30 s"),
        "large": Part(lambda: large(), "citation-170k into a file: seconds and memory", "~ 30 s"),
        "growth": Part(lambda: growth(), "cost per patch against the number of patches", "20 s"),
        "global": Part(lambda: whole_graphs(), "one embedding of a whole graph: seconds and memory", "~ 1 minute"),
    })  # fmt: skip

import networkx as nx
import numpy as np
from scipy.sparse.csgraph import connected_components
from threadpoolctl import threadpool_limits
from timing import seconds

import lograb
from lograb.types import Graph


def plain_loop(graph: Graph, d: int) -> None:
    """What one would write first: networkx and dense numpy, patch by patch."""
    other = nx.from_scipy_sparse_array(graph.adjacency.astype(float))
    for node in other:
        ego = nx.ego_graph(other, node, radius=d)
        np.linalg.eigh(nx.normalized_laplacian_matrix(ego).toarray())


def bare_lapack(graph: Graph, d: int) -> Callable[[], None]:
    """Prepare the eigenproblems alone, stacked by size, with nothing around them."""
    from lograb.observations.laplacian import Laplacians
    from lograb.patches import decompose, induced_edges
    from lograb.spec import InstanceSpec

    patches = decompose(graph, InstanceSpec(d=d), np.random.default_rng(0))
    stacks = [s for _, s in Laplacians.of(patches, induced_edges(patches, graph)).stacks(10**9, 1 << 26)]

    def solve() -> None:
        with threadpool_limits(1):
            for stack in stacks:
                np.linalg.eigh(stack)

    return solve


def against_the_plain_loop(source: str) -> None:
    graph = lograb.load_graph(source)
    for d in (1, 2):
        ours = seconds(lambda d=d: lograb.generate(graph, d=d, k=32), 5)
        lapack = seconds(bare_lapack(graph, d), 3)
        with threadpool_limits(1):  # kinder to the loop: small problems on many threads crawl
            loop = seconds(lambda d=d: plain_loop(graph, d), 1 if d == 2 else 2)
        print(f"{graph.name} d={d} p=1 k=32: ours {ours:.3f} s, plain loop {loop:.2f} s = {loop / ours:.1f} x, "
              f"bare LAPACK on one core {lapack:.3f} s: ours is {ours / lapack:.1f} x that")  # fmt: skip


def large() -> None:
    start = time.perf_counter()
    graph = lograb.load_graph("citation-170k")
    made = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.lograb"
        lograb.generate_file(graph, path, d=1, p=0.6, k=32)
        done = time.perf_counter()
        size = path.stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"citation-170k d=1 p=0.6 k=32: graph {made - start:.1f} s, instance {done - made:.1f} s, "
          f"peak memory {peak:.2f} GiB, file {size / 2**30:.2f} GiB")  # fmt: skip


def whole_graphs() -> None:
    """One embedding of a whole graph, each case in a process of its own so that its peak memory is its own."""
    cases = [("lattice", 32), ("molecules", 32), ("molecules", 1500), ("citation-170k", 32)]
    if os.environ.get("LOGRAB_MIRROR"):
        cases = [("cora", 32), ("cora", 128), ("pubmed", 32), *cases]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for name, k in cases:
            n, parts, wall, cpu, peak = pool.submit(observe_whole, name, k).result()
            print(f"{name}, {n:,} nodes in {parts:,} components, global k={k}: {wall:.1f} s, "
                  f"{cpu:.1f} s of processor time, peak memory {peak:.2f} GiB", flush=True)  # fmt: skip


def observe_whole(name: str, k: int) -> tuple[int, int, float, float, float]:
    """Make one global instance; returns nodes, components, seconds, processor seconds and peak memory."""
    graph = whole_graph(name)
    parts = int(connected_components(graph.adjacency, directed=False)[0])
    wall, cpu = time.perf_counter(), time.process_time()
    lograb.generate(graph, strategy="global", k=k)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return graph.n_nodes, parts, wall, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def whole_graph(name: str) -> Graph:
    """A lattice, on which Lanczos iteration stalls; all molecules as one graph; or a dataset."""
    if name == "lattice":
        lattice = nx.convert_node_labels_to_integers(nx.grid_2d_graph(150, 150))
        return Graph.from_edges(name, 22_500, list(lattice.edges))
    if name == "molecules":
        molecules = list(lograb.load_graphs(name))
        starts = np.cumsum([0] + [g.n_nodes for g in molecules])
        edges = [g.edges + start for g, start in zip(molecules, starts)]
        return Graph.from_edges(name, int(starts[-1]), np.concatenate(edges))
    return lograb.load_graph(name)


def growth() -> None:
    graph = lograb.load_graph("citation-170k")
    degrees = np.diff(graph.adjacency.indptr)
    usual = np.flatnonzero(degrees < 200)  # the few hubs would drown the trend
    nodes = np.random.default_rng(0).permutation(usual)
    base = None
    for count in (1_000, 10_000, 100_000):
        lists = [np.append(graph.adjacency.indices[graph.adjacency.indptr[v] : graph.adjacency.indptr[v + 1]], v)
                 for v in nodes[:count]]  # fmt: skip
        taken = seconds(lambda lists=lists: cut_and_observe(graph, lists), 1)
        base = base or taken / count
        print(f"{count:>7,} patches: {taken:.2f} s, {1e6 * taken / count:.0f} us per patch, "
              f"{taken / count / base:.2f} x the cost per patch at 1,000")  # fmt: skip


def cut_and_observe(graph: Graph, lists: list[np.ndarray]) -> None:
    from lograb.observations import observe
    from lograb.patches import induced_edges
    from lograb.spec import InstanceSpec
    from lograb.types import Patches

    patches = Patches.from_lists(graph.n_nodes, lists)
    rng = np.random.default_rng(0)
    observe(patches, induced_edges(patches, graph), InstanceSpec(strategy="custom"), rng, rng, rng)


if __name__ == "__main__":
    run()
