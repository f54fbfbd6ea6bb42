"""Attacks of others in a process of their own, which is given the observations and nothing else.

Inside one Python process nothing can be hidden from a function that looks for it: frames and the garbage collector
lead to every object. So a file that somebody else wrote runs in a fresh process. In go the observations as plain
arrays, the name of the function and a seed that says nothing about any other; out come the arrays of one answer.
Nothing is pickled. This is no sandbox: the process may still read files and use the network.
"""

from __future__ import annotations

import ast
import ctypes
import json
import math
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

from lograb.answer_file import PARTS
from lograb.attacks.catalog import ATTACKS, as_attack
from lograb.errors import LograbError, UnavailableError, unknown_name
from lograb.tasks.answer_arrays import build_answer, read_answer_arrays
from lograb.tasks.parcel import pack, unpack
from lograb.types import Observations, Reconstruction

JOB, SEEN, ANSWER, TOLD, FAILED = "job.json", "observations.npz", "answer.npz", "told.json", "failed.txt"
MAX_TOLD = 1 << 20
STEP = 0.5  # seconds: no exception from another thread reaches one that waits without end
PR_SET_PDEATHSIG = 1
GROUP = "lograb.attacks"
# Paths first: a process of its own starts without the paths of this one.
PROGRAM = ("import json, sys; folder = sys.argv[1]; sys.path[:] = json.load(open(folder + '/job.json'))['path']; "
           "from lograb.tasks.isolation import serve; serve(folder)")  # fmt: skip


@dataclass(frozen=True)
class FileAttack:
    """An attack that lies in a file, or in a module, and runs in a process of its own.

    Parameters
    ----------
    source : str or Path
        A file ``attack.py``, or the name of a module that can be imported, ``package.module``.
    function : str
        A function (observations, rng) -> Reconstruction in it, or a class of attacks.
    settings : dict
        Parameters for a class of attacks.
    timeout : float, optional
        Seconds after which it is ended.
    name : str
        What tables call it; by default where it lies.

    Examples
    --------
    >>> import lograb
    >>> from lograb.tasks.isolation import FileAttack
    >>> lograb.attack(lograb.generate("karate"), FileAttack("lograb.attacks", "Membership"))
    <Reconstruction by lograb.attacks:Membership: 78 edges of 34 nodes claimed, 78 pairs judged>
    """

    source: str | Path
    function: str
    settings: dict[str, Any] = field(default_factory=dict)
    timeout: float | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if self.file is not None and not self.file.is_file():
            raise UnavailableError(f"no such file: '{self.source}'")

    @property
    def file(self) -> Path | None:
        """The file it lies in; None for a module."""
        return Path(self.source).absolute() if str(self.source).endswith(".py") else None

    @property
    def files(self) -> list[Path]:
        """The code it lies in: its file and what that imports from beside it, its module, or all of its package.

        None where nothing is found. Nothing is imported for that.
        """
        if self.file is not None:
            return [self.file, *_beside(self.file)]
        place: Sequence[str] | None = None
        name, found = "", None
        for part in str(self.source).split("."):
            name = f"{name}.{part}".lstrip(".")
            if (found := _find_spec(name, place)) is None:
                return []
            place = found.submodule_search_locations
        if place is not None:
            return sorted(path for folder in place for path in Path(folder).rglob("*.py") if path.is_file())
        return [Path(found.origin)] if found is not None and found.has_location and found.origin else []

    @property
    def __name__(self) -> str:
        """What tables call it."""
        return self.name or f"{self.source if self.file is None else self.file.name}:{self.function}"

    def __call__(self, seen: Observations, rng: np.random.Generator) -> Reconstruction:
        """Run it on observations; its seed follows from `rng`, but nothing follows from its seed."""
        return run_isolated(self, [seen], [rng])[0]


def _find_spec(name: str, place: Sequence[str] | None) -> ModuleSpec | None:
    """Ask all finders, those of editable packages too; unlike importlib's own function this imports no parent."""
    for finder in sys.meta_path:
        if (find := getattr(finder, "find_spec", None)) and (found := find(name, place)) is not None:
            return cast(ModuleSpec, found)
    return None


