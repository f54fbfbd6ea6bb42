"""Experiments as TOML: what is combined with what, and the runs that follow from it.

```toml
title = "AFR against noise"
seeds = 3                                  # a number, or a list of seeds
timeout = 600                              # seconds per run

[[instances]]                              # lists are multiplied out
dataset = ["cora", "citeseer"]             # names or files
d = 1
p = 0.6
k = 32
sigma = [0.0, 0.05, 0.1]
defences = ["none", "gaussian:epsilon=2"]  # a list inside the list is applied together

[[attacks]]                                # also [[models]] and [[links]]
name = "afr"
settings = { align_dim = "auto" }
grid = { alpha = [0.0, 0.5, 1.0] }         # settings multiplied out
```
"""

from __future__ import annotations

import hashlib
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lograb.defences.catalog import as_defences, settle
from lograb.errors import LograbError, unknown_name
from lograb.experiments.runs import RunResult, RunSpec, Task
from lograb.graphs import is_dataset, load_graphs
from lograb.learning.links.catalog import find_link_method
from lograb.patches import choose
from lograb.plugins import origin as plugin_of
from lograb.spec import InstanceSpec, Origin, first_problem
from lograb.tasks.isolation import FileAttack, choose_attack
from lograb.tasks.link_prediction import check_choices as check_link
from lograb.tasks.node_classification import check_choices as check_model

