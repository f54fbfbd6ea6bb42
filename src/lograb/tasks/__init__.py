"""Stage 7: what is asked, and how an answer is judged between its floor and its ceiling.

``reconstruction``       Task 1: `attack`, `evaluate`; `isolation.FileAttack` runs an attack in another process
``node_classification``  Task 2: `classify`
``link_prediction``      Task 3: `predict_links`
"""

from lograb.tasks.reconstruction import attack, evaluate

__all__ = ["attack", "evaluate"]
