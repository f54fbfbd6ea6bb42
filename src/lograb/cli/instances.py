"""``lograb generate``, ``pack``, ``info`` and ``verify``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from lograb import pipeline
from lograb.cli.arguments import check_instance_name
from lograb.cli.output import notice, print_json, print_table, say, waiting
from lograb.cli.stopping import end, written
from lograb.errors import ArchiveError, LograbNotice
from lograb.graphs import load_graph
from lograb.graphs.download import file_sha256
from lograb.instance import Instance
from lograb.observations.own_files import read_embeddings
from lograb.types import Observations


def generate_instance(
    source: str, output: Path, *, no_truth: bool, no_eigenvalues: bool, json: bool, **parameters: Any
) -> None:
    """Write an instance and describe it; `parameters` are those of `lograb.generate`."""
    check_instance_name(output)
    with waiting("reading the graph") as progress:
        sha256 = pipeline.generate_file(
            source, output, truth=not no_truth, progress=progress, notify=notice,
            eigenvalues=not no_eigenvalues, **parameters,
        )  # fmt: skip
        written(output)
    summary = pipeline.load(output).summary() | {"sha256": sha256}
    defended = bool(parameters.get("defences"))
    if no_truth and parameters["sigma"] == 0 and not defended and summary["complete_share"] > 0:
        notice("without noise a complete spectrum gives its patch's edges exactly: add --sigma for a challenge.")
    if no_truth:
        notice(f"the seed {parameters['seed']} is not in the file: it reproduces the noise. Note it down if you "
               "need the instance again.")  # fmt: skip
        if (parameters["sigma"] > 0 or defended) and parameters["seed"] < 2**64:
            notice("a small seed can be found by trial; for a challenge draw one of 128 bits.")
    show_summary(summary, output, json)


def pack_embeddings(
    source: Path, output: Path, *, truth: str | None, laplacian: str, json: bool, **protocol: Any
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


def show_info(file: Path, json: bool) -> None:
    """Describe an instance."""
    instance = pipeline.load(file)
    summary = instance.summary() | {"sha256": file_sha256(file)}
    if json:
        manifest = instance.manifest
        summary |= {"origin": manifest.origin.model_dump(), "software": manifest.software}
        summary["members"] = {name: list(member.shape) for name, member in manifest.members.items()}
    show_summary(summary, file, json)


def verify_instance(file: Path, json: bool) -> None:
    """Check every byte, and that the parts fit each other; exit code 1 where they do not."""
    try:
        members, sha256 = len(pipeline.verify(file).members) + 2, file_sha256(file)
    except ArchiveError as error:
        if json:
            print_json({"file": file.name, "ok": False, "member": error.member, "error": str(error)})
        end(str(error), 1)
    if json:
        print_json({"file": file.name, "ok": True, "members": members, "sha256": sha256})
    else:
        say(f"{file}: all {members} members hold; SHA-256 {sha256}")


def show_summary(summary: dict[str, Any], path: Path, json: bool) -> None:
    """Print a summary as JSON or as a table."""
    if json:
        print_json(summary)
        return
    sizes = summary["patch_sizes"]
    shown = summary | {
        "patch_sizes": f"{sizes['min']} .. {sizes['max']}, median {sizes['median']:g}, mean {sizes['mean']:.1f}",
        "complete_share": f"{round(summary['complete_share'] * summary['n_patches']):,} of "
                          f"{summary['n_patches']:,} patches show their whole spectrum",
        "seed": None if summary["seed"] is None else str(summary["seed"]),
        "notices": "; ".join(summary["notices"]),
        "defences": "; ".join(summary["defences"]) or "none",
    }  # fmt: skip
    rows = [(key, _text(value)) for key, value in shown.items() if value not in (None, "") and key != "sha256"]
    print_table(str(path), ("what", "value"), rows, fold=("value",))
    print(f"SHA-256 {summary['sha256']}")


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)

