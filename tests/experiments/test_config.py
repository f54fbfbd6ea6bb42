"""What an experiment says, and the runs that follow from it."""

import sys
import tomllib
from importlib.util import spec_from_file_location

import pytest

from lograb import LograbError
from lograb.experiments import make_plan, read_config
from lograb.experiments.config import Config, find_config, preset_names


def test_lists_are_multiplied_out(plan):
    found = plan()
    assert len(found.cells) == 2 * 2 * 2
    assert len({spec.key for spec in found.specs}) == 8
    assert len({spec.instance_key for spec in found.specs}) == 4
    assert {cell.row for cell in found.cells} == {"karate sigma=0.0", "karate sigma=0.05"}


def test_runs_on_one_instance_stand_side_by_side(plan):
    keys = [spec.instance_key for spec in plan().specs]
    assert len(set(keys)) == sum(a != b for a, b in zip(keys, [None, *keys]))


@pytest.mark.parametrize("changed", [
    {"instances": [{"dataset": "karate", "p": 0.6, "k": 8, "sigma": [0.0, 0.06]}]},
    {"instances": [{"dataset": "citation", "p": 0.6, "k": 8, "sigma": [0.0, 0.05]}]},
    {"attacks": [{"name": "membership"}, {"name": "afr", "settings": {"alpha": 0.5}}]},
    {"attacks": [{"name": "membership"}, {"name": "afr", "features": True}]},
    {"seeds": [0, 7]},
])  # fmt: skip
def test_every_choice_is_part_of_the_identity(plan, changed):
    before, after = ({spec.key for spec in made.specs} for made in (plan(), plan(**changed)))
    assert before != after


def test_a_default_written_out_is_the_same_run(plan):
    written = plan(attacks=[{"name": "membership"}, {"name": "afr", "settings": {"alpha": 0.7}}])
    assert {spec.key for spec in written.specs} == {spec.key for spec in plan().specs}


def test_a_new_version_of_a_method_is_another_run(plan, monkeypatch):
    from lograb.attacks import Afr

    before = plan().specs
    monkeypatch.setattr(Afr, "version", "2")
    changed = {a.method for a, b in zip(before, plan().specs) if a.key != b.key}
    assert changed == {"afr"}


def test_a_changed_file_is_another_run(tmp_path):
    keys = []
    for number, lines in enumerate(("0,1\n1,2\n", "0,1\n0,2\n")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "graph.csv").write_text(lines)
        config = {
            "instances": [{"dataset": str(folder / "graph.csv"), "k": 2}],
            "attacks": [{"name": "membership"}],
        }
        keys.append(make_plan("x", Config(**config)).specs[0].key)
    assert keys[0] != keys[1]


def test_a_file_that_changes_between_two_plans_is_another_run(tmp_path, plan):
    changed = {"instances": [{"dataset": str(tmp_path / "graph.csv"), "k": 2}]}
    keys = set()
    for lines in ("0,1\n1,2\n", "0,1\n0,2\n"):
        (tmp_path / "graph.csv").write_text(lines)
        keys |= {spec.key for spec in plan(**changed, seeds=1, attacks=[{"name": "membership"}]).specs}
    assert len(keys) == 2


@pytest.mark.parametrize(("name", "file"), [("mine_top:f", "mine_top.py"), ("mine_pack.sub:f", "mine_pack/sub.py"),
                                            ("mine_pack:f", "mine_pack/sub.py")])  # fmt: skip
def test_a_changed_module_is_another_run(tmp_path, monkeypatch, plan, name, file):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "mine_pack").mkdir()
    (tmp_path / "mine_pack" / "__init__.py").write_text("raise RuntimeError('a plan imports nothing')")
    keys = set()
    for lines in ("f = 1", "f = 2"):
        (tmp_path / file).write_text(lines)
        keys |= {spec.key for spec in plan(attacks=[{"name": name}], seeds=1).specs}
    assert len(keys) == 4  # of two instances each


class EditableFinder:
    """What pip install -e adds for a package whose folder is not on the path."""

    def __init__(self, file):
        self.file = file

    def find_spec(self, name, path=None, target=None):
        return spec_from_file_location(name, self.file) if name == "mine_editable" else None


def test_a_changed_module_of_an_editable_package_is_another_run(tmp_path, monkeypatch, plan):
    file = tmp_path / "mine_editable.py"
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, EditableFinder(file)])
    versions = set()
    for lines in ("f = 1", "f = 2"):
        file.write_text(lines)
        versions |= {spec.version for spec in plan(attacks=[{"name": "mine_editable:f"}]).specs}
    assert len(versions) == 2
    assert "mine_editable" not in sys.modules


