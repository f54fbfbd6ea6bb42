"""Stage 5': graph learning, the only room that imports torch (extra ``gnn``), and only when something is learned.

*Both tasks*, without torch: `patchset` (all patches as flat arrays), `settings`, `progress`, `randomness`
(seeds and devices). With torch: `sparse` (products with gradients), `pyg` (patches as PyG's data).
*Task 2*, without torch: `catalog` (the models by name), `splits`, `encodings`. With torch: `batches`, `blocks`
(padding for full attention), `models/`, `training` (one loop for all).
*Task 3*, without torch: `links` (what is known, and pairs to learn from), `links_catalog` (the methods by name),
`links_settings`, `similarity`, `drnl` (subgraphs and their labels). With torch: `seal`, `neo_gnn`, `lightgcn`.
*Neural attacks*, with torch: `autoencoders`.
"""
