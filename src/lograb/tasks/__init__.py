"""Stage 6: what is asked, and how an answer is judged between its floor and its ceiling."""

from lograb.tasks.reconstruction import evaluate, run_attack

__all__ = ["evaluate", "run_attack"]