@pytest.mark.parametrize("name", ["helper.py", "deeper.py", "pack/inside.py", "mine.py"])
def test_what_a_file_imports_from_beside_it_is_part_of_its_version(tmp_path, plan, name):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / ".#editing.py").symlink_to("nowhere")
    (tmp_path / "mine.py").write_text("import numpy.linalg, lograb\n\ndef f(seen, rng):\n    import helper\n")
    (tmp_path / "helper.py").write_text("from deeper import x\nfrom pack.inside import y\nimport mine\n")
    (tmp_path / "deeper.py").write_text("x = (1")
    (tmp_path / "pack" / "inside.py").write_text("from . import other")
    (tmp_path / "unused.py").write_text("")
    (tmp_path / "lograb.py").write_text("")

    def version():
        (told,) = {spec.version for spec in plan(attacks=[{"name": f"{tmp_path / 'mine.py'}:f"}]).specs}
        return told

    before = version()
    (tmp_path / "unused.py").write_text("z = 1")
    (tmp_path / "lograb.py").write_text("z = 1")
    assert version() == before
    with (tmp_path / name).open("a") as file:
        file.write("\n# changed\n")
    assert version() != before


def test_an_attack_whose_code_is_not_found_is_refused(plan):
    with pytest.raises(LograbError, match="no code of 'no_such.module:f' is found"):
        plan(attacks=[{"name": "no_such.module:f"}])


@pytest.mark.parametrize(("changed", "problem"), [
    ({"attacks": [{"name": "afrr"}]}, "Did you mean 'afr'"),
    ({"attacks": [{"name": "afr", "settings": {"alfa": 1}}]}, "unknown afr setting 'alfa'"),
    ({"instances": [{"dataset": "karat"}]}, "Did you mean 'karate'"),
    ({"instances": [{"dataset": "karate", "sgima": 1}]}, "unknown parameter 'sgima'"),
    ({"instances": [{"dataset": "karate", "seed": 1}]}, "no seed"),
    ({"instances": [{"dataset": "karate", "patches": "groups.csv"}]}, "take no patches"),
    ({"attacks": []}, "needs"),
    ({"seeds": 0}, "at least one seed"),
    ({"seeds": [0, 0, 1]}, "distinct, got 0 more than once"),
    ({"instances": [{"dataset": "karate", "sigma": []}]}, "empty list: sigma needs"),
    ({"instances": [{"dataset": []}]}, "empty list: dataset needs"),
    ({"attacks": [{"name": "afr", "grid": {"alpha": []}}]}, "grid of 'afr' has an empty list: alpha needs"),
    ({"attacks": [{"name": "afr"}, {"name": "random", "rows": ["karat"]}]}, "rows of 'random' name 'karat'"),
])  # fmt: skip
def test_what_is_wrong_is_said_before_anything_runs(plan, changed, problem):
    with pytest.raises(LograbError, match=problem):
        plan(**changed)


def test_every_dataset_that_is_asked_for_must_be_there(plan):
    config = plan(instances=[{"dataset": ["karate", "citation"], "k": 8}],
                  attacks=[{"name": "afr", "rows": ["citation"]}]).config  # fmt: skip
    with pytest.raises(LograbError, match="dataset of this experiment 'citatoin'. Did you mean 'citation'"):
        make_plan("x", config, datasets=["citation", "citatoin"])
    with pytest.raises(LograbError, match="no method of this experiment is meant for rows of karate"):
        make_plan("x", config, datasets=["karate"])


def test_a_file_that_is_no_config_is_refused(tmp_path):
    (tmp_path / "x.toml").write_text("instances = 3")
    with pytest.raises(LograbError, match="instances"):
        read_config(tmp_path / "x.toml")
    (tmp_path / "x.toml").write_text("seeds = 1")
    with pytest.raises(LograbError, match=r"has no \[\[instances\]\].*karate"):
        read_config(tmp_path / "x.toml")
    (tmp_path / "x.toml").write_text("instances = [")
    with pytest.raises(LograbError, match="no TOML"):
        read_config(tmp_path / "x.toml")


