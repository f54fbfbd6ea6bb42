"""`lograb list`: everything by name, in 80 columns."""

import json
import sys
from pathlib import Path

import pytest
from tests.cli.command import ok
from typer.main import get_command

from lograb.attacks import ATTACKS
from lograb.cli.app import app
from lograb.cli.listing import CATALOGS, show_catalogs
from lograb.experiments.config import find_config, preset_names


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


def test_presets_are_all_names_that_reproduce_takes():
    rows = {row["name"]: row["description"] for row in json.loads(ok("list", "presets", "--json").stdout)}
    assert {"sensitivity", "figures", "studies", *preset_names()} == rows.keys()
    assert rows["sensitivity"] == "4 at once: alpha, k-base, others, s-min"
    assert all(find_config(name) for name in rows)


@pytest.mark.parametrize("name", ["sweep", "reproduce", "report"])
def test_the_reference_names_every_option_of_many_runs(name):
    page = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text()
    section = page.partition("## sweep, reproduce, report")[2].partition("## submit-check")[0]
    options = [max(option.opts, key=len) for option in get_command(app).commands[name].params]
    missing = [option for option in options if option.startswith("--") and f"`{option}`" not in section]
    assert missing == []


def test_only_two_commands_take_no_json():
    without = {name for name, one in get_command(app).commands.items()
               if not any("--json" in option.opts for option in one.params)}  # fmt: skip
    assert without == {"reproduce", "report"}
    for page in ("README.md", "docs/reference/cli.md"):
        assert "Every command but `reproduce` and `report` takes `--json`" in (
            Path(__file__).parents[2] / page).read_text()  # fmt: skip


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
