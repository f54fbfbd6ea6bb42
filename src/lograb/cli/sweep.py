"""``lograb sweep``, ``reproduce`` and ``report``: many runs, kept in a store."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lograb.cli.output import clock, make_bar, notice, print_json, reporting, say, stderr, stdout
from lograb.cli.stopping import Interrupted, clean, written
from lograb.errors import LograbError, unknown_name
from lograb.experiments import Plan, RunResult, Store, make_plan, sweep
from lograb.experiments.config import Config, cells_of, check_datasets, datasets_of, find_config
from lograb.experiments.store import PUBLISHED
from lograb.report.figures import save_figure
from lograb.report.overview import write_overview
from lograb.report.page import check_page_name
from lograb.report.pages import write_pages
from lograb.report.table import Table, joined_csv
from lograb.report.tabulate import tabulate

FORMATS = ("text", "markdown", "latex", "csv")


def run_sweep(config: str, store: Path, *, json: bool, **options: Any) -> None:
    """Run what a config asks for and the store lacks, and print what came out."""
    plans = [make_plan(name, found) for name, found in find_config(config).items()]
    kept = Store(store)
    tables = {plan.name: _table(plan, run_plan(plan, kept, options), kept, f"lograb sweep {config} --store DIR")
              for plan in plans}  # fmt: skip
    every = [result for plan in plans for spec in plan.specs if (result := kept.get(spec.key)) is not None]
    counts = Counter(result.status for result in every)
    if json:
        print_json({"store": str(store), "statuses": dict(counts), "runs": [result.to_dict() for result in every],
                    "tables": [table.to_dict() for table in tables.values()]})  # fmt: skip
        return
    for table in tables.values():
        show_table(table)
    say(f"{len(every)} runs in '{store}': " + ", ".join(f"{n} {status}" for status, n in counts.items()) + ".")


def reproduce(
    name: str, store: Path, *, seeds: int | None, datasets: str | None, form: str, figures: Path | None,
    stored: bool, **options: Any,
) -> None:  # fmt: skip
    """Run what a preset asks for and the store lacks, and print its tables beside the paper's figures."""
    if form not in FORMATS:
        raise unknown_name("format", form, FORMATS)
    wanted = None if datasets is None else [part.strip() for part in datasets.split(",")]
    configs = find_config(name)
    plans = _plans(configs, seeds, wanted)
    kept = _existing(store) if stored else Store(store)
    chosen = (f" --seeds {seeds}" if seeds else "") + (f" --datasets {datasets}" if datasets else "")
    family: list[Table] = []
    for plan in plans:
        found = _known(plan, kept) if stored else run_plan(plan, kept, options)
        table = _table(plan, found, kept, f"lograb reproduce {name} --store DIR{chosen}")
        if form == "text":
            show_table(table)
        elif form == "csv" and len(configs) > 1:
            family.append(table)
        else:
            print(table.render(form), end="")
        if figures is not None and table.figure:
            for path in save_figure(table.figure, table.title, figures, table.name):
                written(path)
                notice(f"the figure is in '{path}'")
    if family:
        print(joined_csv(family), end="")


def _plans(configs: dict[str, Config], seeds: int | None, wanted: list[str] | None) -> list[Plan]:
    """Plan the experiments of a preset; of several, those that have some of the datasets that are asked for."""
    if wanted is None:
        return [make_plan(name, config, seeds=seeds) for name, config in configs.items()]
    own = {name: datasets_of(config) for name, config in configs.items()}
    check_datasets(wanted, list(dict.fromkeys(dataset for names in own.values() for dataset in names)))
    chosen = {name: [dataset for dataset in wanted if dataset in names] for name, names in own.items()}
    return [make_plan(name, configs[name], seeds=seeds, datasets=some) for name, some in chosen.items() if some]


def _known(plan: Plan, store: Store) -> dict[str, RunResult]:
    return {spec.key: result for spec in plan.specs if (result := store.get(spec.key)) is not None}


