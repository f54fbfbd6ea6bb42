"""Stage 5': graph learning, the only room that imports torch (extra ``gnn``), and only when something is learned.

Without torch: `patchset` (all patches as flat arrays), `splits`, `encodings`, `catalog` (the models by name).
With torch: `batches`, `models/`, `training` (one loop for all), `randomness`.
"""
