"""The command line: parse, call the public API, print."""

from lograb.cli.app import main

__all__ = ["main"]
