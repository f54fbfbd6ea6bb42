"""Stage 9: one graph, or one set of embeddings -> findings, for whoever must decide what may be shared."""

from lograb.auditing.auditor import audit
from lograb.auditing.findings import Audit
from lograb.auditing.subject import SCENARIOS

__all__ = ["SCENARIOS", "Audit", "audit"]
