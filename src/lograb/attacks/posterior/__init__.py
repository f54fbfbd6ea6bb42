"""The strongest attack: a probability for every pair that shares a patch.

``settings`` what can be chosen; ``noise`` how noisy each patch is, and its nearest orthonormal frame; ``batches``
patches of one shape, stacked; ``isolated`` members without an edge; ``rules`` what membership alone decides;
``degrees`` what a patch says about degrees; ``evidence`` what it says about each pair, given all others; ``box``
noiseless truncated patches; ``gauge`` frames whose pairing with eigenvalues is lost; ``fusion`` all evidence on
all pairs, iterated; ``checksum`` guesses checked against the published eigenvalues, and mended; ``rounds`` judging
and checking in turn; ``cut`` the threshold; ``posterior`` puts them together.
The mathematics is in docs/posterior.md.
"""

from lograb.attacks.posterior.posterior import posterior
from lograb.attacks.posterior.settings import PosteriorSettings

__all__ = ["PosteriorSettings", "posterior"]
