"""Stage 4: what is shared instead, and what that guarantees.

One interface (`Defence`): settings are its fields, given by name; each says which channel it touches, which
guarantee it gives for which unit, and what it leaves exposed. They compose: a list of them is applied in the order
written.

Two kinds
    On the graph, before it is cut (``edge-rand``, ``lap-graph``): whatever follows, membership included, is made
    of the sanitised graph, so the guarantee covers every channel. Both are sparse: flips are drawn by their
    number, and no array has n x n entries.

    On what is shared (all others): Observations -> Observations. Only noise that is calibrated to a sensitivity
    (``gaussian``, ``subspace``, ``eigenvalue-noise``, and the plain noise sigma) gives a guarantee; the others are
    heuristics, measured by attacks alone.

Units
    A published embedding stays in its own units. The mechanism of the paper (§6.2) clips it to Frobenius norm R
    and adds noise; r orthonormal columns have norm √r exactly, so the clipping is a multiplication by a public
    number, and the division by it afterwards costs no privacy. In these units the noise is 2 max(√r, R) / μ, with
    μ the Gaussian parameter of (ε, δ) (`accounting`).

Kerckhoffs
    What is applied stands in the spec, in the archive and in `Observations.protocol`, as text
    (``gaussian:epsilon=2.0``) that `parse` reads back. An attacker knows all of it, and nothing that was drawn.

T releases
    With fresh noise in each and one gauge for all, their mean is a sufficient statistic: noise σ / √T. That is
    what an instance with ``releases`` T holds. A sanitised graph is drawn once.

What it is worth
    `ledger` composes what was released into ε at δ per unit: it holds for all graphs. `bound` says for this graph,
    edge by edge, what nobody can exceed. Attacks show what leaks at least.

This room may not import `lograb.graphs`, `lograb.patches`, `lograb.instance`, `lograb.archive` or `lograb.tasks`.
"""

from lograb.defences.catalog import DEFENCES, as_defences, noise_of, parse, settle, share
from lograb.defences.defence import Defence
from lograb.defences.on_graph import EdgeRand, LapGraph
from lograb.defences.on_shared import (
    EigenvalueNoise,
    Gaussian,
    Nothing,
    Pseudonyms,
    Rotate,
    Round,
    Subspace,
    Truncate,
    Withhold,
)

__all__ = ["DEFENCES", "Defence", "EdgeRand", "EigenvalueNoise", "Gaussian", "LapGraph", "Nothing", "Pseudonyms",
           "Rotate", "Round", "Subspace", "Truncate", "Withhold", "as_defences", "noise_of", "parse", "settle",
           "share"]  # fmt: skip
