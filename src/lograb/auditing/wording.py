"""The findings in plain words: the answer, what is enough, and the reasons for and against."""

from __future__ import annotations

from typing import Any

from lograb.auditing.measuring import GUESSED
from lograb.auditing.policy import Policy
from lograb.score import percent

Found = dict[str, Any]
CHANNELS = {
    "membership": ("who sits in whose patch", "sanitising the graph before it is cut (edge-rand, lap-graph)"),
    "eigenvectors": ("the eigenvectors by themselves", "calibrated noise (subspace, gaussian), fewer columns"),
    "eigenvalues": ("eigenvectors with their eigenvalues", "withholding the eigenvalues, calibrated noise"),
    "all": ("everything together", "each channel by its own defence"),
}
"""Each channel: what it is, and what protects it."""
IN_VECTORS = ("calibrated noise; withholding the eigenvalues does not help: as much is read from the eigenvectors "
              "by themselves")
"""What protects eigenvalues that follow from their eigenvectors."""
NUMBERS = ("readable", "share", "share_interval", "scale_known", "share_half", *GUESSED, "by_membership", "f1",
           "f1_interval", "floor", "floor_by", "ceiling", "expected_f1", "measured_f1", "expected_share",
           "expected_precision")  # fmt: skip
NO_PROOF = "An attack that fails is no proof of safety: a better one may come."
MORE = "Whoever knows some edges already, or the nodes' features, can read more than is measured here."
CHECKSUM = "The eigenvalues act as a checksum: whoever guesses a patch can tell that the guess is right."
OFTEN = "One release is reckoned with. Who gets several with fresh noise averages it away (--releases)."
NO_TRUTH = "There is no true graph here to compare with."
NO_SCALE = "Nothing in the file tells how many edges there are"
GRAPH_TELLS = "An audit of the graph itself, which has the truth, can tell more than an audit of the file."
SHAREABLE = "Share one made with --no-truth."
COUNTED = ("The rule: what is read is counted against the true graph, and a setting is enough if that keeps to "
           "the limit; without the true graph the upper end of the attack's own interval must, which can be far "
           "higher, so the same setting can be rejected there.")
ESTIMATED = ("The rule: there is no true graph to count against, and a setting is enough only if the upper end of "
             "the attack's own interval keeps to the limit; with the true graph what is read is counted, which "
             "can be far less, so the same setting can be enough there.")
"""By what a setting is judged, and why the other way can end otherwise."""
UNKNOWN = "unknown"
"""The level where the limit lies inside the interval: what is read may keep to it or not."""
HALF = 0.5
"""From which share on the plan counts as exposed, whatever is tolerated."""
MORE_THAN_READ = 0.05
"""Share of the edges from which on what is known beyond what is read is worth a sentence."""
LEAST = 0.2
"""Part of the way from chance, or no embeddings, to 1 below which a setting is next to useless."""


USELESS = (f"That is less than {percent(LEAST)} of the way from chance to all of it and leaves next to nothing to "
           "use: sharing nothing is nearly as good.")


def answer(found: Found, policy: Policy, total: float) -> Found:
    """Say first what would be learned."""
    plan, estimated = found["settings"][0], not found["source"]["truth"]
    numbers = {name: plan[name] for name in NUMBERS} | {"precision": plan["sure"], "in_scope": round(total)}
    worst = plan["share_interval"][1] if estimated else plan["share"]
    worst = max(worst, plan["guessed_share"])  # what just misses being read is no little
    level = "exposed" if plan["share"] >= HALF else "little" if worst <= policy.tolerate else "partly"
    if estimated and plan["share_interval"][0] <= policy.tolerate < plan["share_interval"][1]:
        level = UNKNOWN
    headline = _estimate(found, numbers, policy, level) if estimated else _headline(found, numbers, policy)
    return {"level": level, "estimated": estimated, "headline": headline,
            "channel": GRAPH_TELLS if level == UNKNOWN else _channel(numbers), "numbers": numbers}  # fmt: skip


def guesses_more(row: Found) -> bool:
    """Whether clearly more is known than is read with confidence."""
    return bool(row["scale_known"] and row["guessed_share"] > row["share"] + MORE_THAN_READ)


def less_sure(row: Found) -> str:
    """Say how much is known without being sure, and how sure that is."""
    right, share = percent(row["guessed"] / row["guesses"]), percent(row["guessed_share"])
    return (f"With less confidence {row['guessed']:,} edges ({share}) are named, with {right} of "
            f"{row['guesses']:,} claims right.")  # fmt: skip


def _headline(found: Found, numbers: Found, policy: Policy) -> str:
    word, readable, total = found["scenario"]["edge_word"], numbers["readable"], numbers["in_scope"]
    if not total:
        return "No edge lies inside any patch: nothing that is shared speaks of one."
    more = less_sure(numbers) if guesses_more(numbers) else ""
    if not readable:
        return (f"No attack here reads any of your {total:,} {word} with {percent(policy.confidence)} confidence. "
                f"{more or 'That is no proof that nobody can.'}")  # fmt: skip
    return (f"An eavesdropper reads {readable:,} of your {total:,} {word} ({percent(numbers['share'])}), and "
            f"{percent(numbers['precision'])} of what it claims is right. {more}").rstrip()  # fmt: skip


