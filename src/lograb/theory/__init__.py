"""The paper's bounds and certificates as functions.

What is printed and true, what is printed and false (named so, with its counterexample), and what holds instead:

=================  =======================================================================
perturbation       Theorem 1: how far eigenvectors move (the constant is twice the printed one)
heat, lemma_gap    heat kernel, truncation residual, edge-recovery condition; Lemma 1 as printed
certified_heat     a time and threshold that are exact for every complete noiseless patch
exactness          complete spectra; estimates checked by recomputing their spectrum
elimination        truncated noiseless patches recovered exactly, provably, without the truth
certificate        all of these on thousands of patches: `certify`
fidelity           gap-to-truncation ratio, entropy, composite score
inliers            samples needed, inlier share survivable, rejection corollary
stitching          Procrustes residual and rotation error, accumulation along a chain
recoverability     k*(ε) measured, local-to-global; errata/truncation: ℓ*(ε) as printed
cohesion           Island Cohesion and the interval it gives for recall
voting, belief     Chernoff bounds of cross-voting; what noise does to a belief
=================  =======================================================================

Nothing here imports a stage of the pipeline, so attacks and metrics may use it.
"""

from lograb.theory.certificate import Certificate, certify, certify_patch
from lograb.theory.certified_heat import certified_edges, certified_threshold

__all__ = ["Certificate", "certified_edges", "certified_threshold", "certify", "certify_patch"]
