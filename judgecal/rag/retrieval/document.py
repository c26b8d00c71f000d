"""The document of `retrieval`: what an answerer can reach, where the reference documents rank, what went
worst."""

from __future__ import annotations

from collections.abc import Iterable

from judgecal.rag.retrieval import RetrievalResult
from judgecal.rag.retrieval.chart import NARROW, WIDE, Chart, hand_on_chart, rank_chart, window_chart
from judgecal.rag.retrieval.weak_spots import Spread, WorstQuestion
from judgecal.records import Estimate, Headline
from judgecal.report import numbers
from judgecal.report.document import (
    FROM_SUMMARY,
    Block,
    Document,
    Folded,
    Paragraph,
    Picture,
    Record,
    Section,
    Table,
    notes_section,
)
from judgecal.report.wording import sentence

_UNJUDGED = (
    "A document that nobody judged counts as no reference: judged@k says how many of the first k were judged."
)
_WINDOWS_SHOWN = 12
_LOWEST_SHOWN = 5
_NEAR = 0.01  # of recall: a k that comes so near to the deepest one is enough


def retrieval_document(result: RetrievalResult) -> Document:
    """What a retriever comes to: ranks, documents to hand on, windows, worst questions, measures."""
    n_documents = result.n_documents
    documents = f"{numbers.count(n_documents)} documents" if n_documents else "documents not given"
    sections = [_ranks(result), _hand_on(result), _windows(result)]
    sections += [_worst(result)] if result.worst else []
    notes = [sentence(note) for note in result.notes]
    if result.n_without_reference:
        without = f"{result.n_without_reference:,} of {result.n_questions:,} questions"
        notes.insert(0, f"{without} name no reference document and are left out of the means.")
    if result.judged:
        notes.append(_UNJUDGED)
    if result.n_test_questions:
        sealed = numbers.count_of(result.n_test_questions, "question")
        notes.append(
            f"{sealed} of the set's sealed split are in every number here, and none of them is shown."
        )
    return Document(
        title=f"{result.experiment}: a retriever tested",
        about=f"{numbers.count(result.n_questions)} questions, {documents}, k = {result.k}.",
        headline=_headline(result),
        sections=[*sections, _measures(result), *notes_section(notes, short=True)],
        run_lines=(f"experiment: {result.experiment}", f"run: {result.run_line}"),
        foot=FROM_SUMMARY,
        data={"result": result},
    )


def _headline(result: RetrievalResult) -> Headline:
    """What an answerer that reads the first k documents can reach at best."""
    k, within_k, first = result.k, result.success[str(result.k)], result.success["1"]
    over = f"{within_k.n:,} questions" + (
        f" on {result.n_documents:,} documents" if result.n_documents else ""
    )
    lost, unknown = result.missing_references.n_unanswerable, tuple(_unknown(result))
    again = f"judgecal answer --gold {result.gold} --context controlled,topk"
    if result.gold is None:
        again = f"judgecal report {result.experiment} --open"
    if lost == within_k.n:
        what = f"None of the {over} can be answered from this corpus: it holds none of their reference documents."
        return Headline("none", what, unknown=unknown, next=again)
    which = "The reference document is" if result.one_reference else "A reference document is"
    what = (
        f"{which} among the first {k} for {_percent(within_k)} of {over}, and first for {_percent(first)}: an answerer "
        f"that reads {k} can do no better than {100 * (within_k.value or 0.0):.1f}%."
    )
    because = (f"{lost:,} of the questions name documents that the corpus lacks.",) if lost else ()
    return Headline("measured", what, because, unknown, again)


def _percent(share: Estimate) -> str:
    ends = (
        ""
        if share.low is None or share.high is None
        else f" [{100.0 * share.low:.1f}, {100.0 * share.high:.1f}]"
    )
    return numbers.percent(share.value, 1) + ends