def _estimate(found: Found, numbers: Found, policy: Policy, level: str) -> str:
    word, readable, (low, high) = found["scenario"]["edge_word"], numbers["readable"], numbers["share_interval"]
    last = f"{less_sure(numbers)} {NO_TRUTH}" if guesses_more(numbers) else NO_TRUTH
    between = f"between {percent(low)} and {percent(high)}"
    if not numbers["scale_known"]:
        return (f"Unknown: an eavesdropper may read anything {between} of your {word}. {NO_SCALE}, and all that "
                f"the attack claims may be right. {last}")  # fmt: skip
    if not readable:
        said = "that is unsure, it may be" if level == UNKNOWN else "it may be"
        return (f"By its own estimate the attack reads none of your {word} with {percent(policy.confidence)} "
                f"confidence; {said} up to {percent(high)}. {last}")  # fmt: skip
    return (f"By its own estimate an eavesdropper reads about {readable:,} of some {numbers['in_scope']:,} {word} "
            f"({percent(numbers['share'])}, {between}). {last}")  # fmt: skip


def _channel(numbers: Found) -> str:
    by, share = numbers["by_membership"], numbers["share"]
    if not numbers["readable"] and guesses_more(numbers):
        return "That is a leak too: most of these claims are right."
    if not numbers["readable"]:
        return "Who sits in whose patch gives nothing away either, as far as these attacks can tell."
    if by >= 0.99 * share:
        return ("All of it comes from membership alone: who sits in whose patch tells, and noise on the "
                "embeddings cannot protect that.")  # fmt: skip
    if by > 0:
        return (f"{percent(by)} come from membership alone, which noise on the embeddings cannot protect; the "
                "rest comes from the embeddings.")  # fmt: skip
    return "All of it comes from the embeddings; who sits in whose patch gives no edge away by itself."


def recommendation(found: Found, policy: Policy, chosen: Found | None) -> str:
    """Say what is enough, or that nothing here is."""
    limit = (f"at most {percent(policy.tolerate)} of the edges readable with {percent(policy.confidence)} "
             "confidence")  # fmt: skip
    if chosen is None:
        return _nothing_does(found, limit)
    if chosen["group"] == "plan":
        said = f"What is planned keeps to the limit: {limit}."
    else:
        said = f"To keep to the limit ({limit}) at the least cost: {chosen['label']}."
    said += f" The attacks then read {percent(chosen['share'])}"
    if (draws := len(chosen["draws"])) > 1:
        said += f" in the worst of {draws} draws"
    if not found["source"]["truth"]:
        said += f", {percent(chosen['share_interval'][1])} at most by their own estimate"
    if chosen["share_half"] > chosen["share"] + 0.01:
        said += f", and {percent(chosen['share_half'])} if half of what they claim may be wrong"
    said += f". {less_sure(chosen)}" if guesses_more(chosen) else "."
    said += "" if chosen["utility"] is None else f" {use(chosen)}."
    said += f" {USELESS}" if useless(chosen) else ""
    if chosen["heuristic"]:
        return said + " This is what these attacks read, not a guarantee."
    return said + f" It carries a guarantee: {guarantee(chosen)}."


def _nothing_does(found: Found, limit: str) -> str:
    why = found["recommendation"]["blame"]
    estimated = not found["source"]["truth"]
    done = [row for row in found["settings"] if row["status"] == "done"]
    closest = min(done, key=lambda row: row["share_interval"][1] if estimated else row["share"])
    reads = f"up to {percent(closest['share_interval'][1])}" if estimated else percent(closest["share"])
    if why == "policy":
        return (f"No setting on this grid keeps to the policy. {_named(closest)} keeps to the limit ({limit}) "
                f"with {reads}, but not to what else the policy asks: a guarantee, its ε, or the kinds of "
                "changes.")  # fmt: skip
    said = f"No setting on this grid does it ({limit}). The closest is {closest['label']}, with {reads}."
    if why == "doubt":
        return said + " The attack's own estimate is too wide to decide by: audit the graph, which has the truth."
    if why == "membership":
        return said + (" Membership is to blame: who sits in whose patch gives the edges away, whatever is done "
                       "to the embeddings. Share other patches, or sanitise the graph more.")  # fmt: skip
    return said + f" What gives them away are the {why}."


def _named(setting: Found) -> str:
    label = str(setting["label"])
    return "What is planned" if setting["group"] == "plan" else label[0].upper() + label[1:]


def guarantee(setting: Found) -> str:
    """Write the guarantee of a setting with its ε."""
    epsilon = (setting["epsilon"] or {}).get("edge")
    return str(setting["guarantee"]) + ("" if epsilon is None else f", with ε = {epsilon:.3g}")


