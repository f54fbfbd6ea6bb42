"""Stage 6: what is asked, and how an answer is judged between its floor and its ceiling."""

from lograb.tasks.answers import check_answer_name, read_answers, write_answers
from lograb.tasks.reconstruction import (
    attack_graphs,
    average,
    bounds,
    ceiling,
    compare,
    evaluate,
    run_attack,
    score,
)

__all__ = ["attack_graphs", "average", "bounds", "ceiling", "check_answer_name", "compare", "evaluate",
           "read_answers", "run_attack", "score", "write_answers"]  # fmt: skip
