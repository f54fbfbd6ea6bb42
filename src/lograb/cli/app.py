"""The ``lograb`` commands: their options, their help, and which function gets what the user wrote."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from lograb.cli import options
from lograb.cli.stopping import run
from lograb.errors import LograbNotice

app = typer.Typer(
    name="lograb",
    help="What do shared spectral embeddings of local subgraphs reveal about who is connected to whom?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def command(runs: str, name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command that runs ``module:function`` of this room, imported only then: most are heavy."""

    def register(declared: Callable[..., None]) -> Callable[..., None]:
        @app.command(name)
        @wraps(declared)
        def call(**given: Any) -> None:
            module, _, function = runs.partition(":")
            getattr(import_module(f"lograb.cli.{module}"), function)(**given)

        return call

    return register


def main() -> None:
    """Run the command line; a user's mistake becomes one line on stderr and exit code 2."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", LograbNotice)
        warnings.showwarning = _show_notices(warnings.showwarning)
        run(app)


def _show_notices(otherwise: Callable[..., None]) -> Callable[..., None]:
    """Show each notice once, as one line; other warnings as Python shows them."""
    told = set()

    def show(message: Warning | str, category: type[Warning], *place: Any, **rest: Any) -> None:
        if not issubclass(category, LograbNotice):
            otherwise(message, category, *place, **rest)
        elif str(message) not in told:
            from lograb.cli.output import notice

            told.add(str(message))
            notice(str(message))

    return show


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


@command("listing:show_catalogs", "list")
def list_command(
    kind: Annotated[str | None, typer.Argument(help="Which catalog; all of them by default.")] = None,
    verbose: options.Verbose = False,
    json: options.Json = False,
) -> None:
    """Show what there is by name: datasets, attacks ..."""


@command("audit:audit_source")
def audit(
    source: Annotated[str, typer.Argument(help="A graph (name or file), an instance (.lograb), or embeddings.")],
    output: options.Page = Path("report.html"),
    scenario: Annotated[str | None, typer.Option(help="ego, silos or global [ego; silos where groups are given].")]
    = None,
    patches: options.PatchFile = None,
    patches_by: options.PatchesBy = None,
    d: Annotated[int | None, typer.Option("-d", help="Radius of a neighbourhood [1], or of halos [0].")] = None,
    k: Annotated[int | None, typer.Option("-k", help="Eigenvectors that are to be shared [32].")] = None,
    sigma: Annotated[float | None, typer.Option(help="Noise that is planned [0].")] = None,
    defences: options.Defence = None,
    releases: options.Releases = 1,
    tolerate: Annotated[float | None, typer.Option(help="Share of edges that may be read [0.1].")] = None,
    policy: Annotated[Path | None, typer.Option(metavar="FILE", help="What is tolerated, as TOML.")] = None,
    seed: options.Seed = 0,
    graph: options.Which = None,
    header: options.Header = None,
    quick: Annotated[bool, typer.Option("--quick", help="A handful of settings only.")] = False,
    json: options.Json = False,
) -> None:
    """Ask what they would learn from what you are about to share, who is exposed, and what is enough.

    Writes a page, and beside it the same as .json and all pairs as .csv, worst first. Finished settings are kept
    in a folder .audit beside them: after Ctrl-C the same command goes on from there.
    """


@command("instances:generate_instance")
def generate(
    source: Annotated[str, typer.Argument(help="A dataset's name (see 'lograb list datasets') or a graph file.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The instance: a .lograb file.")],
    strategy: options.Strategy = None,
    d: options.Radius = 1,
    p: options.Observed = 1.0,
    k: options.Kept = 32,
    sigma: options.Sigma = 0.0,
    gauge: options.Gauge = "sign",
    seed: options.Seed = 0,
    clusters: options.Clusters = None,
    cluster_size: options.ClusterSize = None,
    seed_nodes: options.SeedNodes = None,
    patches: options.PatchFile = None,
    patches_by: options.PatchesBy = None,
    no_eigenvalues: options.Withheld = False,
    defences: options.Defence = None,
    releases: options.Releases = 1,
    precision: options.Precision = "float64",
    no_truth: Annotated[bool, typer.Option("--no-truth", help="Leave out whatever answers Task 1.")] = False,
    header: options.Header = None,
    graph: options.Which = None,
    json: options.Json = False,
) -> None:
    """Turn a graph into a benchmark instance, one file."""


@command("instances:pack_embeddings")
def pack(
    source: Annotated[Path, typer.Argument(help="Your embeddings: an .npz file or a folder of .npz, .npy, .csv.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The instance: a .lograb file.")],
    truth: Annotated[str | None, typer.Option(help="The graph behind them, a name or file, to score by.")] = None,
    laplacian: Annotated[str, typer.Option(help="symmetric, random-walk, similarity, unnormalised")] = "symmetric",
    strategy: Annotated[str, typer.Option(help="How patches were cut, as far as is known.")] = "custom",
    d: Annotated[int, typer.Option("-d", help="Radius of a patch, or of a cluster's halo.")] = 0,
    sigma: Annotated[float | None, typer.Option(help="Standard deviation of the noise, if announced.")] = None,
    gauge: Annotated[str, typer.Option(help="What stays undetermined: sign, rotation or none.")] = "sign",
    json: options.Json = False,
) -> None:
    """Turn embeddings that were made elsewhere into an instance, one file."""


@command("instances:show_info")
def info(file: options.File, json: options.Json = False) -> None:
    """Describe an instance."""


@command("instances:verify_instance")
def verify(file: options.File, json: options.Json = False) -> None:
    """Check every byte of an instance.

    Exit code 1, and the name of the member, where it does not hold.
    """


@command("reconstruct:attack_instance")
def attack(
    file: options.File,
    method: Annotated[str, typer.Option(help="Which attack (see 'lograb list attacks'), or file.py:function.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Keep the answer: .npz or .csv.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="For attacks that draw.")] = 0,
    repeats: Annotated[int, typer.Option(min=1, help="Runs, with seeds that count up.")] = 1,
    settings: options.Set = None,
    features: options.Features = False,
    parts: Annotated[int | None, typer.Option(min=1, help="Cut the patches into parts, judged apart.")] = None,
    workers: options.Workers = None,
    scheduler: options.Scheduler = None,
    verbose: options.Verbose = False,
    json: options.Json = False,
) -> None:
    """Rebuild the graph from an instance's observations.

    With --method file.py:function that file is executed, in a process of its own that is given the observations
    only, and its function (observations, rng) -> lograb.Reconstruction attacks. That is no sandbox: name only
    files that you trust.
    """


@command("compare:compare_attacks")
def compare(
    context: typer.Context,
    source: Annotated[str, typer.Argument(help="An instance (.lograb), a dataset's name, or a graph file.")],
    methods: Annotated[str | None, typer.Option(help="Attacks, with commas between [all that are quick].")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many; of a graph each makes an instance.")] = 1,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Keep it: .html, .md or .tex.")] = None,
    features: options.Features = False,
    strategy: options.Strategy = None,
    d: options.Radius = 1,
    p: options.Observed = 1.0,
    k: options.Kept = 32,
    sigma: options.Sigma = 0.0,
    gauge: options.Gauge = "sign",
    seed: options.Seed = 0,
    clusters: options.Clusters = None,
    cluster_size: options.ClusterSize = None,
    seed_nodes: options.SeedNodes = None,
    patches: options.PatchFile = None,
    patches_by: options.PatchesBy = None,
    no_eigenvalues: options.Withheld = False,
    defences: options.Defence = None,
    releases: options.Releases = 1,
    precision: options.Precision = "float64",
    header: options.Header = None,
    graph: options.Which = None,
    json: options.Json = False,
) -> None:
    """Set attacks side by side, between one floor and one ceiling.

    An instance has its parameters; of a graph the options make an instance per seed. As for 'lograb attack',
    file.py:function is an attack too, and runs in a process of its own.
    """


@command("reconstruct:evaluate_answer")
def evaluate(
    file: options.File,
    answer: Annotated[Path, typer.Argument(metavar="RECON", help="An answer: .npz, or a u,v,score table.")],
    threshold: Annotated[float | None, typer.Option(help="Claim the pairs whose score is at least this.")] = None,
    verbose: options.Verbose = False,
    json: options.Json = False,
) -> None:
    """Score an answer against an instance's truth.

    Every row of a table is a claim, unless it has a fourth column, claimed (1 or 0), or a threshold is given. Rows
    that are no claims are pairs that were judged, and count in the ranking metrics.
    """


@command("learn:link_instance")
def link(
    file: options.File,
    method: Annotated[str, typer.Option(help="Which method (see 'lograb list links').")],
    repeats: Annotated[int, typer.Option(help="Draws of negatives, each with a training of its own.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Negatives and training follow from it.")] = 0,
    settings: options.Set = None,
    halo: Annotated[str, typer.Option(help="For clusters: drop their halos, or keep them.")] = "drop",
    negatives: Annotated[str, typer.Option(help="Draw from all pairs (uniform), or possible ones.")] = "uniform",
    json: options.Json = False,
) -> None:
    """Predict the edges between fragments (Task 3)."""


@command("certify:certify_instance")
def certify(file: options.File, json: options.Json = False) -> None:
    """Count the patches whose edges are provably exposed."""


@command("defend:defend_instance")
def defend(
    file: options.File,
    method: Annotated[list[str], typer.Option(metavar="NAME[:KEY=VALUE,...]", help="A defence; repeatable.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The instance: a .lograb file.")],
    releases: options.Releases = 1,
    seed: Annotated[int | None, typer.Option(min=0, help="For tests; fresh randomness by default.")] = None,
    no_truth: Annotated[bool, typer.Option("--no-truth", help="Leave out whatever answers Task 1.")] = False,
    json: options.Json = False,
) -> None:
    """Share less: apply defences (see 'lograb list defences') to an instance."""


@command("defend:show_ledger")
def ledger(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Instances; those of one graph add up.")],
    delta: Annotated[float, typer.Option(help="The probability that ε does not speak of.")] = 1e-5,
    json: options.Json = False,
) -> None:
    """Say what is guaranteed about what was shared."""


@command("defend:show_bound")
def bound(
    file: options.File,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Keep it edge by edge: .csv.")] = None,
    effort: Annotated[float, typer.Option(help="Beyond it edges are sampled; 2e10 are half a minute.")] = 2e10,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample.")] = 0,
    json: options.Json = False,
) -> None:
    """Say what nobody can exceed about the edges of this graph."""


@command("defend:show_utility")
def utility(
    file: options.File,
    repeats: Annotated[int, typer.Option(min=1, help="Splits to average over.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="All randomness follows from it.")] = 0,
    json: options.Json = False,
) -> None:
    """Measure what the shared embeddings are good for."""


@command("learn:classify_nodes")
def classify(
    file: options.File,
    model: Annotated[str, typer.Option(help="Which model (see 'lograb list models').")],
    split: Annotated[str, typer.Option(help="What is kept apart: patch (as in the paper) or node-disjoint.")]
    = "patch",
    repeats: Annotated[int, typer.Option(help="Splits and trainings to average over.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="All randomness follows from it.")] = 0,
    settings: options.Set = None,
    json: options.Json = False,
) -> None:
    """Learn to classify nodes inside their patches (needs the extra gnn)."""


@command("demo:run_demo")
def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Where to write the report.")]
    = Path("lograb-demo.html"),
    json: options.Json = False,
) -> None:
    """See in a minute what an eavesdropper learns."""


@command("sweep:run_sweep")
def sweep(
    config: Annotated[str, typer.Argument(help="A TOML file, or a preset (see 'lograb list presets').")],
    store: options.StoreFolder,
    workers: options.Workers = None,
    scheduler: options.Scheduler = None,
    retry_failed: options.Retry = False,
    rescore: Annotated[bool, typer.Option("--rescore", help="Score stored answers again, run nothing.")] = False,
    json: options.Json = False,
) -> None:
    """Run an experiment: whatever its store lacks."""


@command("sweep:reproduce")
def reproduce(
    name: Annotated[str, typer.Argument(help="A table of the paper (see 'lograb list presets').")],
    store: options.StoreFolder,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many [as the preset says].")] = None,
    datasets: Annotated[str | None, typer.Option(help="Only these, with commas between.")] = None,
    form: Annotated[str, typer.Option("--format", help="text, markdown, latex or csv")] = "text",
    figures: Annotated[Path | None, typer.Option(metavar="DIR", help="Write figures as PDF and PNG.")] = None,
    stored: Annotated[bool, typer.Option("--stored", help="Run nothing: show what the store has.")] = False,
    workers: options.Workers = None,
    scheduler: options.Scheduler = None,
    retry_failed: options.Retry = False,
) -> None:
    """Make a table or figure of the paper, its figures beside ours."""


@command("sweep:report_store")
def report(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="A folder that 'lograb sweep' wrote to.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="The page: a .html file.")]
    = None,
    markdown: Annotated[Path | None, typer.Option(metavar="DIR", help="Write tables as Markdown.")] = None,
) -> None:
    """Write a page with everything that a store holds."""


@command("submit:check_submission", "submit-check")
def submit_check(
    archive: Annotated[Path, typer.Argument(metavar="ARCHIVE", help="The challenge, made with --no-truth.")],
    predictions: Annotated[Path, typer.Argument(metavar="PREDICTIONS", help="An answer: .npz, or u,v,score.")],
    truth: Annotated[Path | None, typer.Option(metavar="FULL", help="The same instance with its truth.")] = None,
    json: options.Json = False,
) -> None:
    """Check somebody's answer to a challenge, and score it."""
