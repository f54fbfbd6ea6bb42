"""``lograb demo``: the main job on a built-in graph."""

from __future__ import annotations

from pathlib import Path

from lograb.cli.audit import show_audit
from lograb.cli.output import stderr

SOURCE = "citation"


def run_demo(output: Path, json: bool) -> None:
    """Audit a built-in graph, quickly."""
    stderr.print("An audit of a built-in citation graph: what if every paper shared its neighbourhood?")
    show_audit(SOURCE, output, json, quick=True, command="lograb demo")
