"""The rivals: trivial attackers, the paper's baselines, and what they need."""
