"""The command line that all benchmarks share: parts by name, each with arguments of its own.

A script calls `parse` before the imports that take long, so that neither --help nor a wrong word waits for them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple


class Part(NamedTuple):
    """A part of a benchmark.

    Attributes
    ----------
    run : called with the arguments, in order
    does : what it measures
    takes : how long, on two idle cores; ~ where that is estimated
    arguments : positional ones, each as for `ArgumentParser.add_argument`
    """

    run: Callable[..., None]
    does: str
    takes: str
    arguments: tuple[dict[str, Any], ...] = ()


def one_of(names: Iterable[Any] | Callable[[], Iterable[Any]]) -> Callable[[str], Any]:
    """Make a type of argument that takes some values only; a function is asked for them when it matters."""

    def read(word: str) -> Any:
        known = {str(name): name for name in (names() if callable(names) else names)}
        if word not in known:
            raise argparse.ArgumentTypeError(f"'{word}' is none of {', '.join(known)}")
        return known[word]

    return read


def at_least(least: int) -> Callable[[str], int]:
    """Make a type of argument that takes whole numbers from some on."""

    def read(word: str) -> int:
        if not word.isdecimal() or int(word) < least:
            raise argparse.ArgumentTypeError(f"'{word}' is no whole number from {least} on")
        return int(word)

    return read


def parse(about: str | None, parts: dict[str, Part], default: str | None = None) -> Callable[[], None]:
    """Read the command line; returns what runs the chosen parts. Without words that is the default, or all."""
    main = argparse.ArgumentParser(
        usage="%(prog)s [-h] [--dry-run] [PART [ARGUMENT ...] | PART PART ...]", description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    main.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    main.add_argument("--dry-run", action="store_true", help="check the arguments, say what would run, and stop")
    inner = {name: _parser(f"{main.prog} {name}", part) for name, part in parts.items()}
    rows = [f"  {' '.join(inner[name].format_usage().split()[2:])}\n      {part.does} ({part.takes})"
            for name, part in parts.items()]  # fmt: skip
    title = f"parts, with times on two idle cores, ~ where estimated (without any word: {default or 'all'}):"
    main.epilog = "\n".join([title, *rows])
    given = main.parse_intermixed_args()
    words = given.words or ([default] if default else list(parts))
    if words[0] not in parts:
        main.error(f"there is no part '{words[0]}': choose from {', '.join(parts)}")
    several = all(word in parts for word in words)
    chosen = [[word] for word in words] if several else [words]
    runs = [partial(parts[name].run, *vars(inner[name].parse_args(rest)).values()) for name, *rest in chosen]
    if given.dry_run:
        print("\n".join(f"{' '.join(each)} ({parts[each[0]].takes})" for each in chosen))
        sys.exit()

    def run() -> None:
        for call in runs:
            call()

    return run


def _parser(prog: str, part: Part) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=prog, add_help=False)
    for number, argument in enumerate(part.arguments):
        parser.add_argument(str(number), **argument)
    return parser
