"""The rules that keep the house a house."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "lograb"
FORBIDDEN = {
    "attacks": ("lograb.graphs", "lograb.patches", "lograb.instance", "lograb.tasks", "lograb.pipeline",
                "lograb.archive", "lograb.observations", "lograb.metrics", "lograb.learning"),
    "theory": ("lograb.graphs", "lograb.patches", "lograb.instance", "lograb.tasks", "lograb.pipeline",
               "lograb.archive", "lograb.observations"),
    "metrics": ("lograb.graphs", "lograb.attacks", "lograb.tasks", "lograb.instance"),
    "graphs": ("lograb.patches", "lograb.observations", "lograb.attacks", "lograb.instance"),
    "patches": ("lograb.observations", "lograb.attacks", "lograb.instance", "lograb.graphs"),
    "observations": ("lograb.attacks", "lograb.instance", "lograb.graphs", "lograb.tasks"),
}  # fmt: skip
# The neural attacks learn, and torch lives in learning/: these files stand under the attacks' rule.
ATTACK_SIDE = ("lograb.learning.autoencoders", "lograb.learning.randomness", "lograb.learning.sparse")


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("room", FORBIDDEN)
def test_rooms_import_only_what_they_may(room):
    files = list((SOURCE / room).rglob("*.py"))
    assert files
    for path in files:
        for module in imports(path):
            if room == "attacks" and module.startswith(ATTACK_SIDE):
                continue
            assert not module.startswith(FORBIDDEN[room]), f"{path.name} imports {module}"
            assert module != "lograb", f"{path.name} imports the whole package"


@pytest.mark.parametrize("name", ATTACK_SIDE)
def test_what_attacks_learn_with_stands_under_their_rule(name):
    path = SOURCE / "learning" / f"{name.rpartition('.')[2]}.py"
    for module in imports(path):
        assert not module.startswith(FORBIDDEN["attacks"]) or module.startswith(ATTACK_SIDE), module
        assert module != "lograb"


def test_the_rule_can_fail(tmp_path):
    (tmp_path / "x.py").write_text("from lograb.graphs import load_graph\n")
    assert any(module.startswith("lograb.graphs") for module in imports(tmp_path / "x.py"))


def test_everyday_work_does_not_import_torch():
    code = (
        "import sys, lograb; lograb.compare('karate'); "
        "print([m for m in ('torch', 'torch_geometric') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_help_needs_no_numerical_library():
    code = "import sys, lograb.cli; print([m for m in ('numpy', 'scipy', 'torch', 'pymetis') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
