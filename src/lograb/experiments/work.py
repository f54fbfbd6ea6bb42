"""What a worker does: make an instance, run one method on it, score it. Nothing here writes to the store.

A task never raises: whatever happens becomes a `Piece` with a status, so that no run stops the others.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import platform
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from lograb import __version__
from lograb.answer_file import PARTS
from lograb.attacks import Attack
from lograb.errors import LograbError, UnavailableError
from lograb.experiments.runs import RunResult, RunSpec, Status
from lograb.experiments.statistics import describe
from lograb.graphs import count_graphs, load_graphs
from lograb.instance import Instance
from lograb.parallel import hold_threads, one_blas_thread
from lograb.pipeline import generate, generate_each
from lograb.tasks import attack
from lograb.tasks.answer_arrays import build_answer
from lograb.tasks.isolation import FileAttack, choose_attack
from lograb.tasks.link_prediction import LinkRun, predict_links, summarise
from lograb.tasks.node_classification import classify, score_scopes
from lograb.tasks.privacy import ledger
from lograb.tasks.reconstruction import graph_bounds, join_scores, run_together, score_graph, stream_of
from lograb.tasks.utility import utility
from lograb.types import Graph, Reconstruction

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Piece:
    """What came of a run, or of a part of its graphs."""

    status: Status = "done"
    reason: str = ""
    graphs: list[Any] = field(default_factory=list)
    """For Task 1, per graph: its score and what bounds it."""
    scores: dict[str, Any] = field(default_factory=dict)
    arrays: Arrays = field(default_factory=dict)
    diagnostics: list[dict[str, Any]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    peak_memory: int | None = None
    versions: dict[str, str] = field(default_factory=dict)


class TimedOut(BaseException):
    """Raised inside a run that takes too long. Not an Exception, which a method might catch."""


Graphs = list[tuple[int | None, Instance]]
"""Instances that a task works on, with their numbers in a dataset of many graphs; else one without a number."""


def make_instances(spec: RunSpec, which: range | None) -> Graphs | Piece:
    """Generate the instance of a run, or those of some graphs of its dataset; or tell why not."""
    with alone():
        try:
            if spec.origin.kind == "file" and not Path(spec.source).expanduser().is_file():
                return Piece("failed", f"there is no file '{spec.source}' any more")
            parameters = spec.instance.model_dump()
            if which is None:
                found: Graphs = [(None, generate(spec.source, **parameters))]
            else:
                each = generate_each(_read(spec.source, which), which, **parameters)
                found = list(zip(which, each, strict=True))
        except Exception as error:
            return _problem(error)
    read = next((graph.manifest.origin.sha256 for _, graph in found), spec.origin.sha256)
    if read != spec.origin.sha256:
        return Piece("failed", f"'{spec.source}' has changed since the plan was made: its SHA-256 was "
                               f"{spec.origin.sha256:.12} and is {read:.12}")  # fmt: skip
    return found


def is_split(spec: RunSpec) -> bool:
    """Say whether the graphs of a run can go to different workers: those of Task 1 on many graphs."""
    return spec.task == "reconstruction" and spec.origin.kind != "file" and count_graphs(spec.source) > 1


_open: dict[str, tuple[int, Iterator[Graph]]] = {}


def _read(source: str, which: range) -> list[Graph]:
    """Read some graphs of a dataset; a worker that gets parts in order reads its files once.

    What is being read is not in `_open`, so threads of one worker never share a reader.
    """
    place, graphs = _open.pop(source, (0, iter(())))
    if not 0 < place <= which.start:
        place, graphs = 0, load_graphs(source, notify=lambda text: None)
    found = list(islice(graphs, which.start - place, which.stop - place))
    _open[source] = (which.stop, graphs)
    return found


def run_piece(graphs: Graphs | Piece, spec: RunSpec, timeout: float | None, old: Arrays | None) -> Piece:
    """Run a method on instances; with `old` answers only score them."""
    if isinstance(graphs, Piece):
        return graphs
    clear_peak()
    start = time.perf_counter()
    try:
        with alone(), time_limit(timeout):
            if spec.task == "reconstruction":
                found = _reconstruct(spec, graphs, old)
            else:
                run = {"classification": _classify, "links": _link, "statistics": _describe,
                       "protection": _protect}[spec.task]  # fmt: skip
                found = run(spec, graphs[0][1], old)
    except TimedOut:
        found = Piece("timed-out", f"was ended after {timeout:g} seconds")
    except Exception as error:
        found = _problem(error)
    seconds = {"all": time.perf_counter() - start} | found.seconds
    return Piece(found.status, found.reason, found.graphs, found.scores, found.arrays, found.diagnostics, seconds,
                 peak(), versions())  # fmt: skip


def _reconstruct(spec: RunSpec, graphs: Graphs, old: Arrays | None) -> Piece:
    attacker = choose_attack(spec.method, spec.settings)
    scored, diagnostics = [], []
    arrays: Arrays = {}
    spent, scoring = 0.0, 0.0
    given = _attack_all(spec, attacker, graphs) if old is None else _stored(old, graphs)
    for (number, graph), answer in zip(graphs, given, strict=True):
        place = number or 0
        start = time.perf_counter()
        scored.append((score_graph(graph, answer), graph_bounds(graph, number)))
        scoring += time.perf_counter() - start
        spent += answer.seconds or 0.0
        diagnostics.append(answer.diagnostics)
        arrays |= _arrays(answer, place)
    return Piece(
        graphs=scored, arrays=arrays, diagnostics=diagnostics, seconds={"method": spent, "scoring": scoring}
    )


def _stored(old: Arrays, graphs: Graphs) -> Iterator[Reconstruction]:
    for number, graph in graphs:
        yield build_answer("the stored answer", old, number or 0, graph.n_nodes, graph.node_names)


def _attack_all(spec: RunSpec, attacker: Any, graphs: Graphs) -> Iterator[Reconstruction]:
    """Attack graph after graph, or many at once where the attack can."""
    shown = [bool(spec.options["features"] and graph.manifest.n_features > 0) for _, graph in graphs]
    streams = [stream_of(spec.instance.seed or 0, number) for number, _ in graphs]
    if len(graphs) > 1 and isinstance(attacker, Attack) and attacker.together:
        seen = [graph.observe(features=sees) for (_, graph), sees in zip(graphs, shown)]
        yield from run_together(attacker, seen, [np.random.default_rng(stream) for stream in streams])
        return
    for (_, graph), stream, sees in zip(graphs, streams, shown):
        yield _attack(graph, attacker, stream, sees)


def _attack(graph: Instance, attacker: Any, stream: np.random.SeedSequence, features: bool) -> Reconstruction:
    """Attack one graph; what goes wrong in a process of its own is a failure, whatever it says."""
    try:
        answer: Reconstruction = attack(graph, attacker, seed=stream, features=features)
    except LograbError as error:
        if isinstance(attacker, FileAttack):
            raise RuntimeError(str(error)) from None
        raise
    return answer


def _arrays(answer: Reconstruction, number: int) -> Arrays:
    return {
        f"{number}/{part}": np.asarray(value) for part in PARTS if (value := getattr(answer, part)) is not None
    }


def _classify(spec: RunSpec, instance: Instance, old: Arrays | None) -> Piece:
    if old is not None:
        from lograb.learning.nodes.splits import Split
        from lograb.learning.patchset import patch_set

        split = Split("stored", old["0/train"], np.zeros_like(old["0/train"]), old["0/test"])
        return Piece(scores=score_scopes(patch_set(instance), split, old["0/answer"]))
    found = classify(instance, spec.method, seed=spec.instance.seed or 0, settings=spec.settings, **spec.options)
    return Piece(scores=found.to_dict(), arrays=found.raw, seconds={"method": found["seconds"]})


def _link(spec: RunSpec, instance: Instance, old: Arrays | None) -> Piece:
    if old is not None:
        return Piece(scores=summarise([LinkRun(old["0/positives"], old["0/negatives"], old["0/scores"])]))
    found = predict_links(instance, spec.method, seed=spec.instance.seed or 0, settings=spec.settings,
                          **spec.options)  # fmt: skip
    if found["status"] != "ok":
        return Piece("not-applicable", found["reason"])
    return Piece(scores=found.to_dict(), arrays=found.raw, seconds={"method": found["seconds"]})


def _describe(spec: RunSpec, instance: Instance, old: Arrays | None) -> Piece:
    return Piece(scores=describe(instance))


def _protect(spec: RunSpec, instance: Instance, old: Arrays | None) -> Piece:
    """Say what the defences of an instance guarantee, and what is left to use."""
    told = ledger(instance)
    units = {unit: found["epsilon"] for unit, found in told["units"].items() if found is not None}
    return Piece(scores=utility(instance, seed=spec.instance.seed or 0)
                 | {"guarantee": told["whole"], "epsilon": units, "ledger": told["sentence"]})  # fmt: skip


def join_pieces(
    spec: RunSpec, pieces: Sequence[Piece], earlier: RunResult | None = None
) -> tuple[RunResult, Arrays]:
    """Put the pieces of a run, in order, into one result; scored again, it keeps what `earlier` told."""
    bad = next((piece for piece in pieces if piece.status != "done"), None)
    told: dict[str, Any] = {"key": spec.key, "name": spec.name, "spec": spec.identity(),
                            "versions": pieces[0].versions or versions()}  # fmt: skip
    peaks = [piece.peak_memory for piece in pieces if piece.peak_memory is not None]
    seconds = {key: sum(piece.seconds.get(key, 0.0) for piece in pieces) for key in pieces[0].seconds}
    told |= {"seconds": seconds, "peak_memory": max(peaks, default=None)}
    if bad is not None:
        return RunResult(**told, status=bad.status, reason=bad.reason), {}
    scores, graphs = dict(pieces[0].scores), [graph for piece in pieces for graph in piece.graphs]
    if graphs:
        scores = join_scores([score for score, _ in graphs], [bounds for _, bounds in graphs]).to_dict()
    told["diagnostics"] = _add_up([each for piece in pieces for each in piece.diagnostics])
    if earlier is not None:
        scores = earlier.scores | scores
        told |= {name: getattr(earlier, name) for name in ("diagnostics", "seconds", "peak_memory", "versions")}
    arrays = {name: array for piece in pieces for name, array in piece.arrays.items()}
    return RunResult(**plain(told), status="done", scores=plain(scores)), arrays


def _add_up(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Add the numbers of several graphs up; of one graph everything is told."""
    if len(parts) < 2:
        return parts[0] if parts else {}
    numbers = {key for part in parts for key, value in part.items() if isinstance(value, int | float)}
    return {key: sum(part.get(key) or 0 for part in parts) for key in sorted(numbers)}