def _beside(file: Path) -> list[Path]:
    """List the modules and packages of a file's folder that it imports, and those that these import."""
    found: set[Path] = set()
    waiting = [file]
    while waiting:
        for name in _imported(waiting.pop()) - {"lograb"}:
            here = {file.parent / f"{name}.py", *(file.parent / name).rglob("*.py")} - found - {file}
            new = set(filter(Path.is_file, here))
            waiting += new
            found |= new
    return sorted(found)


def _imported(file: Path) -> set[str]:
    """Name the modules that a file imports, without what is inside them; none where it is no Python."""
    try:
        steps = list(ast.walk(ast.parse(file.read_bytes())))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    names = [each.name for step in steps if isinstance(step, ast.Import) for each in step.names]
    names += [step.module for step in steps if isinstance(step, ast.ImportFrom) and step.module and not step.level]
    return {name.partition(".")[0] for name in names}


def choose_attack(what: Any, settings: dict[str, Any] | None = None) -> Any:
    """Take an attack by name, as an object or function, or as ``file.py:function`` or ``package.module:function``.

    What the latter two name, and an attack that another package offers as an entry point of the group
    ``lograb.attacks``, runs in a process of its own.
    """
    if not isinstance(what, str):
        return as_attack(what)
    if what in ATTACKS:
        return ATTACKS[what](**settings or {})
    name, (source, _, function) = "", what.rpartition(":")
    if what.endswith(".py") or (source.endswith(".py") and not function):
        raise LograbError(f"which function of '{what}'? Write {what.rstrip(':')}:FUNCTION")
    if not source:
        offered = {entry.name: entry for entry in entry_points(group=GROUP)}
        if what not in offered:
            raise unknown_name("attack", what, [*ATTACKS, *offered])
        name, source, function = what, offered[what].module, offered[what].attr
    return FileAttack(source, function, settings or {}, name=name)


def run_isolated(
    attack: FileAttack, seen: Sequence[Observations], streams: Sequence[np.random.Generator]
) -> list[Reconstruction]:
    """Run an attack on each graph, all in one fresh process, and read its answers; what it prints goes to stderr.

    Raises
    ------
    LograbError
        Where it fails, with the kind of the error and the line; or ends without an answer, or too late.
    """
    name = attack.__name__
    with tempfile.TemporaryDirectory(prefix="lograb-attack-", ignore_cleanup_errors=True) as folder:
        job = {"path": sys.path, "file": None if attack.file is None else str(attack.file), "name": name,
               "module": str(attack.source), "function": attack.function, "settings": attack.settings,
               "parent": os.getpid(),
               "seeds": [int.from_bytes(sha256(rng.bytes(32)).digest()) for rng in streams]}  # fmt: skip
        (Path(folder) / JOB).write_text(json.dumps(job))
        np.savez(Path(folder) / SEEN, allow_pickle=False, **{
            f"{number}/{part}": array for number, graph in enumerate(seen) for part, array in pack(graph).items()})
        code = _run(folder, attack.timeout)
        if code is None:
            raise LograbError(f"the attack '{name}' was ended after {attack.timeout:g} seconds")
        if (problem := _read_small(Path(folder) / FAILED)) is not None:
            raise LograbError(problem.decode(errors="replace")[:2000])
        if not _is_file(Path(folder) / ANSWER):
            how = f"with signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
            raise LograbError(f"the attack '{name}' ended {how} and without an answer")
        arrays, told = read_answer_arrays(Path(folder) / ANSWER), _diagnostics(Path(folder) / TOLD)
        answers = [build_answer(f"the answer of '{name}'", arrays, number, graph.n_nodes, graph.node_names)
                   for number, graph in enumerate(seen)]  # fmt: skip
        for number, answer in enumerate(answers):
            if isinstance(mine := told.get(str(number)), dict):
                answer.diagnostics.update(mine)
        return answers


def _run(folder: str, timeout: float | None) -> int | None:
    """Run the program and give its exit code; None where it took too long. Its children end with it."""
    command = [sys.executable, "-I", "-c", PROGRAM, folder]
    output = 2 if _is_open(2) else subprocess.DEVNULL  # stdout is for results
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                               start_new_session=True)  # fmt: skip
    end = math.inf if timeout is None else time.monotonic() + timeout
    try:
        while (left := end - time.monotonic()) > 0:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(min(left, STEP))
        return None
    finally:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)  # its own group: see start_new_session
        process.wait()


