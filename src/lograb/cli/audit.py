"""``lograb audit``: what would they learn, who is exposed, what is enough."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from lograb import auditing
from lograb.auditing.findings import check_names
from lograb.auditing.sharing import SECRET
from lograb.cli.defend import SEED, TRUTH
from lograb.cli.output import notice, print_json, print_table, say, waiting
from lograb.cli.stopping import Interrupted, end, written
from lograb.report import check_page_name
from lograb.score import percent

NAMED = 3
"""Nodes that are named as most exposed."""
MOST = 100
"""The largest ε that is printed: beyond, it says nothing."""
CONDITION = " †"


def audit_source(source: str, output: Path, *, json: bool, **choices: Any) -> None:
    """Audit a graph or what is about to be shared; write page, JSON and CSV, and say what was found."""
    show_audit(source, output, json, command=shlex.join(["lograb", *sys.argv[1:]]), **choices)


def show_audit(source: str, output: Path, json: bool, **choices: Any) -> None:
    """Run an audit, keeping its points beside the page; print the answer and what is enough."""
    check_page_name(output)
    check_names(output)
    store = output.with_suffix(".audit")
    done = total = 0
    try:
        with waiting("reading") as report:

            def progress(what: str, number: int, of: int | None) -> None:
                nonlocal done, total
                done, total = number, of or 0
                report(what, number, of)

            found = auditing.audit(source, store=store, progress=progress, **choices)
            report("writing", total, total)
            found.save(output)
            written(output)
    except Interrupted:
        kept = f"{done} of {total} settings are kept in '{store}', and the same command goes on from there"
        end(f"interrupted: {kept if store.is_dir() else 'nothing was written'}", 130)
    if json:
        print_json(found.to_dict())
    else:
        show_findings(found.to_dict(), output)


def show_findings(found: dict[str, Any], output: Path) -> None:
    """Print what was found, the answer first."""
    say(found["scenario"]["sentence"])
    print()
    say(found["answer"]["headline"])
    say(found["answer"]["channel"])
    if nodes := found["exposed"]["nodes"][:NAMED]:
        say(f"Most exposed, by {found['scenario']['edge_word']}: {'; '.join(map(_exposed, nodes))}.")
    for what in ("truth", "seed"):
        if found["source"][f"holds_{what}"] and (what == "truth" or not found["source"]["holds_truth"]):
            notice(TRUTH if what == "truth" else SEED)
    print()
    _show_settings(found)
    say(found["recommendation"]["sentence"])
    if command := found["recommendation"]["command"]:
        print(f"\n  {command}")
        if f"--seed {SECRET}" in command:
            say("It draws a seed that nobody can guess, and does not write it into the file.")
    print()
    say(f"Page: {output}; the same as data: {output.with_suffix('.json').name}; all pairs, worst first: "
        f"{output.with_suffix('.csv').name}")  # fmt: skip


def _exposed(row: dict[str, Any]) -> str:
    of = "" if row["edges"] is None else f" of {row['edges']:,}"
    return f"{row['name']} ({row['readable']:,}{of})"


def _show_settings(found: dict[str, Any]) -> None:
    chosen = found["recommendation"]["setting"]
    rows = []
    for row in found["settings"]:
        if row["status"] != "done":
            continue
        low, high = row["share_interval"]
        use = "-" if row["utility"] is None else f"{row['utility']['value']:.2f}"
        epsilon = (row["epsilon"] or {}).get("edge")
        said = "-" if epsilon is None else f"{epsilon:.3g}" if epsilon <= MOST else f"> {MOST}"
        said += CONDITION if epsilon is not None and "public" in row["guarantee"] else ""
        mark = "*" if row["id"] == chosen else ""
        read = percent(row["share"]) if row["scale_known"] else "unknown"
        rows.append((mark, row["label"], read, f"{percent(low)} .. {percent(high)}",
                     percent(row["by_membership"]), said, use))  # fmt: skip
    kind = next((row["utility"]["name"] for row in found["settings"] if row["utility"]), "utility")
    columns = ("", "what is shared", "read", "95 %", "by membership", "ε", kind)
    print_table("", columns, rows, columns[2:], fold=("what is shared",))
    left = [row for row in found["settings"] if row["status"] != "done"]
    if chosen is not None:
        say("* recommended")
    if any(CONDITION in row[-2] for row in rows):
        say(f"{CONDITION} holds only if who sits in which patch is public; else there is no guarantee")
    if left:
        for row in left:
            what = "The attack broke down on" if row["status"] == "failed" else "Not tried:"
            say(f"{what} {row['label']} ({row['reason']}).")
