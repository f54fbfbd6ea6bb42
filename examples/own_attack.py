"""An attack of your own: a function from observations to claimed edges, scored beside the others."""

import numpy as np

import lograb


def largest_entries(seen: lograb.Observations, rng: np.random.Generator) -> lograb.Reconstruction:
    """Claim the pairs with a large entry of I - L in some patch."""
    best: dict[tuple[int, int], float] = {}
    for i in range(seen.n_patches):
        members, vectors = seen.members(i), seen.block(i)
        entries = (vectors * (1 - seen.spectrum(i))) @ vectors.T
        for a, b in zip(*np.triu_indices(len(members), k=1), strict=True):
            pair = int(members[a]), int(members[b])
            best[pair] = max(best.get(pair, 0.0), float(entries[a, b]))
    claimed = {pair: score for pair, score in best.items() if score > 0.15}
    return lograb.Reconstruction(seen.n_nodes, list(claimed), list(claimed.values()), np.unique(seen.nodes))


instance = lograb.generate("citation", d=1, p=0.6, k=32, sigma=0.05)
print(lograb.evaluate(instance, lograb.attack(instance, largest_entries)))
print(lograb.compare(instance, ["membership", largest_entries, "posterior"]).to_markdown())
