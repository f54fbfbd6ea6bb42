"""The ``lograb`` command. Heavy imports wait until a command needs them."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from lograb.errors import ArchiveError, LograbError

app = typer.Typer(
    name="lograb",
    help="What do shared spectral embeddings of local subgraphs reveal about who is connected to whom?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="An instance, as written by 'lograb generate'.")]


def main() -> None:
    """Run the command line; a user's mistake becomes one line on stderr and exit code 2."""
    # A polite kill unwinds like an error, so that temporary files go.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        app()
    except LograbError as error:
        typer.echo(f"lograb: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)


def _version(show: bool) -> None:
    if show:
        from lograb import __version__

        typer.echo(f"lograb {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")]
    = False,
) -> None:
    pass


@app.command("list")
def list_command(
    kind: Annotated[str | None, typer.Argument(help="Which catalog; all of them by default.")] = None,
    json: Json = False,
) -> None:
    """Show what there is by name: datasets, attacks ..."""
    from lograb.cli.listing import show_catalogs

    show_catalogs(kind, json)


@app.command()
def generate(
    source: Annotated[str, typer.Argument(help="A dataset's name (see 'lograb list datasets') or a graph file.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write the instance.")],
    strategy: Annotated[str, typer.Option(help="How to cut: d-hop, cluster, random, custom, global.")] = "d-hop",
    d: Annotated[int, typer.Option("-d", help="Radius of a patch; for cluster, of its halo.")] = 1,
    p: Annotated[float, typer.Option("-p", help="Fraction of nodes observed (custom: of lists).")] = 1.0,
    k: Annotated[int, typer.Option("-k", help="Eigenvectors kept per patch.")] = 32,
    sigma: Annotated[float, typer.Option(help="Standard deviation of the noise.")] = 0.0,
    gauge: Annotated[str, typer.Option(help="What stays undetermined: sign, rotation or none.")] = "sign",
    seed: Annotated[int, typer.Option(help="All randomness follows from it.")] = 0,
    clusters: Annotated[int | None, typer.Option(help="Number of clusters [about one per 50 nodes].")] = None,
    seed_nodes: Annotated[int | None, typer.Option(help="Number of random patches [half the nodes].")] = None,
    patches: Annotated[Path | None, typer.Option(help="For custom: one node list per line, or JSON.")] = None,
    no_eigenvalues: Annotated[bool, typer.Option("--no-eigenvalues", help="Withhold the eigenvalues.")] = False,
    no_truth: Annotated[bool, typer.Option("--no-truth", help="Leave out whatever answers Task 1.")] = False,
    header: Annotated[bool | None, typer.Option(help="Whether an edge list has a header [found out].")] = None,
    graph: Annotated[int | None, typer.Option(help="Which graph of a dataset that holds many [all].")] = None,
    json: Json = False,
) -> None:
    """Turn a graph into a benchmark instance, one file."""
    from lograb.cli.instances import generate_instance

    parameters = {
        "strategy": strategy, "d": d, "p": p, "k": k, "sigma": sigma, "gauge": gauge, "seed": seed,
        "clusters": clusters, "seed_nodes": seed_nodes, "eigenvalues": not no_eigenvalues,
    }  # fmt: skip
    inputs = {"header": header, "graph": graph, "patches": patches}
    generate_instance(source, output, parameters, inputs, truth=not no_truth, json=json)


@app.command()
def pack(
    source: Annotated[Path, typer.Argument(help="Your embeddings: an .npz file or a folder of .npz, .npy, .csv.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write the instance.")],
    truth: Annotated[str | None, typer.Option(help="The graph behind them, a name or file, to score by.")] = None,
    laplacian: Annotated[str, typer.Option(help="symmetric, random-walk, similarity, unnormalised")] = "symmetric",
    strategy: Annotated[str, typer.Option(help="How patches were cut, as far as is known.")] = "custom",
    d: Annotated[int, typer.Option("-d", help="Radius of a patch, if it was grown from its centre.")] = 0,
    sigma: Annotated[float | None, typer.Option(help="Standard deviation of the noise, if announced.")] = None,
    gauge: Annotated[str, typer.Option(help="What stays undetermined: sign, rotation or none.")] = "sign",
    json: Json = False,
) -> None:
    """Turn embeddings that were made elsewhere into an instance, one file."""
    from lograb.cli.pack import pack_embeddings

    protocol = {"strategy": strategy, "d": d, "sigma": sigma, "gauge": gauge}
    pack_embeddings(source, output, truth, laplacian, protocol, json=json)


