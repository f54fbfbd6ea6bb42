"""The strongest attack: a probability for every pair that shares a patch.

``settings`` what can be chosen; ``noise`` how noisy each patch is, and its nearest orthonormal frame; ``batches``
patches of one shape, stacked; ``isolated`` members without an edge; ``rules`` what membership alone decides;
``leading`` degrees up to a factor, and components; ``volumes`` that factor; ``degrees`` degrees; ``evidence`` what
a patch says about each pair, given all others; ``box`` noiseless truncated patches; ``gauge`` frames whose pairing
with eigenvalues is lost; ``fusion`` all evidence on all pairs, iterated; ``checksum`` guesses checked against the
published eigenvalues (``graphs``), mended (``mending``) and weighed (``exchanges``); ``rounds`` judging and
checking in turn; ``paths`` what balls say about paths of two edges; ``families`` patches checked together; ``cut``
the threshold; ``posterior`` puts them together.
The mathematics is in docs/methods/posterior-derivations.md.
"""

from lograb.attacks.posterior.posterior import Posterior, posterior
from lograb.attacks.posterior.settings import PosteriorSettings

__all__ = ["Posterior", "PosteriorSettings", "posterior"]
