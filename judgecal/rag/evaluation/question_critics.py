"""The critics of drafted questions: what each is shown, what it must say, and what a draft is turned down
for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from judgecal.judges import Judge
from judgecal.rag.evaluation.question_drafts import DISTRACTING, TWO_DOCUMENTS, UNANSWERABLE, Draft
from judgecal.records import RETRIED_ON_RESUME, Context, Item, Judgement

UNDERSTANDABLE, ANSWERABLE, FOLLOWS = "understandable", "answerable", "follows"
CRITICS = (UNDERSTANDABLE, ANSWERABLE, FOLLOWS)
"""The critics, in the order in which they are asked; each is the signature of that name in `gold_make/`."""
NO_CALL = "no reply was had"
"""How the reason of a draft begins whose call has to be made again."""


Ask = Callable[[Judge, Sequence[Item], str], Sequence[Judgement]]
"""Has a judge judge items; the text is what progress shows."""


def criticise(drafts: Sequence[Draft], critics: Mapping[str, Judge], ask: Ask) -> list[Draft]:
    """The same drafts, those turned down that a critic does not let pass; each critic sees what is left.

    `critics`: a judge for each of `CRITICS`, in the order in which they are asked.
    """
    left = list(drafts)
    for critic, judge in critics.items():
        shown = [
            (place, one)
            for place, draft in enumerate(left)
            if not draft.rejected
            for one in checks(critic, draft)
        ]
        rows = ask(judge, [item for _, (item, *_) in shown], f"critic: {critic}")
        for (place, (_, wanted, why)), row in zip(shown, rows, strict=True):
            if left[place].rejected is None and row.verdict is None:
                left[place] = left[place].reject(lost(row) or f"the critic {critic} could not be read")
            elif left[place].rejected is None and bool(row.verdict) is not wanted:
                left[place] = left[place].reject(why)
    return left


def lost(row: Judgement) -> str:
    """Why a call has to be made again; empty where it gave what it gives."""
    failed = row.error is not None and row.error.kind in RETRIED_ON_RESUME
    return f"{NO_CALL} ({row.error.kind})" if failed and row.error else ""


def checks(critic: str, draft: Draft) -> list[tuple[Item, bool, str]]:
    """What a critic is shown of a draft, what it must say, and what the draft is turned down for
    otherwise."""
    request, name = draft.request, draft.request.name
    whole = Item(name, name, draft.question, draft.answer, contexts=draft.contexts)
    if critic == UNDERSTANDABLE:
        alone = Item(name, name, "", "", fields={"drafted_question": draft.question})
        return [(alone, True, "it cannot be understood without the document")]
    if critic == ANSWERABLE:
        if request.kind == UNANSWERABLE:
            return [(whole, False, "a document of the collection answers it")]
        return [(whole, True, "the quoted words alone do not answer it")]
    if request.kind == UNANSWERABLE:
        return []
    found = [(whole, True, "the answer does not follow from the quoted words")]
    single: Sequence[Context] = draft.contexts if request.kind == TWO_DOCUMENTS else ()
    why = "one document alone answers it"
    if request.kind == DISTRACTING and request.other is not None:
        single, why = [Context(request.other.text.strip())], "the other document answers it too"
    for place, context in enumerate(single, 1):
        found.append((replace(whole, item_id=f"{name}/{place}", contexts=(context,)), False, why))
    return found