@app.command()
def info(file: File, json: Json = False) -> None:
    """Describe an instance."""
    from lograb.cli.instances import show_info

    show_info(file, json)


@app.command()
def verify(file: File, json: Json = False) -> None:
    """Check every byte of an instance.

    Exit code 1, and the name of the member, where it does not hold.
    """
    from lograb.cli.instances import verify_instance

    try:
        verify_instance(file, json)
    except ArchiveError as error:
        if json:
            from lograb.cli.output import print_json

            print_json({"file": file.name, "ok": False, "member": error.member, "error": str(error)})
        typer.echo(f"lograb: {error}", err=True)
        raise typer.Exit(1) from None


@app.command()
def attack(
    file: File,
    method: Annotated[str, typer.Option(help="Which attack (see 'lograb list attacks').")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Keep the answer: .npz or .csv.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="For attacks that draw.")] = 0,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting.")] = None,
    features: Annotated[bool, typer.Option("--features", help="Show the attacker the nodes' features too.")]
    = False,
    json: Json = False,
) -> None:
    """Rebuild the graph from an instance's observations."""
    from lograb.cli.reconstruct import attack_instance

    attack_instance(file, method, output, seed, settings or [], features, json)


@app.command()
def evaluate(
    file: File,
    answer: Annotated[Path, typer.Argument(metavar="RECON", help="An answer: .npz, or a u,v,score table.")],
    threshold: Annotated[float | None, typer.Option(help="Claim the pairs whose score is at least this.")] = None,
    json: Json = False,
) -> None:
    """Score an answer against an instance's truth.

    Every row of a table is a claim, unless it has a fourth column, claimed (1 or 0), or a threshold is given. Rows
    that are no claims are pairs that were judged, and count in the ranking metrics.
    """
    from lograb.cli.reconstruct import evaluate_answer

    evaluate_answer(file, answer, threshold, json)


@app.command()
def link(
    file: File,
    method: Annotated[str, typer.Option(help="Which method (see 'lograb list links').")],
    repeats: Annotated[int, typer.Option(help="Draws of negatives, each with a training of its own.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Negatives and training follow from it.")] = 0,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting.")] = None,
    halo: Annotated[str, typer.Option(help="For clusters: drop their halos, or keep them.")] = "drop",
    negatives: Annotated[str, typer.Option(help="Draw from all pairs (uniform), or possible ones.")] = "uniform",
    json: Json = False,
) -> None:
    """Predict the edges between fragments (Task 3)."""
    from lograb.cli.link import link_instance

    link_instance(file, method, repeats, seed, settings or [], halo, negatives, json)


@app.command()
def certify(file: File, json: Json = False) -> None:
    """Count the patches whose edges are provably exposed."""
    from lograb.cli.reconstruct import certify_instance

    certify_instance(file, json)


@app.command()
def classify(
    file: File,
    model: Annotated[str, typer.Option(help="Which model (see 'lograb list models').")],
    split: Annotated[str, typer.Option(help="What is kept apart: patch (as in the paper) or node-disjoint.")]
    = "patch",
    repeats: Annotated[int, typer.Option(help="Splits and trainings to average over.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="All randomness follows from it.")] = 0,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting.")] = None,
    json: Json = False,
) -> None:
    """Learn to classify nodes inside their patches (needs the extra gnn)."""
    from lograb.cli.classify import classify_nodes

    classify_nodes(file, model, split, repeats, seed, settings or [], json)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Where to write the report.")]
    = Path("lograb-demo.html"),
    json: Json = False,
) -> None:
    """See in a minute what an eavesdropper learns."""
    from lograb.cli.demo import run_demo

    run_demo(output, json)
