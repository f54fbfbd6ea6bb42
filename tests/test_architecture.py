"""The rules that keep the house a house."""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "lograb"
# From the ground up: a room may import from its own floor's rooms named in its list, and from nowhere else.
GROUND = {"errors", "limits", "arrays", "spec", "ragged", "names", "progress", "parallel", "eigen", "writing",
          "answer_file", "conventions", "conversions", "own_arrays", "plugins", "types", "pairs",
          "score"}  # fmt: skip
STAGES = {"graphs", "patches", "observations", "defences", "fragment", "packed", "instance", "archive",
          "consistency"}  # fmt: skip
MAY = {
    "errors": set(),
    "progress": set(),
    "parallel": set(),
    "eigen": {"types"},
    "limits": {"errors"},
    "plugins": {"errors"},
    "arrays": {"errors", "limits"},
    "ragged": {"errors"},
    "names": set(),
    "conventions": {"errors"},
    "conversions": {"errors", "conventions"},
    "own_arrays": {"errors", "names", "ragged", "conventions", "conversions"},
    "spec": {"errors"},
    "writing": {"errors"},
    "answer_file": {"errors", "writing"},
    "types": GROUND - {"types", "pairs", "score", "eigen"},
    "pairs": GROUND - {"pairs", "score"},
    "score": GROUND - {"score"},
    "graphs": GROUND,
    "patches": GROUND,
    "observations": GROUND | {"patches"},
    "archive": GROUND,
    "defences": GROUND | {"observations", "theory"},
    "fragment": GROUND | {"patches", "observations", "archive", "defences"},
    "packed": GROUND | {"patches", "archive"},
    "instance": GROUND | {"archive", "packed"},
    "consistency": GROUND | {"patches", "defences", "archive", "instance"},
    "theory": GROUND,
    "attacks": GROUND | {"theory", "defences"},
    "metrics": GROUND | {"theory"},
    "learning": GROUND | {"patches", "observations", "instance", "metrics"},
    "tasks": GROUND | STAGES | {"attacks", "learning", "theory", "metrics"},
    "report": GROUND | {"metrics"},
    "pipeline": GROUND | STAGES | {"attacks", "tasks", "report"},
    "experiments": GROUND | STAGES | {"attacks", "learning", "metrics", "tasks", "pipeline"},
    "auditing": GROUND | STAGES | {"attacks", "theory", "metrics", "tasks", "report", "pipeline", "experiments"},
    "cli": GROUND | STAGES | {"attacks", "learning", "theory", "metrics", "tasks", "report", "pipeline",
                              "experiments", "auditing"},
}
# The neural attacks learn, and torch lives in learning/: these files stand under the attacks' rule.
ATTACK_SIDE = ("lograb.learning.autoencoders", "lograb.learning.randomness", "lograb.learning.sparse")
# The same role in several rooms.
ROLES = {"__init__", "catalog", "settings"}


def imports(path, *, typing=False):
    """List the modules that a file imports, those for type checkers only if asked for."""
    tree = ast.parse(path.read_text())
    skipped = set()
    if not typing:
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                skipped |= set(map(id, ast.walk(node)))
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def rooms():
    return sorted({path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")})


def files(room):
    return sorted((SOURCE / room).rglob("*.py")) or [SOURCE / f"{room}.py"]


@pytest.mark.parametrize("room", [room for room in rooms() if room != "__init__"])
def test_rooms_import_only_what_they_may(room):
    assert room in MAY, f"say in this test what '{room}' may import"
    for path in files(room):
        for module in imports(path):
            other = module.split(".")[1] if module.startswith("lograb.") else None
            if other in (None, room) or other not in MAY or (room == "attacks" and module.startswith(ATTACK_SIDE)):
                continue
            assert other in MAY[room], f"{path.relative_to(SOURCE)} imports {module}"


@pytest.mark.parametrize("room", ["attacks", "theory", "metrics", "graphs", "patches", "observations"])
def test_only_the_top_imports_the_whole_package(room):
    for path in files(room):
        assert "lograb" not in imports(path), f"{path.name} imports the whole package"


@pytest.mark.parametrize("name", ATTACK_SIDE)
def test_what_attacks_learn_with_stands_under_their_rule(name):
    path = SOURCE / "learning" / f"{name.rpartition('.')[2]}.py"
    for module in imports(path, typing=True):
        assert module != "lograb"
        if module.startswith("lograb.") and not module.startswith(ATTACK_SIDE):
            assert module.split(".")[1] in MAY["attacks"], module


def test_the_order_has_no_loops():
    done: set[str] = set()
    left = dict(MAY)
    while left:
        ready = [room for room, needs in left.items() if needs <= done]
        assert ready, f"these rooms wait for each other: {sorted(left)}"
        done |= set(ready)
        left = {room: needs for room, needs in left.items() if room not in done}


def test_no_module_name_twice():
    names = Counter(path.stem for path in SOURCE.rglob("*.py"))
    assert [name for name, count in names.items() if count > 1 and name not in ROLES] == []


def test_the_schema_alone_knows_the_columns():
    from lograb.archive.schema import RULES

    for path in SOURCE.rglob("*.py"):
        if path.name != "schema.py":
            found = [name for name in RULES if re.search(rf"""["']{name}(\.npy)?["']""", path.read_text())]
            assert not found, f"{path.relative_to(SOURCE)} spells {found[0]}"


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