def use(setting: Found) -> str:
    """Say what a setting is good for."""
    told = setting["utility"]
    if told["name"] == "accuracy":
        return (f"Classifying nodes with it reaches an accuracy of {told['value']:.2f}; without embeddings it is "
                f"{told['without_embeddings']:.2f}")  # fmt: skip
    return (f"It keeps {percent(told['value'])} of the leading subspace ({_first(told['dimension'])}); by chance "
            f"it would be {percent(told['without_embeddings'])}")  # fmt: skip


def _first(columns: int) -> str:
    return "the first eigenvector" if columns == 1 else f"the first {columns} eigenvectors"


def useless(setting: Found) -> bool:
    """Whether a setting is hardly of more use than having no embeddings: the one rule, by its utility."""
    told = setting["utility"]
    without = 1.0 if told is None else told["without_embeddings"]
    return told is not None and told["value"] - without < LEAST * (1 - without)


def reasons(found: Found, policy: Policy) -> dict[str, list[str]]:
    """Weigh: what speaks against sharing, what for caution, what for sharing."""
    return {"against": _against(found, policy), "caution": _caution(found), "for": _speaks_for(found, policy)}


def _against(found: Found, policy: Policy) -> list[str]:
    plan, numbers, proofs = found["settings"][0], found["answer"]["numbers"], found["certificates"]
    said = []
    if found["source"]["holds_truth"]:
        said.append(f"The file itself holds the true graph, for scoring. {SHAREABLE}")
    if found["source"]["holds_seed"] and (found["plan"]["sigma"] or found["plan"]["defences"]):
        said.append(f"The file itself holds the seed, with which its noise can be subtracted. {SHAREABLE}")
    unsure, most = found["answer"]["level"] == UNKNOWN, numbers["share_interval"][1]
    over = numbers["share"] > policy.tolerate and not unsure
    if not over and not found["source"]["truth"] and most > policy.tolerate:
        said.append(f"Up to {percent(most)} of the {found['scenario']['edge_word']} may be readable; "
                    f"{percent(policy.tolerate)} are tolerated.")  # fmt: skip
    if over:
        said.append(f"{percent(numbers['share'])} of the {found['scenario']['edge_word']} can be read; "
                    f"{percent(policy.tolerate)} are tolerated.")  # fmt: skip
    if not over and numbers["scale_known"] and numbers["guessed_share"] > policy.tolerate:
        said.append(f"{less_sure(numbers)} That they do not count as read is a matter of the limit.")
    if numbers["by_membership"] > policy.tolerate:
        said.append(f"Membership alone gives {percent(numbers['by_membership'])} away, and nothing done to the "
                    "embeddings changes that.")  # fmt: skip
    if proofs["certified"] and numbers["readable"]:
        said.append(f"For {proofs['certified']:,} of {proofs['patches']:,} patches every edge follows with "
                    "certainty from what is shared.")  # fmt: skip
    if over and proofs["checked"]:
        said.append(CHECKSUM)
    if plan["heuristic"]:
        said.append("No guarantee: nothing that is planned limits what a better attack could read.")
    return said


def _caution(found: Found) -> list[str]:
    source, plan, numbers = found["source"], found["settings"][0], found["answer"]["numbers"]
    said = [NO_PROOF]
    if not source["truth"]:
        said.insert(0, f"All figures are the attack's own estimate, with its interval. {NO_TRUTH}")
        said += [] if found["answer"]["level"] == UNKNOWN else [GRAPH_TELLS]
    elif source["n_edges"] > source["edges_in_scope"]:
        left = source["n_edges"] - source["edges_in_scope"]
        said.append(f"{left:,} of {source['n_edges']:,} edges lie in no patch: nothing here speaks of them.")
    if numbers["scale_known"] and numbers["share_half"] > numbers["share"] + 0.05:
        said.append(f"If half of the claims may be wrong, {percent(numbers['share_half'])} can be read.")
    if found["plan"]["releases"] == 1 and not plan["heuristic"]:
        said.append(OFTEN)
    return [*said, MORE]


def _speaks_for(found: Found, policy: Policy) -> list[str]:
    plan, numbers = found["settings"][0], found["answer"]["numbers"]
    said = []
    if not plan["heuristic"]:
        said.append(f"What is planned carries a guarantee: {guarantee(plan)}.")
    worst = numbers["share"] if found["source"]["truth"] else numbers["share_interval"][1]
    if max(worst, numbers["guessed_share"]) <= policy.tolerate:
        said.append(f"The attacks read {percent(numbers['share'])}; {percent(policy.tolerate)} are tolerated.")
    told = plan["utility"]
    if told is not None and told["name"] == "accuracy" and not useless(plan):
        said.append(f"It is of use. {use(plan)}.")
    if plan["share"] > policy.tolerate and found["recommendation"]["setting"] is not None:
        said.append("Another setting keeps to what is tolerated: see the recommendation.")
    return said
