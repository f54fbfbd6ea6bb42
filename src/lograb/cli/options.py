"""Options that several commands share."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

SECRET = "secret"
"""Asks for a seed that nobody can guess: noise of one that can be guessed is no noise."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="An instance, as 'lograb generate' writes it.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show everything.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting.")]
Features = Annotated[bool, typer.Option("--features", help="Show the attacker the nodes' features too.")]

Page = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The page: a .html file.")]

# Where and how experiments run.
StoreFolder = Annotated[Path, typer.Option("--store", metavar="DIR", help="The folder that keeps all runs.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes on this machine [one per core].")]
Scheduler = Annotated[str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, for its workers.")]
Retry = Annotated[bool, typer.Option("--retry-failed", help="Run again what failed or was too slow.")]

# How an instance is made: options of every command that makes one.
Strategy = Annotated[str | None, typer.Option(help="d-hop, cluster, random, custom or global [d-hop].")]
Radius = Annotated[int, typer.Option("-d", help="Radius of a patch; for cluster, of its halo.")]
Observed = Annotated[float, typer.Option("-p", help="Fraction of nodes observed (custom: of lists).")]
Kept = Annotated[int, typer.Option("-k", help="Eigenvectors kept per patch.")]
Sigma = Annotated[float, typer.Option(help="Standard deviation of the noise.")]
Gauge = Annotated[str, typer.Option(help="What stays undetermined: sign, rotation or none.")]


def read_seed(text: str | int) -> int:
    """Read a seed: a number, or the word for one that nobody can guess."""
    if text == SECRET:
        return secrets.randbits(128)
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"a seed is a whole number, or '{SECRET}', got '{text}'") from None


Seed = Annotated[int, typer.Option(parser=read_seed, metavar="INTEGER|secret",
                                   help="All randomness follows from it; 'secret' draws one.")]  # fmt: skip
Clusters = Annotated[int | None, typer.Option(help="Number of clusters [by --cluster-size].")]
ClusterSize = Annotated[int | None, typer.Option(help="Observed nodes per cluster, about [50].")]
SeedNodes = Annotated[int | None, typer.Option(help="Number of random patches [half the nodes].")]
PatchFile = Annotated[Path | None, typer.Option("--patches", help="Your patches: table node,group; lists; JSON.")]
PatchesBy = Annotated[str | None, typer.Option(help="A node attribute to cut by, such as department.")]
Withheld = Annotated[bool, typer.Option("--no-eigenvalues", help="Withhold the eigenvalues.")]
Defence = Annotated[list[str] | None, typer.Option("--defence", metavar="NAME[:KEY=VALUE,...]",
                                                   help="A defence; repeatable.")]  # fmt: skip
Releases = Annotated[int, typer.Option(min=1, help="Releases with fresh noise, which the attacker averages.")]
Precision = Annotated[str, typer.Option(metavar="TYPE|BITS", help="What numbers are rounded to: float32, 12 ...")]
Header = Annotated[bool | None, typer.Option(help="Whether an edge list has a header [found out].")]
Which = Annotated[int | None, typer.Option("--graph", help="Which graph of a dataset that holds many [all].")]


def given(context: typer.Context, names: Iterable[str]) -> list[str]:
    """List those of the options with these names that the user wrote, as they are written."""
    sources = {name: context.get_parameter_source(name) for name in names}
    wrote = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    return [option.opts[0] for option in context.command.params if option.name in wrote]
