"""The document of `retrieval`: what an answerer can reach."""

from __future__ import annotations

from judgecal.rag.retrieval.result import RetrievalResult
from judgecal.records import Estimate, Headline
from judgecal.report.charts import Axis, interval_picture, share_row
from judgecal.report.document import Document, Section, section, stored_document, table
from judgecal.report.wording import (
    count,
    count_of,
    estimate,
    interval,
    percent,
    plain,
    points,
    sentence,
    sentences,
)

_ENOUGH = 0.9  # of the questions: a retriever passes that is shown to find a reference for as many


def retrieval_document(result: RetrievalResult) -> Document:
    """Lay out a RetrievalResult as a Document: where the reference documents rank."""
    n, n_without, n_sealed = result.n_questions, result.n_without_reference, result.n_test_questions
    documents = f"{count(result.n_documents)} documents" if result.n_documents else "documents not given"
    notes = sentences(
        n_without > 0
        and f"{n_without:,} of {n:,} questions name no reference document, so the means leave them out.",
        map(sentence, result.notes),
        n_sealed > 0
        and f"{count_of(n_sealed, 'question')} of the set's sealed split count in every number here, "
        "and we show none of them.",
    )
    about = f"{count(n)} questions, {documents}, k = {result.k}."
    title, sections = (f"{result.experiment}: a retriever tested", (_measures(result),))
    return stored_document(result, title, about, _headline(result), *sections, notes=notes, short=True)


def _headline(result: RetrievalResult) -> Headline:
    """What an answerer that reads the first k documents can reach at best."""
    k, within_k, n_without = result.k, result.success[str(result.k)], result.n_without_reference
    unsure, lost = result.reference_document_score.reason, result.n_unfindable
    unknown = sentences(
        unsure and f"How sure these numbers are: {unsure}.",
        n_without > 0
        and f"Where the right document of {count(n_without)} of {count(result.n_questions)} "
        "questions ranks: they name none, and are left out.",
        "Whether a document that is not named as reference would answer as well: it counts as none.",
        "Whether another retriever does better: this one was tested alone. Give its rankings with --run.",
    )
    again = f"judgecal answer --gold {result.gold} --contexts controlled,topk"
    if result.gold is None:
        again = f"judgecal report {result.experiment} --open"
    on_documents = f" on {result.n_documents:,} documents" if result.n_documents else ""
    over = f"{within_k.n:,} questions{on_documents}"
    if lost == within_k.n:
        holds = f"It holds none of the reference documents of {over}."
        what = "No question can be answered from this corpus."
        return Headline("none", what, (holds,), unknown, again, "none")

    def reached(share: Estimate) -> str:
        return percent(share.value, 1) + interval(share, 1, write=points)

    which = "the" if result.one_reference else "a"
    what = f"The first {k} hold {which} reference for {reached(within_k)} of questions."
    chip = "too few" if unsure else "cannot tell"
    if within_k.low is not None and within_k.high is not None and not unsure:
        chip = "pass" if within_k.low >= _ENOUGH else "fail" if within_k.high < _ENOUGH else chip
    because = sentences(
        f"It comes first for {reached(result.success['1'])} of {over}.",
        f"An answerer that reads {k} can do no better than {percent(within_k.value, 1)}.",
        chip == "cannot tell" and f"Whether it is {_ENOUGH:.0%}, which is enough to pass, stays open.",
        lost > 0 and f"{lost:,} of the questions name documents that the corpus lacks.",
    )
    return Headline("measured", what, because, unknown, again, chip)


def _measures(result: RetrievalResult) -> Section:
    score, k, success = result.reference_document_score, result.k, result.success
    text = (
        f"Score with k = {k}: {estimate(score)} (1 where the reference document comes first, less "
        f"1/{k} for each place behind). MRR over the full ranking: {estimate(result.mrr)}. "
        f"Intervals: {score.level:.4g}, by document ({score.n_groups:,} of them; a question with several "
        "counts to the first)." + (f" No interval: {score.reason}." if score.reason else "")
    )
    windows = [(window.score, window) for window in result.windows if window.score is not None]
    if len(windows) > 1:
        lowest, window = min(windows, key=lambda pair: pair[0])
        text += f" The lowest of {len(windows)} windows is {window.name}: {plain(lowest)} (n = {window.n})."
    columns = table(
        result.recall,
        {
            "k": lambda depth: depth,
            "recall": lambda depth: estimate(result.recall[depth]),
            # With one reference document each, success is recall.
            "success": None if result.one_reference else lambda depth: estimate(success[depth]),
            "ndcg": lambda depth: estimate(result.ndcg[depth]),
        },
        short=True,
    )
    rungs = [share_row(f"first {depth}", recall) for depth, recall in result.recall.items()]
    picture = interval_picture(rungs, Axis("recall, %"), numbers=columns, short=True)
    caption = (
        "Do you need a larger k, a better order or a better index? A reranker or a larger k wins what ranks "
        "behind the first k, but not what is far down or missing."
    )
    return section("measures", "Measures", caption, picture, text)
