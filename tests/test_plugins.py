"""Another package adds an attack, a dataset, a defence and a model: the example of the docs, installed and run."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from lograb import LograbError, generate, ledger
from lograb.defences import Defence, catalog
from lograb.plugins import find_plugin, plugins, with_plugins

EXAMPLE = Path(__file__).parents[1] / "examples" / "plugin"
CONFIG = """
instances = [{ dataset = "ring", k = 4, p = 0.5, defences = "blur:by=0.5" }]
attacks = [{ name = "neighbours", settings = { most = 4 } }]
models = [{ name = "linear", settings = { epochs = 3 } }]
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Install the example into a folder of its own; by hand where no build tool is at hand."""
    folder = tmp_path_factory.mktemp("installed")
    source = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("source") / "plugin")
    words = [
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--target",
        str(folder),
    ]
    done = subprocess.run([sys.executable, *words, str(source)], capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.copytree(source / "lograb_example", folder / "lograb_example", dirs_exist_ok=True)
        project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
        about = folder / "lograb_example-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lograb-example\nVersion: 1.0\n")
        lines = [f"[{group}]\n" + "\n".join(f"{k} = {v}" for k, v in points.items())
                 for group, points in project["entry-points"].items()]  # fmt: skip
        (about / "entry_points.txt").write_text("\n".join(lines))
    return folder


def lograb(installed, *words):
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(installed))))
    command = [sys.executable, "-c", "from lograb.cli import main; main()", *words]
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_is_listed_and_run(installed, tmp_path):
    assert "neighbours" in {row["name"] for row in json.loads(lograb(installed, "list", "attacks", "--json"))}
    assert "blur" in {row["name"] for row in json.loads(lograb(installed, "list", "defences", "--json"))}
    (tmp_path / "x.toml").write_text(CONFIG)
    told = json.loads(lograb(installed, "sweep", str(tmp_path / "x.toml"), "--store", str(tmp_path / "store"),
                             "--workers", "1", "--json"))  # fmt: skip
    assert told["statuses"] == {"done": 2}
    for run in told["runs"]:
        assert run["spec"]["version"].endswith("lograb-example 1.0 lograb-example 1.0")  # method and defence
        assert run["spec"]["instance"]["defences"] == ["blur:by=0.5"]
        assert run["spec"]["origin"]["source"] == "ring"
        assert run["spec"]["origin"]["revision"] == "lograb-example 1.0"


def test_the_defence_of_the_example_is_a_heuristic_in_the_list_and_in_the_ledger(installed, tmp_path):
    listed = {row["name"]: row for row in json.loads(lograb(installed, "list", "defences", "--json"))}["blur"]
    assert listed["guarantee"] == "heuristic"
    file = str(tmp_path / "ring.lograb")
    lograb(installed, "generate", "ring", "-k", "4", "--no-eigenvalues", "--defence", "blur:by=2", "-o", file)
    told = json.loads(lograb(installed, "ledger", file, "--json"))
    found = {line["channel"]: line for line in told["channels"]}["eigenvectors"]
    assert (found["guarantee"], found["mechanism"]) == ("none", "noise of a defence that guarantees nothing")
    assert told["whole"] == "none"
    assert json.loads(lograb(installed, "bound", file, "--json"))["mu"] is None


@pytest.mark.parametrize("clip", [None, 10.0])
def test_a_defence_that_says_it_is_formal_is_composed(clip, monkeypatch):
    class Loud(Defence):
        name, touches, guarantee, unit = "loud", ("eigenvectors",), "formal", "embedding"
        does, exposes = "clips and adds noise", "-"

        def vector_noise(self, sizes, ranks):
            return np.full(len(ranks), 2.0)

        if clip is not None:

            def vector_reach(self, sizes, ranks):
                return np.full(len(ranks), 2 * clip)

    monkeypatch.setattr(catalog, "find_plugin", lambda kind, name: Loud if name == "loud" else None)
    told = ledger(generate("karate", strategy="global", k=4, eigenvalues=False, defences="loud"))
    assert told["units"]["embedding"]["mu"] == pytest.approx((2 * clip if clip else 4) / 2)
    assert told["whole"] == "formal"


def test_the_example_is_short():
    lines = (EXAMPLE / "lograb_example" / "__init__.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 32


def test_a_plugin_that_cannot_be_imported_is_told_and_left_out(tmp_path, monkeypatch):
    about = tmp_path / "broken-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        "[lograb.attacks]\nbroken = no_such_module:X\nafr = no_such_module:X\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins.cache_clear()
    try:
        with pytest.raises(LograbError, match=r"plugin 'broken' .* of broken 1 cannot be imported"):
            find_plugin("attacks", "broken")
        with pytest.warns(match="cannot be imported"):
            assert with_plugins("attacks", {"afr": 1}) == {"afr": 1}
    finally:
        plugins.cache_clear()