def _unknown(result: RetrievalResult) -> Iterable[str]:
    if result.reference_document_score.reason:
        yield f"How sure these numbers are: {result.reference_document_score.reason}."
    if result.n_without_reference:
        yield (
            f"Where the right document of {numbers.count(result.n_without_reference)} of "
            f"{numbers.count(result.n_questions)} questions ranks: they name none, and are left out."
        )
    if result.judged:
        yield "Whether documents that nobody judged answer too: they count as no reference."
    else:
        yield "Whether a document that is not named as reference would answer as well: it counts as none."
    yield "Whether another retriever does better: this one was tested alone. Give its rankings with --run."
    yield "What an answerer makes of the documents: judgecal answer --context controlled,topk tells."


def _picture(chart: Chart, result: RetrievalResult, table: Table, *, short: bool = False) -> Picture:
    """A chart with its numbers behind it; the terminal shows those."""
    return Picture(
        lambda: chart(result, WIDE),
        says="; ".join(f"{row[0]}: {row[1]}" for row in table.rows),
        narrow=lambda: chart(result, NARROW),
        numbers=table,
        short=short,
    )


def _ranks(result: RetrievalResult) -> Section:
    total = sum(one.n for one in result.histogram)
    rows = [[one.ranks, numbers.count(one.n), numbers.percent(one.n / total, 1)] for one in result.histogram]
    text = f"Where the best reference document of {total:,} questions stands."
    if result.ties.n_questions:
        text += (
            f" For {result.ties.n_questions:,} of them other documents have the same score "
            f"({result.ties.n_in_first_k:,} within the first {result.k}): their order is no merit."
        )
    caption = (
        "Serves the choice between a better order and a better index: what ranks just behind the first k can be won by "
        "a reranker or a larger k, what is far down or not found cannot."
    )
    table = Table(("rank", "questions", "share"), rows)
    blocks = [Paragraph(text), _picture(rank_chart, result, table)]
    return Section("ranks", "Rank of the reference document", caption, blocks)


def _hand_on(result: RetrievalResult) -> Section:
    rows, before = [], 0.0
    for one in result.hand_on:
        value = one.recall.value or 0.0
        tokens = numbers.DASH if one.tokens is None else f"{one.tokens:,.0f}"
        rows.append([str(one.k), tokens, numbers.estimate(one.recall), f"{100 * (value - before):+.1f}"])
        before = value
    table = Table(("k", "tokens", "recall", "points gained"), rows)
    caption = "Serves the choice of k: each further document costs tokens with every question."
    blocks = [Paragraph(_enough(result), short=True), _picture(hand_on_chart, result, table, short=True)]
    return Section("hand-on", "How many documents to hand on", caption, blocks)


def _enough(result: RetrievalResult) -> str:
    """The smallest k whose recall comes near to that of the deepest."""
    best = result.hand_on[-1]
    most = best.recall.value or 0.0
    enough = next(one for one in result.hand_on if most - (one.recall.value or 0.0) <= _NEAR)
    near = (
        f"The first {enough.k} come within {100 * _NEAR:g} point of the recall of the first {best.k} "
        f"({enough.recall.value or 0.0:.3f} and {most:.3f})"
    )
    if enough.tokens is None or best.tokens is None:
        return f"{near}. Tokens are not known: no documents were given."
    return (
        f"{near}, for {enough.tokens:,.0f} and {best.tokens:,.0f} tokens on average. Tokens are counted by the "
        f"tokenizer {result.tokens_by}; a model's own count is higher."
    )


def _windows(result: RetrievalResult) -> Section:
    shown = [row for row in result.windows if row.score is not None]
    text = _spread(result.spread, len(shown))
    if len(shown) > _WINDOWS_SHOWN:
        shown = sorted(shown, key=lambda row: row.score or 0.0)[:_LOWEST_SHOWN]
        text += f" Shown: the lowest {_LOWEST_SHOWN} of {len(result.windows)}."
    rows = [
        [
            row.name,
            str(row.n),
            str(row.n_documents),
            numbers.plain(row.score),
            f"{row.chance[0]:.3f}..{row.chance[1]:.3f}" if row.chance else numbers.DASH,
            row.outside or "",
        ]
        for row in shown
    ]
    table = Table(("window", "n", "documents", "score", "95% of draws", "outside"), rows)
    block = table if result.spread is None else _picture(window_chart, result, table)
    caption = (
        "Serves the question whether some part of the collection is worse than the rest, or only looks so."
    )
    blocks = [Paragraph(text), block]
    return Section("windows", "Windows of consecutive questions", caption, blocks)


