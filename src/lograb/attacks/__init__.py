"""Stage 5: from what an eavesdropper sees to the graph it claims.

An attack gets `Observations` and nothing else: this room may not import `lograb.graphs`,
`lograb.patches`, `lograb.instance` or `lograb.tasks`, and a test enforces it.
"""

from lograb.attacks.afr import Afr
from lograb.attacks.attack import Attack
from lograb.attacks.baselines.eigen_sync import EigenSync
from lograb.attacks.baselines.guess import Random
from lograb.attacks.baselines.heat_kernel import HeatKernel
from lograb.attacks.baselines.local2global import Local2Global
from lograb.attacks.baselines.membership import Membership
from lograb.attacks.baselines.neural import Gae, GcnLe, Vgae
from lograb.attacks.baselines.pointnetlk import PointNetLK
from lograb.attacks.catalog import ATTACKS, as_attack, find_attack, label_of
from lograb.attacks.posterior import Posterior
from lograb.attacks.variational import Variational

__all__ = ["ATTACKS", "Afr", "Attack", "EigenSync", "Gae", "GcnLe", "HeatKernel", "Local2Global", "Membership",
           "PointNetLK", "Posterior", "Random", "Variational", "Vgae", "as_attack", "find_attack",
           "label_of"]  # fmt: skip
