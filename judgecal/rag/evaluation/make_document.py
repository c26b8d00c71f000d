"""The document of `gold make`: how many questions of which kind, what was turned down, and what they are
worth."""

from __future__ import annotations

from collections.abc import Iterable

from judgecal.rag.evaluation.made_questions import MadeQuestions
from judgecal.records import Headline
from judgecal.report.document import (
    Block,
    Bullets,
    Document,
    Record,
    Section,
    Table,
    from_summary,
    notes_section,
)
from judgecal.report.gold import splits_table
from judgecal.report.numbers import count, count_of, estimate, money, percent
from judgecal.report.wording import sentence

_EASIER = (
    "An answer that stands wholly in one passage is easier to find than what users ask: what a system reaches on these "
    "questions says little of what it will reach on theirs."
)
_OFFLINE = (
    "The offline model made these: it cuts a number, a name or a word out of a sentence and asks what belongs there. "
    "They show how the command works, and test next to nothing."
)


def make_document(result: MadeQuestions, *, again: str = "") -> Document:
    """What was made; `again` is the command that goes on, where calls failed."""
    caption = "Serves whoever accepts them: what there is, and what fell out on the way."
    blocks: list[Block] = [_kinds(result), Bullets([*_facts(result)], short=True)]
    if result.rejected:
        rows = [(why, count(n)) for why, n in result.rejected.items()]
        blocks.append(
            Table(("turned down because", "drafts"), rows, title="Drafts that are no questions of the set")
        )
    blocks += [splits_table(result.splits)] if result.splits else []
    sections = [Section("questions", "Questions", caption, blocks)]
    if result.examples:
        told: list[Block] = [
            Record(
                one.kind,
                [
                    ("question", one.question),
                    ("answer", one.answer),
                    *(("quote", text) for text in one.quotes),
                ],
                ", ".join(one.documents),
            )
            for one in result.examples
        ]
        shown = "Serves a first look: one of each kind; questions of test are shown nowhere but to who labels them."
        sections.append(Section("examples", "Examples", shown, told))
    return Document(
        title=f"{result.set}: questions made from documents",
        about=f"{count_of(result.n, 'question')}, {count_of(result.n_documents, 'document')}.",
        headline=_headline(result, again),
        sections=[*sections, *notes_section([sentence(note) for note in result.notes])],
        **from_summary(result),
    )


def _headline(result: MadeQuestions, again: str) -> Headline:
    short = [
        f"{kind}: {one.n} of {one.wanted}, as {one.reason}."
        for kind, one in result.kinds.items()
        if one.reason
    ]
    if result.path is None:
        failed = (
            f"{count_of(result.n_unscored, 'draft')} had no reply" if result.n_unscored else "no draft passed"
        )
        what = f"{result.set} is not written: {count(result.n)} of {count_of(result.n_wanted, 'question')}, and {failed}."
        return Headline("unfinished", what, tuple(short), (), again or f"judgecal report {result.experiment}")
    wanted = f"{count(result.n)} of " * bool(short) + count_of(result.n_wanted, "question")
    used = count_of(result.n_documents_used, "document")
    what = f"{result.set} has {wanted} on {used}: drafts until people accept them."
    accept = "Label each 1 (accepted) or 0 (turned down), on the labelling page or on a sheet (gold sheet)."
    kind = "short" if short else "made"
    return Headline(
        kind,
        what,
        (*([_OFFLINE] if result.offline else []), *short, accept),
        (_EASIER,),
        f"judgecal gold label {result.set}",
    )


def _kinds(result: MadeQuestions) -> Table:
    rows = [
        (kind, count(one.n), count(one.wanted), count(one.n_drafts)) for kind, one in result.kinds.items()
    ]
    return Table(("kind", "questions", "wanted", "drafts"), rows, short=True)


def _facts(result: MadeQuestions) -> Iterable[str]:
    found = result.lexically_easy
    if found.value is not None:
        ranks = ", ".join(f"{band}: {n}" for band, n in result.ranks.items())
        yield (
            f"Lexically easy: {estimate(found, write=percent, digits=0)} of {found.n} answerable questions, whose own "
            f"document BM25 ranks first. Ranks: {ranks}."
        )
    turned_down = sum(result.rejected.values())
    if turned_down:
        most = next(iter(result.rejected.items()))
        yield f"{count_of(turned_down, 'draft')} turned down, {count(most[1])} of them as {most[0]}."
    yield f"Cost of all drafts and critics: {money(result.usd)} USD."
