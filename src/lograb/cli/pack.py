"""``lograb pack``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from lograb.cli.arguments import check_instance_name
from lograb.cli.instances import show_summary
from lograb.cli.output import notice
from lograb.cli.stopping import written
from lograb.errors import LograbNotice
from lograb.graphs import load_graph
from lograb.instance import Instance
from lograb.observations.own_files import read_embeddings
from lograb.types import Observations


def pack_embeddings(
    source: Path, output: Path, truth: str | None, laplacian: str, protocol: dict[str, Any], *, json: bool
) -> None:
    """Write embeddings that were made elsewhere as an instance, and describe it."""
    check_instance_name(output)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LograbNotice)
        seen = Observations.from_arrays(**read_embeddings(source), laplacian=laplacian, **protocol)
        graph = None if truth is None else load_graph(truth)
        instance = Instance.from_observations(seen, graph, name=source.stem)
    told = [str(one.message) for one in caught if issubclass(one.category, LograbNotice)]
    if laplacian != "symmetric":
        told.append(f"converted from laplacian='{laplacian}' to the symmetric normalised Laplacian")
    notices = tuple(dict.fromkeys([*instance.manifest.notices, *told]))
    for text in notices:
        notice(text)
    packed = Instance(instance.manifest.model_copy(update={"notices": notices}), instance.tables)
    sha256 = packed.save(output)
    written(output)
    unknown = ("seed", "p", "clusters", "cluster_size", "seed_nodes")
    summary = {key: value for key, value in packed.summary().items() if json or key not in unknown}
    show_summary({"seed": None} | summary | {"sha256": sha256}, output, json)
    if not json:
        notice(f"what does it reveal? lograb attack {output} --method posterior")
