"""How fast instances are made: ratios within one run, because machines are noisy.

    python benchmarks/generation.py [cora] [citation] [large] [growth]

``cora`` needs the real data (LOGRAB_MIRROR or the cache); the others need nothing.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
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


def against_the_plain_loop(graph: Graph) -> None:
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
    observe(patches, induced_edges(patches, graph), InstanceSpec(strategy="custom"), rng, rng)


PARTS: dict[str, Callable[[], None]] = {
    "cora": lambda: against_the_plain_loop(lograb.load_graph("cora")),
    "citation": lambda: against_the_plain_loop(lograb.load_graph("citation")),
    "large": large,
    "growth": growth,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
