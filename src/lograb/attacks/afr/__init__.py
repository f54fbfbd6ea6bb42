"""AFR, Adaptive Fidelity-driven Reconstruction (§5, Algorithm 2), one file per stage.

``kernel``     1a  heat kernel of each patch, thresholded to a local graph
``core``       1b  gap-to-truncation ratio, entropy, score; core patches
``islands``    2a  priority queue, adaptive eligibility, merging
``trials``         what comes of pairs of islands, many at once
``bundle``     3a  joint adjustment of the frames of an island
``cross_votes`` 3b  links between islands
``afr``            the stages in order, and the output filter
"""

from lograb.attacks.afr.afr import Afr, afr
from lograb.attacks.afr.settings import AfrSettings

__all__ = ["Afr", "AfrSettings", "afr"]
