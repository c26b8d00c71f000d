"""Which passages questions are made of, what a model made of them, and what rules and critics say of a draft.

A request is a passage, or two, and a kind; it depends on the documents and the seed and on no reply, so that
a run that goes on later makes the same requests, and every reply that is stored serves again.
"""

from __future__ import annotations

import dataclasses
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from judgecal.engine import ParsedReply
from judgecal.goldset import GoldDocument
from judgecal.goldset.wording import plain_text
from judgecal.judges import Judge, Respondent
from judgecal.rag.evaluation.answerer import Writer
from judgecal.rag.retrieval.chunking import Chunk, ChunkOptions, chunks_of
from judgecal.rag.retrieval.indexes import Bm25Index
from judgecal.records import RETRIED_ON_RESUME, Context, Failure, Item, Judgement, canonical_json

FACTOID, TWO_DOCUMENTS, UNANSWERABLE = "factoid", "two_documents", "unanswerable"
KINDS = (FACTOID, TWO_DOCUMENTS, UNANSWERABLE)
"""The kinds of questions; each is the signature of that name in `gold_make/`."""
ANSWERABLE, FOLLOWS = "answerable", "follows"
CRITICS = (ANSWERABLE, FOLLOWS)
"""The critics, in the order in which they are called; each is the signature of that name in `gold_make/`."""
NO_CALL = "no reply came"
"""How the reason of a draft begins whose call has to be made again."""
DRAFTS_PER_QUESTION = 4
"""Drafts that are asked for at most, for each question that is wanted."""

_NOT_THERE = "The answer is not found in the documents."  # the reference of a question that none answers
_NEAREST = 5  # passages in which the answer to an unanswerable question is looked for
_PASSAGES = ChunkOptions(min=400, max=900)
_LEAST_WORDS = 12  # of a passage: below it stands a heading, or a line of a table
_NEAR = 20  # passages among which one of another document is looked for
_LONGEST_ANSWER = 400  # characters of an answer, for the bound of a preview


@dataclass(frozen=True, slots=True)
class QuestionRequest:
    """A question that is asked for: `name` (`factoid-0001`), and the passages that it is to be made of."""

    name: str
    kind: str
    passage: Chunk
    other: Chunk | None = None

    @property
    def documents(self) -> tuple[str, ...]:
        """The ids of the documents that its answer rests on; of an unanswerable one the one it speaks of."""
        return tuple(passage.document_id for passage in (self.passage, self.other) if passage is not None)

    def item(self) -> Item:
        """As the signature of its kind is shown it."""
        texts = {"title": self.passage.title or "", "passage": self.passage.text.strip()}
        if self.other is not None:
            texts["other_passage"] = self.other.text.strip()
        return Item(self.name, self.passage.document_id, "", "", fields=texts)


class Maker(Writer):
    """Who makes questions of one kind: a signature of `gold_make/` and a model; verdicts are JSON."""

    def read(self, text: str) -> ParsedReply:
        """The fields; an empty question means that there is nothing to ask, none that there is no draft."""
        fields = self.fields(text, "question")
        if isinstance(fields, Failure):
            return ParsedReply(None, failure=fields)
        return ParsedReply(canonical_json(fields))


@dataclass(frozen=True, slots=True)
class Draft:
    """What became of a request."""

    request: QuestionRequest
    question: str = ""
    answer: str = ""
    quotes: tuple[str, ...] = ()  # as they stand in the documents of the request
    rejected: str | None = None  # why it is no question of the set
    contexts: tuple[Context, ...] = ()

    @property
    def same(self) -> set[tuple[str, ...]]:
        """What makes another draft the same: the same words, or the same answer from the same quote."""
        return {(plain_text(self.question),), *([(self.answer, *self.quotes)] if self.quotes else [])}

    def reject(self, why: str) -> Draft:
        """The same, turned down."""
        return dataclasses.replace(self, rejected=why)


class Corpus:
    """The documents with their passages, which BM25 has indexed."""

    def __init__(self, documents: Sequence[GoldDocument]) -> None:
        self.documents = {each.document_id: each for each in documents if each.text.strip()}
        chunks = chunks_of(self.documents.values(), _PASSAGES)
        self.passages = [chunk for chunk in chunks if len(chunk.text.split()) >= _LEAST_WORDS]

    @cached_property
    def _by_passage(self) -> Bm25Index:
        return Bm25Index([passage.text for passage in self.passages])

    def nearest(self, text: str, k: int = _NEAREST) -> list[Chunk]:
        """The k passages that share most with a text, best first."""
        return [self.passages[number] for number in self._by_passage.search([text], k).chunks[0].tolist()]

    def requests(self, kind: str, *, seed: int) -> Iterator[QuestionRequest]:
        """Every passage once, from document to document in an order drawn by the seed.

        Of two documents, the other passage is the one of another document that shares most with the first; a
        passage near to which there is none is passed over.
        """
        draw = random.Random(f"{seed}:{kind}")
        by_document: dict[str, list[Chunk]] = {}
        for passage in self.passages:
            by_document.setdefault(passage.document_id, []).append(passage)
        piles = list(by_document.values())
        draw.shuffle(piles)
        for pile in piles:
            draw.shuffle(pile)
        number = 0
        for turn in range(max(map(len, piles), default=0)):
            for passage in (pile[turn] for pile in piles if turn < len(pile)):
                other = None
                if kind == TWO_DOCUMENTS:
                    near = self.nearest(passage.text, _NEAR)
                    others = (chunk for chunk in near if chunk.document_id != passage.document_id)
                    if (other := next(others, None)) is None:
                        continue
                number += 1
                yield QuestionRequest(f"{kind}-{number:04d}", kind, passage, other)


