"""``lograb compare``: attacks side by side."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Any

import typer

from lograb import pipeline
from lograb.cli.arguments import parse_methods
from lograb.cli.board import board, show_comparison
from lograb.cli.options import given
from lograb.cli.output import notice, print_json
from lograb.cli.stopping import written
from lograb.errors import LograbError
from lograb.report import check_table_name


def compare_attacks(
    context: typer.Context, source: str, methods: str | None, output: Path | None, *, seeds: int, features: bool,
    no_eigenvalues: bool, json: bool, **parameters: Any,
) -> None:  # fmt: skip
    """Run attacks on an instance, or on an instance per seed of a graph, and print them side by side."""
    if output is not None:
        check_table_name(output)
    attacks = None if methods is None else parse_methods(methods)
    subject: Any = source
    parameters["eigenvalues"] = not no_eigenvalues
    if Path(source).suffix.lower() == ".lograb":
        if wrote := given(context, (*parameters, "no_eigenvalues")):
            raise LograbError(f"'{source}' is an instance and has its parameters, got {', '.join(wrote)} as well: "
                              "name the graph instead of the instance to choose them here")  # fmt: skip
        subject, parameters = pipeline.load(source), {}
    with board(seeds, quiet=json) as (progress, finished):
        table = pipeline.compare(subject, attacks, seeds=seeds, features=features, progress=progress,
                                 finished=finished, **parameters)  # fmt: skip
    if all(method.problem for method in table.methods):
        raise LograbError(f"no attack could run: {table.methods[0].problem}")
    if output is not None:
        page = partial(table.to_html, command=shlex.join(["lograb", *sys.argv[1:]]))
        write = {".md": table.to_markdown, ".tex": table.to_latex}.get(output.suffix.lower(), page)
        write(output)
        written(output)
        notice(f"the comparison is in '{output}'")
    if json:
        print_json(table.to_dict() | {"best": table.best.name})
    else:
        show_comparison(table)
