"""Stage 5': graph learning, the only room that imports torch (extra ``gnn``), and only when something is learned.

*All*: `patchset` (all patches as flat arrays), `randomness` (seeds and devices); with torch `sparse` (products
with gradients), `pyg` (patches as PyG's data), `autoencoders` (of the neural attacks).
*Task 2*, `nodes/`: `catalog`, `settings`, `splits`, `encodings`; with torch `minibatches`, `blocks` (padding for
full attention), `models/`, `training` (one loop for all). *Task 3*, `links/`.
"""