def _spread(spread: Spread | None, n: int) -> str:
    if spread is None:
        return f"{n} window: nothing to compare it with."
    seen, chance = spread.observed, spread.chance
    sd, low, high = (
        f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]" for one in (chance.sd, chance.min, chance.max)
    )
    verdict = "more than" if min(spread.p_sd, spread.p_min) < 0.05 else "no more than"
    apart = "" if spread.documents_together else " (in the file the questions of a document stand apart)"
    return (
        f"The {n} windows differ by {verdict} the draw of documents explains: SD {seen.sd:.3f}, in {spread.draws:,} "
        f"random orders of the documents {sd} (p = {spread.p_sd:.3f}); lowest {seen.min:.3f}, there "
        f"{low} (p = {spread.p_min:.3f}); highest {seen.max:.3f}, there {high}{apart}."
    )


def _worst(result: RetrievalResult) -> Section:
    text = "The first documents of each ranking"
    if all(one.words is None for one in result.worst):
        text += ". Which words won is not known of a retriever of your own."
    else:
        text += ", and the words by which the first beat the reference document: what each adds to the two scores."
    rows = [
        [
            _clipped(one.question_id, 24),
            _clipped(one.question, 60),
            str(one.rank or "none"),
            _clipped(one.reference_document, 24),
            _clipped(", ".join(above.document_id for above in one.above), 40),
            ", ".join(
                f"{_clipped(word.word, 20)} {word.above:.1f}:{word.reference:.1f}" for word in one.words[:3]
            )
            if one.words
            else "",
        ]
        for one in result.worst
    ]
    table = Table(("question", "text", "rank", "reference", "ranked above", "words that won"), rows, left=6)
    caption = "Serves the next step: what to mend in the documents, the index or the questions."
    blocks = [Paragraph(text), table, Folded("The whole texts", list(map(_record, result.worst)))]
    return Section("worst", "Worst questions", caption, blocks)


def _clipped(text: str, width: int) -> str:
    """Text of the user's as one line, shortened."""
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _record(one: WorstQuestion) -> Block:
    above = [f"{each.document_id} ({each.title})" if each.title else each.document_id for each in one.above]
    facts = [
        ("Question", one.question),
        ("Reference", f"{one.reference_document}, rank {one.rank or 'none: not found'}"),
        ("Above it", "\n".join(above) or numbers.DASH),
    ]
    if one.words:
        words = (f"{word.word} {word.above:.1f} against {word.reference:.1f}" for word in one.words)
        facts.append(("Words that won", ", ".join(words)))
    return Record(one.question_id, facts)


def _measures(result: RetrievalResult) -> Section:
    score, k = result.reference_document_score, result.k
    columns = {
        "recall": result.recall,
        "success": result.success,
        "ndcg": result.ndcg,
        "judged": result.judged,
    }
    if result.one_reference:  # then success is recall
        columns.pop("success")
    shown = {name: by_depth for name, by_depth in columns.items() if by_depth is not None}
    rows = [[depth, *(numbers.estimate(one[depth]) for one in shown.values())] for depth in result.recall]
    text = (
        f"Score with k = {k}: {numbers.estimate(score)} (1 where the reference document comes first, less 1/{k} for "
        f"each place behind). MRR over the full ranking: {numbers.estimate(result.mrr)}. "
        f"Intervals: {score.level:.4g}, by document ({score.n_groups:,} of them; a question with several counts to "
        "the first)." + (f" No interval: {score.reason}." if score.reason else "")
    )
    caption = "Serves the comparison with another retriever on the same questions."
    table = Table(("k", *shown), rows)
    return Section("measures", "Measures", caption, [Paragraph(text), table])
