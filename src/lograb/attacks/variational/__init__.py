"""The variational Bayesian procedure of Proposition 1: Sinkhorn likelihood, mean field, ascent of the ELBO.

The files in the order of the work of one step: `ascent` draws candidate graphs, `eigenpairs` embeds them,
`likelihood` compares them with what was observed by means of `sinkhorn`; `variational` is the attack.
"""

from lograb.attacks.variational.variational import Variational

__all__ = ["Variational"]