def _is_open(number: int) -> bool:
    with suppress(OSError):
        os.fstat(number)
        return True
    return False


def _is_file(path: Path) -> bool:
    """Say whether there is a regular file: what an attack left behind may also be a pipe without an end."""
    with suppress(OSError):
        return stat.S_ISREG(path.lstat().st_mode)
    return False


def _read_small(path: Path) -> bytes | None:
    if not _is_file(path):
        return None
    with path.open("rb") as file:
        return file.read(MAX_TOLD)


def _diagnostics(path: Path) -> dict[str, Any]:
    """Read what the method tells of itself; nothing where that is not JSON."""
    try:
        told = json.loads(_read_small(path) or b"{}")
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


# --- the other side -------------------------------------------------------------------------------------------


def serve(folder: str) -> None:
    """Do what a job asks for, in the process of its own."""
    place = Path(folder)
    job = json.loads((place / JOB).read_text())
    _end_with(job["parent"])
    parts: dict[str, Any] = {}
    told = {}
    try:
        attack = _find(job)
        with np.load(place / SEEN, allow_pickle=False) as file:
            for number, seed in enumerate(job["seeds"]):
                mine = {name: file[name] for name in file.files if name.startswith(f"{number}/")}
                seen = unpack({name.partition("/")[2]: array for name, array in mine.items()})
                if "features" in getattr(attack, "uses", ()) and seen.features is None:
                    raise LograbError(f"the attack '{job['name']}' needs features: add --features (features=True)")
                found = attack(seen, np.random.default_rng(seed))
                _check(job["name"], found, seen)
                parts |= {f"{number}/{part}": np.asarray(value) for part in PARTS
                          if (value := getattr(found, part)) is not None}  # fmt: skip
                with suppress(TypeError, ValueError, RecursionError):
                    told[number] = json.loads(json.dumps(found.diagnostics))
    except LograbError as error:
        (place / FAILED).write_text(str(error))
        return
    except (Exception, SystemExit) as error:
        (place / FAILED).write_text(f"the attack '{job['name']}' failed: {_last_line(error, job['file'])}")
        return
    (place / TOLD).write_text(json.dumps(told))
    np.savez(place / "unfinished.npz", allow_pickle=False, **parts)
    os.replace(place / "unfinished.npz", place / ANSWER)


def _end_with(parent: int) -> None:
    """End when the process that asked does, where the system can tell."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _find(job: dict[str, Any]) -> Any:
    module = import_module(job["module"]) if job["file"] is None else _run_file(Path(job["file"]))
    found = getattr(module, job["function"], None)
    if found is None:
        here = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")
                and getattr(value, "__module__", module.__name__) == module.__name__]  # fmt: skip
        raise unknown_name(f"function of '{job['name'].rpartition(':')[0]}':", job["function"], here or ["none"])
    if job["settings"] and not isinstance(found, type):
        raise LograbError(f"a function takes no settings, got {', '.join(job['settings'])}: write "
                          f"'{job['name']}' as a lograb.attacks.Attack with parameters")  # fmt: skip
    return found(**job["settings"]) if job["settings"] else as_attack(found)


def _check(name: str, answer: Any, seen: Observations) -> None:
    if not isinstance(answer, Reconstruction):
        raise LograbError(f"the attack '{name}' must return a lograb.Reconstruction, got {type(answer).__name__}")
    if answer.n_nodes != seen.n_nodes:
        raise LograbError(f"the attack '{name}' answers about {answer.n_nodes} nodes, the observations have "
                          f"{seen.n_nodes}")  # fmt: skip


def _run_file(path: Path) -> ModuleType:
    """Run a file, with what lies beside it in reach, as ``python FILE`` would."""
    sys.path.insert(0, str(path.parent))
    spec = spec_from_file_location(f"lograb_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise LograbError(f"'{path.name}' is no Python file")
    module = module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def _last_line(error: BaseException, file: str | None) -> str:
    """Name an error, and the last line of the attack's file that led to it."""
    steps = traceback.extract_tb(error.__traceback__)
    inside = [step for step in steps if step.filename == file] or steps[-1:]
    place = f" ({Path(inside[-1].filename).name}, line {inside[-1].lineno})" if inside else ""
    if isinstance(error, SyntaxError):
        place = f" (line {error.lineno})"
    return f"{type(error).__name__}: {error}{place}"