def plain(content: Any) -> Any:
    """Turn numpy's numbers and tuples into JSON's; what is not finite is None."""
    if isinstance(content, dict):
        return {str(key): plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [plain(value) for value in content]
    if isinstance(content, np.generic | np.ndarray):
        return plain(content.tolist())
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    return content if isinstance(content, str | int | bool | None) else str(content)


def _problem(error: Exception) -> Piece:
    """Say what went wrong: input that a method cannot take is no failure of the method, a file out of reach is."""
    if isinstance(error, UnavailableError):
        return Piece("failed", str(error))
    if isinstance(error, LograbError):
        return Piece("not-applicable", str(error))
    last = traceback.extract_tb(error.__traceback__)[-1]
    return Piece("failed", f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})")


@contextmanager
def alone() -> Iterator[None]:
    """Use one core: the others belong to other workers."""
    hold_threads(1)
    try:
        with one_blas_thread():
            if (torch := sys.modules.get("torch")) is not None:
                torch.set_num_threads(1)
            yield
    finally:
        hold_threads(None)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise `TimedOut` in this thread after so many seconds, as soon as Python code runs in it."""
    if seconds is None:
        yield
        return
    thread, raising = threading.get_ident(), ctypes.pythonapi.PyThreadState_SetAsyncExc
    timer = threading.Timer(seconds, raising, (ctypes.c_ulong(thread), ctypes.py_object(TimedOut)))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        raising(ctypes.c_ulong(thread), None)  # what is not raised yet must not hit what comes next


def clear_peak() -> None:
    """Forget the highest memory of this process so far, and what it keeps unused, where the system can."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak() -> int | None:
    """Give the highest memory of this process since `clear_peak`, in bytes."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        import resource  # not on every system

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), None)


@cache
def versions() -> dict[str, str]:
    """Name what runs: lograb and a digest of its source code, Python, the libraries."""
    code = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        code.update(path.read_bytes())
    found = {"lograb": __version__, "code": code.hexdigest()[:12], "python": platform.python_version()}
    return found | {name: version(name) for name in ("numpy", "scipy")}
