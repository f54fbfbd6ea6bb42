"""`lograb list`: everything by name, in 80 columns."""

import json
import sys

import pytest
from tests.cli.command import ok

from lograb.attacks import ATTACKS
from lograb.cli.listing import CATALOGS, show_catalogs


@pytest.mark.parametrize("kind", CATALOGS)
def test_each_kind_fits_and_cuts_no_name(kind, monkeypatch):
    rows = json.loads(ok("list", kind, "--json").stdout)
    for columns, options in (("80", []), (None, []), ("80", ["--verbose"])):
        monkeypatch.setenv("COLUMNS", columns) if columns else monkeypatch.delenv("COLUMNS", raising=False)
        lines = ok("list", kind, *options).stdout.splitlines()
        assert max(map(len, lines)) <= 80
        first = [line.split(" ")[0] for line in lines]
        assert all(row["name"] in first for row in rows)


def test_a_narrow_pipe_is_narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, ok("list", "gauges").stdout.splitlines())) <= 60


def test_everything():
    assert json.loads(ok("list", "--json").stdout).keys() == CATALOGS.keys()
    text = ok("list").stdout
    assert "citation-170k" in text
    assert "built in" in text
    assert "licence" not in text


def test_verbose_shows_what_the_table_leaves_out():
    text = ok("list", "datasets", "--verbose").stdout
    assert "MIT" in text
    assert "misfit" in ok("list", "attacks", "-v").stdout


def test_attacks_say_what_they_see_and_cost():
    text = ok("list", "attacks").stdout
    for word in ("scenario", "centres", "eigenvectors", "pairs of patches", "(floor)", "gnn)"):
        assert word in text


@pytest.mark.parametrize("width", [80, 120])
def test_as_in_a_terminal(monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    show_catalogs("attacks", verbose=False, json=False)
    printed = capsys.readouterr().out
    assert all(name in printed for name in ATTACKS)
    assert "\x1b[1m" in printed