@dataclass
class Pool:
    """The requests of one kind, of which at most `DRAFTS_PER_QUESTION` are made for each question."""

    wanted: int
    requests: Iterator[QuestionRequest]  # made when they are taken
    kept: int = 0
    made: int = 0

    def take(self) -> list[QuestionRequest]:
        """The requests of the next round."""
        left = DRAFTS_PER_QUESTION * self.wanted - self.made
        requests = list(islice(self.requests, max(0, min(self.wanted - self.kept, left))))
        self.made += len(requests)
        return requests

    def short(self) -> str | None:
        """Why there are fewer than were wanted; None where there are not."""
        if self.kept >= self.wanted:
            return None
        if self.made < DRAFTS_PER_QUESTION * self.wanted:
            return f"no passage is left: {self.made} drafts were made"
        return f"{self.made} drafts for {self.wanted} questions, and we pay for no more"


def read_draft(request: QuestionRequest, row: Judgement, corpus: Corpus) -> Draft:
    """A reply as a draft, turned down where a rule does it."""
    if row.verdict is None:
        kind = row.error.kind if row.error else "parse"
        return Draft(request).reject(
            "the reply could not be read" if kind == "parse" else f"no reply ({kind})"
        )
    fields: Mapping[str, str] = json.loads(str(row.verdict))
    draft = Draft(request, " ".join(fields["question"].split()))
    if not draft.question:
        return draft.reject("the model found nothing to ask for")
    if request.kind == UNANSWERABLE:
        near = (Context(chunk.text.strip(), chunk.document_id) for chunk in corpus.nearest(draft.question))
        return dataclasses.replace(draft, answer=_NOT_THERE, contexts=tuple(near))
    quotes = []
    for name, document in zip(("quote", "other_quote"), request.documents, strict=False):
        # as it stands in the document, whatever its white space; empty where it does not
        words = [re.escape(word) for word in fields.get(name, "").split()]
        match = re.search(r"\s+".join(words), corpus.documents[document].text) if words else None
        quotes.append(match[0] if match else "")
    contexts = tuple(Context(text, name) for text, name in zip(quotes, request.documents, strict=True))
    answer = fields.get("answer", "")
    draft = dataclasses.replace(draft, answer=answer, quotes=tuple(quotes), contexts=contexts)
    if not answer:
        return draft.reject("there is no answer")
    if not all(quotes):
        return draft.reject("a quote is not in its document")
    return draft


def expected_draft(request: QuestionRequest, corpus: Corpus) -> Draft:
    """What may be drafted, for the bound of a preview: the whole passage as its quote."""
    passages = [request.passage, *([request.other] if request.other else [])]
    if request.kind == UNANSWERABLE:
        passages = corpus.nearest(request.passage.text)
    contexts = tuple(Context(passage.text, passage.document_id) for passage in passages)
    return Draft(request, request.passage.text[:200], "x" * _LONGEST_ANSWER, contexts=contexts)


def item_of(draft: Draft, name: str) -> Item:
    """The question as an item of the set: its answer is the reference too, and people accept it or not."""
    answerable = draft.request.kind != UNANSWERABLE
    return Item(
        item_id=name,
        group=name,
        question=draft.question,
        answer=draft.answer,
        reference_answers=(draft.answer,),
        reference_documents=draft.request.documents if answerable else (),
        contexts=draft.contexts,
        tags=(draft.request.kind,),
    )


# The critics of drafted questions

Ask = Callable[[Respondent, Sequence[Item], str], Sequence[Judgement]]
"""Has somebody asked about items; the text is what progress shows."""


def criticise(drafts: Sequence[Draft], critics: Mapping[str, Judge], ask: Ask) -> list[Draft]:
    """The same drafts, those turned down that a critic does not let pass; each critic sees what is left.

    `critics`: a judge for each of `CRITICS`, in the order in which they are asked.
    """
    left = list(drafts)
    for critic, judge in critics.items():
        open_ = [(place, draft) for place, draft in enumerate(left) if not draft.rejected]
        shown = [(place, *check) for place, draft in open_ for check in checks(critic, draft)]
        rows = ask(judge, [item for _, item, _, _ in shown], f"critic: {critic}")
        for (place, _, wanted, why), row in zip(shown, rows, strict=True):
            if left[place].rejected is None and row.verdict is None:
                left[place] = left[place].reject(
                    lost(row) or f"we could not read what the critic {critic} said"
                )
            elif left[place].rejected is None and bool(row.verdict) is not wanted:
                left[place] = left[place].reject(why)
    return left


def lost(row: Judgement) -> str:
    """Why a call has to be made again; empty where it gave what it gives."""
    failed = row.error is not None and row.error.kind in RETRIED_ON_RESUME
    return f"{NO_CALL} ({row.error.kind})" if failed and row.error else ""


def checks(critic: str, draft: Draft) -> list[tuple[Item, bool, str]]:
    """What a critic is shown of a draft, what it must say, and what the draft is turned down for else."""
    request, name = draft.request, draft.request.name
    whole = Item(name, name, draft.question, draft.answer, contexts=draft.contexts)
    if critic == ANSWERABLE:
        if request.kind == UNANSWERABLE:
            return [(whole, False, "a document of the collection answers it")]
        return [(whole, True, "the quoted words alone do not answer it")]
    if request.kind == UNANSWERABLE:
        return []
    follows = [(whole, True, "the answer does not follow from the quoted words")]
    for place, context in enumerate(draft.contexts if request.kind == TWO_DOCUMENTS else (), 1):
        alone = dataclasses.replace(whole, item_id=f"{name}/{place}", contexts=(context,))
        follows.append((alone, False, "one document alone answers it"))
    return follows