@pytest.mark.parametrize("name", preset_names())
def test_presets_name_only_what_there_is(name):
    from lograb.experiments import config as module

    found = find_config(name)[name]
    rows = [row for row, _, _ in module._rows(found)]
    columns = {column for row in rows for column, _ in module._columns(found, row)}
    assert len(rows) == len(set(rows))
    assert found.paper.keys() <= set(rows), "the paper's figures must belong to rows"
    assert {column for line in found.paper.values() for column in line} <= columns
    for wanted in (name for one in (*found.attacks, *found.models, *found.links) for name in one.rows):
        assert any(row == wanted or row.startswith(f"{wanted} ") for row in rows), wanted


def test_the_grid_has_486_instances():
    from lograb.experiments import config as module

    rows = list(module._rows(find_config("paper-grid")["paper-grid"]))
    assert len(rows) == 486
    assert len({dataset for _, dataset, _ in rows}) == 9


def test_a_preset_may_be_several(tmp_path):
    assert len(find_config("sensitivity")) == 4
    assert list(find_config("core")) == ["core"]
    with pytest.raises(LograbError, match="Did you mean 'core'"):
        find_config("cores")


def test_the_documented_config_is_one():
    from lograb.experiments import config as module

    text = module.__doc__.partition("```toml")[2].partition("```")[0]
    found = module.Config(**tomllib.loads(text))
    assert len(list(module._rows(found))) == 12
    assert next(column for column, _ in module._columns(found, "")) == "afr (align_dim=auto, alpha=0.0)"


def test_a_method_can_be_meant_for_some_rows(tmp_path):
    (tmp_path / "x.toml").write_text("""
seeds = 1
[[instances]]
row = "few"
dataset = "karate"
k = [4, 8]
[[instances]]
row = "few more"
dataset = "karate"
k = [16, 32]
[[attacks]]
name = "membership"
rows = ["few more", "few karate k=8"]
""")
    plan = make_plan("x", find_config(str(tmp_path / "x.toml"))["x"])
    assert {cell.row for cell in plan.cells} == {"few karate k=8", "few more karate k=16", "few more karate k=32"}


KARATE = {"dataset": "karate", "p": 0.6, "k": 8}
CLUSTERS = {"dataset": "karate", "strategy": "cluster", "clusters": 3, "k": 8}


@pytest.mark.parametrize(("changed", "problem"), [
    ({"instances": [KARATE | {"sigma": 0.0}, KARATE | {"sigma": 0.1, "d": 2}]},
     r"row 'karate' and column 'membership': one with d = 1, sigma = 0.0, the other with d = 2, sigma = 0.1. "
     r"Tell them apart by row = \"...\" in \[\[instances\]\]$"),
    ({"instances": [KARATE | {"row": "one"}, KARATE | {"row": "one", "dataset": "citation"}]},
     "dataset = karate, the other with dataset = citation"),
    ({"instances": [CLUSTERS], "attacks": [], "links": [{"name": "degree"}, {"name": "degree", "halo": "keep"}]},
     "column 'degree': one with halo = drop, the other with halo = keep. Tell them apart by column = "),
    ({"instances": [CLUSTERS], "attacks": [],
      "links": [{"name": "degree"}, {"name": "degree", "negatives": "possible"}]}, "negatives = possible"),
    ({"attacks": [], "models": [{"name": "mlp"}, {"name": "mlp", "split": "node-disjoint"}]},
     "split = patch, the other with split = node-disjoint"),
    ({"attacks": [{"name": "afr"}, {"name": "afr", "features": True}]}, "features = True"),
    ({"attacks": [{"name": "afr", "column": "x"}, {"name": "membership", "column": "x"}]},
     "one with method = afr, the other with method = membership"),
])  # fmt: skip
def test_different_runs_may_not_share_a_cell(plan, changed, problem):
    with pytest.raises(LograbError, match=problem):
        plan(**changed)


def test_blocks_that_differ_may_be_named_apart_and_what_is_said_twice_counts_once(plan):
    found = plan(instances=[KARATE, KARATE | {"sigma": 0.1, "row": "noisy"}, KARATE | {"sigma": 0.0}])
    assert [(cell.row, cell.column) for cell in found.cells if cell.instance.seed == 0] == [
        ("karate", "membership"), ("karate", "afr"), ("noisy", "membership"), ("noisy", "afr")]  # fmt: skip


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_can_be_planned(name, monkeypatch):
    from lograb.experiments import config as module

    monkeypatch.setattr(module, "_origin", lambda dataset: (None, "not asked for"))
    assert make_plan(name, find_config(name)[name], seeds=1).cells
