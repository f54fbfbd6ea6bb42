"""What an audit found: everything as plain data, in the order of the schema, and as files."""

from __future__ import annotations

import csv
import json
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

from lograb import __version__
from lograb.auditing.policy import Policy, blame, recommend
from lograb.auditing.sharing import command
from lograb.auditing.subject import Subject
from lograb.auditing.vocabulary import scenario, terms
from lograb.auditing.wording import COUNTED, ESTIMATED, LEAST, answer, reasons, recommendation
from lograb.report import write_audit
from lograb.writing import check_target, replacing

SCHEMA = 1
ORDER = ("schema", "lograb", "source", "scenario", "plan", "answer", "reasons", "recommendation", "channels",
         "settings", "exposed", "drawing", "certificates", "ledger", "terms", "run")
COLUMNS = ("u", "v", "probability", "true", "readable", "by")
Pair = tuple[str, str, float, bool | None, bool, str]


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What an audit found.

    Attributes
    ----------
    findings : everything, ready for JSON: the same as `to_dict`
    pairs : every pair worth telling, worst first: names, probability, whether it is an edge (None without truth),
        whether it counts as read, and by what
    """

    findings: dict[str, Any]
    pairs: list[Pair]

    def __repr__(self) -> str:
        return f"<Audit of {self.findings['source']['name']}: {self.findings['answer']['headline']}>"

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain data, as docs/reference/audit-json.md describes it."""
        return dict(self.findings)

    def save(self, path: str | Path) -> None:
        """Write the page, and beside it the same as .json, and all pairs, worst first, as .csv."""
        path = Path(path)
        check_names(path)
        write_audit(path, self.findings)
        with replacing(path.with_suffix(".json")) as file:
            file.write(json.dumps(self.findings, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        self.save_pairs(path.with_suffix(".csv"))

    def save_pairs(self, path: str | Path) -> None:
        """Write all pairs as a table, worst first."""
        with replacing(path) as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(COLUMNS)
            for u, w, chance, true, readable, by in self.pairs:
                table.writerow([u, w, f"{chance:.6g}", "" if true is None else int(true), int(readable), by])


def check_names(page: Path) -> None:
    """Refuse to write beside a page over files that are no earlier findings."""
    check_target(page.with_suffix(".json"), "audit", _is_findings)
    check_target(page.with_suffix(".csv"), "audit", _is_table)


def _is_findings(content: IO[bytes]) -> bool:
    return b'"schema"' in content.read(40)


def _is_table(content: IO[bytes]) -> bool:
    return content.readline(100).strip() == ",".join(COLUMNS).encode()


def assemble(
    subject: Subject, policy: Policy, settings: list[dict[str, Any]], details: dict[str, Any], run: dict[str, Any]
) -> dict[str, Any]:
    """Put everything together, in the order of the schema."""
    plan, spec = subject.plan, subject.plan.spec
    summary = plan.summary()
    chosen = recommend(settings, policy)
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "lograb": __version__,
        "source": {"name": subject.name, "kind": subject.kind, "n_nodes": plan.n_nodes,
                   "n_edges": summary["n_edges"], "n_patches": plan.n_patches,
                   "edges_in_scope": summary["co_observed_edges"], "truth": plan.has_truth,
                   "holds_truth": subject.kind == "archive" and plan.has_truth,
                   "holds_seed": subject.kind == "archive" and spec.seed is not None,
                   "labels": plan.labels is not None, "notices": summary["notices"]},
        "scenario": scenario(subject),
        "plan": {"k": spec.k, "sigma": spec.sigma, "precision": spec.precision, "defences": list(spec.defences),
                 "gauge": spec.gauge, "eigenvalues": plan.observations.values is not None,
                 "releases": spec.releases, "d": spec.d if spec.strategy in ("d-hop", "cluster") else None,
                 "p": spec.p, "strategy": spec.strategy},
        "channels": details["channels"],
        "settings": settings,
        "exposed": details["exposed"],
        "drawing": details["drawing"],
        "certificates": details["certificates"],
        "ledger": details["ledger"],
    }  # fmt: skip
    found["answer"] = answer(found, policy, details["total"])
    found["recommendation"] = {
        "tolerate": policy.tolerate, "confidence": policy.confidence, "policy": run.pop("policy"),
        "least_use": LEAST,
        "setting": None if chosen is None else chosen["id"],
        "blame": None if chosen is not None else blame(settings, details["channels"], policy,
                                                              estimated=not plan.has_truth),
    }  # fmt: skip
    found["recommendation"]["rule"] = COUNTED if plan.has_truth else ESTIMATED
    found["recommendation"]["command"] = None if chosen is None else command(subject, chosen)
    found["recommendation"]["sentence"] = recommendation(found, policy, chosen)
    found["reasons"] = reasons(found, policy)
    found["terms"] = terms(found, policy)
    found["run"] = run
    return {name: found[name] for name in ORDER}


def versions() -> dict[str, str]:
    """Give the versions of what was run."""
    found = {"lograb": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
