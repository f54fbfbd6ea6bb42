"""Stage 6: what is asked, and how an answer is judged between its floor and its ceiling."""

from lograb.tasks.reconstruction import ceiling, compare, evaluate, run_attack

__all__ = ["ceiling", "compare", "evaluate", "run_attack"]
