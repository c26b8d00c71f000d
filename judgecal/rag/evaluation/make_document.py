"""The document of `gold make`: how many questions of which kind, what was turned down, and their worth."""

from __future__ import annotations

from judgecal.rag.evaluation.make_questions import MadeQuestions
from judgecal.records import Headline
from judgecal.report.document import Document, Paragraph, section, stored_document, table
from judgecal.report.numbers import count, count_of, money
from judgecal.report.wording import sentence, sentences

_EASIER = (
    "An answer that one passage holds whole is easier to find than what users ask: how a system does on "
    "these questions says little about how it will do on theirs."
)
_OFFLINE = (
    "The offline model made these: it cuts a number, a name or a word out of a sentence and asks what "
    "belongs there. They show how the command works and test next to nothing."
)


def make_document(result: MadeQuestions, *, again: str = "") -> Document:
    """What was made; `again` is the command that goes on, where calls failed."""
    kinds = table(
        result.kinds.items(),
        {
            "kind": lambda row: row[0],
            "questions": lambda row: count(row[1].n),
            "wanted": lambda row: count(row[1].wanted),
            "drafts": lambda row: count(row[1].n_drafts),
        },
        short=True,
    )
    rejected = table(
        result.rejected.items(),
        {"turned down because": lambda row: row[0], "drafts": lambda row: count(row[1])},
        title="Drafts that did not become questions",
    )
    questions = section(
        "questions",
        "Questions",
        "What there is, and what fell out on the way.",
        kinds,
        Paragraph(f"Cost of all drafts and critics: {money(result.usd)} USD.", short=True),
        bool(result.rejected) and rejected,
    )
    return stored_document(
        result,
        f"{result.set}: questions made from documents",
        f"{count_of(result.n, 'question')}, {count_of(result.n_documents, 'document')}.",
        _headline(result, again),
        questions,
        notes=map(sentence, result.notes),
    )


def _headline(result: MadeQuestions, again: str) -> Headline:
    fewer = {kind: made for kind, made in result.kinds.items() if made.reason}
    short = sentences(
        [f"{kind}: {made.n} of {made.wanted}, as {made.reason}." for kind, made in fewer.items()]
    )
    wanted = count_of(result.n_wanted, "question")
    if result.path is None:
        failed = "no draft passed"
        if result.n_unscored:
            failed = f"{count_of(result.n_unscored, 'draft')} had no reply"
        what = f"{result.set} is not written: {count(result.n)} of {wanted}, and {failed}."
        return Headline("unfinished", what, short, (), again or f"judgecal report {result.experiment}")
    wanted = f"{count(result.n)} of {wanted}" if short else wanted
    used = count_of(result.n_documents_used, "document")
    what = f"{result.set} has {wanted} on {used}: drafts until people accept them."
    accept = "Label each 1 (accepted) or 0 (turned down), on the labelling page or on a sheet (gold sheet)."
    because = sentences(result.offline and _OFFLINE, short, accept)
    kind = "short" if short else "made"
    return Headline(kind, what, because, (_EASIER,), f"judgecal gold label {result.set}")
