"""The answerer test: every model x prompt on the same questions, the right document in hand, graded by one
judge."""

from judgecal.rag.answering.answerer import Answerer, Grader, answerers, choose_grader
from judgecal.rag.answering.contexts import ContextOptions, context_options
from judgecal.rag.answering.outcomes import answered_items
from judgecal.rag.answering.questions import Question, RecordedAnswers, questions_of, read_answers
from judgecal.rag.answering.result import AnswerResult, Dropped, decomposition, read_contaminated
from judgecal.rag.answering.run import AnswerInput, AnswerRun, plan_answers

__all__ = [
    "AnswerInput",
    "AnswerResult",
    "AnswerRun",
    "Answerer",
    "ContextOptions",
    "Dropped",
    "Grader",
    "Question",
    "RecordedAnswers",
    "answered_items",
    "answerers",
    "choose_grader",
    "context_options",
    "decomposition",
    "plan_answers",
    "questions_of",
    "read_answers",
    "read_contaminated",
]
