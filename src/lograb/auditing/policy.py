"""What is tolerated, and what on the grid keeps to it: the rule behind the recommendation."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from lograb.errors import LograbError, unknown_name
from lograb.spec import checked

Group = Literal["plan", "noise", "columns", "precision", "withhold", "defence", "graph"]
GROUPS: tuple[Group, ...] = ("plan", "noise", "columns", "precision", "withhold", "defence", "graph")
EQUAL = 0.005
"""Difference in utility that does not count."""


class Policy(BaseModel):
    """What somebody tolerates.

    Attributes
    ----------
    tolerate : the largest share of the edges that may be read
    confidence : the share of an attacker's claims that must be right for them to count as reading
    require_guarantee : whether only settings with a formal guarantee for all that is shared will do
    max_epsilon : the largest ε of an edge; settings without an ε will not do then
    allow : the kinds of changes that may be recommended
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    tolerate: float = Field(0.1, ge=0, le=1)
    confidence: float = Field(0.9, gt=0, le=1)
    require_guarantee: bool = False
    max_epsilon: float | None = Field(None, gt=0)
    allow: tuple[Group, ...] = GROUPS


def read_policy(path: str | Path) -> Policy:
    """Read a policy from a TOML file."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise LograbError(f"cannot read the policy '{path}': {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LograbError(f"the policy '{path}' is no TOML file: {error}") from None
    return make_policy(content, f"the policy '{path}': ")


def make_policy(content: Mapping[str, Any], who: str = "the policy: ") -> Policy:
    """Check what a policy says; a name that it does not know comes with the closest one."""
    for name in content:
        if name not in Policy.model_fields:
            raise LograbError(f"{who}{unknown_name('setting', name, Policy.model_fields)}")
    return checked(Policy, dict(content), who)


def tolerated(setting: dict[str, Any], policy: Policy, *, estimated: bool) -> bool:
    """Whether a measured setting keeps to a policy; an estimate by the upper end of its interval."""
    if setting["status"] != "done":
        return False
    share = setting["share_interval"][1] if estimated else setting["share"]
    if share > policy.tolerate:
        return False
    epsilon = (setting["epsilon"] or {}).get("edge")
    if policy.require_guarantee and setting["heuristic"]:
        return False
    return policy.max_epsilon is None or (epsilon is not None and epsilon <= policy.max_epsilon)


def recommend(settings: list[dict[str, Any]], policy: Policy) -> dict[str, Any] | None:
    """Choose among the tolerated settings: the plan, else the one that keeps most utility; of equals the first."""
    fine = [one for one in settings if one["tolerated"] and one["group"] in policy.allow]
    if not fine or fine[0]["group"] == "plan":
        return fine[0] if fine else None
    best = max(_use(one) for one in fine)
    return next(one for one in fine if _use(one) >= best - EQUAL)


def _use(setting: dict[str, Any]) -> float:
    return -1.0 if setting["utility"] is None else float(setting["utility"]["value"])


def blame(
    settings: list[dict[str, Any]], channels: list[dict[str, Any]], policy: Policy, *, estimated: bool
) -> str:
    """Name the channel that keeps every setting above the tolerance; or what else the policy asks, or doubt."""
    limit = checked(Policy, {"tolerate": policy.tolerate})
    if any(tolerated(one, limit, estimated=estimated) for one in settings):
        return "policy"
    if estimated and any(tolerated(one, limit, estimated=False) for one in settings):
        return "doubt"
    shares = {one["name"]: one["share"] for one in channels}
    shared = [one for one in settings if one["status"] == "done" and one["group"] != "graph"]
    if shared and min(one["by_membership"] for one in shared) > policy.tolerate:
        return "membership"
    return "eigenvectors" if shares.get("eigenvectors", 0.0) > policy.tolerate else "eigenvalues"
