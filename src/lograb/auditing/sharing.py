"""The command that makes what is recommended, ready to be shared."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from lograb.auditing.subject import Subject

SHARED, PACKED = "{}-shared.lograb", "{}-packed.lograb"
"""Names of what the command makes, after what it reads: it writes over nothing else."""
SECRET = "secret"
"""Asks the command line for a seed that nobody can guess: noise of one that can be guessed is no noise."""


def command(subject: Subject, setting: dict[str, Any]) -> str | None:
    """Write the command that makes a setting; None where there is nothing to make, or no file to make it of."""
    if setting["group"] == "plan" or not subject.path:
        return None
    if subject.graph is not None:
        seeds = ["--seed", SECRET] if subject.draws_noise(setting["group"]) else []
        return shlex.join(["lograb", "generate", subject.path, *_options(subject, setting["change"]), *seeds,
                           "--no-truth", "-o", _named(SHARED, subject)])  # fmt: skip
    made, before = subject.path, ""
    if not made.endswith(".lograb"):
        made = _named(PACKED, subject)
        before = f"{shlex.join(['lograb', 'pack', subject.path, '-o', made])} && "
    return before + shlex.join(["lograb", "defend", made, *setting["change"].split(), "--no-truth", "-o",
                                _named(SHARED, subject)])  # fmt: skip


def _named(name: str, subject: Subject) -> str:
    return name.format(Path(subject.path).stem or "embeddings")


def _options(subject: Subject, change: str) -> list[str]:
    """Write what the plan says, but for what a setting changes; of several releases, one."""
    names = {"strategy": "--strategy", "d": "-d", "patches": "--patches", "patches_by": "--patches-by", "k": "-k",
             "sigma": "--sigma"}  # fmt: skip
    usual = {"strategy": "d-hop", "sigma": 0.0}
    changed = change.split()
    found = list(subject.reading)
    for key, name in names.items():
        value = subject.parameters.get(key)
        if value is not None and name not in changed and usual.get(key) != value:
            found += [name, f"{value:g}" if isinstance(value, float) else str(value)]
    for one in subject.plan.spec.defences:
        found += ["--defence", one]
    return found + changed
