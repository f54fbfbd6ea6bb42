"""The findings in words of data protection: WP216 (anonymisation) and NIST SP 800-226 (differential privacy)."""

from __future__ import annotations

from typing import Any

from lograb.auditing.policy import Policy
from lograb.auditing.subject import Subject
from lograb.auditing.wording import guarantee, guesses_more, less_sure
from lograb.patches.silo_file import GROUP_WORDS
from lograb.score import percent

RECIPIENT = ("The eavesdropper is whoever receives or intercepts what is shared. They know the members' names, "
             "who sits in which patch and how the embeddings were made, defences included; they hold nothing else "
             "about the graph.")
OPINION, GUIDELINES = "WP216", "NIST SP 800-226"


def scenario(subject: Subject) -> dict[str, Any]:
    """Say who shares what with whom."""
    plan = subject.plan
    n, m = plan.n_nodes, plan.n_patches
    sentence, edges = {
        "ego": (f"{_each(m, 'member')} shares an embedding of its own neighbourhood (radius "
                f"{plan.spec.d}){_spoilt(subject)}.", "edges"),
        "silos": (f"{_each(m, subject.groups or 'group')} shares one embedding of its own "
                  f"members{_spoilt(subject)}.", f"edges inside {_groups(subject)}"),
        "global": (f"One embedding of {_count(n, 'node')} is shared{_spoilt(subject)}.", "edges"),
        "given": (f"{_count(m, 'embedding')} of {_count(n, 'node')} {'is' if m == 1 else 'are'} shared as "
                  f"{'it is' if m == 1 else 'they are'}.", "edges inside patches"),
    }[subject.scenario]  # fmt: skip
    complete = int(plan.observations.complete.sum())
    if plan.spec.k > 1 and subject.scenario in ("silos", "global") and 2 * complete > m:
        sentence += (f" For {complete:,} of {m:,} that is the whole spectrum: they have no more than "
                     f"{plan.spec.k:,} members.")  # fmt: skip
    return {"name": subject.scenario, "sentence": sentence, "recipient": RECIPIENT, "edge_word": edges}


def _groups(subject: Subject) -> str:
    word = subject.groups
    return f"{word}s" if word in GROUP_WORDS - {"label"} and not word.endswith(("s", "h", "y")) else "groups"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _each(number: int, noun: str) -> str:
    return f"One {noun}" if number == 1 else f"Each of {_count(number, noun)}"


def _spoilt(subject: Subject) -> str:
    """Say what is done to the embeddings before they are shared, and how often."""
    spec = subject.plan.spec
    done = [f"noise σ = {spec.sigma:g}"] if spec.sigma else []
    done += list(spec.defences)
    often = f", {spec.releases:,} times with fresh noise" if spec.releases > 1 else ""
    return (f", with {' and '.join(done)}" if done else "") + often


def terms(found: dict[str, Any], policy: Policy) -> list[dict[str, str]]:
    """Give each term what was found about it."""
    plan, word = found["settings"][0], found["scenario"]["edge_word"]
    low, high = plan["share_interval"]
    unsure = f"Anything between {percent(low)} and {percent(high)}"
    many = percent(plan["share"]) if plan["scale_known"] else unsure
    inferred = (f"{many} of the {word} can be inferred with {percent(policy.confidence)} "
                f"confidence, {percent(plan['by_membership'])} from membership alone.")  # fmt: skip
    inferred += f" {less_sure(plan)}" if guesses_more(plan) else ""
    said = [("Inference", OPINION, inferred), ("Linkability", OPINION, _linkability(found)),
            ("Singling out", OPINION, _singling_out(found)), ("Unit of privacy", GUIDELINES, _unit(plan)),
            ("Hazards", GUIDELINES, _hazards(found))]  # fmt: skip
    return [{"term": term, "where": where, "finding": finding} for term, where, finding in said]


def _linkability(found: dict[str, Any]) -> str:
    several = found["exposed"]["counts"]["in_several_patches"]
    if any(one.startswith("pseudonyms") for one in found["plan"]["defences"]):
        return "Names are fresh in every patch: records of one node in several patches are not linked by name."
    if not several:
        return "Every node is in one patch only. It is there by name, and so linked to whatever else names it."
    return f"{several:,} nodes are in several patches by the same name: what is shared about them is linked."


def _singling_out(found: dict[str, Any]) -> str:
    counts, nodes = found["exposed"]["counts"], found["exposed"]["nodes"]
    if not nodes:
        return "No node's edges are read."
    said = f"{counts['touched']:,} of {counts['nodes']:,} nodes have an edge read"
    if counts["fully"] is not None:
        said += f", {counts['fully']:,} have all of their {found['scenario']['edge_word']} read"
    return f"{said}; most exposed is {nodes[0]['name']}."


def _unit(plan: dict[str, Any]) -> str:
    if plan["heuristic"]:
        return ("None: what is planned guarantees nothing, for no unit. The defences here protect one edge, or "
                "all that is shared of one patch; never a node with all its edges at a useful ε.")  # fmt: skip
    node = (plan["epsilon"] or {}).get("node")
    more = "" if node is None else f" A node with all its edges: ε = {node:.3g}."
    return f"One edge: {guarantee(plan)}.{more}"


def _hazards(found: dict[str, Any]) -> str:
    open_channels = [line["name"] for line in found["ledger"]["channels"] if line["guarantee"] == "no guarantee"]
    said = [f"unprotected channels ({', '.join(open_channels)})"] if open_channels else []
    if any(line["name"] == "membership" and line["guarantee"] == "public" for line in found["ledger"]["channels"]):
        said.append("membership is taken as public")
    said += ["every further release adds up", "a seed that can be guessed gives the noise away"]
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}."