def run_plan(plan: Plan, store: Store, options: dict[str, Any]) -> dict[str, RunResult]:
    """Run a plan, showing how far it is and, at once, what fails."""
    try:
        with _watching(plan.name) as (progress, finished):
            return sweep(
                plan.specs, store, timeout=plan.config.timeout, progress=progress, finished=finished, **options
            )
    except Interrupted:
        kept = len(_known(plan, store))
        again = "starts again" if options.get("rescore") else "goes on with the others"
        raise Interrupted(f"{kept} of the {len(plan.specs)} runs of '{plan.name}' are kept in '{store.folder}', "
                          f"and the same command {again}") from None  # fmt: skip


@contextmanager
def _watching(name: str) -> Iterator[tuple[Any, Any]]:
    """Show a bar with the remaining time on a terminal, elsewhere a line per run; failures always."""
    plain = not stderr.is_terminal
    with make_bar(console=stderr, transient=True, disable=plain, redirect_stdout=False) as bar:
        report = reporting(bar, name)
        done, total, start = 0, 0, time.monotonic()

        def progress(what: str, now: int, of: int | None) -> None:
            nonlocal done, total
            done, total = now, of or 0
            report(f"{name}: {what}", now, of)

        def finished(result: RunResult) -> None:
            left = clock((time.monotonic() - start) / (done + 1) * (total - done - 1))
            place = f"[{done + 1}/{total}, {left} left] " if plain else ""
            if result.status == "done":
                if plain:
                    stderr.print(
                        clean(f"  {place}{result.label}: {result.seconds.get('all', 0):.1f} s"), soft_wrap=True
                    )
                return
            style = "red" if result.status == "failed" else "yellow"
            stderr.print(
                clean(f"  {place}{result.label}: {result.status}: {result.reason}"), style=style, soft_wrap=True
            )

        yield progress, finished


def _table(plan: Plan, results: dict[str, RunResult], store: Store, command: str) -> Table:
    """Lay the results of a plan out, and keep the table for the report."""
    config = plan.config
    table = tabulate(plan.name, config.title, config.about, config.table.model_dump(), config.paper,
                     cells_of(plan, results))  # fmt: skip
    content = table.to_dict() | {"command": command}
    try:
        store.put_table(plan.name, content)
    except LograbError as error:
        notice(f"the table of '{plan.name}' is not kept for the report: {error}")
    return Table(**content)


def show_table(table: Table) -> None:
    """Print a table with its notes."""
    say(table.title)
    print()
    print("\n".join(clean(line) for line in table.render("text", stdout(pipe=120).width).splitlines()))
    print()
    for note in ([table.about] if table.about else []) + table.notes:
        say(" ".join(note.split()))
    print()


def _existing(store: Path) -> Store:
    """Open a store that must be there."""
    if not (store / "runs").is_dir() and not (store / PUBLISHED).is_file():
        raise LograbError(f"'{store}' is no store: there is no folder 'runs' in it, nor a file '{PUBLISHED}'")
    return Store(store)


def report_store(store: Path, output: Path | None, markdown: Path | None) -> None:
    """Write a page with everything that a store holds, its tables as pages of Markdown, or both."""
    if output is None and markdown is None:
        raise LograbError("a report needs a page (-o page.html), a folder for tables (--markdown DIR), or both")
    if output is not None:
        check_page_name(output)
    kept = _existing(store)
    results = [result.to_dict() for result in kept.results()]
    if not results:
        raise LograbError(f"the store '{store}' has no runs yet: lograb sweep or lograb reproduce makes some")
    tables = list(kept.tables().values())
    if output is not None:
        write_overview(output, tables, results)
        written(output)
        notice(f"the page is in '{output}'")
    if markdown is not None:
        if not tables:
            raise LograbError(f"the store '{store}' has no tables yet: lograb reproduce makes some")
        for path in [*write_pages(markdown, [Table(**table) for table in tables]), kept.publish(markdown)]:
            written(path)
        notice(f"{len(tables)} tables are in '{markdown}', and the runs behind them")
