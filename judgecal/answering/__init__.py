"""The answerer test: every model x prompt on the same questions, the right document in hand, graded by one judge."""

from judgecal.answering.answerer import Answerer, RatingJudge, rating_judge
from judgecal.answering.contexts import ContextOptions, context_kind
from judgecal.answering.outcomes import answered_items
from judgecal.answering.questions import questions_of, read_answers
from judgecal.answering.result import Dropped, decomposition, read_contaminated
from judgecal.answering.run import AnswerInput, AnswerRun

__all__ = [
    "AnswerInput",
    "AnswerRun",
    "Answerer",
    "ContextOptions",
    "Dropped",
    "RatingJudge",
    "answered_items",
    "context_kind",
    "decomposition",
    "questions_of",
    "rating_judge",
    "read_answers",
    "read_contaminated",
]