# In the package, not beside it, so that they are there after pip install.
PRESETS = files("lograb") / "configs"
BROUGHT = ("patches", "patches_by")
Choices = dict[tuple[str, str], Any]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Method(_Part):
    """A method of one of the three tasks, with settings; by default for all rows.

    `rows` names those it is meant for, in full or by the words that they begin with.
    """

    name: str
    column: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    grid: dict[str, list[Any]] = Field(default_factory=dict)
    rows: tuple[str, ...] = ()

    def variants(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Multiply the grid out: what each column is called, and its settings."""
        for values in product(*self.grid.values()):
            chosen = dict(zip(self.grid, values))
            text = ", ".join(f"{key}={value}" for key, value in (chosen if self.column else
                             self.settings | chosen).items())  # fmt: skip
            label = self.column or self.name
            yield (f"{label} ({text})" if text else label), self.settings | chosen


class AttackChoice(Method):
    """An attack; with `features` it sees those of the nodes, where there are some."""

    features: bool = False


class ModelChoice(Method):
    """A model of Task 2."""

    split: Literal["patch", "node-disjoint"] = "patch"


class LinkChoice(Method):
    """A method of Task 3."""

    halo: Literal["drop", "keep"] = "drop"
    negatives: Literal["uniform", "possible"] = "uniform"


class Layout(_Part):
    """How the runs are laid out as a table.

    Attributes
    ----------
    score, scores : the number or numbers shown, with dots into nested ones, such as ``f1.recovered``; "" for that
        in front of the task
    weight : average over seeds by this number of a run, such as ``positives``
    unit : what the paper's figures are multiplied by to compare with ours
    against : the column that a signed-rank test holds against all others
    wide : one line for each instance and a column for each method, the paper's figure in brackets
    beside : in a wide table, what `protection` (else a method) found about the instance, such as ``accuracy``
    figure : draw the columns over this parameter of the instances or their defences, or setting of the methods;
        ``noise`` is σ √q, with q the cluster size
    by : parameters of the instances that tell curves apart
    relative : divide every curve by its first value, and average over datasets
    """

    score: str = ""
    scores: tuple[str, ...] = ()
    weight: str = ""
    unit: float = 0.01
    digits: int = 3
    against: str = ""
    wide: bool = False
    beside: tuple[str, ...] = ()
    figure: str = ""
    by: tuple[str, ...] = ()
    relative: bool = False


class Config(_Part):
    """An experiment.

    Besides methods, instances can be described (`statistics`), or their defences weighed: what they guarantee, and
    what is left to use (`protection`).
    """

    title: str = ""
    about: str = ""
    seeds: int | list[int] = 1
    timeout: float | None = Field(None, gt=0)
    instances: list[dict[str, Any]] = Field(min_length=1)
    attacks: list[AttackChoice] = []
    models: list[ModelChoice] = []
    links: list[LinkChoice] = []
    statistics: bool = False
    protection: bool = False
    table: Layout = Layout()
    paper: dict[str, dict[str, Any]] = Field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """A run and its place in the table; no spec where the dataset is not to be had, but the `problem`."""

    row: str
    column: str
    dataset: str
    instance: InstanceSpec
    spec: RunSpec | None
    problem: str = ""
    task: str = ""


@dataclass(frozen=True)
class Plan:
    """All runs of an experiment."""

    name: str
    config: Config
    cells: tuple[Cell, ...]

    @property
    def specs(self) -> list[RunSpec]:
        """The runs, each once, those on one instance side by side."""
        found = {cell.spec.key: cell.spec for cell in self.cells if cell.spec is not None}
        order = {key: i for i, key in enumerate(dict.fromkeys(spec.instance_key for spec in found.values()))}
        return sorted(found.values(), key=lambda spec: order[spec.instance_key])


def cells_of(plan: Plan, results: dict[str, RunResult]) -> list[dict[str, Any]]:
    """Put results into the cells of a plan, as plain dicts, the way reports read them."""
    found = {key: result.to_dict() for key, result in results.items()}
    return [{"row": cell.row, "column": cell.column, "dataset": cell.dataset, "problem": cell.problem,
             "task": cell.task, "instance": cell.instance.model_dump(mode="json"),
             "result": found.get(cell.spec.key) if cell.spec is not None else None}
            for cell in plan.cells]  # fmt: skip


def find_config(name: str) -> dict[str, Config]:
    """Read an experiment from a file, or those of a preset by name: one file, or all that begin with the name."""
    if name.endswith(".toml"):
        return {Path(name).stem: read_config(Path(name))}
    every = {path.name.removesuffix(".toml"): path for path in PRESETS.iterdir() if path.name.endswith(".toml")}
    chosen = {key: path for key, path in every.items() if key == name or key.startswith(f"{name}-")}
    if not chosen:
        raise unknown_name("preset", name, preset_names())
    return {key: read_config(Path(str(path))) for key, path in sorted(chosen.items())}


def preset_names() -> list[str]:
    """Name the presets that come with lograb."""
    return sorted({path.name.removesuffix(".toml") for path in PRESETS.iterdir() if path.name.endswith(".toml")})


def read_config(path: Path) -> Config:
    """Read an experiment from a TOML file."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LograbError(f"cannot read '{path}': {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LograbError(f"'{path}' is no TOML: {error}") from None
    for key in content:
        if key not in Config.model_fields:
            raise LograbError(f"'{path}': {unknown_name('table or key', key, Config.model_fields)}")
    if not content.get("instances"):
        raise LograbError(f"'{path}' has no [[instances]], which say what is attacked: add instances = "
                          "[{ dataset = \"karate\" }]")  # fmt: skip
    try:
        return Config(**content)
    except ValidationError as error:
        raise LograbError(f"'{path}': {first_problem(error)}") from None


def make_plan(
    name: str, config: Config, *, seeds: int | None = None, datasets: Sequence[str] | None = None
) -> Plan:
    """Expand an experiment to its runs; everything that can be checked is, before anything runs."""
    wanted = config.seeds if seeds is None else seeds
    numbers = list(range(wanted)) if isinstance(wanted, int) else wanted
    if not numbers:
        raise LograbError(f"an experiment needs at least one seed, got {wanted}")
    if twice := [seed for seed, count in Counter(numbers).items() if count > 1]:
        raise LograbError(f"seeds must be distinct, got {twice[0]} more than once: the same run again is no "
                          "new sample")  # fmt: skip
    methods = [one for kind in (config.attacks, config.models, config.links) for one in kind]
    if not methods and not config.statistics and not config.protection:
        raise LograbError("an experiment needs [[attacks]], [[models]], [[links]], statistics = true or "
                          "protection = true")  # fmt: skip
    _check_names(config, methods, datasets or ())
    cells: list[Cell] = []
    places: dict[tuple[str, str], Choices] = {}
    origin_of = cache(_origin)  # a file is read once for each plan: it may change before the next
    for row, dataset, parameters in _rows(config):
        if datasets is not None and dataset not in datasets:
            continue
        origin, problem = origin_of(dataset)
        for column, told in _columns(config, row):
            if not _is_new(places, (row, column), _choices(dataset, _instance(parameters, 0), told)):
                continue
            for seed in numbers:
                instance = _instance(parameters, seed)
                version = " ".join(filter(None, (told.get("version", "1"), *_packages(instance))))
                spec = None if origin is None else RunSpec(
                    source=dataset, origin=origin, instance=instance, **told | {"version": version})  # fmt: skip
                cells.append(Cell(row, column, dataset, instance, spec, problem, told["task"]))
    if not cells:
        raise LograbError(f"no method of this experiment is meant for rows of {', '.join(datasets or ())}")
    return Plan(name, config, tuple(cells))


def datasets_of(config: Config) -> list[str]:
    """Name the datasets of an experiment, each once."""
    return list(dict.fromkeys(dataset for _, dataset, _ in _rows(config)))


def check_datasets(wanted: Sequence[str], known: Sequence[str]) -> None:
    """Refuse names of datasets that are not among those of an experiment."""
    for dataset in wanted:
        if dataset not in known:
            raise unknown_name("dataset of this experiment", dataset, known)


def _check_names(config: Config, methods: Sequence[Method], datasets: Sequence[str]) -> None:
    """Refuse names of datasets and of rows that this experiment does not have, and grids without values."""
    check_datasets(datasets, datasets_of(config))
    rows = [row for row, _, _ in _rows(config)]
    for method in methods:
        for key, values in method.grid.items():
            if not values:
                raise LograbError(f"the grid of '{method.name}' has an empty list: {key} needs at least one value")
        for name in method.rows:
            if not any(_begins(row, name) for row in rows):
                raise LograbError(f"rows of '{method.name}' name '{name}', but no row of this experiment begins "
                                  f"with that: they are called as '{rows[0]}' is")  # fmt: skip


def _rows(config: Config) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Multiply instances out: label, dataset, parameters."""
    for block in config.instances:
        given = dict(block)
        label = str(given.pop("row", ""))
        if "dataset" not in given or "seed" in given:
            raise LograbError("[[instances]] need a dataset, and no seed (seeds stand above), got "
                              f"{', '.join(given) or 'nothing'}")  # fmt: skip
        if brought := [key for key in given if key in BROUGHT]:
            raise LograbError(f"[[instances]] take no {brought[0]}: groups of your own are for lograb generate "
                              "and lograb audit; here a graph is cut by strategy = \"d-hop\", \"cluster\", "
                              "\"random\" or \"global\"")  # fmt: skip
        lists = {key: value if isinstance(value, list) else [value] for key, value in given.items()}
        if empty := [key for key, values in lists.items() if not values]:
            raise LograbError(f"[[instances]] have an empty list: {empty[0]} needs at least one value, or leave "
                              "it out")  # fmt: skip
        many = len(list(product(*lists.values()))) > 1
        for values in product(*lists.values()):
            chosen = dict(zip(lists, values))
            dataset = str(chosen.pop("dataset"))
            told = " ".join(f"{k}={v}" for k, v in chosen.items() if len(lists[k]) > 1)
            text = f"{dataset} {told}".strip() if many else ""
            yield " ".join(filter(None, (label, text))) or dataset, dataset, chosen


def _instance(parameters: dict[str, Any], seed: int) -> InstanceSpec:
    """Write the choices behind an instance in full, defences and what follows from them included."""
    strategy = choose(parameters.get("strategy"), False)
    defences = tuple(map(str, as_defences(parameters.get("defences", ()))))
    return settle(InstanceSpec.of(**parameters | {"strategy": strategy, "defences": defences, "seed": seed}))


def _columns(config: Config, row: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """List the methods that run on a row: label, and what their runs' specs say of them, all settings included."""
    if config.statistics:
        yield "statistics", {"task": "statistics", "method": "statistics", "name": "statistics"}
    if config.protection:
        yield "protection", {"task": "protection", "method": "protection", "name": "protection"}
    for attack in config.attacks:
        for label, given in _variants(attack, row):
            made = choose_attack(attack.name, given)
            foreign = isinstance(made, FileAttack)
            settings = given if foreign else made.model_dump(mode="json")
            name = _named(attack.name, given) if foreign else made.label
            yield label, _told("reconstruction", attack, made, name, settings, {"features": attack.features})
    for model in config.models:
        for label, given in _variants(model, row):
            found, training, special = check_model(model.name, model.split, given)
            settings = training.model_dump(mode="json") | found.choose(special)
            yield (
                label,
                _told("classification", model, found, _named(model.name, given), settings, {"split": model.split}),
            )
    for link in config.links:
        for label, given in _variants(link, row):
            method = find_link_method(link.name)
            check_link(link.name, given, link.halo, link.negatives)
            options = {"halo": link.halo, "negatives": link.negatives}
            yield label, _told("links", link, method, _named(link.name, given),
                               method.choose(given).model_dump(mode="json"), options)  # fmt: skip


def _choices(dataset: str, instance: InstanceSpec, told: dict[str, Any]) -> Choices:
    """Lay all choices behind a cell out, but for seeds: each with the key of a block that names it apart."""
    rows = {"dataset": dataset} | instance.model_dump(mode="json", exclude={"seed"})
    columns = {"task": told["task"], "method": told["method"]} | told.get("options", {}) | told.get("settings", {})
    return {(key, name): value for key, found in (("row", rows), ("column", columns))
            for name, value in found.items()}  # fmt: skip


def _is_new(places: dict[tuple[str, str], Choices], place: tuple[str, str], mine: Choices) -> bool:
    """Say whether a cell is still free; it may not hold runs of different choices, whose mean says nothing."""
    first = places.setdefault(place, mine)
    if first is mine:
        return True
    differ = [key for key in first | mine if first.get(key) != mine.get(key)]
    if not differ:
        return False
    if ("column", "method") in differ:  # their settings are not the same either
        differ = [key for key in differ if key[0] == "row" or key[1] == "method"]
    one, other = (", ".join(f"{key[1]} = {found.get(key)}" for key in differ) for found in (first, mine))
    names = {"row": 'row = "..." in [[instances]]', "column": 'column = "..." in the block of a method'}
    raise LograbError(f"two runs would stand in one cell, row '{place[0]}' and column '{place[1]}': one with "
                      f"{one}, the other with {other}. Tell them apart by "
                      + " and ".join(names[key] for key in dict.fromkeys(key for key, _ in differ)))  # fmt: skip


def _packages(instance: InstanceSpec) -> list[str]:
    """Name the packages that defences of an instance come from, with their versions."""
    return [plugin_of("defences", text.partition(":")[0]) for text in instance.defences]


def _told(
    task: Task, choice: Method, found: Any, name: str, settings: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    kind = {"reconstruction": "attacks", "classification": "models", "links": "links"}[task]
    version = " ".join(filter(None, (_version(found), plugin_of(kind, choice.name))))
    return {"task": task, "method": choice.name, "name": name, "version": version, "settings": settings,
            "options": options}  # fmt: skip


def _version(found: Any) -> str:
    """Name the version of a method; for an attack in a file or a module, what is in it."""
    if not isinstance(found, FileAttack):
        return str(found.version)
    if not (paths := found.files):
        raise LograbError(f"no code of '{found.__name__}' is found, so a changed one could not be told: "
                          f"install the package of '{found.source}', or name FILE:{found.function}")  # fmt: skip
    code = hashlib.sha256()
    for path in paths:
        code.update(path.read_bytes())
    return code.hexdigest()[:12]


def _named(name: str, given: dict[str, Any]) -> str:
    changed = ", ".join(f"{key}={value}" for key, value in given.items())
    return f"{name}({changed})" if changed else name


def _variants(method: Method, row: str) -> Iterator[tuple[str, dict[str, Any]]]:
    meant = not method.rows or any(_begins(row, name) for name in method.rows)
    return method.variants() if meant else iter(())


def _begins(row: str, name: str) -> bool:
    return row == name or row.startswith(f"{name} ")


def _origin(dataset: str) -> tuple[Origin | None, str]:
    """Find out where a dataset comes from; or why it is not to be had."""
    return _known_origin(dataset) if is_dataset(dataset) else _read_origin(dataset)


def _read_origin(dataset: str) -> tuple[Origin | None, str]:
    try:
        found = next(iter(load_graphs(dataset, notify=lambda text: None))).origin
        if found.kind == "memory":  # of a plugin that does not say where its graphs come from
            revision = plugin_of("datasets", dataset.strip().lower())
            found = found.model_copy(update={"source": dataset.strip().lower(), "revision": revision})
        return found, ""
    except LograbError as error:
        if not is_dataset(dataset):
            raise
        return None, str(error)


_known_origin = cache(_read_origin)
