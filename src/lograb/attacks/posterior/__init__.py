"""The strongest attack: a probability for every pair that shares a patch.

``settings`` what can be chosen; ``beliefs`` what stages hand on; ``posterior`` the list of stages, and the answer.

Stages: ``rows`` that have one solution (``peeling``, ``row_degrees``, ``precision``, ``withheld`` eigenvalues);
``fusion`` judges all pairs (``evidence`` of one patch given all others, ``degrees``, ``volumes``, ``leading``
eigenvectors, ``gauge``); ``checksum`` compares with the eigenvalues (``graphs``, ``mending``, ``exchanges``);
``relaxing`` solves large patches as a whole; ``ball_graphs`` and ``paths`` what balls say (``ball_moves``);
``temper`` how wrong all that is. They start from: ``noise`` of patches, ``batches`` of one shape, ``isolated``
members, ``rules`` of membership. The mathematics is in docs/methods/posterior-derivations.md.
"""

from lograb.attacks.posterior.posterior import Posterior, posterior
from lograb.attacks.posterior.settings import PosteriorSettings

__all__ = ["Posterior", "PosteriorSettings", "posterior"]
