"""Fragment a graph, read a patch off its spectrum, save, verify, load."""

import tempfile
from pathlib import Path

import numpy as np

import lograb

instance = lograb.generate("karate", d=1, p=0.6, k=32, sigma=0.0, seed=0)
seen = instance.observations
print(instance)

# Without noise, a complete spectrum is the patch: I - U Λ Uᵀ has 1 / sqrt(d_i d_j) on edges, 0 elsewhere.
i = int(np.argmax(seen.sizes))
vectors, values = seen.block(i), seen.spectrum(i)
similarity = np.eye(seen.sizes[i]) - (vectors * values) @ vectors.T
print(f"patch {i}: {seen.sizes[i]} nodes, {(np.triu(similarity, 1) > 1e-9).sum()} edges read off its spectrum")

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "karate.lograb"
    print("SHA-256", instance.save(path))
    lograb.verify(path)
    print("patch 3 has the members", lograb.load(path).patch(3).members(0))
